"""Facts as a ledger: observations in arrival order, as an episode document holds them (rules, section 1).

Observations are named `o1`, `o2`, … once they are sorted, so that neither a name nor an order tells what was done. What
is arbitrary in a ledger (see `nonces`) is drawn for what it is of: what is told elsewhere cannot show in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from simulators.optbench.model import BaseItem, Change, ChangeKind, Exposure, Facts, Scalar
from simulators.optbench.realisation.nonces import Nonces
from simulators.optbench.realisation.units import moved, told_in

_DELAY_MS: Final = (8, 30)  # from measuring to arriving
_AFTER_MS: Final = (1, 8)  # from what a report waits for to the report
_RENAMING: Final[tuple[ChangeKind, ...]] = ("alias", "foreign_name", "shared_name")
_UNITS_AS_TOLD: Final[tuple[ChangeKind, ...]] = ("no_unit", "foreign_unit", "unheard_unit")

_Changes = Mapping[str, Change]


@dataclass(slots=True)
class _Report:
    """An observation before it has a name. `generation`: parents have a lower one; `forced`: of a version that its
    event time does not explain, above all others of its source; `own`: what is arbitrary in it.
    """

    told: dict[str, Any]
    own: Nonces
    parents: tuple[tuple[str, str], ...] = ()
    generation: int = 0
    forced: bool = False
    lost: bool = False
    version: int = 0


def render(
    item: BaseItem, facts: Facts, decided_at_ms: int, nonces: Nonces
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The observations of an episode at t = `decided_at_ms`, in arrival order, and its `sources` (outages alone).

    Nothing arrives after t, or before its parents. Raises KeyError for an exposure whose parent is told by nobody.
    """
    mains: dict[tuple[str, str], _Report] = {}
    reports: list[_Report] = []
    for exposure in _parents_first(facts):
        main, *others = _reports(item, exposure, mains, decided_at_ms, nonces)
        if not exposure.memory:
            mains[exposure.field, exposure.source] = main
        reports += [main, *others]
    _number_versions(reports, nonces)
    reports = _in_turn(reports)
    ids = {id(report): f"o{n}" for n, report in enumerate(reports, 1)}
    observations = []
    for report in reports:
        parents = [ids[id(mains[parent])] for parent in report.parents]
        if report.lost:
            lost = f"o{len(reports) + report.own.between(1, 9, 'lost')}"
            parents.insert(report.own.between(0, len(parents), "place of the lost"), lost)
        told = {"id": ids[id(report)], **report.told, "version": report.version, "parents": parents}
        observations.append({key: told[key] for key in MEMBERS})
    sources = {
        o.source: {
            "status": "outage", "retryable": o.retryable, "retry_after_ms": o.retry_after_ms,
            "retries_left": o.retries_left,
        }
        for o in sorted(facts.outages, key=lambda outage: outage.source)
    }  # fmt: skip
    return observations, sources


MEMBERS: Final = (
    "id", "name", "value", "unit", "source", "event_time_ms", "ingest_time_ms", "version", "quality", "schema",
    "parents", "origin",
)  # fmt: skip
"""Members of every observation, in their order."""


def _in_turn(reports: list[_Report]) -> list[_Report]:
    """Reports as they arrive; which of two comes first that arrive at once is arbitrary."""
    reports.sort(key=_arrived)
    turns: list[_Report] = []
    for _, group in groupby(reports, key=_arrived):
        at_once = list(group)
        if len(at_once) > 1:
            at_once.sort(key=lambda r: r.own.share("turn"))
        turns += at_once
    return turns


def _arrived(report: _Report) -> tuple[int, int]:
    return report.told["ingest_time_ms"], report.generation


def _parents_first(facts: Facts) -> Iterator[Exposure]:
    waiting, done = list(facts.exposures), set[tuple[str, str]]()
    while waiting:
        ready, later = list[Exposure](), list[Exposure]()
        for exposure in waiting:
            (ready if done.issuperset(exposure.parents) else later).append(exposure)
        if not ready:
            raise KeyError(f"nobody tells a parent of {waiting[0].field} at {waiting[0].source}")
        yield from ready
        done |= {(e.field, e.source) for e in ready if not e.memory}
        waiting = later


