"""The book of visits: where the network has been lately, as reports arrive (docs/support-gate.md, "Words").

Pure: what a book holds follows from the reports in the order in which they arrived, and from when. It keeps the last
partitions only, and of a subject only what those rest on. Where that is more than it may hold, or where the clock of
arrivals went back behind all that is kept, it begins anew: what it forgets are visits, and for want of them the gate
abstains.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from xapp.contract import Contract, Field, Member
from xapp.evidence.series import ReportColumns, Shape, Shapes, columns_of
from xapp.integrity.domain import check_domain
from xapp.integrity.freshness import ahead, check_age
from xapp.integrity.quality import check_quality
from xapp.model import Observation, Report
from xapp.plan import convert, of_type, unit_fault
from xapp.support.component import ANY, Component, cell_of, place_of, quarter_of
from xapp.support.matching import Matching
from xapp.support.terms import Axis, Terms

MAX_HELD: Final = 1_000_000
"""Counts, subjects and readings of axes that a book holds at most, some 160 MB."""
_SHAPES: Final = 4096
"""Report shapes remembered; one that was forgotten is looked at again."""
_PLANNED: Final = 100_000
"""Measurements of remembered plans, all together."""
_FAR: Final = 1e9
"""A mean beyond so many multiples of a split is told as these: what is learned from it must be finite."""

Subject = str | None
Pair = tuple[str, Subject]
"""(field, subject)."""
Labels = tuple[int, str, str]
"""(quarter, load, CQI) of a component."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """One partition as the drift alarm looks at it. `visits`: component → visits of all fields; `load`, `cqi`: means of
    what was measured, in multiples of the axis's (upper) split, 0 where nothing was. Compared by identity.
    """

    index: int
    visits: Mapping[Component, int]
    load: float
    cqi: float


@dataclass(frozen=True, slots=True)
class Window:
    """What was asked of a book. `first`: index of the oldest whole partition; per (field, subject) its component at t,
    and the visits of the field in it, in order of time; `profiles`: of the window's partitions, likewise.
    """

    first: int
    components: Mapping[Pair, Component]
    visits: Mapping[Pair, tuple[int, ...]]
    profiles: tuple[Profile, ...]


class _Sample(NamedTuple):
    """A measurement of a shape that may be a visit. `at`: its place in the report; a float from `least` to `most` is
    valid, of any other value it is looked at.
    """

    at: int
    field: Field
    unit: str | None
    pair: Pair
    least: float
    most: float


class _Group(NamedTuple):
    """The samples of one subject in a shape that stand equally long. `looked_at`: where its axes are looked for;
    `keys`: labels → what is counted for each of the samples.
    """

    place: str
    looked_at: tuple[Subject, ...]
    samples: tuple[_Sample, ...]
    keys: dict[Labels, tuple[tuple[str, Component], ...]]


class _Reading(NamedTuple):
    """A measurement of a shape that an axis is read from. `at`: its place in the report; `unit` None: the axis's."""

    at: int
    subject: Subject
    unit: str | None


class _Plan(NamedTuple):
    """What of a shape is looked at. `readings`: per axis, load and CQI; `groups`: by how long their samples stand."""

    readings: tuple[tuple[_Reading, ...], ...]
    groups: dict[int, tuple[_Group, ...]]


