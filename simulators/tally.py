"""What proposals were worth in truth, and what became of them: counted per kind of fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from simulators.faults.base import KINDS, Kind
from xapp.model import ACTIONS

COUNTS: Final = ("proposals", "unsafe_without_guard", "unsafe_with_guard", "safe", "safe_kept")
UNANSWERED: Final = "unanswered"
REMEMBERED: Final = 20_000
"""Proposals whose last word may still change; an older one's stands."""


@dataclass(slots=True)
class _Case:
    kind: Kind
    safe: bool
    action: str = UNANSWERED


@dataclass(slots=True)
class Tally:
    """Feed it with `proposed`, `decided` and `applied`; read `document`.

    `unsafe_without_guard`: proposals that would have been unsafe if carried out when they arrived. `unsafe_with_guard`:
    orders carried out, with the values released, that were unsafe at that moment. `safe`: the other proposals;
    `safe_kept`: those of them that were carried out, safely. A run may go on for ever: of the newest 20,000 proposals
    each is known, of those before only the counts.
    """

    _cases: dict[str, _Case] = field(default_factory=dict)
    _closed: dict[str, Counter[str]] = field(default_factory=lambda: {kind: Counter() for kind in KINDS})
    _counts: dict[str, Counter[str]] = field(default_factory=lambda: {kind: Counter() for kind in KINDS})

    def proposed(self, proposal_id: str, kind: Kind, safe: bool) -> None:
        """A proposal arrived; whether carrying it out then would have been safe."""
        self._cases[proposal_id] = _Case(kind, safe)
        self._counts[kind].update(("proposals", "safe" if safe else "unsafe_without_guard"))
        if len(self._cases) > REMEMBERED:
            oldest = self._cases.pop(next(iter(self._cases)))
            self._closed[oldest.kind][oldest.action] += 1

    def decided(self, proposal_id: str, action: str, *, ran_out: bool = False) -> None:
        """The last word on a proposal (an earlier one is replaced).

        That its time `ran_out` while it waited is no word on the matter: what it waited for stands.
        """
        case = self._cases.get(proposal_id)
        if case is not None and not (ran_out and case.action != UNANSWERED):
            case.action = action

    def applied(self, proposal_id: str, safe: bool) -> None:
        """An order was carried out; whether that was safe. Unknown ids are counted under `none`."""
        case = self._cases.get(proposal_id)
        if not safe:
            self._counts["none" if case is None else case.kind]["unsafe_with_guard"] += 1
        elif case is not None and case.safe:
            self._counts[case.kind]["safe_kept"] += 1

    def document(self) -> dict[str, Any]:
        """`{"totals": {…}, "kinds": {kind: {…}}}`: the counts of `COUNTS`, and `actions`."""
        kinds = {kind: self._row(kind) for kind in KINDS}
        totals: dict[str, Any] = {count: sum(row[count] for row in kinds.values()) for count in COUNTS}
        names = next(iter(kinds.values()))["actions"]
        totals["actions"] = {name: sum(row["actions"][name] for row in kinds.values()) for name in names}
        return {"totals": totals, "kinds": kinds}

    def _row(self, kind: Kind) -> dict[str, Any]:
        open_now = Counter(case.action for case in self._cases.values() if case.kind == kind)
        actions: Mapping[str, int] = self._closed[kind] + open_now
        return {
            **{count: self._counts[kind][count] for count in COUNTS},
            "actions": {name: actions.get(name, 0) for name in (*ACTIONS, UNANSWERED)},
        }
