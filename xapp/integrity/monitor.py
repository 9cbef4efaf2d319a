"""The integrity monitor (eq. 6): which observation supports a field, and everything that is wrong with its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from xapp.contract import Member, Resolution
from xapp.evidence.ledger import Ledger
from xapp.integrity.conflict import disagreeing, material_conflict
from xapp.integrity.examination import Examination, remaining
from xapp.integrity.fault import FINAL, RETRYABLE, Filing, Verdict
from xapp.integrity.findings import Findings
from xapp.integrity.operator import SETTLEABLE, settling
from xapp.integrity.order import out_of_order
from xapp.model import UP, Observation, SourceState, Violation


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


_OUTAGE_COVERS: Final = frozenset(
    {"stale", "causally_stale", "future", "no_value"}
)  # section 3: such a head is that outage


class Monitor:
    """Weighs the evidence of each member over one ledger at one t. `moved_ms`: when a control last moved the key."""

    def __init__(
        self,
        ledger: Ledger,
        resolution: Resolution,
        sources: Mapping[str, SourceState],
        now_ms: int,
        deadline_ms: int | None,
        moved_ms: int | None = None,
    ) -> None:
        self._ledger, self._sources = ledger, sources
        self._now, self._skew = now_ms, resolution.max_clock_skew_ms
        self._deadline = deadline_ms
        self._examination = Examination(ledger, resolution, now_ms, moved_ms)
        self._answers: dict[Member, list[Observation]] = {}
        for answer in ledger.answers.values():
            for member in resolution.members_of(answer):
                self._answers.setdefault(member, []).append(answer)
        self.history = self._examination.history

    def support(self, member: Member) -> MemberState:
        """Which observation supports `member`, and everything that is wrong with its evidence."""
        try:
            state = self._support(member)
            return self._settle(state, self._answers[member]) if member in self._answers else state
        except Exception as error:  # which value holds is not known: it blocks like a disagreement
            findings = Findings(member, blocked=True)
            ids = tuple(sorted(o.id for o in self._ledger.bound[member]))
            findings.add("conflict", f"error inside a check: {error!r}", ids, member.sources[0], 0, counts=True)
            return MemberState(member, None, True, False, {}, findings.closed(), ids, findings.filing())

    def _support(self, member: Member) -> MemberState:
        live: dict[str, list[Observation]] = {}
        memories: list[Observation] = []
        for o in self._ledger.bound[member]:
            if (o.parents or o.origin != "live") and self._examination.is_memory(o):
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
                    order += out_of_order(live[source], head, member, self._examination)
        conflict = material_conflict(member, heads, sides)
        supporting = next((heads[s] for s in member.sources if s in heads and heads[s].fault is None), None)
        recalled = False
        if supporting is None and conflict is None and memories:
            supporting = self._recall(member, memories, live)
            recalled = supporting is not None
        disagreeing_order = any(not violation.resolved for violation, _ in order)
        blocked = supporting is None or conflict is not None or disagreeing_order
        findings = Findings(member, blocked)
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

    def _settle(self, state: MemberState, answers: Sequence[Observation]) -> MemberState:
        """A blocked member, with what an operator settled (section 7); a member that is not blocked needs no answer."""
        if not state.blocked:
            return state
        supported = state.support is not None
        limit = self._now + self._skew
        answer = settling(state.member, state.violations, supported, answers, self._examination, limit)
        if answer is None:
            return state
        by = f"; settled by '{answer.observation.id}' of {answer.observation.source}"
        settled = tuple(
            replace(v, resolved=True, blocking=False, detail=v.detail + by if v.code in SETTLEABLE else v.detail)
            for v in state.violations
        )
        return replace(state, support=answer, blocked=False, recalled=False, violations=settled, filing=None)

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
        head = self._examination.head(group, member, ageless=False)
        if len(group) == 1:
            return head, [] if head.fault else [head], [o for o in items if o.event_time_ms > newest]
        rivals = [v for v in (self._examination.examine(o, member) for o in remaining(group)) if v.fault is None]
        left = [o for o in items if o.event_time_ms > newest]
        return head, rivals, left

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
            for v in (self._examination.examine(o, member) for o in memories)
            if v.fault is None and (newest is None or v.observation.event_time_ms > newest)
        ]
        if not candidates or disagreeing([(v.observation.id, v.value) for v in candidates], member.field):
            return None
        return min(
            candidates,
            key=lambda v: (-v.observation.event_time_ms, member.sources.index(v.observation.source), v.observation.id),
        )

    def _file_heads(self, findings: Findings, heads: Mapping[str, Verdict], absent: bool) -> None:
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

    def _file_absence(self, findings: Findings, heads: Mapping[str, Verdict], anything_bound: bool) -> None:
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
