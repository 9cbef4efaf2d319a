"""The integrity monitor (eq. 6): examines each observation as evidence of a field, and says which one supports it.

`Monitor.examine` runs the checks of section 3 in their order; `Monitor.support` weighs the heads of a field's sources.
An error inside a check is a failure of that check: it blocks, and never permits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from xapp.contract import Member, Resolution
from xapp.evidence.ledger import Ledger
from xapp.integrity.conflict import differ, disagreeing
from xapp.integrity.domain import check_domain
from xapp.integrity.fault import FINAL, GROUPS, RETRYABLE, Fault
from xapp.integrity.freshness import check_age, check_future
from xapp.integrity.quality import check_quality, check_type
from xapp.integrity.schema import check_schema
from xapp.integrity.source import check_source
from xapp.integrity.unit import check_unit
from xapp.model import UP, Observation, SourceState, Violation


class Verdict(NamedTuple):
    """One observation as evidence of one field. Admissible where `fault` is None; then `value` is in its unit."""

    observation: Observation
    fault: Fault | None
    value: Any
    effective_ms: int


@dataclass(frozen=True, slots=True)
class Filing:
    """What a blocked field is filed under (section 5). `rank`: group, then the source's place in contract order."""

    code: str
    group: int
    source: str
    source_rank: int
    observations: tuple[str, ...]

    @property
    def rank(self) -> tuple[int, int]:
        return self.group, self.source_rank


@dataclass(frozen=True, slots=True)
class MemberState:
    """What the monitor says of one member. `support` is None or `blocked` True where nothing authorises a value.

    `heads`: source → its head; `blocked_ids`: heads that failed a check, those left aside, strangers, ancestors at
    fault; `filing` is set where the member is blocked.
    """

    member: Member
    support: Verdict | None
    blocked: bool
    recalled: bool
    heads: Mapping[str, Verdict]
    violations: tuple[Violation, ...]
    blocked_ids: tuple[str, ...]
    filing: Filing | None


# the check that was running → the code that its failure has
_FAILS_AS: Final = {
    "source": "unknown_source", "time": "stale", "provenance": "unresolved_provenance", "schema": "unknown_schema",
    "quality": "no_value", "unit": "ambiguous_unit", "domain": "out_of_range",
}  # fmt: skip
_OUTAGE_COVERS: Final = frozenset({"stale", "future", "no_value"})  # section 3: such a head is that outage


