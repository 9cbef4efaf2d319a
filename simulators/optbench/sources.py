"""Digests of this software's own sources: what a suite, and what decision bundles were made by."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]
_HERE: Final = "simulators/optbench/"
_SUITES: Final = (
    "model.py", "contracts.py", "candidates.py", "selection.py", "suite.py", "oracle*.py", "certificate*.py",
    "base/*.py", "realisation/*.py",
)  # fmt: skip
_BUNDLES: Final = (
    "agents.py", "ablations.py", "bundles.py", "prompts.py", "replies.py", "synthetic.py", "tools.py", "methods/*.py",
    "base/*.py",
)  # fmt: skip


@cache
def generator_digest() -> str:
    """SHA-256 over the sources of the benchmark that make episodes and labels."""
    return _digest(_HERE + pattern for pattern in _SUITES)


@cache
def workflow_digest() -> str:
    """SHA-256 over the sources that make decision bundles: methods and ablations, what they are made of, the engine."""
    return _digest([*(_HERE + pattern for pattern in _BUNDLES), "xapp/**/*.py"])


def _digest(patterns: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for source in sorted({path for pattern in patterns for path in _ROOT.glob(pattern)}):
        digest.update(source.relative_to(_ROOT).as_posix().encode() + b"\0" + source.read_bytes() + b"\0")
    return "sha256:" + digest.hexdigest()
