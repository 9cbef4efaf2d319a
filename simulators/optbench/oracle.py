"""The fact-level oracle: the reference action that follows from what was done to an episode's evidence.

It reads `Facts`, the contract's document and the item's nominal values; never an observation, an id or a rendered
ledger. The clauses cited are those of the action assurance rules (sections 3 and 5: integrity, and the ordered
policy) and of the benchmark's reference policy. The tables hold the rules; the functions below apply them.

An exposure that a change lets tell twice is read as two reports; everything else about it is its one report's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import isfinite
from typing import Any, Final, NamedTuple

from simulators.optbench.model import BaseItem, Change, ChangeKind, Exposure, Facts, Outage, Scalar, Verdict


class _Code(NamedTuple):
    """How a violation is filed: its class and its rank among several of one field (section 5), and the predicate."""

    klass: str
    rank: int
    predicate: str


_CODES: Final[Mapping[str, _Code]] = {
    "ambiguous_schema": _Code("schema", 0, "ambiguous_schema"),
    "ambiguous_unit": _Code("schema", 0, "ambiguous_schema"),
    "conflict": _Code("conflict", 1, "material_conflict"),
    "out_of_order": _Code("conflict", 1, "material_conflict"),
    "unknown_source": _Code("provenance", 2, "material_conflict"),
    "unresolved_provenance": _Code("provenance", 2, "material_conflict"),
    "outage": _Code("availability", 3, "retryable_outage"),
    "unknown_schema": _Code("schema", 4, "unknown_critical_schema"),
    "unknown_unit": _Code("schema", 4, "unknown_critical_schema"),
    "stale": _Code("freshness", 5, "stale_required_state"),
    "no_value": _Code("domain", 6, "stale_required_state"),
    "out_of_range": _Code("domain", 6, "stale_required_state"),
    "missing": _Code("availability", 7, "stale_required_state"),
}

_POLICY: Final[tuple[tuple[str, str], ...]] = (
    ("ambiguous_schema", "ESCALATE"),
    ("material_conflict", "ESCALATE"),
    ("independent_failures", "ESCALATE"),
    ("retryable_outage", "RETRY"),
    ("unknown_critical_schema", "HOLD"),
    ("stale_required_state", "HOLD"),
    ("none", "APPLY"),
)
"""The reference policy: ordered, the first predicate that holds gives the action."""

_ASPECTS: Final[Mapping[ChangeKind, str]] = {
    "alias": "name",
    "foreign_name": "name",
    "shared_name": "name",
    "prefixed_unit": "unit",
    "no_unit": "unit",
    "foreign_unit": "unit",
    "unheard_unit": "unit",
    "schema": "schema",
    "aged": "time",
    "repeated": "time",
    "differs": "value",
    "contradicted": "second report",
    "overtaken": "second report",
    "overwritten": "second report",
    "no_value": "presence",
    "lost_parent": "lineage",
}
"""What each kind of change touches. An exposure is changed at most once in each aspect."""

_UNIT_FAULTS: Final[Mapping[str, str]] = {
    "no_unit": "ambiguous_unit",
    "foreign_unit": "ambiguous_unit",
    "unheard_unit": "unknown_unit",
}
"""Section 3, check 6. A compatible unit (`prefixed_unit`) is converted, and no fault."""

_DISPUTES: Final[Mapping[str, str]] = {"contradicted": "conflict", "overwritten": "out_of_order"}
"""Section 3: what a second report is that differs beyond tolerance. An older event of a lower version is none."""


@dataclass(frozen=True, slots=True)
class _Field:
    """What the contract says of one observed field. `freshness` in ms; bounds and `tolerance` in its `unit`."""

    name: str
    critical: bool
    sources: tuple[str, ...]
    freshness: float
    tolerance: float
    rel_tolerance: float
    low: float
    high: float
    unit: str
    schemas: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class _Telling:
    """An exposure, its changes by aspect, and the fields that its name binds it to (none: a foreign name)."""

    exposure: Exposure
    changes: Mapping[str, Change]
    bound: tuple[_Field, ...]
    value: Scalar

    def is_told(self, kind: ChangeKind) -> bool:
        """Whether the change `kind` was made to it."""
        change = self.changes.get(_ASPECTS[kind])
        return change is not None and change.kind == kind

    @property
    def age(self) -> float:
        """t less its event time, in ms."""
        changed = self.changes.get("time")
        return self.exposure.age_ms if changed is None else changed.amount


class _Report(NamedTuple):
    """One observation of a telling."""

    telling: _Telling
    age: float
    value: Scalar


class _Head(NamedTuple):
    """The newest report of a source for a field, and the first fault of its checks."""

    report: _Report
    fault: str | None


class _Filing(NamedTuple):
    """A violation of a field: code, source, and the exposures whose observations show it."""

    code: str
    source: str
    shown_by: tuple[_Telling, ...] = ()


@dataclass(frozen=True, slots=True)
class _Scene:
    """The facts, read: observed fields in contract order, live tellings by (field, source), memories, outages."""

    fields: Mapping[str, _Field]
    live: Mapping[tuple[str, str], _Telling]
    memories: tuple[_Telling, ...]
    out: frozenset[str]

    def parents(self, telling: _Telling) -> tuple[_Telling, ...]:
        """The tellings that `telling` was computed from, in listed order."""
        return tuple(self.live[key] for key in telling.exposure.parents)


def judge(item: BaseItem, facts: Facts) -> Verdict:
    """The reference action that `facts` give to `item`'s episode, the predicate behind it, and the blocked fields.

    `blocked` holds the critical observed fields that nothing supports or that are in conflict; `cites` stays empty.
    Raises ValueError for facts outside the suite's vocabulary: a final outage, an unknown kind of change, an unknown
    field or source, a parent that no exposure tells, a cycle of parents, one aspect changed twice, or a second value
    beside a report that is sent again (which of them the source would mean is left open).
    """
    scene = _read(item, facts)
    filings = {
        field.name: filing
        for field in scene.fields.values()
        if field.critical and (filing := _filed(scene, field)) is not None
    }
    holding = {_CODES[filing.code].predicate for filing in filings.values()} | {"none"}
    if any(_independent(scene, one, other) for one, other in combinations(filings.values(), 2)):
        holding.add("independent_failures")
    predicate, action = next(row for row in _POLICY if row[0] in holding)
    return Verdict(action, predicate, frozenset(filings))


# A field: what it is filed under.


def _filed(scene: _Scene, field: _Field) -> _Filing | None:
    """What a blocked field is filed under, or None: of several reasons the first by rank and source (section 5)."""
    heads = {source: head for source in field.sources if (head := _head(scene, field, source)) is not None}
    sound = {source: head.report for source, head in heads.items() if head.fault is None}
    if sound:
        disputes = list(_disputes(scene, field, sound))
        reasons = disputes + _faults(heads) if disputes else []
    elif _is_recalled(scene, field):
        reasons = []
    else:
        reasons = _wants(scene, field, heads)
    order = {source: place for place, source in enumerate(field.sources)}
    return min(reasons, key=lambda r: (_CODES[r.code].rank, order.get(r.source, len(order))), default=None)


def _disputes(scene: _Scene, field: _Field, sound: Mapping[str, _Report]) -> Iterator[_Filing]:
    """Section 3, `conflict` and `out_of_order`: among admissible reports alone, where they differ beyond tolerance."""
    for source, head in sound.items():
        second = head.telling.changes.get("second report")
        if second is not None and second.kind in _DISPUTES:
            rest = _reports(head.telling)[1]
            if _fault(scene, rest, field) is None and _differ(field, head.value, rest.value):
                yield _Filing(_DISPUTES[second.kind], source, (head.telling,))
    for (source, one), (_, other) in combinations(sound.items(), 2):
        if _differ(field, one.value, other.value):
            yield _Filing("conflict", source, (one.telling, other.telling))


def _faults(heads: Mapping[str, _Head]) -> list[_Filing]:
    """The faults of heads: on a blocked field none of them is resolved (section 3)."""
    return [_Filing(h.fault, source, (h.report.telling,)) for source, h in heads.items() if h.fault is not None]


def _wants(scene: _Scene, field: _Field, heads: Mapping[str, _Head]) -> list[_Filing]:
    """Section 3, of a field that nothing supports: faults of heads and outages; only for want of both the rest.

    A stale head of a source in outage is that outage: it needs no exception here, as an outage is filed before age.
    """
    primary = field.sources[0]
    last = {source: (heads[source].report.telling,) for source in heads}
    reasons = [_Filing("outage", source, last.get(source, ())) for source in field.sources if source in scene.out]
    reasons += _faults(heads)
    bound = [t for t in scene.live.values() if field in t.bound]
    if not bound and any(not t.bound and t.exposure.source in field.sources for t in scene.live.values()):
        reasons.append(_Filing("unknown_schema", primary))
    if not reasons:
        reasons += [_Filing("unknown_source", t.exposure.source, (t,)) for t in bound]
    return reasons or [_Filing("missing", primary)]


def _is_recalled(scene: _Scene, field: _Field) -> bool:
    """Section 3, memory: sound, newer than every live report of the field, and at one with the other such memories."""
    newest = min((t.age for s in field.sources for t in _binding(scene, field, s)), default=float("inf"))
    recalled = [
        report.value
        for memory in scene.memories
        if field in memory.bound
        for report in _reports(memory)
        if report.age < newest and _fault(scene, report, field) is None
    ]
    return bool(recalled) and not any(_differ(field, one, other) for one, other in combinations(recalled, 2))


def _independent(scene: _Scene, one: _Filing, other: _Filing) -> bool:
    """Section 5, row 2: of different classes and sources, and what shows them has no common origin."""
    return (
        _CODES[one.code].klass != _CODES[other.code].klass
        and one.source != other.source
        and not _origins(scene, one.shown_by) & _origins(scene, other.shown_by)
    )


def _origins(scene: _Scene, tellings: Iterable[_Telling]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (origin.exposure.field, origin.exposure.source)
        for telling in tellings
        for origin in _lineage(scene, telling)
    )  # fmt: skip


# A source: its head for a field.


def _head(scene: _Scene, field: _Field, source: str) -> _Head | None:
    """Section 3: the newest event time; at one event time the shared name, which is told after what it also names."""
    bound = _binding(scene, field, source)
    if not bound:
        return None
    newest = min(bound, key=lambda t: (t.age, not t.is_told("shared_name")))
    report = _reports(newest)[0]
    return _Head(report, _fault(scene, report, field))


def _binding(scene: _Scene, field: _Field, source: str) -> list[_Telling]:
    return [t for t in scene.live.values() if t.exposure.source == source and field in t.bound]


def _reports(telling: _Telling) -> tuple[_Report, ...]:
    """The observations of a telling, the head first (section 3).

    Of two events the newer is, however late the older one arrives and whatever its version; at one event time the later
    arrival is, and what contradicts a value comes before it, so that whatever descends from the value descends from
    the head.
    """
    own = _Report(telling, telling.age, telling.value)
    change = telling.changes.get("second report")
    if change is None:
        return (own,)
    apart = 0 if change.kind == "contradicted" else change.age_ms
    return (own, _Report(telling, telling.age + apart, _moved(telling.value, change)))


# An observation: its checks, in the order of section 3; the first that fails is its fault.


def _fault(scene: _Scene, report: _Report, field: _Field) -> str | None:
    """The first fault of `report` as an observation of `field`; None where it is admissible."""
    checks = (_source, _time, _provenance, _schema, _quality, _unit, _range)
    return next((fault for check in checks if (fault := check(scene, report, field)) is not None), None)


def _source(scene: _Scene, report: _Report, field: _Field) -> str | None:
    """Check 1: only a shared name makes a stranger, at a source that the other of its fields does not list."""
    return None if report.telling.exposure.source in field.sources else "unknown_source"


def _time(scene: _Scene, report: _Report, field: _Field) -> str | None:
    return "stale" if report.age > field.freshness else None


def _provenance(scene: _Scene, report: _Report, field: _Field) -> str | None:
    """Check 3: lineage held; effective age within this field's own limit; then what the ancestors hand on."""
    lineage = _lineage(scene, report.telling)
    if any(ancestor.is_told("lost_parent") for ancestor in lineage):
        return "unresolved_provenance"
    if max(ancestor.age for ancestor in lineage) > field.freshness:
        return "stale"
    return _inherited(scene, report.telling)


