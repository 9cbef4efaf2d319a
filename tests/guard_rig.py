"""A guard on the embedded broker, and plain aiokafka clients round it: what a stranger to the code would use."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from streams.broker import EmbeddedBroker
from streams.commands.record import REPLAYED
from streams.guard import Guard, unix_ms
from streams.recorder import Recorder
from streams.settings import GuardSettings
from streams.topics import partition_of
from xapp.contract import Contract
from xapp.contract_loading import load_contract
from xapp.signing import Signer, is_envelope, open_envelope

PREFIX = "wirelessops."
REGION = "north"
PARTITIONS = 4
WAIT_S = 8.0
WRITTEN = ("control", "records", "requests", "outcomes", "checkpoints", "dead-letters", "views")

CONTRACT: dict[str, Any] = {
    "contract_id": "test/1",
    "fields": {
        "cqi": {
            "kind": "observed",
            "unit": "1",
            "min": 0,
            "max": 15,
            "subject": "cell:{cell}/ue:{ue}",
            "freshness_ms": 30_000,
            "sources": ["e2:gnb-1"],
        },
        "bandwidth": {"kind": "planned", "unit": "MHz", "min": 0, "max": 20},
    },
    "constraints": [{"id": "served", "expr": "bandwidth >= cqi / 10"}],
}


def contracts(document: Mapping[str, Any] = CONTRACT) -> dict[str, Contract]:
    contract = load_contract(document)
    return {contract.contract_id: contract}


def report(report_id: str, cqi: Any, event_time_ms: int | None = None, **over: Any) -> bytes:
    document = {
        "format": "wirelessops.telemetry/1",
        "report_id": report_id,
        "source": "e2:gnb-1",
        "event_time_ms": unix_ms() if event_time_ms is None else event_time_ms,
        "subject": "cell:1/ue:7",
        "measurements": [{"name": "cqi", "value": cqi, "unit": "1"}],
        **over,
    }
    return orjson.dumps(document)


def proposal(proposal_id: str, **over: Any) -> bytes:
    document = {
        "proposal_id": proposal_id,
        "proposer": "xapp:test",
        "contract_ref": "test/1",
        "created_at_ms": unix_ms(),
        "control_key": "cell:1/ue:7/prb",
        "bindings": {"cell": "1", "ue": "7"},
        "plan": {"bandwidth": {"value": 8, "unit": "MHz"}},
        **over,
    }
    return orjson.dumps(document)


class Rig:
    """Sends to the guard's topics and keeps all that it writes, by topic (without prefix), in order of arrival."""

    def __init__(self, bootstrap_servers: str, prefix: str = PREFIX) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.prefix = prefix
        self.written: dict[str, list[Any]] = {topic: [] for topic in WRITTEN}
        self._more = asyncio.Condition()
        self._producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=0, max_request_size=20_000_000)
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap_servers,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=2,
            isolation_level="read_committed",
        )
        self._reading: asyncio.Task[None] | None = None

    async def open(self) -> None:
        await self._producer.start()
        await self._consumer.start()
        for topic in self.written:
            await self._producer.partitions_for(self.prefix + topic)
        self._consumer.assign([TopicPartition(self.prefix + t, p) for t in self.written for p in range(PARTITIONS)])
        self._reading = asyncio.create_task(self._read())

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self._consumer.stop()
        await self._producer.stop()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = REGION.encode(),
        timestamp_ms: int | None = None,
        headers: Sequence[tuple[str, bytes]] | None = None,
        partition: int | None = None,
    ) -> Any:
        """Produce one message and wait for its ack; gives (topic, partition, offset, …). The key gives the partition,
        where none is named.
        """
        return await self._producer.send_and_wait(
            self.prefix + topic, value, key=key, timestamp_ms=timestamp_ms, headers=headers, partition=partition
        )

    async def wait_for(
        self, topic: str, wanted: Callable[[dict[str, Any]], bool] = lambda _: True, wait_s: float = WAIT_S
    ) -> dict[str, Any]:
        """The first message of a topic that is as wanted; its Kafka message stands under `message`."""
        async with asyncio.timeout(wait_s), self._more:
            while True:
                for message in self.written[topic]:
                    document = self.opened(message)
                    if document and wanted({**document, "message": message}):
                        return {**document, "message": message}
                await self._more.wait()

    @staticmethod
    def opened(message: Any) -> dict[str, Any]:
        """The document in a message; of a record, what its envelope holds."""
        try:
            document = orjson.loads(message.value)
        except (orjson.JSONDecodeError, TypeError):
            return {}
        return orjson.loads(open_envelope(message.value).payload) if is_envelope(document) else document

    async def decision(self, proposal_id: str, wait_s: float = WAIT_S) -> dict[str, Any]:
        return await self.wait_for("control", lambda d: d["proposal_id"] == proposal_id, wait_s)

    @staticmethod
    def partition_of_region() -> int:
        """Where messages of the region go."""
        return partition_of(REGION, range(PARTITIONS))

    async def ask(self, **query: Any) -> dict[str, Any]:
        await self.send("queries", orjson.dumps({"format": "wirelessops.query/1", **query}))
        return await self.wait_for("views", lambda view: view["query_id"] == query["query_id"])

    async def dead_letter(self, sent: Any) -> dict[str, Any]:
        """The dead letter of a message sent."""
        place = (sent.topic, sent.partition, sent.offset)
        return await self.wait_for("dead-letters", lambda d: (d["topic"], d["partition"], d["offset"]) == place)

    def decisions(self, proposal_id: str | None = None) -> list[dict[str, Any]]:
        found: Iterable[dict[str, Any]] = (orjson.loads(message.value) for message in self.written["control"])
        return [d for d in found if proposal_id is None or d["proposal_id"] == proposal_id]

    async def _read(self) -> None:
        async for message in self._consumer:
            async with self._more:
                self.written[message.topic.removeprefix(self.prefix)].append(message)
                self._more.notify_all()


def carried(letter: Mapping[str, Any]) -> bytes | None:
    return None if letter["value"] is None else base64.b64decode(letter["value"])


@asynccontextmanager
async def running(guard: Guard) -> AsyncIterator[asyncio.Task[None]]:
    """The guard, deciding; its task, which a test may await where it must fail."""
    await guard.start()
    task = asyncio.create_task(guard.run())
    try:
        yield task
    finally:
        await guard.stop()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def guarded(
    clock: Callable[[], int] = unix_ms,
    document: Mapping[str, Any] = CONTRACT,
    signer: Signer | None = None,
    **options: Any,
) -> AsyncIterator[tuple[Rig, Guard]]:
    """Broker, guard and rig."""
    with EmbeddedBroker() as broker:
        guard = Guard(GuardSettings.embedded(broker.bootstrap_servers, **options), contracts(document), clock, signer)
        rig = Rig(broker.bootstrap_servers)
        try:
            async with running(guard):
                await rig.open()
                yield rig, guard
        finally:
            await rig.close()


@asynccontextmanager
async def recorded(bootstrap_servers: str, out: Path) -> AsyncIterator[Recorder]:
    """Meanwhile, what a replay needs is recorded to a file."""
    recorder = Recorder(bootstrap_servers, [PREFIX + name for name in REPLAYED], out)
    await recorder.start()
    running = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        recorder.stop()
        await running
