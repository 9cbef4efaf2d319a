"""Requests made to sources in outage: no more than a source allows, spaced by its back-off, made once for all who wait.

Pure: t is an argument, and the jitter follows from the decision. What is outstanding can be rebuilt from the decisions
that asked (`asked` on `control`) and the telemetry that answered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from xapp.model import Decision, SourceState

ANSWER_MS: Final = 250
"""How long an answer may be under way after the source was asked."""
_JITTER: Final = 0.25
"""Largest share of the back-off that is added, so that guards of many regions do not ask in step."""
_LARGEST_BACK_OFF_MS: Final = 86_400_000


class Asked(NamedTuple):
    """A source was asked so many `times` since it last said something; an answer may come until `until_ms`."""

    source: str
    times: int
    until_ms: int

    def document(self) -> dict[str, Any]:
        """As the member `asked` of a decision on `control`."""
        return {"source": self.source, "count": self.times, "until_ms": self.until_ms}


class Asks:
    """What was asked of the sources of one region. `spacing_ms`: least time between two requests to one source."""

    def __init__(self, spacing_ms: int) -> None:
        self._spacing_ms = spacing_ms
        self._asked: dict[str, Asked] = {}

    def heard(self, source: str) -> None:
        """The source reported, or said what it is: what was asked of it before counts no more."""
        self._asked.pop(source, None)

    def note(self, asked: Asked) -> None:
        """A request was made."""
        self._asked[asked.source] = asked

    def terms(self, states: Mapping[str, SourceState], t_ms: int) -> dict[str, SourceState]:
        """Sources as a decision at t is to see them: attempts used are gone, a back-off doubles with each.

        While an answer may still come, the attempt counts as left, and its rest as the back-off.
        """
        found = dict(states)
        for source, state in states.items():
            asked = self._asked.get(source)
            if asked is None or state.status != "outage" or not state.retryable:
                continue
            waiting = t_ms <= asked.until_ms
            left = max(0, state.retries_left - asked.times + waiting)
            after_ms = state.retry_after_ms
            if after_ms is not None:
                after_ms = asked.until_ms - t_ms if waiting else _backed_off(after_ms, asked.times)
            found[source] = replace(state, retries_left=left, retry_after_ms=after_ms)
        return found

    def outstanding(self, source: str, t_ms: int) -> Asked | None:
        """The request whose answer may still come."""
        asked = self._asked.get(source)
        return asked if asked is not None and t_ms <= asked.until_ms else None

    def next_request(self, decision: Decision, t_ms: int) -> Asked | None:
        """What a RETRY asks for; None while the source was asked and may still answer."""
        assert decision.retry is not None
        source, after_ms = decision.retry.source, decision.retry.after_ms
        if self.outstanding(source, t_ms) is not None:
            return None
        before = self._asked.get(source)
        wait_ms = max(after_ms + _jitter(decision.decision_id, after_ms), self._spacing_ms)
        wait_ms = min(wait_ms, _LARGEST_BACK_OFF_MS)
        return Asked(source, 1 if before is None else before.times + 1, t_ms + wait_ms + ANSWER_MS)

    def forget(self) -> None:
        """Whatever was asked counts no more: the clock was set back, and its times mean nothing."""
        self._asked = {}

    def snapshot(self) -> dict[str, Asked]:
        """To go back to by `restore`."""
        return dict(self._asked)

    def restore(self, snapshot: dict[str, Asked]) -> None:
        """Back to a snapshot."""
        self._asked = snapshot


def _backed_off(after_ms: int, count: int) -> int:
    return min(after_ms << min(count, 32), max(after_ms, _LARGEST_BACK_OFF_MS))


def _jitter(decision_id: str, after_ms: int) -> int:
    """Between 0 and a quarter of the back-off, the same for the same decision."""
    share = int.from_bytes(hashlib.sha256(decision_id.encode()).digest()[:4], "big") / 2**32
    return int(after_ms * _JITTER * share)