def _reports(
    item: BaseItem, exposure: Exposure, mains: Mapping[tuple[str, str], _Report], now_ms: int, nonces: Nonces
) -> list[_Report]:
    """What one exposure sends: the observation that others descend from, then what comes besides."""
    own = nonces.of(exposure.field, exposure.source, exposure.memory)
    changes: _Changes = {c.kind: c for c in exposure.changes}
    dated = changes.get("aged") or changes.get("repeated")
    event = now_ms - (round(dated.amount) if dated else exposure.age_ms)
    parents = [mains[parent] for parent in exposure.parents]
    arrival = _arrival(event, parents, now_ms, own)
    form = _form(item, exposure, changes, own)
    generation = 1 + max((p.generation for p in parents), default=-1)

    def report(what: str, value: Scalar | None, event_ms: int, ingest_ms: int, forced: bool = False) -> _Report:
        told = {**form, "value": value, "event_time_ms": event_ms, "ingest_time_ms": min(ingest_ms, now_ms)}
        return _Report(told, own.of(what), exposure.parents, generation, forced, "lost_parent" in changes)

    value = _value(item, exposure.field, changes.get("differs"))
    said = _said(item, exposure.field, value, changes)
    others = []
    if "repeated" in changes:
        others.append(report("first", said, event, arrival))
        arrival = max(arrival, now_ms - own.between(*_DELAY_MS, "again"))
    if change := changes.get("contradicted"):
        rival = _said(item, exposure.field, _moved(value, change), changes)
        others.append(report("contradicted", rival, event, arrival))
        arrival += own.between(*_AFTER_MS, "contradicted")
    main = report("main", said, event, arrival, forced="repeated" in changes)
    for kind in ("overtaken", "overwritten"):
        if change := changes.get(kind):
            older = _said(item, exposure.field, _moved(value, change), changes)
            arrives = arrival + own.between(*_AFTER_MS, kind)
            late = report(kind, older, event - change.age_ms, arrives, kind == "overwritten")
            late.generation += 1  # arrives after the newer one, also within one millisecond
            others.append(late)
    if exposure.source == item.contract["fields"][exposure.field]["sources"][0] and not exposure.memory:
        for age_ms, sample in item.series.get(exposure.field, ()):
            sampled = now_ms - age_ms
            others.append(report(f"{age_ms}", sample, sampled, _arrival(sampled, [], now_ms, own.of(age_ms))))
    return [main, *others]


def _arrival(event_ms: int, parents: list[_Report], now_ms: int, own: Nonces) -> int:
    arrival = event_ms + own.between(*_DELAY_MS, "delay")
    if parents:
        arrival = max(arrival, max(p.told["ingest_time_ms"] for p in parents) + own.between(*_AFTER_MS, "after"))
    return min(arrival, now_ms)


def _form(item: BaseItem, exposure: Exposure, changes: _Changes, own: Nonces) -> dict[str, Any]:
    """All that an exposure's observations have in common."""
    f = item.contract["fields"][exposure.field]
    renamed = next((changes[k] for k in _RENAMING if k in changes), None)
    retold = next((changes[k] for k in (*_UNITS_AS_TOLD, "prefixed_unit") if k in changes), None)
    unit = f.get("unit") or "1"
    if f.get("type", "number") != "number":
        unit = None
    elif unit == "1":
        unit = own.one_of((None, "1"), "unit")
    schema = own.one_of(f["schemas"], "schema") if f.get("schemas") else None
    return {
        "name": renamed.text if renamed else exposure.field,
        "unit": retold.text if retold else unit,
        "source": exposure.source,
        "quality": "no_value" if "no_value" in changes else "good",
        "schema": changes["schema"].text if "schema" in changes else schema,
        "origin": "memory" if exposure.memory else "live",
    }


def _value(item: BaseItem, name: str, change: Change | None) -> Scalar:
    return item.observed[name] if change is None else _moved(item.observed[name], change)


def _moved(value: Scalar, change: Change) -> Scalar:
    if change.text is not None:
        return change.text
    assert isinstance(value, int | float), "only a number is an amount away"
    return moved(value, change.amount)


def _said(item: BaseItem, name: str, value: Scalar, changes: _Changes) -> Scalar | None:
    """A value in the contract's unit, as it is told."""
    if "no_value" in changes:
        return None
    retold = changes.get("prefixed_unit")
    if retold is None:
        return value
    assert isinstance(value, int | float), "only a number has a unit"
    assert retold.text is not None, "a prefixed unit is named"
    return told_in(value, item.contract["fields"][name].get("unit") or "1", retold.text)


def _number_versions(reports: list[_Report], nonces: Nonces) -> None:
    """State versions that grow with the event time, per source; a forced one lies above all others."""
    by_source: dict[str, list[_Report]] = {}
    for report in reports:
        by_source.setdefault(report.told["source"], []).append(report)
    for source, group in by_source.items():
        first = nonces.between(100, 9000, "version", source)
        events = sorted({r.told["event_time_ms"] for r in group})
        for report in group:
            above = len(events) if report.forced else events.index(report.told["event_time_ms"])
            report.version = first + above
