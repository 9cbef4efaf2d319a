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

REGION: Final = "bench"
UES: Final = 20
"""Reports in flow: one a UE and period, as from two cells of ten UEs."""
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
    flowing = asyncio.create_task(_telemetry(bootstrap_servers, settings.topics.telemetry))
    try:
        async with GuardClient(bootstrap_servers, region=REGION, name="xapp:bench") as client:
            return await _round_trips(lambda n: _propose(client, n), count)
    finally:
        flowing.cancel()
        with suppress(asyncio.CancelledError):
            await flowing
        await guard.stop()
        await deciding


async def _propose(client: GuardClient, number: int) -> None:
    ue = number % UES
    await client.propose(
        contract_ref="slicing/1",
        bindings={"cell": "1", "slice": "1", "ue": str(ue)},
        control_key=f"cell:1/slice:1/ue:{ue}/prb",
        plan={"bandwidth": {"value": 2.0, "unit": "MHz"}},
    )


async def _telemetry(bootstrap_servers: str, topic: str) -> None:
    """Reports of one cell and its policy, every period, until cancelled."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=0) as producer:
        number = 0
        while True:
            number += 1
            acks = [
                await producer.send(topic, value, key=REGION.encode())
                for value in (*(_ue_report(number, ue) for ue in range(UES)), *_slice_reports(number))
            ]
            await asyncio.gather(*acks)
            await asyncio.sleep(PERIOD_S)


def _ue_report(number: int, ue: int) -> bytes:
    measurements = [
        {"name": "sinr", "value": 12.0 + (number + ue) % 5 * 0.1, "unit": "dB"},
        {"name": "cqi", "value": 9, "unit": "1"},
    ]
    return _report(f"ue{ue}-{number}", "e2:gnb-1", f"cell:1/ue:{ue}", measurements)


def _slice_reports(number: int) -> tuple[bytes, bytes]:
    cell = [{"name": "capacity", "value": 100, "unit": "MHz"}, {"name": "users", "value": UES, "unit": "1"}]
    policy = [{"name": "min_rate", "value": 5, "unit": "Mbit/s"}]
    return (
        _report(f"slice-{number}", "e2:gnb-1", "cell:1/slice:1", cell),
        _report(f"policy-{number}", "a1:policy", "cell:1/slice:1", policy),
    )


def _report(report_id: str, source: str, subject: str, measurements: list[dict[str, Any]]) -> bytes:
    return orjson.dumps(
        {
            "format": "wirelessops.telemetry/1",
            "report_id": report_id,
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
        value = _ue_report(0, 0)

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
