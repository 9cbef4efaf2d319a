"""Who looks on while a guard decides: metrics, the decision log, traces, alarms.

A desk tells every decision that it published, after its batch stands: no observer hears of a decision that others
cannot read. Observers run between two batches, in the guard's own thread: they count, log, or queue, and never wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import structlog

from streams.headers import decision_event
from xapp.model import Decision

NO_REASON: Final = "none"
"""The reason of a decision that nothing blocks."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Published:
    """One decision that stands on `control`.

    `proposal`: the proposal's document as it was read; `headers`: those of its message; `record`: the DSSE envelope of
    the decision's record; `attempt` counts its decisions from 1. Times are Unix ms: `appended_at_ms` when the broker
    took the proposal, `decided_at_ms` (t of the decision) and `published_at_ms` by the guard's clock; `until_ms` when
    the final decision comes at the latest, None where this one is final. Durations are seconds: `decide_s` for this
    decision, `publish_s` for the batch that it stood in.
    """

    decision: Decision
    proposal: Mapping[str, Any]
    region: str
    partition: int
    sequence: int
    attempt: int
    final: bool
    appended_at_ms: int
    decided_at_ms: int
    published_at_ms: int
    until_ms: int | None
    decide_s: float
    publish_s: float
    record: bytes
    headers: Sequence[tuple[str, bytes | None]] = ()

    @property
    def waited_s(self) -> float:
        """From the broker's taking the proposal to this decision, seconds; the clocks may differ: at least 0."""
        return max(0, self.decided_at_ms - self.appended_at_ms) / 1000

    @property
    def event_id(self) -> str:
        """The CloudEvents id of its message on `control`."""
        return decision_event(self.decision.decision_id, self.attempt)

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of what blocks, each once, in the order of the decision's violations."""
        return tuple(dict.fromkeys(v.code for v in self.decision.violations if v.blocking))

    @property
    def reason(self) -> str:
        """The first code of what blocks; `none` where nothing does."""
        return next((v.code for v in self.decision.violations if v.blocking), NO_REASON)


class Observer(Protocol):
    """Told of every published decision. It must not block; what it raises is logged once, counted, and ends there."""

    def published(self, published: Published) -> None:
        """A decision stands."""


class Observers:
    """All observers of a guard. `failed` is called with the class name of an observer each time that it raises."""

    def __init__(self, observers: Iterable[Observer], failed: Callable[[str], None]) -> None:
        self._observers = tuple(observers)
        self._failed = failed
        self._told: set[str] = set()

    def __bool__(self) -> bool:
        """Whether there is anyone to tell."""
        return bool(self._observers)

    def add(self, observer: Observer) -> None:
        """Tell this one too from now on."""
        self._observers = (*self._observers, observer)

    def tell(self, published: Published) -> None:
        """Tell all of them; never raises an Exception."""
        for observer in self._observers:
            try:
                observer.published(published)
            except Exception:
                name = type(observer).__name__
                self._failed(name)
                if name not in self._told:
                    self._told.add(name)
                    log.exception("an observer failed: it is told on, and no more is logged of it", observer=name)
