"""The versioned evidence store: append-only per (subject, name, source), read as of any instant on both clocks.

Every version is kept with its event time, ingest time and state version for a bounded history: `history_ms` back from
the newest ingest time of its own source (never from an event time, nor from another source, whose clock may be wrong),
and `history_count` versions of each series. A source that was not heard for `quiet_reports` reports keeps only the
newest of each series. Time alone never removes that: an old value of a slow field is still the newest there is.

What a source says, its times included, touches only what is held of that source.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from xapp.contract import normalise
from xapp.evidence.identity import Contradiction, Identities
from xapp.evidence.selection import head_of, select
from xapp.evidence.series import (
    ANSWER,
    LIVE,
    MEMORY,
    SLOT_BITS,
    SLOT_MASK,
    ReportColumns,
    Series,
    Shape,
    Shapes,
    StoredReport,
    columns_of,
)
from xapp.evidence.sources import SourceHistory
from xapp.metrics import KNOWN_NAMES
from xapp.model import Observation, Report, SourceState

if TYPE_CHECKING:
    from xapp.contract import Resolution

__all__ = ["Appended", "Contradiction", "EvidenceStore"]

_SHAPES: Final = 4096
"""Report shapes remembered; a shape that was forgotten is looked up again."""

Lane = tuple[str, int]
"""(source; LIVE, MEMORY or ANSWER): which of the series of one (subject, name)."""

_LANES: Final = {"live": LIVE, "memory": MEMORY, "operator": ANSWER}


@dataclass(frozen=True, slots=True)
class Appended:
    """What a report did: observations stored, and whether it was a repeat (then none are)."""

    stored: int
    duplicate: bool


class _Clock:
    """How far a source's own arrivals have come, and those of its reports whose time is not up, in order of arrival."""

    __slots__ = ("last_seq", "now_ms", "queue")

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.last_seq = 0
        self.queue: deque[StoredReport] = deque()


