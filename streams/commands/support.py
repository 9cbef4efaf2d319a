"""`wirelessops support`: reference maps are built from recordings, refreshed, and shown (docs/support-gate.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from streams.commands.answering import FAILED, OK, NotRun, answering, put
from streams.commands.printing import printable
from streams.replay.recorded import UnreadableRecording
from streams.settings import SettingsError, load_contracts
from streams.support_folder import read_folder
from streams.support_recordings import Recordings
from streams.whole_file import replace_file
from xapp.contract import Contract, DocumentFaults
from xapp.support.building import admissions, build
from xapp.support.reference_map import DriftLimit, MapError, ReferenceMap, map_json, read_map
from xapp.support.terms import Terms, TermsError, read_terms
from xapp.times import utc

_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Source:
    """What a map is built from. `form`: of the recordings, None: guessed; `region`: of own ones this, None: all."""

    recordings: Sequence[Path]
    form: str | None
    region: str | None
    contracts_dir: Path | None
    shipped_contracts: bool


def build_map(terms: Path, source: Source, out: Path, map_id: str | None, *, force: bool) -> int:
    """Build version 1 of a map under terms; `map_id` None: the name of `out`.

    Exit codes: 0; 1 where the map is written and admits nothing; 2 with one line on stderr.
    """
    with answering() as answer:
        _may_write(out, force, [terms, *source.recordings])
        under = _terms(terms)
        answer.code = _write(out, *_built(under, source, map_id=out.stem if map_id is None else map_id), under)
    return answer.code


def refresh_map(old: Path, source: Source, out: Path, terms: Path | None, *, force: bool) -> int:
    """Build the next version of a map from other recordings: REFRESHED, or SMOKE_TEST from the same buffer.

    `terms` None: those in the map's folder that it was built under. Exit codes as of `build_map`.
    """
    with answering() as answer:
        previous = _map(old)
        under, beside = _terms_of(previous, old, terms)
        _may_write(out, force, [beside, *source.recordings])
        answer.code = _write(out, *_built(under, source, map_id=previous.map_id, previous=previous), under)
    return answer.code


def show_map(file: Path, terms: Path | None, *, as_json: bool) -> int:
    """What a map admits, what it does not and by how much, until when, and its drift limits; `terms` as in `refresh`.

    Exit codes: 0; 2 with one line on stderr.
    """
    with answering() as answer:
        found = _map(file)
        document = _document(found, _terms_of(found, file, terms)[0])
        shown = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() if as_json else _told(document)
        put(f"{shown}\n")
    return answer.code


def _built(
    terms: Terms, source: Source, *, map_id: str, previous: ReferenceMap | None = None
) -> tuple[ReferenceMap, int]:
    """The map, and how many places of the recordings could not be read. What is built can be read again."""
    try:
        recordings = Recordings(source.recordings, source.form, source.region)
        contract = _contract(terms, {**_contracts(source), **recordings.contracts()})
        newest_ms = max((ingest_ms for _, ingest_ms in recordings.arrivals(contract)), default=None)
        if newest_ms is None:
            raise NotRun(f"{source.recordings[0]}: no report in it")
        found = build(
            contract,
            terms,
            recordings.arrivals(contract),
            map_id=map_id,
            version=1 if previous is None else previous.version + 1,
            built_at_ms=newest_ms,
            recordings=recordings.digests(),
            previous=previous,
        )
        return read_map(map_json(found)), recordings.unreadable
    except UnreadableRecording as error:
        raise NotRun(str(error)) from error
    except MapError as error:  # of a clock that nobody had, say
        raise NotRun(f"{source.recordings[0]}: no map can be made of it: {error.path}: {error.reason}") from error


def _contracts(source: Source) -> Mapping[str, Contract]:
    try:
        return load_contracts(source.contracts_dir, source.shipped_contracts)
    except SettingsError as error:
        raise NotRun(str(error).splitlines()[0]) from error


def _contract(terms: Terms, contracts: Mapping[str, Contract]) -> Contract:
    contract = contracts.get(terms.contract_id)
    if contract is None:
        raise NotRun(f"$.contract_id: no contract {terms.contract_id!r} is here: name its folder by --contracts")
    return contract


def _terms(path: Path) -> Terms:
    try:
        return read_terms(path.read_bytes())
    except OSError as error:
        raise NotRun(f"{path}: {error.strerror or error}") from error
    except TermsError as error:
        raise NotRun(_first(path, error)) from error


def _map(path: Path) -> ReferenceMap:
    try:
        return read_map(path.read_bytes())
    except OSError as error:
        raise NotRun(f"{path}: {error.strerror or error}") from error
    except MapError as error:
        raise NotRun(_first(path, error)) from error


def _terms_of(found: ReferenceMap, path: Path, terms: Path | None) -> tuple[Terms, Path]:
    """The terms that a map was built under, and where they stand: those named, else those in its folder."""
    if terms is not None:
        named = _terms(terms)
        if named.digest != found.terms_digest:
            raise NotRun(f"{terms}: {path} was built under other terms: build a map anew")
        return named, terms
    try:
        contents = read_folder(path.parent)
    except SettingsError as error:
        raise NotRun(str(error).splitlines()[0]) from error
    for place, content in contents.items():
        try:
            beside = read_terms(content)
        except TermsError:  # a map, or another document
            continue
        if beside.digest == found.terms_digest:
            return beside, place
    raise NotRun(f"{path}: the terms that it was built under are not in its folder: name them by --terms")


def _first(path: Path, error: DocumentFaults) -> str:
    where, reason = error.errors[0]
    return f"{path}: {where}: {reason}"


def _may_write(out: Path, force: bool, inputs: Sequence[Path]) -> None:
    if out.resolve() in {path.resolve() for path in inputs}:
        raise NotRun(f"--out {out}: it is read from")
    if out.exists() and not force:
        raise NotRun(f"--out {out}: it exists: --force replaces it")


def _write(out: Path, found: ReferenceMap, unreadable: int, terms: Terms) -> int:
    document = _document(found, terms)
    try:
        replace_file(out, map_json(found) + b"\n")
    except OSError as error:
        raise NotRun(f"--out {out}: {error.strerror or error}") from error
    put(f"{_told(document)}\n")
    if unreadable:
        put(f"unreadable {unreadable} places of the recordings: nothing counts of what stands there\n")
    return OK if any(row["admitted"] for row in document["admissions"]) else FAILED


def _told(document: Mapping[str, Any]) -> str:
    return "\n".join(map(printable, _lines(document)))


def _document(found: ReferenceMap, terms: Terms) -> dict[str, Any]:
    rule = terms.rule
    return {
        "map_id": found.map_id,
        "version": found.version,
        "digest": found.digest,
        "contract_id": found.contract_id,
        "label": found.label,
        "built_at_ms": found.built_at_ms,
        "expires_at_ms": found.expires_at_ms,
        "recordings": list(found.recordings),
        "rule": {
            "min_visits": rule.min_visits,
            "min_partitions": rule.min_partitions,
            "partitions": rule.partitions,
            "partition_ms": terms.partition_ms,
        },
        "admissions": [
            {
                "field": name,
                "component": component.document(),
                "text": component.text,
                "partitions": partitions,
                "short": max(0, rule.min_partitions - partitions),
                "admitted": admitted,
            }
            for name, component, partitions, admitted in admissions(found, rule)
        ],
        "drift": [_drift(quarter, limit) for quarter, limit in sorted(found.drift.items(), key=lambda item: item[0])],
    }


def _drift(quarter: int, limit: DriftLimit | str) -> dict[str, Any]:
    if isinstance(limit, str):
        return {"quarter": quarter, "limit": None, "because": limit}
    return {"quarter": quarter, "limit": limit.limit, "calibrated_on": limit.calibrated_on}


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    rule, rows = document["rule"], document["admissions"]
    named = f"{document['map_id']} version {document['version']}"
    yield f"map        {named} of {document['contract_id']}, {document['label']}"
    yield f"digest     {document['digest']}"
    yield f"built      {utc(document['built_at_ms'])}, expires {utc(document['expires_at_ms'])}"
    yield (
        f"rule       {rule['min_visits']} visits in {rule['min_partitions']} of {rule['partitions']} partitions of "
        f"{rule['partition_ms']} ms"
    )
    for one in document["drift"]:
        if one["limit"] is None:
            said = f"not watched: {one['because']}"
        else:
            said = f"limit {one['limit']:.3f}, calibrated on {one['calibrated_on']} partitions"
        yield f"drift      quarter {one['quarter']}: {said}"
    admitted = [row for row in rows if row["admitted"]]
    nothing = "" if admitted else ": with this map in force, nothing under its contract is applied"
    yield f"admitted   {len(admitted)} of {len(rows)} fields in components{nothing}"
    yield from _rows(admitted, lambda row: f"{row['partitions']} partitions")
    short = [row for row in rows if not row["admitted"]]
    yield f"short      {len(short)}"
    yield from _rows(short, lambda row: f"{row['partitions']} partitions, {row['short']} too few")


def _rows(rows: Sequence[Mapping[str, Any]], said: Any) -> Iterator[str]:
    for row in rows[:_SHOWN]:
        yield f"  {row['field']} in {row['text']}: {said(row)}"
    if len(rows) > _SHOWN:
        yield f"  … and {len(rows) - _SHOWN} more (--json has all)"
