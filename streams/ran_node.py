"""The RAN's side of the wire: reports onto `telemetry`, decisions from `control`, requests answered, outcomes told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import orjson
import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from simulators.ran.actuator import Outcome
from simulators.ran.emission import Emission, SourceNote
from streams.headers import cloud_event
from streams.kafka_security import KafkaSecurity
from streams.lifecycle import stop_all
from streams.messages import OutcomeMessage
from streams.tailing import connect_at_end
from streams.telemetry import REPORT_FORMAT, STATUS_FORMAT, SourceStatus, encode_report, encode_status
from streams.topics import Topics

TICK_S: Final = 0.05
_STOP_S: Final = 3.0
_EVENT_SOURCE: Final = "/wirelessops/ran"

log = structlog.get_logger(__name__)


class Ran(Protocol):
    """A network without a wire (`simulators.ran.network.Network` has these). Times are Unix ms."""

    def tick(self, now_ms: int) -> Sequence[Emission]:
        """Move on to now; the messages that leave now."""

    def control(self, decision: Mapping[str, Any], now_ms: int) -> Outcome | None:
        """Carry out a decision, if it orders something. Raises KeyError for a document that is no decision."""

    def request(self, request: Mapping[str, Any]) -> None:
        """Take a request. Raises KeyError, TypeError, ValueError for one that cannot be read."""

    def effects(self) -> Sequence[Outcome]:
        """Effects that have had time to show."""


class RanNode:
    """One network in one region. `start()`, then `run()` until it is cancelled, then `stop()`.

    `run()` raises whatever made it fail. `fetch_wait_ms`: how long a fetch waits at the broker.
    """

    def __init__(
        self,
        ran: Ran,
        bootstrap_servers: str,
        topics: Topics,
        region: str,
        clock: Callable[[], int],
        fetch_wait_ms: int,
        security: KafkaSecurity,
    ) -> None:
        self._ran = ran
        self._topics = topics
        self._region = region
        self._clock = clock
        self._bootstrap_servers = bootstrap_servers
        self._fetch_wait_ms = fetch_wait_ms
        self._security = security
        self._partition = 0
        self._producer: AIOKafkaProducer | None = None
        self._consumer: AIOKafkaConsumer | None = None

    async def start(self) -> None:
        """Connect, and read `control` and `requests` from now on. Raises `aiokafka.errors.KafkaError`."""
        names = self._topics
        self._producer, self._consumer, self._partition = await connect_at_end(
            self._bootstrap_servers,
            self._region,
            (names.telemetry, names.outcomes),
            (names.control, names.requests),
            self._fetch_wait_ms,
            self._security,
        )

    @property
    def telemetry(self) -> TopicPartition:
        """The partition that the reports go to, once started."""
        return TopicPartition(self._topics.telemetry, self._partition)

    async def run(self) -> None:
        """Report and obey until cancelled."""
        async with asyncio.TaskGroup() as parts:
            parts.create_task(self._report(), name="RAN reports")
            parts.create_task(self._obey(), name="RAN reads control")

    async def stop(self) -> None:
        """Close, within 3 s; later calls do nothing."""
        clients = [client for client in (self._consumer, self._producer) if client is not None]
        self._consumer = self._producer = None
        await stop_all(*(client.stop() for client in clients), timeout_s=_STOP_S)

    async def _report(self) -> None:
        while True:
            acks = [await self._emit(emission) for emission in self._ran.tick(self._clock())]
            acks += [await self._tell(outcome) for outcome in self._ran.effects()]
            await asyncio.gather(*acks)
            await asyncio.sleep(TICK_S)

    async def _obey(self) -> None:
        assert self._consumer is not None
        async for message in self._consumer:
            try:
                document = orjson.loads(message.value or b"")
                if message.topic == self._topics.requests:
                    self._ran.request(document)
                    continue
                outcome = self._ran.control(document, self._clock())
            except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
                log.warning("not understood", topic=message.topic, offset=message.offset, why=repr(error))
                continue
            if outcome is not None:
                await self._tell(outcome)

    async def _emit(self, emission: Emission) -> Awaitable[Any]:
        message = emission.message
        if isinstance(message, SourceNote):
            value = encode_status(SourceStatus(message.source, message.state, message.event_time_ms))
            identity, kind = f"{message.source}/status/{message.event_time_ms}", STATUS_FORMAT
        else:
            value, identity, kind = encode_report(message), message.report_id, REPORT_FORMAT
        return await self._send(self._topics.telemetry, value, identity, kind)

    async def _tell(self, outcome: Outcome) -> Awaitable[Any]:
        message = OutcomeMessage(
            decision_id=outcome.decision_id,
            proposal_id=outcome.proposal_id,
            outcome=outcome.kind,
            at_ms=outcome.at_ms,
            detail=outcome.reason or None,
        )
        value = message.model_dump_json().encode()
        return await self._send(self._topics.outcomes, value, f"{outcome.decision_id}/{outcome.kind}", message.format)

    async def _send(self, topic: str, value: bytes, identity: str, kind: str) -> Awaitable[Any]:
        assert self._producer is not None
        headers = cloud_event(event_id=identity, source=_EVENT_SOURCE, kind=kind, time_ms=self._clock())
        ack: Awaitable[Any] = await self._producer.send(
            topic, value, key=self._region.encode(), partition=self._partition, headers=headers
        )
        return ack