class Monitor:
    """The checks over one ledger at one t. Remembers each verdict, so that shared ancestors are examined once."""

    def __init__(
        self,
        ledger: Ledger,
        resolution: Resolution,
        sources: Mapping[str, SourceState],
        now_ms: int,
        deadline_ms: int | None,
    ) -> None:
        self._ledger = ledger
        self._resolution = resolution
        self._sources = sources
        self._now = now_ms
        self._skew = resolution.max_clock_skew_ms
        self._deadline = deadline_ms
        self._verdicts: dict[tuple[str, Member, bool], Verdict] = {}
        self._inherited: dict[tuple[str, bool], Fault | None] = {}

    # ── one observation ──────────────────────────────────────────────────────────────────────────────────────────────

    def examine(self, observation: Observation, member: Member, ageless: bool = False) -> Verdict:
        """Run the checks; the first that fails is the fault. `ageless` leaves out age (section 4, eq. 4)."""
        key = (observation.id, member, ageless)
        found = self._verdicts.get(key)
        if found is None:
            found = self._verdicts[key] = self._examine(observation, member, ageless)
        return found

    def _examine(self, observation: Observation, member: Member, ageless: bool) -> Verdict:
        step, effective = "source", observation.event_time_ms
        value: Any = None
        try:
            fault = check_source(observation, member)
            if fault is None:
                step = "time"
                fault = check_future(observation, self._now, self._skew)
            if fault is None and not ageless:
                fault = check_age(effective, self._now, member.field.freshness_ms)
            if fault is None and observation.parents:
                step = "provenance"
                fault, effective = self._check_provenance(observation, member, ageless)
            if fault is None:
                step = "schema"
                fault = check_schema(observation, member, self._resolution.members_of(observation))
            if fault is None:
                step = "quality"
                fault = check_quality(observation) or check_type(observation, member.field)
            if fault is None:
                step = "unit"
                fault, value = check_unit(observation, member.field)
            if fault is None:
                step = "domain"
                fault = check_domain(value, member.field)
        except Exception as error:  # whatever goes wrong inside a check, unknown never permits
            fault = Fault(_FAILS_AS[step], f"error inside the {step} check: {error!r}")
        return Verdict(observation, fault, None if fault else value, effective)

    # ── provenance: check 3 ──────────────────────────────────────────────────────────────────────────────────────────

    def _check_provenance(self, observation: Observation, member: Member, ageless: bool) -> tuple[Fault | None, int]:
        ancestry = self._ledger.ancestry(observation)
        if ancestry.broken is not None:
            detail = f"its ancestor '{ancestry.broken}' is not in the ledger, or descends from itself"
            return Fault("unresolved_provenance", detail), observation.event_time_ms
        if not ageless:
            fault = check_age(ancestry.oldest_ms, self._now, member.field.freshness_ms)
            if fault is not None:
                detail = f"computed from '{ancestry.oldest}', {fault.detail}"
                return Fault("stale", detail, (ancestry.oldest,)), ancestry.oldest_ms
        for ancestor in ancestry.ids:  # deepest first, so that no chain of parents is too long
            self._inherit(self._ledger.arrived[ancestor], ageless)
        return self._first_inherited(observation, ageless), ancestry.oldest_ms

    def _first_inherited(self, observation: Observation, ageless: bool) -> Fault | None:
        for parent in observation.parents:
            fault = self._inherit(self._ledger.arrived[parent], ageless)
            if fault is not None:
                return fault
        return None

    def _inherit(self, ancestor: Observation, ageless: bool) -> Fault | None:
        key = (ancestor.id, ageless)
        if key not in self._inherited:
            self._inherited[key] = None  # a rival at its own event time may descend from it
            self._inherited[key] = self._inherited_fault(ancestor, ageless)
        return self._inherited[key]

    def _inherited_fault(self, ancestor: Observation, ageless: bool) -> Fault | None:
        members = self._resolution.members_of(ancestor)
        for member in members:
            verdict = self.examine(ancestor, member, ageless)
            if verdict.fault is not None:
                return _from_ancestor(verdict.fault, ancestor)
            if self._replaced(ancestor, member):
                return _from_ancestor(Fault("stale", "was replaced at its own event time"), ancestor)
        if members:
            return None
        fault = check_future(ancestor, self._now, self._skew) or check_quality(ancestor)
        if fault is None and ancestor.source not in self._resolution.sources:
            fault = Fault("unknown_source", f"'{ancestor.source}' is a source of no field")
        return _from_ancestor(fault, ancestor) if fault else self._first_inherited(ancestor, ageless)

    def _replaced(self, ancestor: Observation, member: Member) -> bool:
        rivals = [
            o
            for o in self._ledger.bound[member]
            if o.source == ancestor.source
            and o.event_time_ms == ancestor.event_time_ms
            and (o is ancestor or not self._is_memory(o))
        ]
        return len(rivals) > 1 and self._head(rivals, member, ageless=False).observation is not ancestor

    def _is_memory(self, observation: Observation) -> bool:
        if observation.origin == "memory":
            return True
        return bool(observation.parents) and self._ledger.ancestry(observation).memory

    # ── heads ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _head(self, group: Sequence[Observation], member: Member, ageless: bool) -> Verdict:
        """The head among observations of one source at one event time."""
        if len(group) == 1:
            return self.examine(group[0], member, ageless)
        remaining = _remaining(group)
        latest = max(o.ingest_time_ms for o in remaining)
        verdicts = [self.examine(o, member, ageless) for o in remaining if o.ingest_time_ms == latest]
        return min(verdicts, key=lambda v: (v.fault is None, v.observation.id))

    def history(self, member: Member, source: str, recalled: Verdict | None) -> list[tuple[int, Verdict]]:
        """Heads of `source` over time, whatever their age: (own event time, at most t; verdict), ascending.

        `recalled`: the memory that supports the member, where one does; it is part of the history then.
        """
        groups: dict[int, list[Observation]] = {}
        for o in self._ledger.bound[member]:
            if o.source == source and not self._is_memory(o) and o.event_time_ms <= self._now + self._skew:
                groups.setdefault(o.event_time_ms, []).append(o)
        heads = {event: self._head(group, member, ageless=True) for event, group in groups.items()}
        if recalled is not None:
            heads.setdefault(recalled.observation.event_time_ms, recalled)
        return [(min(event, self._now), heads[event]) for event in sorted(heads)]

    # ── one member ───────────────────────────────────────────────────────────────────────────────────────────────────

    def support(self, member: Member) -> MemberState:
        """Which observation supports `member`, and everything that is wrong with its evidence."""
        try:
            return self._support(member)
        except Exception as error:  # which value holds is not known: it blocks like a disagreement
            findings = _Findings(member, blocked=True)
            ids = tuple(sorted(o.id for o in self._ledger.bound[member]))
            findings.add("conflict", f"error inside a check: {error!r}", ids, member.sources[0], 0, counts=True)
            return MemberState(member, None, True, False, {}, findings.closed(), ids, findings.filing())

    def _support(self, member: Member) -> MemberState:
        live: dict[str, list[Observation]] = {}
        memories: list[Observation] = []
        for o in self._ledger.bound[member]:
            if (o.parents or o.origin != "live") and self._is_memory(o):
                memories.append(o)
            elif o.source in live:
                live[o.source].append(o)
            else:
                live[o.source] = [o]
        heads: dict[str, Verdict] = {}
        sides: list[Verdict] = []
        order: list[tuple[Violation, Verdict]] = []
        aside: list[Observation] = []
        for source in member.sources:
            if source in live:
                head, rivals, left = self._head_of(live[source], member)
                heads[source] = head
                aside += left
                sides += rivals
                if head.fault is None and head.observation.version is not None:
                    order += self._out_of_order(live[source], head, member)
        conflict = self._conflict(member, heads, sides)
        supporting = next((heads[s] for s in member.sources if s in heads and heads[s].fault is None), None)
        recalled = False
        if supporting is None and conflict is None and memories:
            supporting = self._recall(member, memories, live)
            recalled = supporting is not None
        disagreeing_order = any(not violation.resolved for violation, _ in order)
        blocked = supporting is None or conflict is not None or disagreeing_order
        findings = _Findings(member, blocked)
        self._file_heads(findings, heads, absent=supporting is None or recalled)
        strangers = [o for source, items in live.items() if source not in member.sources for o in items]
        findings.add_strangers(strangers, heads, self._sources)
        if conflict is not None:
            findings.add("conflict", conflict[0], conflict[1], member.sources[0], 0, counts=True)
        for violation, verdict in order:
            source = verdict.observation.source
            findings.add(
                "out_of_order", violation.detail, violation.observations, source, member.sources.index(source),
                counts=not violation.resolved,
            )  # fmt: skip
        for o in aside:
            findings.note("future", f"'{o.id}' lies ahead of the clock and is left aside", (o.id,))
        if supporting is None or recalled:
            self._file_absence(findings, heads, anything_bound=bool(live))
        return MemberState(
            member=member,
            support=supporting,
            blocked=blocked,
            recalled=recalled,
            heads=heads,
            violations=findings.closed(),
            blocked_ids=tuple(sorted(findings.blocked_ids | {o.id for o in aside})),
            filing=findings.filing() if blocked else None,
        )

    def _head_of(
        self, items: Sequence[Observation], member: Member
    ) -> tuple[Verdict, list[Verdict], list[Observation]]:
        """Head of one source, the admissible ones that remain beside it, and those left aside ahead of the clock."""
        limit = self._now + self._skew
        times = [o.event_time_ms for o in items]
        newest = max(times)
        if newest > limit:
            newest = max([time for time in times if time <= limit], default=newest)
        group = [o for o in items if o.event_time_ms == newest]
        head = self._head(group, member, ageless=False)
        if len(group) == 1:
            return head, [] if head.fault else [head], [o for o in items if o.event_time_ms > newest]
        rivals = [v for v in (self.examine(o, member) for o in _remaining(group)) if v.fault is None]
        left = [o for o in items if o.event_time_ms > newest]
        return head, rivals, left

    def _out_of_order(
        self, items: Sequence[Observation], head: Verdict, member: Member
    ) -> list[tuple[Violation, Verdict]]:
        newest = head.observation
        assert newest.version is not None
        groups: dict[int, list[Observation]] = {}
        for o in items:
            if o.event_time_ms < newest.event_time_ms:
                groups.setdefault(o.event_time_ms, []).append(o)
        found: list[tuple[Violation, Verdict]] = []
        for event in sorted(groups):
            for o in _remaining(groups[event]):
                if o.version is None or o.version <= newest.version:
                    continue
                verdict = self.examine(o, member)
                if verdict.fault is None:
                    agrees = not differ(verdict.value, head.value, member.field)
                    detail = f"'{o.id}' is older than '{newest.id}' but has the higher version {o.version}"
                    ids = tuple(sorted((o.id, newest.id)))
                    violation = Violation("out_of_order", member.field.name, None, ids, agrees, False, detail)
                    found.append((violation, verdict))
        return found

    def _conflict(
        self, member: Member, heads: Mapping[str, Verdict], sides: Sequence[Verdict]
    ) -> tuple[str, tuple[str, ...]] | None:
        """(detail, ids) of a disagreement among heads of different sources, or within one source at its head's time."""
        field = member.field
        admissible = [v for v in heads.values() if v.fault is None]
        ids = set(disagreeing([(v.observation.id, v.value) for v in admissible], field))
        if len(sides) > len(admissible):
            for source in heads:
                ids |= set(
                    disagreeing([(v.observation.id, v.value) for v in sides if v.observation.source == source], field)
                )
        if not ids:
            return None
        values = {v.observation.id: v.value for v in (*sides, *admissible)}
        told = ", ".join(f"'{i}' says {values[i]}" for i in sorted(ids))
        return f"{told}: more than the tolerance apart", tuple(sorted(ids))

    def _recall(
        self, member: Member, memories: Sequence[Observation], live: Mapping[str, Sequence[Observation]]
    ) -> Verdict | None:
        """The memory that stands in, if any: admissible, newer than all live evidence, and not contradicted."""
        limit = self._now + self._skew
        newest = max(
            (o.event_time_ms for s in member.sources for o in live.get(s, ()) if o.event_time_ms <= limit), default=None
        )
        candidates = [
            v
            for v in (self.examine(o, member) for o in memories)
            if v.fault is None and (newest is None or v.observation.event_time_ms > newest)
        ]
        if not candidates or disagreeing([(v.observation.id, v.value) for v in candidates], member.field):
            return None
        return min(
            candidates,
            key=lambda v: (-v.observation.event_time_ms, member.sources.index(v.observation.source), v.observation.id),
        )

    # ── filing ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _file_heads(self, findings: _Findings, heads: Mapping[str, Verdict], absent: bool) -> None:
        for rank, source in enumerate(findings.member.sources):
            head = heads.get(source)
            if head is None or head.fault is None:
                continue
            findings.blocked_ids.update((head.observation.id, *head.fault.at))
            covered = head.fault.code in _OUTAGE_COVERS and self._state(source).status == "outage"
            if covered and absent and findings.member.field.critical:
                continue  # filed as that outage
            ids = (head.observation.id, *head.fault.at)
            findings.add(head.fault.code, head.fault.detail, ids, source, rank, counts=True)

    def _file_absence(self, findings: _Findings, heads: Mapping[str, Verdict], anything_bound: bool) -> None:
        """What else is filed for a field that nothing supports: outages, a name that no field knows, or `missing`."""
        member = findings.member
        if not member.field.critical:
            return
        for rank, source in enumerate(member.sources):
            state = self._state(source)
            if state.status == "outage":
                ids = tuple(heads[s].observation.id for s in (source,) if s in heads)
                group = RETRYABLE if self.retryable(state) else FINAL
                detail = f"'{source}' is in outage" + ("" if group == RETRYABLE else ", and no retry can help in time")
                findings.add("outage", detail, ids, source, rank, counts=True, group=group)
        unknown = self._ledger.unknown_names
        strange = [unknown[source] for source in member.sources if source in unknown]
        if strange and not anything_bound:
            detail = ", ".join(f"'{o.source}' sent '{o.name}'" for o in strange) + ": a name that no field knows"
            ids = tuple(o.id for o in strange)
            findings.add("unknown_schema", detail, ids, member.sources[0], 0, counts=True, of_field=True)
            findings.blocked_ids.update(ids)
        if findings.empty():
            findings.add("missing", "no source gave it", (), member.sources[0], 0, counts=True)

    def _state(self, source: str) -> SourceState:
        return self._sources.get(source, UP)

    def retryable(self, state: SourceState) -> bool:
        """Section 5: a finite back-off that ends by the deadline, with retries left."""
        if not state.retryable or state.retry_after_ms is None or state.retries_left <= 0:
            return False
        return self._deadline is None or self._now + state.retry_after_ms <= self._deadline