class EvidenceStore:
    """See the module.

    `history_ms`, `history_count` ≥ 1: the bounds. `known_names`: names that are no schema fault though the metric
    registry does not have them. `series_limit`: how many series and sources are kept; above it those that were silent
    longest go, a tenth at a time (identities change on every attach, so their number has no other bound).
    `quiet_reports`: after how many reports and statuses of others a source counts as quiet.
    """

    def __init__(
        self,
        *,
        history_ms: int = 60_000,
        history_count: int = 4096,
        known_names: Set[str] = frozenset(),
        series_limit: int = 1_000_000,
        quiet_reports: int = 100_000,
    ) -> None:
        if min(history_ms, history_count, series_limit, quiet_reports) < 1:
            raise ValueError("history_ms, history_count, series_limit and quiet_reports must be at least 1")
        self.history_ms = history_ms
        self.history_count = history_count
        self.duplicates = 0
        """Repeated reports and observations that were dropped."""
        self._series_limit = series_limit
        self._known_names = KNOWN_NAMES | {normalise(name) for name in known_names}
        self._quiet_reports = quiet_reports
        self._seq = 0
        self._ids = Identities()
        self._reports = self._ids.reports
        self._clocks: OrderedDict[str, _Clock] = OrderedDict()  # of sources that are not quiet, heard longest ago first
        self._index: dict[tuple[str | None, str], dict[Lane, Series]] = {}
        self._unknown: dict[str, dict[str, dict[str | None, list[Series]]]] = {}  # source → unregistered name → subject
        self._names: dict[str, dict[str, int]] = {}  # source → name → how many series
        self._series_count = 0
        self._shapes = Shapes(_SHAPES)
        self._bound: dict[Shape, tuple[Series, ...]] = {}
        self._sources: dict[str, SourceHistory] = {}

    def __len__(self) -> int:
        """Observations held."""
        return sum(len(series) for lanes in self._index.values() for series in lanes.values())

    def append(self, report: Report | ReportColumns, ingest_time_ms: int) -> Appended:
        """Store a report's observations, each where its event time belongs.

        A report that repeats one held (same source, id and content) is dropped and counted, and so is a single
        observation whose id is held with the same content. Raises Contradiction for an id that the same source used for
        other content (of another source's ids see `xapp.evidence.identity`), ValueError for a number that is not
        finite; nothing is stored then.
        """
        columns = report if isinstance(report, ReportColumns) else columns_of(report, self._shapes.of(report))
        shape = columns.shape
        if self._ids.is_repeat(columns):
            self.duplicates += 1
            return Appended(0, True)
        qualified, dropped = self._ids.enter(columns)
        self._seq += 1
        clock = self._heard(shape.source, ingest_time_ms)
        stored = StoredReport(self._seq, columns, ingest_time_ms, self._bind(columns, dropped))
        stored.live = len(columns.values) - len(dropped)
        stored.qualified = qualified
        self._ids.add(stored, dropped)
        self._enter(stored, clock.now_ms)
        self._source(shape.source, clock.now_ms).add_report(columns.event_time_ms, ingest_time_ms, columns.period_ms)
        self.duplicates += len(dropped)
        clock.queue.append(stored)
        self._expire(clock)
        return Appended(len(columns.values) - len(dropped), False)

    def set_source(self, source: str, state: SourceState, event_time_ms: int, ingest_time_ms: int) -> None:
        """Note what a source says of itself. As of t the status of the newest event time stands."""
        self._seq += 1
        clock = self._heard(source, ingest_time_ms)
        self._source(source, clock.now_ms).add_status(state, event_time_ms, ingest_time_ms, self._seq)
        self._expire(clock)

    def sources(self, t_ms: int, among: Iterable[str] | None = None) -> Mapping[str, SourceState]:
        """Sources that are not up at t, of all or of those named.

        In outage: one whose newest status says so, until it says `up` or a report measured later arrives; and one
        silent for more than three of its declared periods, until it is heard again (retryable after a period, once).
        """
        names = sorted(self._sources) if among is None else sorted(set(among) & self._sources.keys())
        states = ((name, self._sources[name].state(t_ms)) for name in names)
        return {name: state for name, state in states if state is not None}

    def source_histories(self) -> tuple[tuple[str, SourceHistory], ...]:
        """Every source that is held, with what is known of it; in no order."""
        return tuple(self._sources.items())

    def names_of(self, source: str) -> Set[str]:
        """The normalised names under which anything of a source is held."""
        return self._names.get(source, {}).keys()

    def episode_observations(
        self, resolution: Resolution, t_ms: int, proposal_id: str | None = None
    ) -> tuple[Observation, ...]:
        """The evidence that a decision at t can depend on, in order of arrival; see `xapp.evidence.selection`.

        With `proposal_id` also what operators said of that proposal.
        """
        return tuple(self.observation(slot) for slot in sorted(select(self, resolution, t_ms, proposal_id)))

    def as_of(
        self, subject: str | None, name: str, event_time_ms: int, ingest_time_ms: int, source: str | None = None
    ) -> tuple[Observation, ...]:
        """Per source the head as it was known at `ingest_time_ms`, of what was measured until `event_time_ms`.

        Both bounds are inclusive. At one event time a higher version replaces a lower where all have one; then the
        latest arrival counts, then the smaller id. Memory is left out. Ordered by source.
        """
        heads = []
        for (origin, lane), series in sorted(self.lanes(subject, normalise(name)).items()):
            if lane == MEMORY or (source is not None and origin != source):
                continue
            group: list[Observation] = []
            for time, slot in series.newest_first(event_time_ms):
                if group and time < group[0].event_time_ms:
                    break
                if self.stored(slot).ingest_time_ms <= ingest_time_ms:
                    group.append(self.observation(slot))
            if group:
                heads.append(head_of(group))
        return tuple(heads)

    def history(self, subject: str | None, name: str, source: str) -> tuple[Observation, ...]:
        """All versions held of one series, by event time, then arrival; memory and answers after what was measured."""
        lanes = self.lanes(subject, normalise(name))
        found = [lanes[source, lane] for lane in (LIVE, MEMORY, ANSWER) if (source, lane) in lanes]
        return tuple(self.observation(slot) for series in found for _, slot in reversed([*series.newest_first()]))

    # What `selection` reads.

    def lanes(self, subject: str | None, name: str) -> Mapping[Lane, Series]:
        """The series of one subject and normalised name, by source and lane."""
        return self._index.get((subject, name), {})

    def unknown_names(self, source: str) -> Mapping[str, Mapping[str | None, list[Series]]]:
        """What a source sent under names that the registry does not know: normalised name → subject → its lanes."""
        return self._unknown.get(source, {})

    def stored(self, slot: int) -> StoredReport:
        """The report that holds a slot."""
        return self._reports[slot >> SLOT_BITS]

    def observation(self, slot: int) -> Observation:
        """The observation in a slot."""
        found = self._reports[slot >> SLOT_BITS].observation(slot & SLOT_MASK)
        if found.parents:
            cited = tuple(self._ids.cited(found.source, parent) for parent in found.parents)
            return found if cited == found.parents else replace(found, parents=cited)
        return found

    def parents(self, slot: int) -> list[int]:
        """The slots of what an observation cites, as far as it is held."""
        stored = self.stored(slot)
        source = stored.columns.source
        found = (self.find(self._ids.cited(source, parent)) for parent in stored.parents(slot & SLOT_MASK))
        return [parent for parent in found if parent is not None]

    def find(self, observation_id: str) -> int | None:
        """The slot of an observation held, by its id."""
        return self._ids.find(observation_id)

    # Writing.

    def _bind(self, columns: ReportColumns, dropped: Set[int]) -> tuple[Series | None, ...]:
        """The series of each measurement; None where it is dropped."""
        shape = columns.shape
        bound = self._bound.get(shape)
        if bound is None:
            if len(self._bound) >= _SHAPES:
                self._bound.clear()
            if self._series_count > self._series_limit:
                self._forget_silent()
            keys = zip(shape.keys, shape.names, strict=True)
            bound = tuple(self._lane(k.subject, name, shape.source, _LANES[k.origin]) for k, name in keys)
            self._bound[shape] = bound
        if columns.parents is None and not dropped:
            return bound
        own: list[Series | None] = list(bound)
        for index, parents in enumerate(columns.parents or ()):
            series = bound[index]
            if (
                parents
                and series.lane == LIVE
                and any(self._is_memory(self._ids.cited(shape.source, p)) for p in parents)
            ):
                own[index] = self._lane(series.subject, series.name, series.source, MEMORY)
        for index in dropped:
            own[index] = None
        return tuple(own)

    def _lane(self, subject: str | None, name: str, source: str, lane: int) -> Series:
        lanes = self._index.setdefault((subject, name), {})
        series = lanes.get((source, lane))
        if series is None:
            series = lanes[source, lane] = Series(subject, name, source, lane, self.history_count)
            self._series_count += 1
            names = self._names.setdefault(source, {})
            names[name] = names.get(name, 0) + 1
            if name not in self._known_names:
                self._unknown.setdefault(source, {}).setdefault(name, {}).setdefault(subject, []).append(series)
        return series

    def _is_memory(self, observation_id: str) -> bool:
        slot = self.find(observation_id)
        series = None if slot is None else self.stored(slot).bound[slot & SLOT_MASK]
        return series is not None and series.memory

    def _enter(self, stored: StoredReport, now_ms: int) -> None:
        """Put each measurement's slot into its series."""
        columns = stored.columns
        event = columns.event_time_ms
        times_ms = columns.times
        slot = stored.seq << SLOT_BITS
        for series in stored.bound:
            if series is not None:
                if times_ms is not None:
                    event = times_ms[slot & SLOT_MASK]
                times = series.times
                if not times or times[-1] <= event:
                    times.append(event)
                    series.slots.append(slot)
                else:
                    series.insert(event, slot)
                series.last_seq = stored.seq
                if series.pinned or len(times) > series.room:
                    self._trim(series, now_ms)
            slot += 1

    # Forgetting.

    def _trim(self, series: Series, now_ms: int) -> None:
        """Let go of pinned versions that are the newest no more, then of those above the count limit."""
        head = series.head_time(now_ms)
        if series.pinned:
            pinned, series.pinned = series.pinned, None
            for slot in pinned:
                time = self.stored(slot).event_time(slot & SLOT_MASK) if slot >> SLOT_BITS in self._reports else None
                if time is not None and time == head:
                    series.pinned = [*(series.pinned or ()), slot]
                elif time is not None:
                    self._remove(series, time, slot)
        while len(series) > self.history_count:
            assert head is not None
            self._remove(series, *series.oldest(head))
        series.tidy(self.history_count)

    def _remove(self, series: Series, time: int, slot: int) -> None:
        stored = self._reports[slot >> SLOT_BITS]
        if series.remove(time, slot, self.history_count):
            stored.live -= 1
            if not stored.live and stored.expired:
                self._ids.remove(stored)

    def _heard(self, source: str, ingest_time_ms: int) -> _Clock:
        """The clock of a source of which something arrived; sources that have become quiet lose theirs.

        It goes back where an arrival lies a whole history behind it: then it had been ahead by mistake.
        """
        clock = self._clocks.get(source)
        if clock is None:
            clock = self._clocks[source] = _Clock(ingest_time_ms)
        else:
            self._clocks.move_to_end(source)
            if ingest_time_ms > clock.now_ms or ingest_time_ms < clock.now_ms - self.history_ms:
                clock.now_ms = ingest_time_ms
        clock.last_seq = self._seq
        while True:
            quiet = next(iter(self._clocks.values()))
            if self._seq - quiet.last_seq <= self._quiet_reports:
                return clock
            self._clocks.popitem(last=False)
            self._expire(quiet, everything=True)

    def _expire(self, clock: _Clock, everything: bool = False) -> None:
        """Remove what arrived more than the history before the clock, but for the head of each series.

        What arrived after it goes too: the clock has gone back since.
        """
        queue, now_ms = clock.queue, clock.now_ms
        horizon = now_ms - self.history_ms
        while queue and (everything or not horizon <= queue[0].ingest_time_ms <= now_ms):
            stored = queue.popleft()
            stored.expired = True
            event = stored.columns.event_time_ms
            times_ms = stored.columns.times
            slot = stored.seq << SLOT_BITS
            gone = 0
            for series in stored.bound:
                if series is not None:
                    if times_ms is not None:
                        event = times_ms[slot & SLOT_MASK]
                    first, slots = series.first, series.slots
                    if first < len(slots) and slots[first] == slot and event < series.times[-1] <= now_ms:
                        slots[first] = ~slot
                        series.first = first = first + 1
                        series.room += 1
                        gone += 1
                        if slots[first] < 0 or (first > 32 and first * 2 > len(slots)):
                            series.tidy(self.history_count)
                    elif event == series.head_time(now_ms):
                        if series.position(event, slot) >= 0:
                            series.pinned = [*(series.pinned or ()), slot]
                    elif series.remove(event, slot, self.history_count):
                        gone += 1
                slot += 1
            stored.live -= gone
            if not stored.live:
                self._ids.remove(stored)

    def _source(self, name: str, now_ms: int) -> SourceHistory:
        history = self._sources.get(name)
        if history is None:
            if len(self._sources) >= self._series_limit:
                by_silence = sorted(self._sources, key=lambda s: self._sources[s].newest_ingest_ms())
                for silent in by_silence[: len(by_silence) // 10 + 1]:
                    del self._sources[silent]
            history = self._sources[name] = SourceHistory(self.history_count)
        elif len(history) > history.tidy_at:
            history.forget_before(now_ms - self.history_ms)
        return history

    def _forget_silent(self) -> None:
        """Drop the tenth of the series to which nothing was added for longest."""
        everything = sorted((s for lanes in self._index.values() for s in lanes.values()), key=lambda s: s.last_seq)
        for series in everything[: len(everything) // 10 + 1]:
            for time, slot in [*series.newest_first()]:
                self._remove(series, time, slot)
            lanes = self._index[series.subject, series.name]
            del lanes[series.source, series.lane]
            if not lanes:
                del self._index[series.subject, series.name]
            self._forget_name(series)
            self._forget_unknown(series)
            self._series_count -= 1
        self._bound.clear()

    def _forget_name(self, series: Series) -> None:
        names = self._names[series.source]
        names[series.name] -= 1
        if not names[series.name]:
            del names[series.name]
        if not names:
            del self._names[series.source]

    def _forget_unknown(self, series: Series) -> None:
        names = self._unknown.get(series.source, {})
        subjects = names.get(series.name, {})
        lanes = subjects.get(series.subject, [])
        if series in lanes:
            lanes.remove(series)
            if not lanes:
                del subjects[series.subject]
            if not subjects:
                del names[series.name]
            if not names:
                del self._unknown[series.source]
