"""Kafka to Kafka on the embedded broker, beside a plain aiokafka relay in the same run: one part of `make bench`."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from streams.broker import EMBEDDED_FETCH_WAIT_MS, EmbeddedBroker
from streams.client import GuardClient
from streams.guard import Guard, unix_ms
from streams.settings import GuardSettings, load_contracts
from streams.topics import partition_of
from xapp.contracts import shipped

REGION: Final = "bench"
CONTRACT_ID: Final = "slicing/1"
VALUES: Final = {"sinr": 12.0, "cqi": 9, "capacity": 100, "users": 20, "min_rate": 5}
"""What the observed fields of that contract are reported as: a proposal of 2 MHz is then released, repaired."""
UES: Final = 20
"""UEs reported each period, as of two cells of ten."""
PERIOD_S: Final = 0.1
GAP_S: Final = 0.005
"""Pause between two measured proposals."""
WARM_UP: Final = 50


async def measure_kafka(count: int = 500) -> dict[str, float]:
    """Milliseconds from a message produced to its answer consumed, p50 and p99 over `count`, one at a time.

    `kafka_*`: a slicing proposal to the guard's decision, record written, with telemetry flowing (20 reports per
    100 ms). `relay_*`: a consumer that sends each message on, with the same settings and nothing else to do.
    """
    with EmbeddedBroker() as broker:
        relay = await _measure_relay(broker.bootstrap_servers, count)
        guard = await _measure_guard(broker.bootstrap_servers, count)
    return {
        "kafka_p50_ms": _quantile(guard, 0.50),
        "kafka_p99_ms": _quantile(guard, 0.99),
        "relay_p50_ms": _quantile(relay, 0.50),
        "relay_p99_ms": _quantile(relay, 0.99),
    }


async def _measure_guard(bootstrap_servers: str, count: int) -> list[float]:
    settings = GuardSettings.embedded(bootstrap_servers)
    guard = Guard(settings, load_contracts(None))
    await guard.start()
    deciding = asyncio.create_task(guard.run())
    flows = asyncio.Event()
    flowing = asyncio.create_task(_telemetry(bootstrap_servers, settings.topics.telemetry, flows))
    try:
        async with GuardClient(bootstrap_servers, region=REGION, name="xapp:bench") as client:
            await flows.wait()
            return await _round_trips(lambda n: _propose(client, n), count)
    finally:
        flowing.cancel()
        with suppress(asyncio.CancelledError):
            await flowing
        await guard.stop()
        await deciding


async def _propose(client: GuardClient, number: int) -> None:
    ue = number % UES
    decision = await client.propose(
        contract_ref=CONTRACT_ID,
        bindings=_bindings(ue),
        control_key=f"cell:1/slice:1/ue:{ue}/prb",
        plan={"bandwidth": {"value": 2.0, "unit": "MHz"}},
    )
    if decision["action"] != "APPLY":
        raise RuntimeError(f"measured a refusal, not a release: {decision['explanation']}")


async def _telemetry(bootstrap_servers: str, topic: str, flows: asyncio.Event) -> None:
    """Reports of all UEs and of their slice, every period, until cancelled; `flows` is set once some are there."""
    contract = shipped()[CONTRACT_ID]
    about: dict[tuple[str, str | None], dict[str, dict[str, Any]]] = {}
    for ue in range(UES):
        for member in contract.resolve(_bindings(ue)).members:
            name = member.field.name
            measurement = {"name": name, "value": VALUES[name], "unit": member.field.unit}
            about.setdefault((member.sources[0], member.subject), {})[name] = measurement
    async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=0) as producer:
        number = 0
        while True:
            number += 1
            acks = [
                await producer.send(topic, _report(number, *of, [*measured.values()]), key=REGION.encode())
                for of, measured in about.items()
            ]
            await asyncio.gather(*acks)
            flows.set()
            await asyncio.sleep(PERIOD_S)


def _bindings(ue: int) -> dict[str, str]:
    return {"cell": "1", "slice": "1", "ue": str(ue)}


def _report(number: int, source: str, subject: str | None, measurements: list[dict[str, Any]]) -> bytes:
    return orjson.dumps(
        {
            "format": "wirelessops.telemetry/1",
            "report_id": f"{source}/{subject}/{number}",
            "source": source,
            "event_time_ms": unix_ms(),
            "subject": subject,
            "measurements": measurements,
        }
    )


async def _measure_relay(bootstrap_servers: str, count: int) -> list[float]:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=0) as producer:
        partition = partition_of(REGION, sorted(await producer.partitions_for("relay.in")))
        await producer.partitions_for("relay.out")
        source = await _reader(bootstrap_servers, TopicPartition("relay.in", partition))
        sink = await _reader(bootstrap_servers, TopicPartition("relay.out", partition))
        relaying = asyncio.create_task(_relay(source, bootstrap_servers, partition))
        value = _report(0, "relay", "cell:1", [{"name": "sinr", "value": 12.0, "unit": "dB"}])

        async def trip(_: int) -> None:
            await producer.send_and_wait("relay.in", value, partition=partition)
            await sink.getone()

        try:
            return await _round_trips(trip, count)
        finally:
            relaying.cancel()
            await asyncio.gather(relaying, return_exceptions=True)
            await asyncio.gather(source.stop(), sink.stop())


async def _relay(source: AIOKafkaConsumer, bootstrap_servers: str, partition: int) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=0, enable_idempotence=True) as producer:
        while True:
            for messages in (await source.getmany(timeout_ms=200)).values():
                for message in messages:
                    await producer.send("relay.out", message.value, partition=partition)


async def _reader(bootstrap_servers: str, tp: TopicPartition) -> AIOKafkaConsumer:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap_servers, fetch_max_wait_ms=EMBEDDED_FETCH_WAIT_MS)
    await consumer.start()
    consumer.assign([tp])
    consumer.seek(tp, 0)
    return consumer


async def _round_trips(trip: Callable[[int], Awaitable[None]], count: int) -> list[float]:
    """Milliseconds of each of `count` trips, after a warm-up."""
    found = []
    for number in range(WARM_UP + count):
        started = time.perf_counter()
        await trip(number)
        found.append((time.perf_counter() - started) * 1e3)
        await asyncio.sleep(GAP_S)
    return found[WARM_UP:]


def _quantile(values: list[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    return round(ordered[math.ceil(share * len(ordered)) - 1], 3)
