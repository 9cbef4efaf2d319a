"""The suites that published figures stand on: what building them must give, on every platform.

After a change of what makes episodes or labels, `python -m simulators.optbench.frozen` prints the table anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from simulators.optbench.model import Split
from simulators.optbench.suite import Suite, build
from simulators.optbench.suite_checks import WHOLE

SUITES: Final[tuple[tuple[Split, int], ...]] = (("final", 0), ("final", 1), ("development", 0))
"""The frozen suites by split and seed; all their base items are generated."""

FROZEN: Final[Mapping[tuple[Split, int], str]] = {
    ("final", 0): "sha256:2b38b7c5cd5bc66d5d5c18e60c9e154c341d3e794a63c7eda2e40eb38b51f885",
    ("final", 1): "sha256:0568767dfd6068307942f9422e8c67aa1a603e5c137538cd0cfec8b737f0433e",
    ("development", 0): "sha256:3aef48b748cc147144aa4ca120e2b5f41b083c6eca214556d73afd1996e52433",
}
"""(split, seed) → `content` of that suite."""


def content(suite: Suite) -> str:
    """SHA-256 over what methods see and what they are measured by: id, hash of the view, and reference of each episode.

    Hashes as the manifest pins them. It says nothing of how a sealed part is written down.
    """
    digest = hashlib.sha256()
    for case, pinned in zip(suite.cases, suite.manifest["episodes"], strict=True):
        digest.update(f"{case.episode_id} {pinned['view']} {case.sealed.reference}\n".encode())
    return "sha256:" + digest.hexdigest()


def fault(suite: Suite, frozen: Mapping[tuple[Split, int], str] = FROZEN) -> str | None:
    """How a suite differs from the frozen one of its split and seed; None: it is that, or none is frozen.

    Suites with items of files, and parts of suites, are none of the frozen ones.
    """
    manifest = suite.manifest
    pinned = frozen.get((manifest["split"], manifest["seed"]))
    of_files = any(counts["file"] for splits in manifest["base"].values() for counts in splits.values())
    if pinned is None or of_files or manifest["count"] != WHOLE:
        return None
    found = content(suite)
    if found == pinned:
        return None
    return (
        f"split {manifest['split']}, seed {manifest['seed']} is {found} here, and frozen as {pinned}: this platform, "
        "or a version of this software or of what it needs, differs"
    )


if __name__ == "__main__":
    for split, seed in SUITES:
        print(f'    ("{split}", {seed}): "{content(build(split, seed))}",')
