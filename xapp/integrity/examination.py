"""One observation as evidence of one field: the seven checks in their order, and the head among several (section 3).

An error inside a check is a failure of that check: it blocks, and never permits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from xapp.contract import Member, Resolution
from xapp.evidence.ledger import Ledger
from xapp.integrity.domain import check_domain
from xapp.integrity.fault import Fault, Verdict
from xapp.integrity.freshness import check_age, check_causality, check_future
from xapp.integrity.provenance import Lineage
from xapp.integrity.quality import check_quality, check_type
from xapp.integrity.schema import check_schema
from xapp.integrity.source import check_source
from xapp.integrity.unit import check_unit
from xapp.model import Observation

# the check that was running → the code that its failure has
_FAILS_AS: Final = {
    "source": "unknown_source", "time": "stale", "provenance": "unresolved_provenance", "schema": "unknown_schema",
    "quality": "no_value", "unit": "ambiguous_unit", "domain": "out_of_range",
}  # fmt: skip


class Examination:
    """The checks over one ledger at one t. Remembers each verdict, so that shared ancestors are examined once.

    `moved_ms`: when a control last moved what the contract's control moves; None where none did.
    """

    def __init__(self, ledger: Ledger, resolution: Resolution, now_ms: int, moved_ms: int | None = None) -> None:
        self._ledger, self._resolution = ledger, resolution
        self._moved = moved_ms
        self._now, self._skew = now_ms, resolution.max_clock_skew_ms
        self._verdicts: dict[tuple[str, Member, bool], Verdict] = {}
        self._groups: dict[Member, dict[tuple[str, int], list[Observation]]] = {}
        self._lineage = Lineage(ledger, resolution, now_ms, self.examine, self._replaced, moved_ms)

    def examine(self, observation: Observation, member: Member, ageless: bool = False) -> Verdict:
        """Run the checks; the first that fails is the fault. `ageless` leaves out age (section 4, eq. 4), and only it:
        what was measured before the last control says nothing of the network since, in a window neither.
        """
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
            if fault is None and self._moved is not None:
                fault = check_causality(effective, self._moved, member.field)
            if fault is None and observation.parents:
                step = "provenance"
                fault, effective = self._lineage.check(observation, member, ageless)
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

    def answer(self, observation: Observation, member: Member) -> Verdict:
        """An operator's answer for a member (section 7). What it names it settles; it is not computed from it."""
        effective, f = observation.event_time_ms, member.field
        value: Any = None
        try:
            fault = (
                check_future(observation, self._now, self._skew)
                or check_age(effective, self._now, f.freshness_ms)
                or check_causality(effective, self._moved, f)
            )
            if fault is None and observation.source in self._resolution.sources:
                fault = Fault("unknown_source", f"'{observation.source}' is a source, and no operator")
            unheld = next((i for i in observation.parents if i not in self._ledger.arrived), None)
            if fault is None and unheld is not None:
                fault = Fault("unresolved_provenance", f"what it settles is not in the ledger: '{unheld}'")
            if fault is None and len(bound := self._resolution.members_of(observation)) > 1:
                fault = check_schema(observation, member, bound)
            fault = fault or check_quality(observation) or check_type(observation, f)
            if fault is None:
                fault, value = check_unit(observation, f)
            fault = fault or check_domain(value, f)
        except Exception as error:  # unknown never permits
            fault = Fault("no_value", f"error inside a check: {error!r}")
        return Verdict(observation, fault, None if fault else value, effective)

    def head(self, group: Sequence[Observation], member: Member, ageless: bool) -> Verdict:
        """The head among observations of one source at one event time."""
        if len(group) == 1:
            return self.examine(group[0], member, ageless)
        left = remaining(group)
        latest = max(o.ingest_time_ms for o in left)
        verdicts = [self.examine(o, member, ageless) for o in left if o.ingest_time_ms == latest]
        return min(verdicts, key=lambda v: (v.fault is None, v.observation.id))

    def history(self, member: Member, source: str, recalled: Verdict | None) -> list[tuple[int, Verdict]]:
        """Heads of `source` over time, whatever their age: (own event time, at most t; verdict), ascending.

        `recalled`: the memory that supports the member, where one does; it is part of the history then.
        """
        groups: dict[int, list[Observation]] = {}
        for o in self._ledger.bound[member]:
            if o.source == source and not self.is_memory(o) and o.event_time_ms <= self._now + self._skew:
                groups.setdefault(o.event_time_ms, []).append(o)
        heads = {event: self.head(group, member, ageless=True) for event, group in groups.items()}
        if recalled is not None:
            heads.setdefault(recalled.observation.event_time_ms, recalled)
        return [(min(event, self._now), heads[event]) for event in sorted(heads)]

    def is_memory(self, observation: Observation) -> bool:
        """True for an observation of origin memory, and for whatever descends from one."""
        return observation.id in self._ledger.from_memory

    def _replaced(self, ancestor: Observation, member: Member) -> bool:
        """Whether its own source took an ancestor back at its own event time: by version, by a later arrival, or by
        another value or a retraction that arrived together with it.

        It looks at versions, arrivals and values only: a rival may itself descend from the ancestor.
        """
        if member not in self._groups:
            groups = self._groups[member] = {}
            for o in self._ledger.bound[member]:
                groups.setdefault((o.source, o.event_time_ms), []).append(o)
        group = self._groups[member].get((ancestor.source, ancestor.event_time_ms), [])
        memory_counts = self.is_memory(ancestor)  # memory takes back no live evidence
        rivals = [o for o in group if o is not ancestor and (memory_counts or not self.is_memory(o))]
        if not rivals:
            return False
        left = remaining([ancestor, *rivals])
        if ancestor not in left:
            return True
        return any(
            o.ingest_time_ms > ancestor.ingest_time_ms
            or (o.ingest_time_ms == ancestor.ingest_time_ms and _said(o) != _said(ancestor))
            for o in left
        )


def _said(observation: Observation) -> tuple[object, ...]:
    return observation.value, type(observation.value), observation.unit, observation.quality, observation.schema


def remaining(group: Sequence[Observation]) -> Sequence[Observation]:
    """At one event time a higher version replaces a lower one, where all have one."""
    if len(group) == 1 or any(o.version is None for o in group):
        return group
    highest = max(o.version for o in group if o.version is not None)
    return [o for o in group if o.version == highest]
