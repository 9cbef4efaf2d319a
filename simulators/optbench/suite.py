"""A suite: 600 cases and the manifest that pins them; written to a directory, and read back only as it was written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from simulators.optbench.base.anchors import anchors
from simulators.optbench.candidates import candidates, case_of
from simulators.optbench.model import BaseItem, Case, Change, Exposure, Facts, Outage, Sealed, Split, Task
from simulators.optbench.selection import select
from simulators.optbench.sources import generator_digest
from simulators.optbench.suite_checks import WHOLE, case_faults, composition_fault, label_fault, manifest_faults

FORMAT: Final = "wirelessops.optbench/1"
_EPISODES, _SEALED, _MANIFEST = "episodes.jsonl", "sealed.jsonl", "manifest.json"
_SHOWN: Final = 300


class ManifestError(ValueError):
    """An inventory that is not the one its manifest pins; says which episode or file."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases, and what pins them.

    `manifest`: format, split, seed, `base` (how many items from files and generated, per task), `excluded` (task, item
    id and reason of each item of the files that is not used), `generator` (SHA-256 of the sources that made it),
    `count`, `episodes`: id, SHA-256 of the view and SHA-256 of the sealed part, in order; and `digest`.
    """

    cases: tuple[Case, ...]
    manifest: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 over all that results depend on: format, split, seed, base, and the inventory.

        Not over `generator`: a comment in a source makes no other suite.
        """
        return _digest(self.manifest)


def build(split: Split, seed: int, base: Path | None = None) -> Suite:
    """The suite of a split. Raises BuildError (see `candidates`), and what reading `base` raises."""
    items = anchors(seed, base)
    chosen = select(candidates(items.final if split == "final" else items.development, seed))
    cases = sorted(map(case_of, chosen), key=lambda case: case.episode_id)
    return assembled(cases, split, seed, items.counts, [one._asdict() for one in items.excluded])


def assembled(
    cases: Sequence[Case],
    split: Split,
    seed: int,
    base: Mapping[Task, Mapping[Split, Mapping[str, int]]],
    excluded: Sequence[Mapping[str, str]] = (),
) -> Suite:
    """The suite of these cases, in their order. `base`, `excluded`: as in its manifest."""
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "split": split,
        "seed": seed,
        "base": base,
        "excluded": excluded,
        "generator": generator_digest(),
        "count": len(cases),
        "episodes": [_entry(case) for case in cases],
    }
    return Suite(tuple(cases), orjson.loads(_canonical({**manifest, "digest": _digest(manifest)})))


def subset(suite: Suite, cases: Iterable[Case]) -> Suite:
    """A part of a suite as a suite: these of its cases, in its order. Its manifest counts them."""
    wanted = {case.episode_id for case in cases}
    kept = [case for case in suite.cases if case.episode_id in wanted]
    told = suite.manifest
    part = assembled(kept, told["split"], told["seed"], told["base"], told["excluded"])
    return Suite(part.cases, {**part.manifest, "generator": told["generator"]})


def write(suite: Suite, directory: Path) -> None:
    """Writes episodes (public), sealed parts and manifest; the manifest last, so that half a suite is none."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _MANIFEST).unlink(missing_ok=True)
    (directory / _EPISODES).write_bytes(b"".join(_line(case.view) for case in suite.cases))
    (directory / _SEALED).write_bytes(b"".join(_line(case.sealed) for case in suite.cases))
    (directory / _MANIFEST).write_bytes(orjson.dumps(suite.manifest, option=orjson.OPT_INDENT_2) + b"\n")


def replaces(directory: Path) -> str | None:
    """The digest of the suite that writing one to `directory` would replace; None where nothing is there.

    Raises ManifestError for a folder that holds anything but a suite, or what is left of one, and OSError.
    """
    there = {path.name for path in directory.iterdir()} if directory.exists() else set()
    if there <= {_EPISODES, _SEALED}:
        return None
    with suppress(orjson.JSONDecodeError, FileNotFoundError):
        manifest = orjson.loads((directory / _MANIFEST).read_bytes())
        if isinstance(manifest, dict) and manifest.get("format") == FORMAT:
            return str(manifest.get("digest"))
    raise ManifestError(f"{directory} is not empty, and holds no suite: nothing there is overwritten")


def load(directory: Path) -> Suite:
    """The suite of a directory.

    Labels are those of the files; where the generator is this software's own, both judges must bear them out. Raises
    ManifestError where a file is missing, unreadable, malformed, or not what was written, and OSError.
    """
    try:
        return _loaded(directory)
    except FileNotFoundError as missing:
        raise ManifestError(f"{directory} holds no whole suite: {missing.filename} is not there") from None
    except (OSError, ManifestError):
        raise
    except Exception as error:  # whatever a stranger's documents make of readers and judges
        told = " ".join(f"{type(error).__name__}: {error}".split())[:_SHOWN]
        raise ManifestError(f"{directory} cannot be read: {told}") from error


def _loaded(directory: Path) -> Suite:
    manifest = orjson.loads((directory / _MANIFEST).read_bytes())
    for fault in manifest_faults(manifest, FORMAT):
        raise ManifestError(f"{directory / _MANIFEST}: {fault}")
    views, parts = (_documents(directory / name) for name in (_EPISODES, _SEALED))
    if not len(views) == len(parts) == manifest["count"]:
        raise ManifestError(
            f"{directory} holds {len(views)} episodes and {len(parts)} sealed parts; its manifest counts "
            f"{manifest['count']}"
        )
    cases = []
    for view, part, pinned in zip(views, parts, manifest["episodes"], strict=True):
        case = Case(view, sealed_from(part))
        for fault in _faults_of(case, part, pinned, judged=manifest["generator"] == generator_digest()):
            raise ManifestError(f"{directory}: episode {pinned['id']}: {fault}")
        cases.append(case)
    suite = Suite(tuple(cases), manifest)
    if suite.digest != manifest["digest"]:
        raise ManifestError(f"{directory / _MANIFEST}: its digest is that of another manifest")
    if len(cases) == WHOLE and (composed := composition_fault(cases)) is not None:
        raise ManifestError(f"{directory}: {composed}")
    return suite


def _documents(path: Path) -> list[Any]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def _faults_of(case: Case, part: Any, pinned: Mapping[str, str], judged: bool) -> Iterator[str]:
    """What is wrong with a case that was read. `part`: the document of its sealed part. `judged`: judge its label."""
    found = _entry(case)
    for name, value in found.items():
        if value != pinned[name]:
            yield f"its {name} is not what the manifest pins"
    if _canonical(orjson.loads(_canonical(case.sealed))) != _canonical(part):  # members of a dataclass are not sorted
        yield "its sealed part holds more than it may"
    yield from case_faults(case)
    if judged and (fault := label_fault(case)) is not None:
        yield fault


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


def _digest(manifest: Mapping[str, Any]) -> str:
    covered = {name: manifest[name] for name in ("format", "split", "seed", "base", "episodes")}
    return "sha256:" + _sha256(_canonical(covered))


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
