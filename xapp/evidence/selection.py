"""Which evidence a decision can depend on: enough that more would change nothing, at the cost of what it touches.

For every member of a resolution (an observed field at one subject) and every source that sent something for it:

- the newest event-time group that is not above t + skew, and where all of it is memory, those before it down to one
  that is not (older memory is never recalled);
- those above t + skew, which are at fault themselves (the newest of them, up to a bound: they all say the same);
- for a field under a windowed constraint, everything back to the head as of the start of the window;
- within the field's limit, older groups with a higher version than the head's.

Of each operator likewise, beside what the sources sent (section 7). Then all ancestors, with what may have replaced an
ancestor at its own event time; and, for a field to which none of its sources sent anything, what those sources sent
under names that nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import groupby, islice
from typing import TYPE_CHECKING, Final

from xapp.evidence.series import ANSWER, SLOT_MASK, Series
from xapp.integrity.operator import DENIAL, VERDICT
from xapp.model import Observation

if TYPE_CHECKING:
    from xapp.contract import Member, Resolution
    from xapp.evidence.store import EvidenceStore

FUTURE_LIMIT: Final = 16
"""Observations above t + skew that are taken of one source, beside the newest group: each has the same fault."""


DENIALS: Final = 16
"""Denials of one proposal that are taken of one operator: one is enough."""


def select(store: EvidenceStore, resolution: Resolution, t_ms: int, proposal_id: str | None = None) -> set[int]:
    """Slots of all that a decision at t can depend on, of what had arrived by t."""
    selection = _Selection(store, resolution, t_ms)
    if proposal_id is not None:
        selection.take_denials(proposal_id)
    return selection.run()


class _Selection:
    def __init__(self, store: EvidenceStore, resolution: Resolution, t_ms: int) -> None:
        self.store = store
        self.resolution = resolution
        self.t_ms = t_ms
        self.chosen: set[int] = set()
        self.remembered: dict[int, bool] = {}

    def run(self) -> set[int]:
        for member in self.resolution.members:
            by_source: dict[str, list[Series]] = {}
            answers: dict[str, list[Series]] = {}
            for name in member.names:
                for (source, lane), series in self.store.lanes(member.subject, name).items():
                    (answers if lane == ANSWER else by_source).setdefault(source, []).append(series)
            for said in answers.values():
                self._take(member, said)
            heard = [self._take(member, source_series) for source_series in by_source.values()]
            told = {source for source, taken in zip(by_source, heard, strict=True) if taken}
            if not told & set(member.sources):
                self._take_unknown(member)
        self._take_ancestors()
        return self.chosen

    def take_denials(self, proposal_id: str) -> None:
        """Choose what operators said against a proposal, whatever they said after it."""
        for (_, lane), series in self.store.lanes(f"proposal:{proposal_id}", VERDICT).items():
            if lane == ANSWER:
                denials = (slot for _, slots in self._groups([series]) for slot in slots if self._denies(slot))
                self.chosen.update(islice(denials, DENIALS))

    def _denies(self, slot: int) -> bool:
        return self.store.stored(slot).columns.values[slot & SLOT_MASK] == DENIAL

    def _take(self, member: Member, series: list[Series]) -> bool:
        """Choose what counts for one member from the series of one source. False where only memory had arrived."""
        cut = self.t_ms + self.resolution.max_clock_skew_ms
        oldest_fresh = self.t_ms - member.freshness_ms
        window = self.resolution.windows.get(member.field.name)
        window_start = None if window is None else self.t_ms - window
        head_version: int | None = None
        head_found = False
        future = 0
        measured = False
        for time, slots in self._groups(series):
            if time > cut:
                if future < FUTURE_LIMIT:
                    self.chosen.update(slots)
                live = sum(not self._is_memory(slot) for slot in slots)
                future += live
                measured = measured or live > 0
                continue
            needed = not head_found or window_start is not None
            if not needed and (time < oldest_fresh or head_version is None):
                break
            versions = [v for v in map(self._version, slots) if v is not None]
            if needed or (head_version is not None and max(versions, default=head_version) > head_version):
                self.chosen.update(slots)
            if needed and not all(map(self._is_memory, slots)):
                if not head_found:
                    head_version = min(versions, default=None)
                head_found = True
                if window_start is not None and time <= window_start:
                    window_start = None
        return measured or head_found

    def _groups(self, series: list[Series]) -> Iterator[tuple[int, list[int]]]:
        """(event time, its slots that had arrived), newest first."""
        entries: Iterable[tuple[int, int]]
        entries = series[0].newest_first() if len(series) == 1 else merge(
            *(s.newest_first() for s in series), reverse=True
        )  # fmt: skip
        for time, group in groupby(entries, key=lambda entry: entry[0]):
            slots = [slot for _, slot in group if self.store.stored(slot).ingest_time_ms <= self.t_ms]
            if slots:
                yield time, slots

    def _version(self, slot: int) -> int | None:
        return self.store.stored(slot).columns.version

    def _parents(self, slot: int) -> list[int]:
        return [p for p in self.store.parents(slot) if self.store.stored(p).ingest_time_ms <= self.t_ms]

    def _is_memory(self, slot: int) -> bool:
        """Whether an observation is memory or descends from one, through ancestors that had arrived."""
        stored = self.store.stored(slot)
        if stored.columns.parents is None or self._origin(slot) == "operator":
            return self._origin(slot) == "memory"
        if slot not in self.remembered:
            lineage = {slot}
            ahead = [slot]
            while ahead:
                fresh = {p for p in self._parents(ahead.pop()) if self._origin(p) != "operator"} - lineage
                lineage |= fresh
                ahead.extend(fresh)
            self.remembered[slot] = any(self._origin(one) == "memory" for one in lineage)
        return self.remembered[slot]

    def _take_ancestors(self) -> None:
        ahead = [slot for slot in self.chosen if self.store.stored(slot).columns.parents is not None]
        while ahead:
            for parent in self._parents(ahead.pop()):
                fresh = {parent, *self._rivals(parent)} - self.chosen
                self.chosen |= fresh
                ahead.extend(fresh)

    def _rivals(self, slot: int) -> Iterator[int]:
        """What one source sent for the same member at the same event time: it may have replaced the observation."""
        stored, index = self.store.stored(slot), slot & SLOT_MASK
        series = stored.bound[index]
        assert series is not None
        for member in self.resolution.bound.get((series.subject, series.name), ()):
            for name in member.names:
                for (source, lane), other in self.store.lanes(series.subject, name).items():
                    if source == series.source and lane != ANSWER:
                        for rival in other.at_time(stored.event_time(index)):
                            if self.store.stored(rival).ingest_time_ms <= self.t_ms:
                                yield rival

    def _take_unknown(self, member: Member) -> None:
        """From each of the member's sources, the newest of a name that nobody knows: about its subject, else any."""
        for source in member.sources:
            strange = [
                subjects
                for name, subjects in self.store.unknown_names(source).items()
                if name not in self.resolution.known_names
            ]
            own = [
                self._take_newest(subjects[member.subject]) for subjects in strange if member.subject in subjects
            ]  # every one of them
            if not any(own):  # then the first there is
                any(self._take_newest(series) for subjects in strange for series in subjects.values())

    def _take_newest(self, series: list[Series]) -> bool:
        """Choose the newest group that a source sent itself, of what had arrived. False where there is none."""
        for _, slots in self._groups(series):
            sent = [slot for slot in slots if self._origin(slot) == "live"]
            if sent:
                self.chosen.update(sent)
                return True
        return False

    def _origin(self, slot: int) -> str:
        return self.store.stored(slot).columns.shape.keys[slot & SLOT_MASK].origin


def head_of(group: list[Observation]) -> Observation:
    """The observation that counts among those of one source at one event time (section 3)."""
    if all(o.version is not None for o in group):
        newest = max(o.version or 0 for o in group)
        group = [o for o in group if o.version == newest]
    latest = max(o.ingest_time_ms for o in group)
    return min((o for o in group if o.ingest_time_ms == latest), key=lambda o: o.id)