def _schema(scene: _Scene, report: _Report, field: _Field) -> str | None:
    if len(report.telling.bound) > 1:
        return "ambiguous_schema"
    told = report.telling.changes.get("schema")
    return "unknown_schema" if told and field.schemas is not None and told.text not in field.schemas else None


def _quality(scene: _Scene, report: _Report, field: _Field) -> str | None:
    return "no_value" if report.telling.is_told("no_value") else None


def _unit(scene: _Scene, report: _Report, field: _Field) -> str | None:
    told = report.telling.changes.get("unit")
    if told is None or (told.kind == "no_unit" and field.unit == "1"):
        return None
    return _UNIT_FAULTS.get(told.kind)


def _range(scene: _Scene, report: _Report, field: _Field) -> str | None:
    if isinstance(report.value, str):
        return None
    return None if field.low <= report.value <= field.high else "out_of_range"


def _inherited(scene: _Scene, telling: _Telling) -> str | None:
    """Check 3: the first fault met among the ancestors, parents in listed order, depth first.

    An ancestor bound to fields must pass their checks; one that is bound to none must be of good quality.
    """
    for parent in scene.parents(telling):
        report = _Report(parent, parent.age, parent.value)
        if parent.bound:
            faults = (_fault(scene, report, field) for field in parent.bound)
            fault = next((f for f in faults if f is not None), None)
        else:
            fault = "no_value" if parent.is_told("no_value") else _inherited(scene, parent)
        if fault is not None:
            return fault
    return None


