"""Watching what was applied: whether the network acknowledged it in time, and whether its effect shows (section 7)."""

from __future__ import annotations

from typing import Final

from streams.deciding import RegionState
from streams.guard_books import Books
from streams.guard_release import Release
from streams.messages import OutcomeMessage
from streams.publishing import Outgoing
from xapp.model import AppliedControl

EVERY_MS: Final = 50
_TOLD_LIMIT: Final = 10_000


class Watch:
    """Writes outcomes that time or evidence brings about; they count once they are read back from `outcomes`."""

    def __init__(self, books: Books, release: Release, outbox: list[Outgoing]) -> None:
        self.watching = False
        self._books = books
        self._release = release
        self._outbox = outbox
        self._told: dict[tuple[str, str], None] = {}
        self._next_ms = 0

    def look(self, now_ms: int) -> None:
        """Look at all that is watched, no more often than every 50 ms."""
        if abs(now_ms - self._next_ms) < EVERY_MS or not self._books.warm:
            return
        self._next_ms = now_ms
        self.watching = any(state.controls.watching for state in self._books.states.values())
        if not self.watching:
            return
        for state in self._books.states.values():
            due = state.controls.due(now_ms)
            for control in due.unacknowledged:
                self._tell(state, control, "unacknowledged", now_ms, "no acknowledgement came in time")
            for control in due.effects:
                if state.effect(control, now_ms):
                    self._tell(state, control, "effect", now_ms, "the evidence shows it")
                elif control.effect_until_ms is not None and now_ms > control.effect_until_ms:
                    self._tell(state, control, "no_effect", now_ms, "the evidence did not show it in time")

    def _tell(self, state: RegionState, control: AppliedControl, kind: str, now_ms: int, detail: str) -> None:
        if (control.decision_id, kind) in self._told:
            return
        self._told[control.decision_id, kind] = None
        if len(self._told) > _TOLD_LIMIT:
            del self._told[next(iter(self._told))]
        outcome = OutcomeMessage.model_validate(
            {
                "decision_id": control.decision_id,
                "proposal_id": control.proposal_id,
                "outcome": kind,
                "at_ms": now_ms,
                "detail": detail,
            }
        )
        self._outbox.append(self._release.outcome(state.region.encode(), outcome))
