"""A suite: 600 cases and the manifest that pins them; written to a directory, and read back only as it was written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

from simulators.optbench.base.anchors import anchors
from simulators.optbench.candidates import candidates, case_of
from simulators.optbench.model import BaseItem, Case, Change, Exposure, Facts, Outage, Sealed, Split
from simulators.optbench.selection import select

FORMAT: Final = "wirelessops.optbench/1"
_EPISODES, _SEALED, _MANIFEST = "episodes.jsonl", "sealed.jsonl", "manifest.json"


class ManifestError(ValueError):
    """An inventory that is not the one its manifest pins; says which episode or file."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases, and what pins them.

    `manifest`: format, split, seed, `base` (how many items from files and generated, per task), `excluded` (task, item
    id and reason of each item of the files that is not used), `generator` (SHA-256 of the sources that made it), and
    `episodes`: id, SHA-256 of the view and SHA-256 of the sealed part, in order.
    """

    cases: tuple[Case, ...]
    manifest: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 over the inventory: equal digests are equal episodes, views and sealed parts."""
        return "sha256:" + _sha256(_canonical(self.manifest["episodes"]))


def build(split: Split, seed: int, base: Path | None = None) -> Suite:
    """The suite of a split. Raises BuildError (see `candidates`), and what reading `base` raises."""
    items = anchors(seed, base)
    chosen = select(candidates(items.final if split == "final" else items.development, seed))
    cases = tuple(sorted(map(case_of, chosen), key=lambda case: case.episode_id))
    manifest = {
        "format": FORMAT,
        "split": split,
        "seed": seed,
        "base": items.counts,
        "excluded": [one._asdict() for one in items.excluded],
        "generator": generator_digest(),
        "episodes": [_entry(case) for case in cases],
    }
    return Suite(cases, orjson.loads(_canonical(manifest)))


def write(suite: Suite, directory: Path) -> None:
    """Writes episodes (public), sealed parts and manifest; the manifest last, so that half a suite is none."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _MANIFEST).unlink(missing_ok=True)
    (directory / _EPISODES).write_bytes(b"".join(_line(case.view) for case in suite.cases))
    (directory / _SEALED).write_bytes(b"".join(_line(case.sealed) for case in suite.cases))
    (directory / _MANIFEST).write_bytes(orjson.dumps(suite.manifest, option=orjson.OPT_INDENT_2) + b"\n")


def load(directory: Path) -> Suite:
    """The suite of a directory. Raises ManifestError where a file is missing, unreadable, or not what was written."""
    try:
        manifest = orjson.loads((directory / _MANIFEST).read_bytes())
        views = [orjson.loads(line) for line in (directory / _EPISODES).read_bytes().splitlines()]
        sealed = [sealed_from(orjson.loads(line)) for line in (directory / _SEALED).read_bytes().splitlines()]
    except FileNotFoundError as missing:
        raise ManifestError(f"{directory} holds no whole suite: {missing.filename} is not there") from None
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise ManifestError(f"{directory} cannot be read: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ManifestError(f"{directory / _MANIFEST} is no manifest of format {FORMAT}")
    if not len(views) == len(sealed) == len(manifest["episodes"]):
        raise ManifestError(
            f"{directory} holds {len(views)} episodes and {len(sealed)} sealed parts; its manifest lists "
            f"{len(manifest['episodes'])}"
        )
    cases = tuple(Case(view, part) for view, part in zip(views, sealed, strict=True))
    for case, pinned in zip(cases, manifest["episodes"], strict=True):
        found = _entry(case)
        if found != pinned:
            part = next(name for name in ("id", "view", "sealed") if found[name] != pinned.get(name))
            raise ManifestError(f"{directory}: the {part} of episode {case.episode_id} is not what the manifest pins")
    return Suite(cases, manifest)


def sealed_from(document: Mapping[str, Any]) -> Sealed:
    """The sealed part from its JSON form."""
    item, facts = document["item"], document["facts"]
    series = {name: tuple((int(age), value) for age, value in samples) for name, samples in item["series"].items()}
    lineage = {name: tuple(parents) for name, parents in item["lineage"].items()}
    return Sealed(
        BaseItem(**{**item, "series": series, "lineage": lineage}),
        document["family"],
        document["domain"],
        Facts(
            tuple(
                Exposure(
                    **{
                        **exposure,
                        "parents": tuple((name, source) for name, source in exposure["parents"]),
                        "changes": tuple(Change(**change) for change in exposure["changes"]),
                    }
                )
                for exposure in facts["exposures"]
            ),
            tuple(Outage(**outage) for outage in facts["outages"]),
        ),
        document["reference"],
        frozenset(document["blocked"]),
    )


@cache
def generator_digest() -> str:
    """SHA-256 over the sources of the benchmark that make episodes and labels."""
    here = Path(__file__).parent
    patterns = (
        "model.py", "contracts.py", "candidates.py", "selection.py", "suite.py",
        "oracle*.py", "certificate*.py", "base/*.py", "realisation/*.py",
    )  # fmt: skip
    made = [source for pattern in patterns for source in here.glob(pattern)]
    digest = hashlib.sha256()
    for source in sorted(made):
        digest.update(str(source.relative_to(here)).encode() + b"\0" + source.read_bytes() + b"\0")
    return "sha256:" + digest.hexdigest()


def _entry(case: Case) -> dict[str, str]:
    return {
        "id": case.episode_id,
        "view": _sha256(_canonical(case.view)),
        "sealed": _sha256(_canonical(case.sealed)),
    }


def _line(value: Any) -> bytes:
    """In the order of its members, which a contract's readers see: what is read back behaves as what was built."""
    return orjson.dumps(value, default=_sets, option=orjson.OPT_APPEND_NEWLINE)


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, default=_sets, option=orjson.OPT_SORT_KEYS)


def _sets(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
