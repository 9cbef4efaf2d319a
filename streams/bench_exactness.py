"""What being exact costs, Kafka to Kafka on a real broker: one part of `make bench`, and runs by itself.

Four ways to relay a small batch, as a guard would (a record for each message, acknowledged, then a decision for each):
with an idempotent producer; in a transaction of aiokafka's; in one of librdkafka's, from a thread; and that with the
consumed offset in the transaction. All in one run, so that what counts is how they compare.
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from confluent_kafka import Producer

from streams.kafka_cluster import KafkaCluster, KafkaUnavailable

BATCHES: Final = (1, 64)
ROUNDS: Final = {1: 300, 64: 150}
WARM_UP: Final = 100
BURSTS: Final = 5
"""Of batch upon batch, each way; the best one counts."""
GROUP: Final = "exactness"
VALUE: Final = bytes(600)
_TIMEOUT_S: Final = 20.0

Relay = Callable[[Sequence[Any]], Awaitable[None]]


async def measure_exactness(bootstrap_servers: str) -> dict[str, float]:
    """Per way and batch size: p50 and p99 in ms from a batch in hand to its last decision consumed; messages/s when
    batch follows upon batch. The ways take turns, so that whatever else the machine does slows all of them alike.
    """
    figures: dict[str, float] = {}
    for batch in BATCHES:
        async with AsyncExitStack() as stack:
            ways: dict[str, tuple[_Bench, Relay]] = {}
            for way, relaying in WAYS.items():
                opened = _Bench.opened(bootstrap_servers, f"{way}-{batch}", way != "idempotent")
                bench = await stack.enter_async_context(opened)
                ways[way] = bench, await stack.enter_async_context(relaying(bench))
            times: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(WARM_UP + ROUNDS[batch]):
                for way, (bench, relay) in ways.items():
                    times[way].append(await bench.round_trip(relay, batch))
            rates: dict[str, float] = dict.fromkeys(ways, 0.0)
            for _ in range(BURSTS):
                for way, (bench, relay) in ways.items():
                    rates[way] = max(rates[way], await bench.rate(relay, batch))
        for way in ways:
            figures |= {
                f"exact_{way}_{batch}_p50_ms": _quantile(times[way][WARM_UP:], 0.50),
                f"exact_{way}_{batch}_p99_ms": _quantile(times[way][WARM_UP:], 0.99),
                f"exact_{way}_{batch}_messages_per_s": rates[way],
            }
    return figures


def exactness_where_possible() -> dict[str, float]:
    """The figures on a broker of our own; none, and a line that says why, where no real Kafka can be started."""
    try:
        with KafkaCluster() as cluster:
            return asyncio.run(measure_exactness(cluster.bootstrap_servers))
    except KafkaUnavailable as error:
        sys.stderr.write(f"not measured, what being exact costs: {error}\n")
        return {}


class _Bench:
    """An input and two outputs of one partition, their clients, and the clock round a relay."""

    def __init__(self, bootstrap_servers: str, name: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.name = name
        self.source = TopicPartition(f"{name}.in", 0)
        self.records, self.control = f"{name}.records", f"{name}.control"

    @classmethod
    @asynccontextmanager
    async def opened(cls, bootstrap_servers: str, name: str, transactional: bool) -> AsyncIterator[_Bench]:
        bench = cls(bootstrap_servers, name)
        await asyncio.to_thread(_create, bootstrap_servers, (bench.source.topic, bench.records, bench.control))
        isolation = "read_committed" if transactional else "read_uncommitted"
        bench.consumer = await _reader(bootstrap_servers, bench.source, "read_uncommitted")
        bench.sink = await _reader(bootstrap_servers, TopicPartition(bench.control, 0), isolation)
        bench.producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=0)
        await bench.producer.start()
        try:
            yield bench
        finally:
            await asyncio.gather(bench.consumer.stop(), bench.sink.stop(), bench.producer.stop())

    async def round_trip(self, relay: Relay, batch: int) -> float:
        messages = await self._given(batch)
        started = time.perf_counter()
        await asyncio.gather(relay(messages), self._received(batch))
        return (time.perf_counter() - started) * 1e3

    async def rate(self, relay: Relay, batch: int) -> float:
        count = ROUNDS[batch] // BURSTS
        messages = await self._given(batch)
        started = time.perf_counter()

        async def relay_all() -> None:
            for _ in range(count):
                await relay(messages)

        await asyncio.gather(relay_all(), self._received(batch * count))
        return batch * count / (time.perf_counter() - started)

    async def _given(self, batch: int) -> list[Any]:
        """A batch, produced and consumed."""
        acks = [await self.producer.send(self.source.topic, VALUE, partition=0) for _ in range(batch)]
        await asyncio.gather(*acks)
        messages: list[Any] = []
        while len(messages) < batch:
            messages += (await self.consumer.getmany(self.source, timeout_ms=200)).get(self.source, ())
        return messages

    async def _received(self, count: int) -> None:
        while count > 0:
            count -= sum(map(len, (await self.sink.getmany(timeout_ms=200)).values()))

    consumer: AIOKafkaConsumer
    sink: AIOKafkaConsumer
    producer: AIOKafkaProducer


@asynccontextmanager
async def _idempotent(bench: _Bench) -> AsyncIterator[Relay]:
    options = {"linger_ms": 0, "enable_idempotence": True}
    async with AIOKafkaProducer(bootstrap_servers=bench.bootstrap_servers, **options) as producer:

        async def relay(messages: Sequence[Any]) -> None:
            await _send(producer, bench, messages)

        yield relay


@asynccontextmanager
async def _aiokafka_transaction(bench: _Bench) -> AsyncIterator[Relay]:
    options = {"linger_ms": 0, "transactional_id": bench.name}
    async with AIOKafkaProducer(bootstrap_servers=bench.bootstrap_servers, **options) as producer:

        async def relay(messages: Sequence[Any]) -> None:
            async with producer.transaction():
                await _send(producer, bench, messages)

        yield relay


async def _send(producer: AIOKafkaProducer, bench: _Bench, messages: Sequence[Any]) -> None:
    for topic in (bench.records, bench.control):
        acks = [await producer.send(topic, message.value, partition=0) for message in messages]
        await asyncio.gather(*acks)


@asynccontextmanager
async def _librdkafka_transaction(bench: _Bench, with_offsets: bool = False) -> AsyncIterator[Relay]:
    producer = Producer(
        {
            "bootstrap.servers": bench.bootstrap_servers,
            "transactional.id": bench.name,
            "linger.ms": 0,
            "retry.backoff.ms": 20,
            "log_level": 0,
        }
    )
    await asyncio.to_thread(producer.init_transactions, _TIMEOUT_S)
    group = await asyncio.to_thread(_group_metadata, bench.bootstrap_servers) if with_offsets else None

    def transact(messages: Sequence[Any]) -> None:
        producer.begin_transaction()
        for topic in (bench.records, bench.control):
            for message in messages:
                producer.produce(topic, message.value, partition=0)
            producer.flush(_TIMEOUT_S)
        if group is not None:
            producer.send_offsets_to_transaction(_next(messages), group, _TIMEOUT_S)
        producer.commit_transaction(_TIMEOUT_S)

    async def relay(messages: Sequence[Any]) -> None:
        await asyncio.to_thread(transact, messages)

    yield relay


def _librdkafka_with_offsets(bench: _Bench) -> Any:
    return _librdkafka_transaction(bench, with_offsets=True)


WAYS: Final[dict[str, Callable[[_Bench], Any]]] = {
    "idempotent": _idempotent,
    "aiokafka": _aiokafka_transaction,
    "librdkafka": _librdkafka_transaction,
    "librdkafka_offsets": _librdkafka_with_offsets,
}


def _group_metadata(bootstrap_servers: str) -> Any:
    """What librdkafka calls a group that nobody has joined."""
    from confluent_kafka import Consumer

    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": GROUP, "log_level": 0})
    try:
        return consumer.consumer_group_metadata()
    finally:
        consumer.close()


def _next(messages: Sequence[Any]) -> list[Any]:
    from confluent_kafka import TopicPartition as Offset

    last = messages[-1]
    return [Offset(last.topic, last.partition, last.offset + 1)]


def _create(bootstrap_servers: str, names: Sequence[str]) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    for future in admin.create_topics([NewTopic(name, 1) for name in names]).values():
        future.result(_TIMEOUT_S)


async def _reader(bootstrap_servers: str, tp: TopicPartition, isolation: str) -> AIOKafkaConsumer:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        fetch_max_wait_ms=100,
        isolation_level=isolation,
    )
    await consumer.start()
    consumer.assign([tp])
    consumer.seek(tp, 0)
    return consumer


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return round(ordered[math.ceil(share * len(ordered)) - 1], 3)


def table(figures: dict[str, float]) -> str:
    """The figures as a table, each way beside the idempotent producer."""
    rows = ["| batch | way | p50 ms | p99 ms | messages/s | p50 as multiple |", "|---|---|---|---|---|---|"]
    for batch in BATCHES:
        base = figures[f"exact_idempotent_{batch}_p50_ms"]
        for way in WAYS:
            p50, p99, rate = (figures[f"exact_{way}_{batch}_{what}"] for what in ("p50_ms", "p99_ms", "messages_per_s"))
            rows.append(f"| {batch} | {way} | {p50:.1f} | {p99:.1f} | {rate:,.0f} | {p50 / base:.1f} |")
    return "\n".join(rows)


if __name__ == "__main__":
    if measured := exactness_where_possible():
        print(table(measured))
