"""Check 3: every ancestor is held, none is too old, and each is sound itself.

The effective event time of an observation is the oldest of its own and all its ancestors': a value is not fresh because
it was computed lately.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from xapp.contract import Member, Resolution
from xapp.evidence.ledger import Ledger
from xapp.integrity.fault import Fault, Verdict
from xapp.integrity.freshness import check_age, check_causality, check_future
from xapp.integrity.quality import check_quality
from xapp.model import Observation


class Examine(Protocol):
    """All checks of section 3 on one observation as evidence of one member."""

    def __call__(self, observation: Observation, member: Member, ageless: bool) -> Verdict: ...


class Lineage:
    """The provenance check over one ledger at one t; remembers what each ancestor passes on."""

    def __init__(
        self,
        ledger: Ledger,
        resolution: Resolution,
        now_ms: int,
        examine: Examine,
        replaced: Callable[[Observation, Member], bool],
        moved_ms: int | None,
    ) -> None:
        self._moved = moved_ms
        self._ledger, self._resolution = ledger, resolution
        self._now, self._skew = now_ms, resolution.max_clock_skew_ms
        self._examine, self._replaced = examine, replaced
        self._inherited: dict[tuple[str, bool], Fault | None] = {}

    def check(self, observation: Observation, member: Member, ageless: bool) -> tuple[Fault | None, int]:
        """Check 3 on one observation: (fault, effective event time). `ageless` leaves out age."""
        ancestry = self._ledger.ancestry(observation)
        if ancestry.broken is not None:
            detail = f"its ancestor '{ancestry.broken}' is no evidence in the ledger, or descends from itself"
            return Fault("unresolved_provenance", detail), observation.event_time_ms
        if not ageless:
            fault = check_age(ancestry.oldest_ms, self._now, member.field.freshness_ms)
            if fault is not None:
                detail = f"computed from '{ancestry.oldest}', {fault.detail}"
                return Fault("stale", detail, (ancestry.oldest,)), ancestry.oldest_ms
        fault = check_causality(ancestry.oldest_ms, self._moved, member.field)
        if fault is not None:
            detail = f"computed from '{ancestry.oldest}', {fault.detail}"
            return Fault(fault.code, detail, (ancestry.oldest,)), ancestry.oldest_ms
        if any((parent, ageless) not in self._inherited for parent in observation.parents):
            for ancestor in self._ledger.ancestors(observation):  # deepest first, so that no line of them is too long
                self._inherit(ancestor, ageless)
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
            self._inherited[key] = self._inherited_fault(ancestor, ageless)
        return self._inherited[key]

    def _inherited_fault(self, ancestor: Observation, ageless: bool) -> Fault | None:
        members = self._resolution.members_of(ancestor)
        for member in members:
            verdict = self._examine(ancestor, member, ageless)
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


def _from_ancestor(fault: Fault, ancestor: Observation) -> Fault:
    """The fault that a child has of its ancestor: through many generations it names the one at fault."""
    return fault if fault.at else Fault(fault.code, f"computed from '{ancestor.id}': {fault.detail}", (ancestor.id,))