def _lineage(scene: _Scene, telling: _Telling) -> list[_Telling]:
    """`telling` and all its ancestors, depth first."""
    return [telling] + [ancestor for parent in scene.parents(telling) for ancestor in _lineage(scene, parent)]


# Values.


def _differ(field: _Field, one: Scalar, other: Scalar) -> bool:
    """Section 1: apart by more than the larger tolerance, with slack for rounding; text by any difference."""
    if isinstance(one, str) or isinstance(other, str):
        return one != other
    magnitude = max(abs(one), abs(other))
    bound = max(field.tolerance, field.rel_tolerance * magnitude)
    slack = 1e-9 * max(1.0, magnitude)
    return abs(one - other) > bound + (min(slack, bound / 1000) if bound else slack)


def _moved(value: Scalar, change: Change) -> Scalar:
    """`value` as `change` tells it: `amount` away, text replaced."""
    if not isinstance(value, str):
        return value + change.amount
    if change.text is None:
        raise ValueError(f"{change.kind} of a text without the text")
    return change.text


# Reading facts and contract.


def _read(item: BaseItem, facts: Facts) -> _Scene:
    fields = {name: _field(name, said) for name, said in item.contract["fields"].items() if said["kind"] == "observed"}
    tellings = [_telling(item, fields, exposure) for exposure in facts.exposures]
    live: dict[tuple[str, str], _Telling] = {}
    for telling in (t for t in tellings if not t.exposure.memory):
        key = telling.exposure.field, telling.exposure.source
        if key in live:
            raise ValueError(f"{key} is exposed twice")
        live[key] = telling
    scene = _Scene(
        fields,
        live,
        tuple(t for t in tellings if t.exposure.memory),
        frozenset(_out(fields, outage) for outage in facts.outages),
    )
    for telling in tellings:
        _refuse_broken_lineage(scene, telling, ())
    return scene


