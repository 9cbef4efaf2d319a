"""Simulated xApps on the wire: telemetry to their eyes, and a guard's client that notes the truth of each proposal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition

from simulators.proposers.base import Draft, Proposer
from simulators.scenario import Scenario
from streams.client import GuardClient
from streams.kafka_security import KafkaSecurity
from streams.lifecycle import stop_all
from streams.telemetry import Decoder, SourceStatus

_STOP_S: Final = 3.0


class Eyes:
    """Shows every report from now on to all proposers, in order of arrival.

    `start()`, then `run()` until it is cancelled, then `stop()`. `fetch_wait_ms`: how long a fetch waits at the broker.
    """

    def __init__(
        self,
        proposers: Sequence[Proposer],
        bootstrap_servers: str,
        telemetry: TopicPartition,
        clock: Callable[[], int],
        fetch_wait_ms: int,
        security: KafkaSecurity,
    ) -> None:
        self._proposers = proposers
        self._telemetry = telemetry
        self._clock = clock
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap_servers,
            group_id=None,
            auto_offset_reset="latest",
            fetch_max_wait_ms=fetch_wait_ms,
            **security.aiokafka_options(),
        )

    async def start(self) -> None:
        """Connect, and read from the end. Raises `aiokafka.errors.KafkaError`."""
        await self._consumer.start()
        self._consumer.assign([self._telemetry])
        ends = await self._consumer.end_offsets([self._telemetry])
        self._consumer.seek(self._telemetry, ends[self._telemetry])

    async def run(self) -> None:
        """Read until cancelled."""
        decoder = Decoder()
        async for message in self._consumer:
            decoded = decoder.decode(message.value).message
            if not isinstance(decoded, SourceStatus):
                report = decoded.report()
                for proposer in self._proposers:
                    proposer.see(report, self._clock())

    async def stop(self) -> None:
        """Close, within 3 s."""
        await stop_all(self._consumer.stop(), timeout_s=_STOP_S)


class WitnessedGuard:
    """A guard's client (`simulators.proposers.base.Guard`) that notes the truth as each proposal leaves."""

    def __init__(self, client: GuardClient, scenario: Scenario, clock: Callable[[], int]) -> None:
        self._client = client
        self._scenario = scenario
        self._clock = clock
        self._numbers = count(1)

    async def propose(
        self,
        *,
        contract_ref: str,
        control_key: str,
        plan: Mapping[str, Any],
        bindings: Mapping[str, str | tuple[str, ...]],
        deadline_ms: int | None,
        timeout_s: float,
    ) -> Mapping[str, Any]:
        """Propose and await the final decision. Raises TimeoutError where none comes in time."""
        now_ms = self._clock()
        proposal_id = f"{self._client.name}/{now_ms}/{next(self._numbers)}"
        self._scenario.proposed(proposal_id, Draft(contract_ref, bindings, control_key, plan), now_ms)
        return await self._client.propose(
            contract_ref=contract_ref,
            control_key=control_key,
            plan=plan,
            bindings=bindings,
            deadline_ms=deadline_ms,
            timeout_s=timeout_s,
            proposal_id=proposal_id,
        )
