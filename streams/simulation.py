"""The simulated RAN and its xApps against any Kafka: what `wirelessops demo` and `wirelessops simulate` share.

The truth about each proposal stays on this side of the wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from simulators.proposers.base import drive
from simulators.ran.actuator import Outcome
from simulators.ran.emission import Emission
from simulators.scenario import Scenario
from streams.client import GuardClient
from streams.kafka_config import PLAINTEXT
from streams.kafka_security import KafkaSecurity
from streams.lifecycle import first_of
from streams.ran_node import RanNode
from streams.simulated_xapps import Eyes, WitnessedGuard
from streams.topics import DEFAULT_PREFIX, topics

_PROPOSER_TICK_S: Final = 0.05
_SETTLE_S: Final = 0.3
"""After the last answer: time for the network to carry it out."""
_CANCEL_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Wire:
    """Where a simulation talks: Kafka, the topics and the region, and how long a fetch of each part waits there."""

    bootstrap_servers: str
    region: str
    prefix: str = DEFAULT_PREFIX
    security: KafkaSecurity = PLAINTEXT
    ran_wait_ms: int = 10
    xapp_wait_ms: int = 20


class SimulatedRan:
    """A scenario as the RAN node sees it (`streams.ran_node.Ran`).

    `before_tick` is called with the time (Unix ms) before the network moves on, `said` with each decision and the time.
    `ticks`: how often it has moved on.
    """

    def __init__(
        self,
        scenario: Scenario,
        before_tick: Callable[[int], None] = lambda now_ms: None,
        said: Callable[[Mapping[str, Any], int], None] = lambda decision, now_ms: None,
    ) -> None:
        self.ticks = 0
        self._scenario = scenario
        self._before_tick = before_tick
        self._said = said

    def tick(self, now_ms: int) -> Sequence[Emission]:
        self.ticks += 1
        self._before_tick(now_ms)
        return self._scenario.network.tick(now_ms)

    def control(self, decision: Mapping[str, Any], now_ms: int) -> Outcome | None:
        outcome = self._scenario.control(decision, now_ms)
        self._said(decision, now_ms)
        return outcome

    def request(self, request: Mapping[str, Any]) -> None:
        self._scenario.network.request(request)

    def effects(self) -> Sequence[Outcome]:
        return self._scenario.network.effects()


class Simulation:
    """One network and its xApps in one region. Use as an async context manager, then `run`.

    `clock` gives Unix ms; `patience_s`: how long `run` awaits answers that are open when it is to stop. Entering raises
    `aiokafka.errors.KafkaError` or TimeoutError where Kafka does not answer.
    """

    def __init__(
        self, scenario: Scenario, ran: SimulatedRan, wire: Wire, clock: Callable[[], int], patience_s: float
    ) -> None:
        self._scenario = scenario
        self._wire = wire
        self._clock = clock
        self._patience_s = patience_s
        self._node = RanNode(
            ran, wire.bootstrap_servers, topics(wire.prefix), wire.region, clock, wire.ran_wait_ms, wire.security
        )
        self._stack = AsyncExitStack()
        self._eyes: Eyes | None = None
        self._guards: list[WitnessedGuard] = []

    async def __aenter__(self) -> Self:
        wire = self._wire
        try:
            self._stack.push_async_callback(self._node.stop)
            await self._node.start()
            self._eyes = Eyes(
                self._scenario.proposers, wire.bootstrap_servers, self._node.telemetry, self._clock,
                wire.xapp_wait_ms, wire.security,
            )  # fmt: skip
            self._stack.push_async_callback(self._eyes.stop)
            await self._eyes.start()
            for proposer in self._scenario.proposers:
                client = GuardClient(
                    wire.bootstrap_servers, region=wire.region, name=proposer.name, prefix=wire.prefix,
                    fetch_wait_ms=wire.xapp_wait_ms, security=wire.security,
                )  # fmt: skip
                await self._stack.enter_async_context(client)
                self._guards.append(WitnessedGuard(client, self._scenario, self._clock))
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def run(self, stop: asyncio.Event) -> None:
        """Report, propose and obey until `stop` is set; then await the answers still open.

        Raises what made a part fail.
        """
        assert self._eyes is not None, "use `async with`"
        drives = [
            asyncio.create_task(drive(proposer, guard, self._clock, _PROPOSER_TICK_S, stop), name=proposer.name)
            for proposer, guard in zip(self._scenario.proposers, self._guards, strict=True)
        ]
        parts = [
            asyncio.create_task(self._node.run(), name="RAN"),
            asyncio.create_task(self._eyes.run(), name="telemetry of the xApps"),
        ]
        try:
            await first_of(stop.wait(), *parts, *drives)
            if stop.is_set():
                await first_of(*parts, asyncio.wait(drives), timeout_s=self._patience_s)
                await first_of(*parts, timeout_s=_SETTLE_S)
            raise_first(parts + drives)
        finally:
            for task in (*drives, *parts):
                task.cancel()
            await asyncio.wait({*drives, *parts}, timeout=_CANCEL_S)


def raise_first(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Raise the error of the first task that has failed, if one has."""
    for task in tasks:
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            raise error


def root_cause(error: BaseException) -> BaseException:
    """The first real cause inside groups of exceptions."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
