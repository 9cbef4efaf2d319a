"""Which ids are held: of reports, and of observations.

Most observations have no id of their own: theirs is `"{report id}#{index}"`, so one entry a report is enough to find
them. An id that a report gives explicitly is kept beside it.
"""

from __future__ import annotations

from collections.abc import Set

from xapp.evidence.series import SLOT_BITS, SLOT_MASK, ReportColumns, StoredReport


class Contradiction(ValueError):
    """An id came a second time with other content. Nothing was stored."""


class Identities:
    """The ids of the reports held, and the reports by number."""

    __slots__ = ("_derived", "_explicit", "_lookalikes", "_of_source", "reports")

    def __init__(self) -> None:
        self.reports: dict[int, StoredReport] = {}
        self._of_source: dict[tuple[str, str], StoredReport] = {}  # (source, report id)
        self._derived: dict[str, StoredReport] = {}  # report id, where some observation's id derives from it
        self._explicit: dict[str, int] = {}  # observation id → slot
        self._lookalikes: dict[str, set[str]] = {}  # report id → explicit ids of the form "{report id}#{digits}"

    def find(self, observation_id: str) -> int | None:
        """The slot of an observation held, by its id."""
        slot = self._explicit.get(observation_id)
        if slot is None:
            report_id, index = _split(observation_id)
            stored = self._derived.get(report_id)
            at = int(index) if stored is not None and index and len(index) < 8 else -1
            if stored is None or not 0 <= at < len(stored.bound) or stored.observation_id(at) != observation_id:
                return None
            slot = stored.seq << SLOT_BITS | at
        stored = self.reports[slot >> SLOT_BITS]
        series = stored.bound[slot & SLOT_MASK]
        held = series is not None and series.position(stored.event_time(slot & SLOT_MASK), slot) >= 0
        return slot if held else None

    def is_repeat(self, columns: ReportColumns) -> bool:
        """Whether this very report is held. Raises Contradiction where its id is, with other content."""
        held = self._of_source.get((columns.source, columns.report_id))
        if held is not None and not held.columns.same_content(columns):
            raise Contradiction(f"report {columns.report_id!r} of {columns.source!r} came before with other content")
        return held is not None

    def repeated(self, columns: ReportColumns) -> set[int]:
        """Indices of a new report whose observation is held, or came earlier in it. Raises Contradiction."""
        repeated: set[int] = set()
        report_id = columns.report_id
        if columns.ids is None and report_id not in self._derived and report_id not in self._lookalikes:
            return repeated
        namesake = self._derived.get(report_id)
        if namesake is not None and namesake.live and (columns.ids is None or None in columns.ids):
            raise Contradiction(f"report id {report_id!r} is held of {namesake.columns.source!r}: their ids clash")
        candidate = StoredReport(0, columns, 0, ())
        fresh: dict[str, int] = {}
        for index in range(len(columns.values)):
            own = candidate.observation_id(index)
            slot = self.find(own)
            if slot is not None:
                same = _same(self.reports[slot >> SLOT_BITS], slot & SLOT_MASK, candidate, index)
            elif own in fresh:
                same = _same(candidate, fresh[own], candidate, index)
            else:
                fresh[own] = index
                continue
            if not same:
                raise Contradiction(f"observation {own!r} of {columns.source!r} came before with other content")
            repeated.add(index)
        return repeated

    def add(self, stored: StoredReport, dropped: Set[int]) -> None:
        """Hold a report's ids, but for those of dropped observations."""
        columns = stored.columns
        self.reports[stored.seq] = stored
        self._of_source[columns.source, columns.report_id] = stored
        if columns.ids is None or None in columns.ids:
            self._derived[columns.report_id] = stored
        for index, own in enumerate(columns.ids or ()):
            if own is not None and index not in dropped:
                self._explicit[own] = stored.seq << SLOT_BITS | index
                report_id, digits = _split(own)
                if digits:
                    self._lookalikes.setdefault(report_id, set()).add(own)

    def remove(self, stored: StoredReport) -> None:
        """A report of which nothing is held any more: its ids are free again."""
        columns = stored.columns
        del self.reports[stored.seq]
        del self._of_source[columns.source, columns.report_id]
        if self._derived.get(columns.report_id) is stored:
            del self._derived[columns.report_id]
        for own in columns.ids or ():
            if own is not None and self._explicit.get(own, -1) >> SLOT_BITS == stored.seq:
                del self._explicit[own]
                report_id, digits = _split(own)
                if digits:
                    self._lookalikes[report_id].discard(own)
                    if not self._lookalikes[report_id]:
                        del self._lookalikes[report_id]


def _split(observation_id: str) -> tuple[str, str]:
    """(report id, index in digits) of an id that looks derived; the digits are empty for any other."""
    report_id, mark, digits = observation_id.rpartition("#")
    return report_id, digits if mark and digits.isascii() and digits.isdigit() else ""


def _same(one: StoredReport, at: int, other: StoredReport, index: int) -> bool:
    """Whether two observations say the same, whenever they arrived."""
    a, b = one.columns, other.columns
    return (
        (a.source, a.shape.keys[at], a.version) == (b.source, b.shape.keys[index], b.version)
        and a.values[at] == b.values[index]
        and (type(a.values[at]) is bool) == (type(b.values[index]) is bool)
        and one.event_time(at) == other.event_time(index)
        and one.parents(at) == other.parents(index)
    )
