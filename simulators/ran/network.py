"""The RAN's side as one piece without a wire: world, reports, the line they travel on, actuator, answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from simulators.ran.actuator import Actuator, Order, Outcome
from simulators.ran.answers import Answering
from simulators.ran.emission import Emission
from simulators.ran.reports import MIN_PERIOD_MS, Reporter
from simulators.ran.world import World
from xapp.actuation import ActuatorCheck

REQUEST_PATIENCE_MS: Final = 2000


class Line(Protocol):
    """What reports pass on their way out (`simulators.faults.base.FaultLine`)."""

    def carry(self, emissions: Sequence[Emission], now_ms: int) -> list[Emission]:
        """What arrives now of what was sent now and before."""

    def is_out(self, source: str) -> bool:
        """Whether a source cannot report now."""


class Network:
    """One simulated RAN. All times are Unix ms given by the caller; they may not run backwards.

    `check` knows the guards whose decisions are carried out. `first_report`: the number of the first report of each
    source.
    """

    def __init__(
        self, world: World, line: Line, check: ActuatorCheck, period_ms: int = MIN_PERIOD_MS, first_report: int = 1
    ) -> None:
        self.world = world
        self._line = line
        self._reporter = Reporter(world, period_ms, first_report)
        self._actuator = Actuator(world, check)
        self._answering = Answering(self._reporter, line.is_out)

    def tick(self, now_ms: int) -> list[Emission]:
        """Move the world to now; the messages that leave it now."""
        self.world.advance_to(now_ms)
        return self._line.carry([*self._reporter.due(), *self._answering.due(now_ms)], now_ms)

    def control(
        self, decision: Mapping[str, Any], now_ms: int, witness: Callable[[Order], None] | None = None
    ) -> Outcome | None:
        """Carry out a decision now, if it orders something. `witness` is told of an order about to be carried out.

        Raises KeyError for a document that is no decision.
        """
        self.world.advance_to(now_ms)
        return self._actuator.receive(decision, witness)

    def request(self, request: Mapping[str, Any]) -> None:
        """Take a request for a report. Raises KeyError, TypeError, ValueError for one that cannot be read."""
        self._answering.receive(request, REQUEST_PATIENCE_MS)

    def effects(self) -> list[Outcome]:
        """Effects of orders that have had time to show."""
        return self._actuator.effects()