class _Findings:
    """Violations of one member while they are gathered; the filing is the least rank among those that count."""

    def __init__(self, member: Member, blocked: bool) -> None:
        self.member = member
        self.blocked_ids: set[str] = set()
        self._blocked = blocked
        self._found: list[Violation] = []
        self._filings: list[Filing] = []

    def add(
        self, code: str, detail: str, ids: tuple[str, ...], source: str, rank: int, *, counts: bool,
        group: int | None = None, of_field: bool = False,
    ) -> None:  # fmt: skip
        """File a violation. One that counts blocks where the member is blocked and critical, else it is resolved."""
        field = self.member.field
        if counts:
            filed = () if of_field else ids[:1]
            self._filings.append(Filing(code, GROUPS[code] if group is None else group, source, rank, filed))
        blocking = counts and self._blocked and field.critical
        resolved = not self._blocked or (code == "out_of_order" and not counts)
        self._found.append(Violation(code, field.name, None, ids, resolved, blocking, self._told(detail)))

    def note(self, code: str, detail: str, ids: tuple[str, ...]) -> None:
        """Record something that never counts."""
        self._found.append(
            Violation(code, self.member.field.name, None, ids, not self._blocked, False, self._told(detail))
        )

    def add_strangers(
        self, strangers: list[Observation], heads: Mapping[str, Verdict], states: Mapping[str, SourceState]
    ) -> None:
        """`unknown_source` counts only where no source of the field has an observation for it, or is in outage."""
        if not strangers:
            return
        ids = tuple(sorted(o.id for o in strangers))
        self.blocked_ids.update(ids)
        known = bool(heads) or any(states.get(s, UP).status == "outage" for s in self.member.sources)
        names = ", ".join(sorted({f"'{o.source}'" for o in strangers}))
        detail = f"{names}: no source of {self.member.field.name}"
        first = min(strangers, key=lambda o: (o.source, o.id))
        if known:
            self.note("unknown_source", detail, ids)
        else:
            self.add("unknown_source", detail, ids, first.source, len(self.member.sources), counts=True)

    def empty(self) -> bool:
        return not self._filings

    def filing(self) -> Filing | None:
        return min(self._filings, key=lambda f: (f.rank, f.observations), default=None)

    def closed(self) -> tuple[Violation, ...]:
        return tuple(self._found)

    def _told(self, detail: str) -> str:
        return detail if self.member.key is None else f"{self.member.key}: {detail}"


def _remaining(group: Sequence[Observation]) -> Sequence[Observation]:
    """At one event time a higher version replaces a lower one, where all have one."""
    if len(group) == 1 or any(o.version is None for o in group):
        return group
    highest = max(o.version for o in group if o.version is not None)
    return [o for o in group if o.version == highest]


def _from_ancestor(fault: Fault, ancestor: Observation) -> Fault:
    at = tuple(dict.fromkeys((ancestor.id, *fault.at)))
    return Fault(fault.code, f"computed from '{ancestor.id}': {fault.detail}", at)
