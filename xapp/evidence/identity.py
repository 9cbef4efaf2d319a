"""Which ids are held: of reports, and of observations.

Most observations have no id of their own: theirs is `"{report id}#{index}"`, so one entry a report is enough to find
them. An id that a report gives explicitly is kept beside it.

An id belongs to the source that used it first, while that observation is held. Another source's report that uses it too
is stored with `"{source}/"` before all its ids, and what that source cites means its own observation, where it has one:
nobody can take an id away from another.
"""

from __future__ import annotations

from collections.abc import Set

from xapp.evidence.series import SLOT_BITS, SLOT_MASK, ReportColumns, StoredReport


class Contradiction(ValueError):
    """An id came a second time with other content. Nothing was stored."""


class Identities:
    """The ids of the reports held, and the reports by number."""

    __slots__ = ("_derived", "_explicit", "_lookalikes", "_of_source", "_qualified", "reports")

    def __init__(self) -> None:
        self.reports: dict[int, StoredReport] = {}
        self._of_source: dict[tuple[str, str], StoredReport] = {}  # (source, report id)
        self._derived: dict[str, StoredReport] = {}  # report id, where some observation's id derives from it
        self._explicit: dict[str, int] = {}  # observation id → slot
        self._lookalikes: dict[str, set[str]] = {}  # report id → explicit ids of the form "{report id}#{digits}"
        self._qualified = 0  # reports held whose ids bear their source

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

    def cited(self, source: str, parent: str) -> str:
        """The id of what a source cites: its own observation where it has one, as the store calls it."""
        if self._qualified:
            slot = self.find(own := f"{source}/{parent}")
            if slot is not None and self.reports[slot >> SLOT_BITS].columns.source == source:
                return own
        return parent

    def enter(self, columns: ReportColumns) -> tuple[bool, set[int]]:
        """Of a new report: whether its ids must bear its source, and the indices of observations that are held already,
        or came earlier in it. Raises Contradiction.
        """
        report_id = columns.report_id
        if columns.ids is None and report_id not in self._derived and report_id not in self._lookalikes:
            return False, set()
        candidate = StoredReport(0, columns, 0, ())
        if self._taken(candidate):
            candidate.qualified = True
            if self._taken(candidate):
                raise Contradiction(f"ids of report {report_id!r} of {columns.source!r} are those of other sources")
        return candidate.qualified, self._repeated(candidate)

    def _taken(self, candidate: StoredReport) -> bool:
        """Whether another source holds an id of a report."""
        columns = candidate.columns
        namesake = self._derived.get(candidate.id_stem)
        if namesake is not None and namesake.live and (columns.ids is None or None in columns.ids):
            return True
        slots = (self.find(candidate.observation_id(index)) for index in range(len(columns.values)))
        return any(s is not None and self.reports[s >> SLOT_BITS].columns.source != columns.source for s in slots)

    def _repeated(self, candidate: StoredReport) -> set[int]:
        columns = candidate.columns
        repeated: set[int] = set()
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
        self._qualified += stored.qualified
        if columns.ids is None or None in columns.ids:
            self._derived[stored.id_stem] = stored
        for index, given in enumerate(columns.ids or ()):
            if given is not None and index not in dropped:
                own = stored.observation_id(index)
                self._explicit[own] = stored.seq << SLOT_BITS | index
                report_id, digits = _split(own)
                if digits:
                    self._lookalikes.setdefault(report_id, set()).add(own)

    def remove(self, stored: StoredReport) -> None:
        """A report of which nothing is held any more: its ids are free again."""
        columns = stored.columns
        del self.reports[stored.seq]
        del self._of_source[columns.source, columns.report_id]
        self._qualified -= stored.qualified
        if self._derived.get(stored.id_stem) is stored:
            del self._derived[stored.id_stem]
        for index, given in enumerate(columns.ids or ()):
            own = "" if given is None else stored.observation_id(index)
            if own and self._explicit.get(own, -1) >> SLOT_BITS == stored.seq:
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
