"""How the store keeps observations: reports hold the values, series hold the order.

A report is kept once, as columns. A series (subject, name, source, lane) lists *slots*, integers that say which
report and which measurement of it, in event-time order. An observation is made from its slot when it is read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Final, NamedTuple

from xapp.contract import normalise
from xapp.model import Measurement, Observation, Report, Scalar

SLOT_BITS: Final = 20
SLOT_MASK: Final = (1 << SLOT_BITS) - 1  # so a report carries at most 2^20 measurements
LIVE, MEMORY, ANSWER = 0, 1, 2  # lanes: what a source sent, recollections, what an operator said in its name
_COMPACT_AT: Final = 32  # dead entries below this are not worth a move


class Key(NamedTuple):
    """What a measurement says besides its value, the report's defaults filled in."""

    subject: str | None
    name: str
    unit: str | None
    quality: str
    schema: str | None
    origin: str


class Shape:
    """The keys of one report, in order; reports of one source usually share one. Compared by identity."""

    __slots__ = ("keys", "names", "source")

    def __init__(self, source: str, keys: tuple[Key, ...]) -> None:
        if len(keys) > SLOT_MASK:
            raise ValueError(f"a report of {len(keys)} measurements: at most {SLOT_MASK} are kept")
        self.source = source
        self.keys = keys
        self.names = tuple(normalise(key.name) for key in keys)


@dataclass(frozen=True, slots=True)
class ReportColumns:
    """A report, column by column: `values[i]` belongs to `shape.keys[i]`.

    `times`, `ids` and `parents` are None where no measurement has its own event time, id or parents; an entry of None
    in `ids` means `"{report_id}#{i}"`.
    """

    report_id: str
    event_time_ms: int
    shape: Shape
    values: tuple[Scalar | None, ...]
    version: int | None = None
    period_ms: int | None = None
    times: tuple[int, ...] | None = None
    ids: tuple[str | None, ...] | None = None
    parents: tuple[tuple[str, ...], ...] | None = None

    @property
    def source(self) -> str:
        return self.shape.source

    def report(self) -> Report:
        """The same report as one value per measurement, the report's defaults filled in."""
        times = self.times or (None,) * len(self.values)
        ids = self.ids or (None,) * len(self.values)
        parents = self.parents or ((),) * len(self.values)
        columns = zip(self.shape.keys, self.values, times, ids, parents, strict=True)
        return Report(
            report_id=self.report_id,
            source=self.shape.source,
            event_time_ms=self.event_time_ms,
            version=self.version,
            period_ms=self.period_ms,
            measurements=tuple(
                Measurement(
                    name=key.name,
                    value=value,
                    unit=key.unit,
                    subject=key.subject,
                    quality=key.quality,
                    event_time_ms=time,
                    schema=key.schema,
                    id=own_id,
                    parents=cites,
                    origin=key.origin,
                )
                for key, value, time, own_id, cites in columns
            ),
        )

    def same_content(self, other: ReportColumns) -> bool:
        """Whether both say the same. A boolean never equals a number; 1 equals 1.0."""
        return (
            self.report_id == other.report_id
            and self.event_time_ms == other.event_time_ms
            and self.version == other.version
            and self.period_ms == other.period_ms
            and (self.shape is other.shape or (self.source, self.shape.keys) == (other.source, other.shape.keys))
            and self.values == other.values
            and [type(v) is bool for v in self.values] == [type(v) is bool for v in other.values]
            and (self.times, self.ids, self.parents) == (other.times, other.ids, other.parents)
        )


def key_of(report: Report, m: Measurement) -> Key:
    """The key of one measurement of a report: None means the report's own."""
    return Key(
        report.subject if m.subject is None else m.subject,
        m.name,
        m.unit,
        report.quality if m.quality is None else m.quality,
        report.schema if m.schema is None else m.schema,
        m.origin,
    )


class Shapes:
    """The shapes of reports that come one value per measurement: equal keys share one, while it is remembered."""

    __slots__ = ("_found", "_limit")

    def __init__(self, limit: int) -> None:
        self._found: dict[tuple[str, tuple[object, ...]], Shape] = {}
        self._limit = limit

    def of(self, report: Report) -> Shape:
        """The shape of a report."""
        keys = tuple(key_of(report, m) for m in report.measurements)
        shape = self._found.get((report.source, keys))
        if shape is None:
            if len(self._found) >= self._limit:
                self._found.clear()
            shape = self._found[report.source, keys] = Shape(report.source, keys)
        return shape


