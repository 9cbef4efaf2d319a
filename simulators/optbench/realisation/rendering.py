"""Facts as a ledger: observations in arrival order, as an episode document holds them (rules, section 1).

Observations are named `o1`, `o2`, … once they are sorted, so that neither a name nor an order tells what was done.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from simulators.optbench.model import BaseItem, Change, ChangeKind, Exposure, Facts, Scalar
from simulators.optbench.realisation.units import moved, told_in

_DELAY_MS: Final = (8, 30)  # from measuring to arriving
_AFTER_MS: Final = (1, 8)  # from what a report waits for to the report
_RENAMING: Final[tuple[ChangeKind, ...]] = ("alias", "foreign_name", "shared_name")
_UNITS_AS_TOLD: Final[tuple[ChangeKind, ...]] = ("no_unit", "foreign_unit", "unheard_unit")

_Changes = Mapping[str, Change]


@dataclass(slots=True)
class _Report:
    """An observation before it has a name. `generation`: parents have a lower one; `forced`: of a version that its
    event time does not explain, above all others of its source.
    """

    told: dict[str, Any]
    parents: tuple[tuple[str, str], ...] = ()
    generation: int = 0
    forced: bool = False
    lost: bool = False
    version: int = 0


def render(
    item: BaseItem, facts: Facts, decided_at_ms: int, rng: random.Random
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The observations of an episode at t = `decided_at_ms`, in arrival order, and its `sources` (outages alone).

    Nothing arrives after t, or before its parents. Raises KeyError for an exposure whose parent is told by nobody.
    """
    mains: dict[tuple[str, str], _Report] = {}
    reports: list[_Report] = []
    for exposure in _parents_first(facts):
        main, *others = _reports(item, exposure, mains, decided_at_ms, rng)
        if not exposure.memory:
            mains[exposure.field, exposure.source] = main
        reports += [main, *others]
    _number_versions(reports, rng)
    reports.sort(key=lambda r: (r.told["ingest_time_ms"], r.generation, rng.random()))
    ids = {id(report): f"o{n}" for n, report in enumerate(reports, 1)}
    observations = []
    for report in reports:
        parents = [ids[id(mains[parent])] for parent in report.parents]
        if report.lost:
            parents.insert(rng.randint(0, len(parents)), f"o{len(reports) + rng.randint(1, 9)}")
        told = {"id": ids[id(report)], **report.told, "version": report.version, "parents": parents}
        observations.append({key: told[key] for key in _KEYS})
    sources = {
        o.source: {
            "status": "outage", "retryable": o.retryable, "retry_after_ms": o.retry_after_ms,
            "retries_left": o.retries_left,
        }
        for o in facts.outages
    }  # fmt: skip
    return observations, sources


_KEYS: Final = (
    "id", "name", "value", "unit", "source", "event_time_ms", "ingest_time_ms", "version", "quality", "schema",
    "parents", "origin",
)  # fmt: skip


def _parents_first(facts: Facts) -> Iterator[Exposure]:
    waiting, done = list(facts.exposures), set[tuple[str, str]]()
    while waiting:
        ready = [e for e in waiting if set(e.parents) <= done]
        if not ready:
            raise KeyError(f"nobody tells a parent of {waiting[0].field} at {waiting[0].source}")
        yield from ready
        done |= {(e.field, e.source) for e in ready if not e.memory}
        waiting = [e for e in waiting if e not in ready]


def _reports(
    item: BaseItem, exposure: Exposure, mains: Mapping[tuple[str, str], _Report], now_ms: int, rng: random.Random
) -> list[_Report]:
    """What one exposure sends: the observation that others descend from, then what comes besides."""
    changes: _Changes = {c.kind: c for c in exposure.changes}
    dated = changes.get("aged") or changes.get("repeated")
    event = now_ms - (round(dated.amount) if dated else exposure.age_ms)
    parents = [mains[parent] for parent in exposure.parents]
    arrival = _arrival(event, parents, now_ms, rng)
    form = _form(item, exposure, changes, rng)
    generation = 1 + max((p.generation for p in parents), default=-1)

    def report(value: Scalar | None, event_ms: int, ingest_ms: int, forced: bool = False) -> _Report:
        told = {**form, "value": value, "event_time_ms": event_ms, "ingest_time_ms": min(ingest_ms, now_ms)}
        return _Report(told, exposure.parents, generation, forced, "lost_parent" in changes)

    value = _value(item, exposure.field, changes.get("differs"))
    said = _said(item, exposure.field, value, changes)
    others = []
    if "repeated" in changes:
        others.append(report(said, event, arrival))
        arrival = max(arrival, now_ms - rng.randint(*_DELAY_MS))
    if change := changes.get("contradicted"):
        others.append(report(_said(item, exposure.field, _moved(value, change), changes), event, arrival))
        arrival += rng.randint(*_AFTER_MS)
    main = report(said, event, arrival, forced="repeated" in changes)
    for kind in ("overtaken", "overwritten"):
        if change := changes.get(kind):
            older = _said(item, exposure.field, _moved(value, change), changes)
            late = report(older, event - change.age_ms, arrival + rng.randint(*_AFTER_MS), kind == "overwritten")
            late.generation += 1  # arrives after the newer one, also within one millisecond
            others.append(late)
    if exposure.source == item.contract["fields"][exposure.field]["sources"][0] and not exposure.memory:
        for age_ms, sample in item.series.get(exposure.field, ()):
            sampled = now_ms - age_ms
            others.append(report(sample, sampled, _arrival(sampled, [], now_ms, rng)))
    return [main, *others]


def _arrival(event_ms: int, parents: list[_Report], now_ms: int, rng: random.Random) -> int:
    after = max((p.told["ingest_time_ms"] + rng.randint(*_AFTER_MS) for p in parents), default=0)
    return min(max(event_ms + rng.randint(*_DELAY_MS), after), now_ms)


def _form(item: BaseItem, exposure: Exposure, changes: _Changes, rng: random.Random) -> dict[str, Any]:
    """All that an exposure's observations have in common."""
    f = item.contract["fields"][exposure.field]
    renamed = next((changes[k] for k in _RENAMING if k in changes), None)
    retold = next((changes[k] for k in (*_UNITS_AS_TOLD, "prefixed_unit") if k in changes), None)
    unit = f.get("unit") or "1"
    if f.get("type", "number") != "number":
        unit = None
    elif unit == "1":
        unit = rng.choice((None, "1"))
    schema = rng.choice(f["schemas"]) if f.get("schemas") else None
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


def _number_versions(reports: list[_Report], rng: random.Random) -> None:
    """State versions that grow with the event time, per source; a forced one lies above all others."""
    by_source: dict[str, list[_Report]] = {}
    for report in reports:
        by_source.setdefault(report.told["source"], []).append(report)
    for group in by_source.values():
        first = rng.randint(100, 9000)
        events = sorted({r.told["event_time_ms"] for r in group})
        for report in group:
            above = len(events) if report.forced else events.index(report.told["event_time_ms"])
            report.version = first + above
