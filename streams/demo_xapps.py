"""The demo's xApps on the wire: telemetry to their eyes, and a guard's client that notes the truth of each proposal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from simulators.proposers.base import Draft, Proposer
from simulators.scenario import Scenario
from streams.client import GuardClient
from streams.telemetry import Decoder, SourceStatus


async def feed(
    proposers: Sequence[Proposer],
    bootstrap_servers: str,
    telemetry: TopicPartition,
    clock: Callable[[], int],
    fetch_wait_ms: int,
) -> None:
    """Show every report to all proposers, in order of arrival, until cancelled."""
    decoder = Decoder()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        group_id=None,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=fetch_wait_ms,
    )
    await consumer.start()
    try:
        consumer.assign([telemetry])
        await consumer.seek_to_beginning()
        async for message in consumer:
            decoded = decoder.decode(message.value).message
            if not isinstance(decoded, SourceStatus):
                report = decoded.report()
                for proposer in proposers:
                    proposer.see(report, clock())
    finally:
        await consumer.stop()


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
        deadline_ms: int,
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