def columns_of(report: Report, shape: Shape) -> ReportColumns:
    """A report in columns; `shape` holds its keys. Raises ValueError for a value that is not finite."""
    measurements = report.measurements
    for index, m in enumerate(measurements):
        if isinstance(m.value, float) and not isfinite(m.value):
            raise ValueError(f"measurement {index} ({m.name!r}) of report {report.report_id!r} is not finite")
    return make_columns(
        report.report_id,
        report.event_time_ms,
        shape,
        values=tuple(m.value for m in measurements),
        version=report.version,
        period_ms=report.period_ms,
        times=[m.event_time_ms for m in measurements],
        ids=[m.id for m in measurements],
        parents=[tuple(m.parents) for m in measurements],
    )


def make_columns(
    report_id: str,
    event_time_ms: int,
    shape: Shape,
    *,
    values: tuple[Scalar | None, ...],
    version: int | None,
    period_ms: int | None,
    times: list[int | None],
    ids: list[str | None],
    parents: list[tuple[str, ...]],
) -> ReportColumns:
    """Columns in their one form: what equals the default is left out, so that equal content is equal."""
    own_times = tuple(event_time_ms if time is None else time for time in times)
    own_ids = tuple(None if own == f"{report_id}#{i}" else own for i, own in enumerate(ids)) if any(ids) else ()
    return ReportColumns(
        report_id=report_id,
        event_time_ms=event_time_ms,
        shape=shape,
        values=values,
        version=version,
        period_ms=period_ms,
        times=None if own_times.count(event_time_ms) == len(own_times) else own_times,
        ids=own_ids if any(own_ids) else None,
        parents=tuple(parents) if any(parents) else None,
    )


class StoredReport:
    """A report in the store: its columns, when it arrived, the series of its measurements, how many are still kept.

    `qualified`: whether its observations' ids bear the source, since another source has one of them.
    """

    __slots__ = ("bound", "columns", "expired", "ingest_time_ms", "live", "qualified", "seq")

    def __init__(self, seq: int, columns: ReportColumns, ingest_time_ms: int, bound: tuple[Series | None, ...]) -> None:
        self.seq = seq
        self.columns = columns
        self.ingest_time_ms = ingest_time_ms
        self.bound = bound  # None: dropped, for the same observation was kept before
        self.live = 0
        self.expired = False
        self.qualified = False

    @property
    def id_stem(self) -> str:
        """What the ids of its observations without an own id begin with."""
        report_id = self.columns.report_id
        return f"{self.columns.source}/{report_id}" if self.qualified else report_id

    def event_time(self, index: int) -> int:
        columns = self.columns
        return columns.event_time_ms if columns.times is None else columns.times[index]

    def observation_id(self, index: int) -> str:
        ids = self.columns.ids
        own = None if ids is None else ids[index]
        if own is None:
            return f"{self.id_stem}#{index}"
        return f"{self.columns.source}/{own}" if self.qualified else own

    def parents(self, index: int) -> tuple[str, ...]:
        return () if self.columns.parents is None else self.columns.parents[index]

    def observation(self, index: int) -> Observation:
        columns = self.columns
        subject, name, unit, quality, schema, origin = columns.shape.keys[index]
        return Observation(
            self.observation_id(index),
            name,
            columns.values[index],
            unit,
            columns.shape.source,
            self.event_time(index),
            self.ingest_time_ms,
            columns.version,
            quality,
            schema,
            subject,
            self.parents(index),
            origin,
        )