class SupportBook:
    """See the module. Raises ValueError where the terms are for another contract.

    `kept_partitions`: how many are kept before the one that is running, at least those of the window; of none one more
    than those, for a decision whose clock is a little behind that of the arrivals. `max_held`: see `MAX_HELD`.
    """

    def __init__(
        self, contract: Contract, terms: Terms, *, kept_partitions: int | None = None, max_held: int = MAX_HELD
    ) -> None:
        if terms.contract_id != contract.contract_id:
            raise ValueError(f"terms for '{terms.contract_id}', the contract is '{contract.contract_id}'")
        self._terms, self._skew = terms, contract.max_clock_skew_ms
        self._kept = terms.rule.partitions + 1 if kept_partitions is None else kept_partitions
        if self._kept < terms.rule.partitions:
            raise ValueError(f"{self._kept} partitions kept: the window has {terms.rule.partitions}")
        self._matching = Matching(contract)
        self._shapes = Shapes(_SHAPES)
        self._plans: dict[Shape, _Plan] = {}
        self._planned = 0  # measurements of those shapes
        self._max_held = max_held
        self._held = 0  # `entries`, kept up as they come
        self._overflows = 0
        self._begins = 0  # the first partition in which visits count
        self._running = -1  # the newest partition in which anything arrived
        self._floor = 0  # the oldest partition that is kept
        self._visits: dict[int, dict[tuple[str, Component], int]] = {}  # partition → (field, component) → visits
        self._newest: dict[Pair, int] = {}  # event time of the last sample that counted
        self._axes: tuple[dict[Subject, tuple[int, str]], ...] = ({}, {})  # subject → event time and label
        self._sums: dict[int, list[float]] = {}  # partition → sum and number of load, then of CQI
        self._profiles: dict[int, Profile] = {}

    @property
    def entries(self) -> int:
        """How much is held: counts, subjects and readings of axes."""
        counts = sum(map(len, self._visits.values()))
        return counts + len(self._newest) + sum(map(len, self._axes))

    @property
    def overflows(self) -> int:
        """How often more came than may be held, so that all was forgotten."""
        return self._overflows

    def observe(self, report: Report | ReportColumns, ingest_ms: int) -> None:
        """Count what of a report counts; `ingest_ms`: when it arrived. Raises ValueError for a value that is not
        finite, as the evidence store does.
        """
        columns = report if isinstance(report, ReportColumns) else columns_of(report, self._shapes.of(report))
        plan = self._plans.get(columns.shape)
        if plan is None:
            plan = self._plan(columns.shape)
        partition = ingest_ms // self._terms.partition_ms
        if partition < self._floor:  # the clock went back
            self._forget(ingest_ms)
            self._advance(partition)
        elif partition > self._running:
            self._advance(partition)
        # What load and channel were is read first: the visits of the same report were made under it
        for number, readings in enumerate(plan.readings):
            if readings:
                self._read(number, readings, columns, ingest_ms)
        for freshness_ms, groups in plan.groups.items():
            self._count(freshness_ms, groups, columns, ingest_ms)
        if self._held > self._max_held:
            self._forget(ingest_ms)
            self._overflows += 1

    def window(self, asked: Iterable[Member], t_ms: int) -> Window:
        """The last whole partitions at t, for these members."""
        first = self._terms.first_of(t_ms)
        indices = range(first, first + self._terms.rule.partitions)
        counts = [self._visits.get(index, {}) for index in indices]
        components: dict[Pair, Component] = {}
        visits: dict[Pair, tuple[int, ...]] = {}
        quarter = quarter_of(t_ms, self._terms.utc_offset_min)
        for member in asked:
            pair = (member.field.name, member.subject)
            place = place_of(member.subject)
            labels = self._labels(_looked_at(member.subject, place), t_ms)
            components[pair] = component = Component(place, quarter, *labels)
            key = (pair[0], component)
            visits[pair] = tuple(count.get(key, 0) for count in counts)
        return Window(first, components, visits, tuple(map(self.profile, indices)))

    def visits(self, index: int) -> Mapping[tuple[str, Component], int]:
        """The visits of one partition, by field and component."""
        return self._visits.get(index, {})

    def profile(self, index: int) -> Profile:
        """One partition as the drift alarm looks at it; the same value until something more is counted in it."""
        found = self._profiles.get(index)
        if found is None:
            total: dict[Component, int] = {}
            for (_, component), count in self.visits(index).items():
                total[component] = total.get(component, 0) + count
            load, loads, cqi, cqis = self._sums.get(index, (0.0, 0, 0.0, 0))
            found = Profile(index, total, _mean(load, loads), _mean(cqi, cqis))
            if index >= self._floor:
                self._profiles[index] = found
        return found

    def _plan(self, shape: Shape) -> _Plan:
        self._planned += len(shape.keys)
        if len(self._plans) >= _SHAPES or self._planned > _PLANNED:
            self._plans.clear()
            self._planned = len(shape.keys)
        together: dict[int, dict[Subject, list[_Sample]]] = {}
        for at, member, unit in self._matching.of(shape):
            sample = _Sample(at, member.field, unit, (member.field.name, member.subject), *_range(member.field, unit))
            together.setdefault(member.freshness_ms, {}).setdefault(member.subject, []).append(sample)
        groups = {
            freshness_ms: tuple(
                _Group(place := place_of(subject), _looked_at(subject, place), tuple(samples), {})
                for subject, samples in by_subject.items()
            )
            for freshness_ms, by_subject in together.items()
        }
        readings = tuple(() if axis is None else tuple(_readings(shape, axis)) for axis in self._terms.axes)
        found = self._plans[shape] = _Plan(readings, groups)
        return found

    def _advance(self, running: int) -> None:
        """A new partition runs: forget those that are kept no more, and what only they rest on."""
        self._running, self._floor = running, running - self._kept
        since = self._floor * self._terms.partition_ms
        for held in (self._visits, self._sums, self._profiles):
            for index in [index for index in held if index < self._floor]:
                del held[index]
        # A sample that is no newer than what is forgotten here lies in a partition that is not kept
        for pair in [pair for pair, event in self._newest.items() if event < since]:
            del self._newest[pair]
        for axis, readings in zip(self._terms.axes, self._axes, strict=True):
            if axis is not None:
                for subject in [s for s, (event, _) in readings.items() if event + axis.freshness_ms < since]:
                    del readings[subject]
        self._held = self.entries

    def _forget(self, ingest_ms: int) -> None:
        """Begin anew: visits count again in partitions in which no reading of an axis stands that was forgotten."""
        for held in (self._visits, self._sums, self._profiles):
            held.clear()
        for readings in self._axes:
            readings.clear()
        self._newest.clear()
        self._held = 0
        longest = max((axis.freshness_ms for axis in self._terms.axes if axis is not None), default=0)
        self._begins = (ingest_ms + self._skew + longest) // self._terms.partition_ms + 1

    def _read(self, number: int, readings: tuple[_Reading, ...], columns: ReportColumns, ingest_ms: int) -> None:
        """What an axis (0 load, 1 CQI) is now, by its readings in a report."""
        axis, held = self._terms.axes[number], self._axes[number]
        assert axis is not None
        each = columns.times is not None or columns.parents is not None
        event = columns.event_time_ms
        if not each and self._untimely(event, ingest_ms, axis.freshness_ms):
            return
        values, scale, index, before_all = columns.values, axis.scale, -1, len(held)
        sums: list[float] = []
        for at, subject, unit in readings:
            if each and (event := self._own_time(columns, at, ingest_ms, axis.freshness_ms)) < 0:
                continue
            before, value = held.get(subject), values[at]
            if before is not None and before[0] >= event:
                continue
            if unit is None and type(value) is float:
                number_in_unit = value
            elif not of_type(value, "number"):
                continue
            else:
                try:
                    number_in_unit = convert(value, unit, axis.unit)  # type: ignore[arg-type]
                except (ArithmeticError, ValueError):
                    continue
            held[subject] = (event, axis.label(number_in_unit))
            if event // self._terms.partition_ms != index:
                index = event // self._terms.partition_ms
                sums = self._sums.setdefault(index, [0.0, 0, 0.0, 0]) if index >= self._floor else [0.0, 0, 0.0, 0]
                self._profiles.pop(index, None)
            sums[2 * number] += number_in_unit / scale
            sums[2 * number + 1] += 1
        self._held += len(held) - before_all

    def _count(self, freshness_ms: int, groups: tuple[_Group, ...], columns: ReportColumns, ingest_ms: int) -> None:
        """Count what stands equally long. What follows from the event time alone is worked out once for each time."""
        each = columns.times is not None or columns.parents is not None
        event, before, partition, quarter = columns.event_time_ms, -1, -1, -1
        if not each and self._untimely(event, ingest_ms, freshness_ms):
            return
        newest, values, partition_ms = self._newest, columns.values, self._terms.partition_ms
        held, begins = len(newest), max(self._floor, self._begins)
        visits: dict[tuple[str, Component], int] = {}
        for group in groups:
            placed = -1
            keys: tuple[tuple[str, Component], ...] = ()
            for number, (at, field, unit, pair, least, most) in enumerate(group.samples):
                if each and (event := self._own_time(columns, at, ingest_ms, freshness_ms)) < 0:
                    continue
                value = values[at]
                if event <= newest.get(pair, -1):
                    continue
                if not (type(value) is float and least <= value <= most) and not _valid(value, unit, field):
                    continue
                if event != before:
                    before, partition = event, event // partition_ms
                    quarter = quarter_of(event, self._terms.utc_offset_min)
                    if partition >= begins:
                        visits = self._visits.setdefault(partition, {})
                        self._profiles.pop(partition, None)
                if partition < begins:
                    continue
                if event != placed:
                    placed, keys = event, self._keys(group, quarter, event)
                newest[pair] = event
                key = keys[number]
                count = visits.get(key, 0)
                visits[key] = count + 1
                if not count:
                    self._held += 1
        self._held += len(newest) - held

    def _untimely(self, event: int, ingest_ms: int, freshness_ms: int) -> bool:
        """Whether it was stale when it arrived, or ahead of the clocks."""
        return ahead(event, ingest_ms, self._skew) or check_age(event, ingest_ms, freshness_ms) is not None

    def _own_time(self, columns: ReportColumns, at: int, ingest_ms: int, freshness_ms: int) -> int:
        """The event time of one measurement; -1 where it cannot count by it, or for what it was computed from: that is
        not held here.
        """
        if columns.parents is not None and columns.parents[at]:
            return -1
        event = columns.event_time_ms if columns.times is None else columns.times[at]
        return -1 if self._untimely(event, ingest_ms, freshness_ms) else event

    def _keys(self, group: _Group, quarter: int, event: int) -> tuple[tuple[str, Component], ...]:
        labels = (quarter, *self._labels(group.looked_at, event))
        found = group.keys.get(labels)
        if found is None:
            component = Component(group.place, *labels)
            found = group.keys[labels] = tuple((sample.field.name, component) for sample in group.samples)
        return found

    def _labels(self, looked_at: tuple[Subject, ...], t_ms: int) -> tuple[str, str]:
        """Load and CQI of a subject as they are known for an instant."""
        load, cqi = self._terms.load, self._terms.cqi
        return (
            ANY if load is None else _label(load, self._axes[0], looked_at, t_ms),
            ANY if cqi is None else _label(cqi, self._axes[1], looked_at, t_ms),
        )