def _field(name: str, said: Mapping[str, Any]) -> _Field:
    """Defaults are those of section 1."""
    return _Field(
        name=name,
        critical=said.get("critical", True),
        sources=tuple(said["sources"]),
        freshness=said["freshness_ms"],
        tolerance=said.get("tolerance", 0.0),
        rel_tolerance=said.get("rel_tolerance", 0.0),
        low=said.get("min", float("-inf")),
        high=said.get("max", float("inf")),
        unit=said.get("unit", "1"),
        schemas=frozenset(said["schemas"]) if "schemas" in said else None,
    )


def _telling(item: BaseItem, fields: Mapping[str, _Field], exposure: Exposure) -> _Telling:
    own = _known(fields, exposure.field)
    if exposure.source not in own.sources:
        raise ValueError(f"{exposure.source!r} is no source of {exposure.field!r}")
    if exposure.field not in item.observed:
        raise ValueError(f"the item has no value of {exposure.field!r}")
    changes: dict[str, Change] = {}
    for change in exposure.changes:
        if change.kind not in _ASPECTS:
            raise ValueError(f"unknown kind of change {change.kind!r}")
        if _ASPECTS[change.kind] in changes:
            raise ValueError(f"{exposure.field!r} at {exposure.source!r}: {_ASPECTS[change.kind]} is changed twice")
        changes[_ASPECTS[change.kind]] = change
    if "second report" in changes and "time" in changes and changes["time"].kind == "repeated":
        raise ValueError(f"{exposure.field!r} at {exposure.source!r} is sent again, and tells a second value")
    value = item.observed[exposure.field]
    telling = _Telling(
        exposure,
        changes,
        _bound(fields, own, changes.get("name")),
        _moved(value, changes["value"]) if "value" in changes else value,
    )
    if telling.age < 0:
        raise ValueError(f"{exposure.field!r} at {exposure.source!r} is measured after t")
    return telling