class Series:
    """Slots of one (subject, name, source) in one lane, by event time, then arrival.

    Memory has a lane of its own, so that a recollection never passes for the newest measurement, and so has what an
    operator says. Removal marks a slot
    (`~slot`) and moves nothing until half of the entries are dead: amortised O(1). `pinned` holds slots whose time is
    up but which are the newest there is.
    """

    __slots__ = (
        "first",
        "holes",
        "lane",
        "last_seq",
        "name",
        "pinned",
        "room",
        "slots",
        "source",
        "subject",
        "times",
    )

    def __init__(self, subject: str | None, name: str, source: str, lane: int, history_count: int) -> None:
        self.subject = subject
        self.name = name
        self.source = source
        self.lane = lane
        self.times = array("q")
        self.slots = array("q")
        self.first = 0  # entries before it are dead
        self.holes = 0  # dead entries after it
        self.room = history_count  # length at which the count limit is reached
        self.pinned: list[int] | None = None
        self.last_seq = 0

    @property
    def memory(self) -> bool:
        return self.lane == MEMORY

    def __len__(self) -> int:
        return len(self.slots) - self.first - self.holes

    def insert(self, time: int, slot: int) -> None:
        """Put a late arrival where its event time belongs (after those of the same time: they arrived before)."""
        at = bisect_right(self.times, time, self.first)
        self.times.insert(at, time)
        self.slots.insert(at, slot)

    def position(self, time: int, slot: int) -> int:
        """Index of a live slot, or -1."""
        slots = self.slots
        low = bisect_left(self.times, time, self.first)
        high = bisect_right(self.times, time, low)
        at = bisect_left(slots, slot, low, high, key=lambda s: s if s >= 0 else ~s)
        return at if at < high and slots[at] == slot else -1

    def remove(self, time: int, slot: int, history_count: int) -> bool:
        """Forget one slot. False if it was not there (any more)."""
        at = self.position(time, slot)
        if at < 0:
            return False
        self.slots[at] = ~slot
        self.holes += 1
        self.tidy(history_count)
        return True

    def tidy(self, history_count: int) -> None:
        """Drop dead ends, compact where more than half is dead, and renew `room`."""
        slots, times = self.slots, self.times
        while self.first < len(slots) and slots[self.first] < 0:
            self.first += 1
            self.holes -= 1
        while len(slots) > self.first and slots[-1] < 0:
            slots.pop()
            times.pop()
            self.holes -= 1
        if self.first == len(slots) or (self.first > _COMPACT_AT and self.first * 2 > len(slots)):
            del slots[: self.first], times[: self.first]
            self.first = 0
        if self.holes > _COMPACT_AT and self.holes * 2 > len(slots) - self.first:
            kept = [at for at in range(self.first, len(slots)) if slots[at] >= 0]
            self.times = array("q", [times[at] for at in kept])
            self.slots = array("q", [slots[at] for at in kept])
            self.first = self.holes = 0
        self.room = history_count + self.first + self.holes

    def head_time(self, now_ms: int) -> int | None:
        """The newest event time that is not above `now_ms`; if all are, the newest; None for an empty series."""
        times, slots = self.times, self.slots
        if not times:
            return None
        at = len(times) - 1 if times[-1] <= now_ms else bisect_right(times, now_ms, self.first) - 1
        while at >= self.first and slots[at] < 0:
            at -= 1
        return times[at] if at >= self.first else times[-1]

    def oldest(self, head_ms: int) -> tuple[int, int]:
        """(event time, slot) that the count limit removes next: the oldest but for the head, the head at the last."""
        first = self.first
        if self.times[first] == head_ms:
            at = bisect_right(self.times, head_ms, first)
            while at < len(self.slots) and self.slots[at] < 0:
                at += 1
            if at < len(self.slots):
                return self.times[at], self.slots[at]
        return self.times[first], self.slots[first]

    def newest_first(self, until_ms: int | None = None) -> Iterator[tuple[int, int]]:
        """(event time, slot), newest event time first, from `until_ms` back; at one time, latest arrival first."""
        times, slots = self.times, self.slots
        end = len(slots) if until_ms is None else bisect_right(times, until_ms, self.first)
        for at in range(end - 1, self.first - 1, -1):
            if slots[at] >= 0:
                yield times[at], slots[at]

    def at_time(self, time: int) -> Iterator[int]:
        """The slots of one event time, in order of arrival."""
        low = bisect_left(self.times, time, self.first)
        for at in range(low, bisect_right(self.times, time, low)):
            if self.slots[at] >= 0:
                yield self.slots[at]
