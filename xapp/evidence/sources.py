"""What the store knows of a source: what it said of itself, and whether it fell silent.

A source is not up at t when its newest status is an outage that nothing has ended, or when it declared a reporting
period and has been silent for more than three of them.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import Final, NamedTuple

from xapp.model import SourceState

SILENT_PERIODS: Final = 3  # `docs/architecture.md`: in outage after three silent periods
_TIDY_AT: Final = 32


class _Status(NamedTuple):
    event_time_ms: int
    ingest_time_ms: int
    arrival: int
    state: SourceState


class Heard(NamedTuple):
    """When a source was heard: its newest event time, when anything of it last arrived, Unix ms, and the period that
    it declared, ms (None: none). A time of 0: never.
    """

    event_time_ms: int
    ingest_time_ms: int
    period_ms: int | None


class SourceHistory:
    """One source: its statuses and the arrivals of its reports, for a bounded history.

    A status or report cannot be about a time after its arrival: its event time counts as at most its ingest time, so
    that one wrong clock cannot silence all later statuses.
    """

    __slots__ = ("_arrivals", "_count", "_events", "_newest_event_ms", "_periods", "_statuses", "tidy_at")

    def __init__(self, history_count: int) -> None:
        self._count = history_count
        self.tidy_at = _TIDY_AT  # length from which forgetting pays
        self._statuses: list[_Status] = []  # by event time, then ingest time, then arrival
        self._arrivals: list[int] = []  # ingest times of reports, ascending
        self._events: list[int] = []  # their event times
        self._periods: list[int | None] = []  # the period that stood declared then
        self._newest_event_ms = 0

    def add_report(self, event_time_ms: int, ingest_time_ms: int, period_ms: int | None) -> None:
        """A report arrived. One that declares no period leaves the declared one standing."""
        event = min(event_time_ms, ingest_time_ms)
        if event > self._newest_event_ms:
            self._newest_event_ms = event
        arrivals = self._arrivals
        if not arrivals or arrivals[-1] <= ingest_time_ms:
            standing = self._periods[-1] if arrivals else None
            arrivals.append(ingest_time_ms)
            self._events.append(event)
            self._periods.append(standing if period_ms is None else period_ms)
            return
        at = bisect_right(arrivals, ingest_time_ms)
        standing = self._periods[at - 1] if at else None
        arrivals.insert(at, ingest_time_ms)
        self._events.insert(at, event)
        self._periods.insert(at, standing if period_ms is None else period_ms)

    def add_status(self, state: SourceState, event_time_ms: int, ingest_time_ms: int, arrival: int) -> None:
        """The source said what it is at `event_time_ms`."""
        insort(self._statuses, _Status(min(event_time_ms, ingest_time_ms), ingest_time_ms, arrival, state))

    def forget_before(self, horizon_ms: int) -> None:
        """Drop what arrived before the horizon or exceeds the count, but for the last report and the standing status.
        Costs what is held; called at `tidy_at`, which then doubles, it costs O(1) an arrival.
        """
        arrivals = self._arrivals
        drop = min(max(bisect_right(arrivals, horizon_ms - 1), len(arrivals) - self._count), len(arrivals) - 1)
        if drop > 0:
            del arrivals[:drop], self._events[:drop], self._periods[:drop]
        if self._statuses:
            *older, standing = self._statuses
            self._statuses = [*[s for s in older if s.ingest_time_ms >= horizon_ms][-self._count :], standing]
        self.tidy_at = 2 * len(self) + _TIDY_AT

    def __len__(self) -> int:
        return len(self._arrivals) + len(self._statuses)

    def heard(self) -> Heard:
        """When it was heard, as far as is held."""
        period_ms = self._periods[-1] if self._periods else None
        return Heard(self._newest_event_ms, self.newest_ingest_ms(), period_ms)

    def newest_ingest_ms(self) -> int:
        """When anything of this source last arrived."""
        return max((*self._arrivals[-1:], *(s.ingest_time_ms for s in self._statuses)), default=0)

    def state(self, t_ms: int) -> SourceState | None:
        """What the source is at t, by what had arrived by then. None: up."""
        said = next((s for s in reversed(self._statuses) if s.ingest_time_ms <= t_ms), None)
        reports = bisect_right(self._arrivals, t_ms)
        if said is not None and said.state.status == "outage" and not self._ended(said, reports):
            return said.state
        period = self._periods[reports - 1] if reports else None
        if period is None:
            return None
        life = self._arrivals[reports - 1]
        if said is not None and said.state.status == "up":
            life = max(life, said.ingest_time_ms)
        if t_ms - life > SILENT_PERIODS * period:
            return SourceState("outage", retryable=True, retry_after_ms=period, retries_left=1)
        return None

    def _ended(self, outage: _Status, reports: int) -> bool:
        """Whether one of the first `reports` reports was measured after the outage (it then also arrived after it)."""
        for at in range(reports - 1, -1, -1):
            if self._arrivals[at] <= outage.event_time_ms:
                return False
            if self._events[at] > outage.event_time_ms:
                return True
        return False