def _label(axis: Axis, readings: Mapping[Subject, tuple[int, str]], looked_at: tuple[Subject, ...], t_ms: int) -> str:
    for subject in looked_at:
        held = readings.get(subject)
        if held is not None and check_age(held[0], t_ms, axis.freshness_ms) is None:
            return held[1]
    return ANY


def _mean(total: float, number: float) -> float:
    """0 of none; what is no number, as a sum of infinities, is told as far off."""
    mean = total / number if number else 0.0
    return mean if -_FAR <= mean <= _FAR else math.copysign(_FAR, mean)


def _range(field: Field, unit: str | None) -> tuple[float, float]:
    """The floats in `unit` that are surely valid, both ends included; an empty range where each has to be looked at."""
    if field.type != "number" or unit not in (None, field.unit):
        return math.inf, -math.inf
    return -math.inf if field.min is None else field.min, math.inf if field.max is None else field.max


def _valid(value: Any, unit: str | None, field: Field) -> bool:
    """Whether a value is of the field's type and lies in its domain."""
    if not of_type(value, field.type):
        return False
    if field.type != "number":
        return True
    try:
        return check_domain(convert(value, unit, field.unit), field) is None
    except (ArithmeticError, ValueError):
        return False


def _looked_at(subject: Subject, place: str) -> tuple[Subject, ...]:
    """Where an axis is looked for: at the subject, its place, the place's cell."""
    if subject is None:
        return (None,)
    return tuple(dict.fromkeys(s for s in (subject, place, cell_of(place)) if s is not None))


def _readings(shape: Shape, axis: Axis) -> Iterator[_Reading]:
    """The measurements of a shape that an axis may be read from: good, live, in a unit that converts to the axis's."""
    for at, (key, name) in enumerate(zip(shape.keys, shape.names, strict=True)):
        if name not in axis.names or key.origin != "live" or unit_fault(key.unit, axis.unit)[0] is not None:
            continue
        if check_quality(Observation("", key.name, True, key.unit, shape.source, 0, 0, None, key.quality)) is None:
            yield _Reading(at, key.subject, None if key.unit == axis.unit else key.unit)


def window_ms(terms: Terms, contract: Contract) -> int:
    """For how long before t a report may matter to what is counted at t, ms: the window, the partition that t lies in,
    and before them what tells a sample there from one out of order, and gives it its component.
    """
    fresh_ms = max((field.freshness_ms for field in contract.fields.values()), default=0)
    axes_ms = max((axis.freshness_ms for axis in terms.axes if axis is not None), default=0)
    before_ms = max(fresh_ms, axes_ms) + contract.max_clock_skew_ms
    return (terms.rule.partitions + 1) * terms.partition_ms + before_ms