def _bound(fields: Mapping[str, _Field], own: _Field, name: Change | None) -> tuple[_Field, ...]:
    """Section 3: the fields that the name told binds the exposure to, in contract order."""
    if name is None or name.kind == "alias":
        return (own,)
    if name.kind == "foreign_name":
        return ()
    if name.other is None or name.other == own.name:
        raise ValueError(f"the name shared by {own.name!r} names no other field")
    other = _known(fields, name.other)
    return tuple(f for f in fields.values() if f in (own, other))


def _known(fields: Mapping[str, _Field], name: str) -> _Field:
    if name not in fields:
        raise ValueError(f"{name!r} is no observed field of the contract")
    return fields[name]


def _out(fields: Mapping[str, _Field], outage: Outage) -> str:
    if not any(outage.source in field.sources for field in fields.values()):
        raise ValueError(f"outage of {outage.source!r}, which no field lists")
    if not outage.retryable or outage.retries_left < 1 or not isfinite(outage.retry_after_ms):
        raise ValueError(f"the outage of {outage.source!r} is final")
    return outage.source


def _refuse_broken_lineage(scene: _Scene, telling: _Telling, below: tuple[tuple[str, str], ...]) -> None:
    for parent in telling.exposure.parents:
        if parent not in scene.live:
            raise ValueError(f"no exposure tells the parent {parent}")
        if parent in below:
            raise ValueError(f"{parent} is its own ancestor")
        _refuse_broken_lineage(scene, scene.live[parent], (*below, parent))
