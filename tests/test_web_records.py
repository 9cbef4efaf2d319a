"""A record is found by its time wherever it stands: among thousands, after set-back clocks, between transactions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaProducer
from real_kafka import RealKafka

from streams.broker import EmbeddedBroker
from streams.headers import cloud_event
from streams.settings import GuardSettings
from streams.topics import topics
from streams.web.kept_records import KeptRecords
from streams.web.records import Log, NotFound, Unanswered
from streams.web.summaries import DecisionId

T0 = 1_790_000_000_000
PREFIX = "wirelessops."
Written = tuple[str, int]
"""What a record is of, and its time."""
NONE_KEPT = KeptRecords(lambda: False)


async def write(producer: AIOKafkaProducer, topic: str, written: Iterable[Written]) -> None:
    """Records as a guard heads them; their value is what they are of."""
    acks = []
    for identity, time_ms in written:
        headers = cloud_event(event_id=identity, source="/test", kind="wirelessops.record/1", time_ms=time_ms)
        acks.append(await producer.send(topic, identity.encode(), partition=0, headers=headers))
    await asyncio.gather(*acks)


@asynccontextmanager
async def embedded(written: Iterable[Written]) -> AsyncIterator[Log]:
    """The log of an embedded broker with these records in partition 0."""
    with EmbeddedBroker() as broker:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        await producer.start()
        await write(producer, PREFIX + "records", written)
        log = Log(GuardSettings.embedded(broker.bootstrap_servers), lambda: range(4), KeptRecords(lambda: True))
        try:
            yield log
        finally:
            await log.close()
            await producer.stop()


async def found(log: Log, identity: str, time_ms: int, offset: int = 0) -> bytes:
    decision_id, _, attempt = identity.partition("/")
    return await log.record(DecisionId(0, offset), decision_id, int(attempt), time_ms)


async def test_each_of_five_thousand_is_found_by_its_time() -> None:
    written = [(f"d{n}/1", T0 + n // 7) for n in range(5_000)]
    async with embedded(written) as log:
        for identity, time_ms in (written[0], written[1], written[2_345], written[4_998], written[4_999]):
            assert await found(log, identity, time_ms) == identity.encode()


async def test_attempts_are_told_apart() -> None:
    async with embedded([("d/1", T0), ("d/2", T0), ("d/3", T0 + 1)]) as log:
        for identity, time_ms in (("d/1", T0), ("d/2", T0), ("d/3", T0 + 1)):
            assert await found(log, identity, time_ms) == identity.encode()


async def test_a_record_is_found_after_the_clock_was_set_back() -> None:
    before = [(f"a{n}/1", T0 + 100 * n) for n in range(100)]
    after = [(f"b{n}/1", T0 + 100 * n + 7_000) for n in range(100)]
    async with embedded([*before, *after]) as log:
        for identity, time_ms in (before[99], after[0], after[50]):
            assert await found(log, identity, time_ms) == identity.encode()


@pytest.mark.parametrize("time_ms", [T0 - 10_000_000, T0, T0 + 50, T0 + 10_000_000])
async def test_what_is_not_there_is_not_found(time_ms: int) -> None:
    async with embedded([(f"d{n}/1", T0 + n) for n in range(100)]) as log:
        with pytest.raises(NotFound):
            await found(log, "other/1", time_ms)
        with pytest.raises(NotFound, match="partition"):
            await log.record(DecisionId(9, 0), "d1", 1, T0)
        with pytest.raises(NotFound):
            await log.decision(DecisionId(0, 7))


async def test_what_the_embedded_broker_dropped_is_gone_while_it_drops_more_and_the_words_say_whose_fault() -> None:
    async with embedded([("d/1", T0)]) as log, _producer(log) as producer:
        await write(producer, PREFIX + "control", [("d/1", T0)])

        async def flood(rounds: int) -> None:
            for _ in range(rounds):
                for topic in ("records", "control"):
                    await producer.send_and_wait(PREFIX + topic, bytes(400_000), partition=0)

        await flood(15)
        flooding = asyncio.create_task(flood(10_000))
        try:
            for _ in range(8):
                with pytest.raises(NotFound, match="record of d/1 is gone: the embedded broker kept it no longer"):
                    await found(log, "d/1", T0)
                with pytest.raises(NotFound, match="decision 0-0 is gone: the embedded broker kept it no longer"):
                    await log.decision(DecisionId(0, 0))
            assert not flooding.done()
        finally:
            flooding.cancel()


async def test_an_empty_log_holds_nothing() -> None:
    async with embedded([]) as log:
        with pytest.raises(NotFound):
            await found(log, "d/1", T0)


async def test_strangers_among_the_records_are_passed_over() -> None:
    async with embedded([("a/1", T0), ("c/1", T0 + 20)]) as log, _producer(log) as producer:
        for value, headers in ((b"{", []), (b"", []), (b"x", [("ce_time", b"soon"), ("ce_id", b"\xff")])):
            await producer.send_and_wait(PREFIX + "records", value, partition=0, headers=headers)
        await write(producer, PREFIX + "records", [("d/1", T0 + 30)])
        for identity, time_ms in (("a/1", T0), ("c/1", T0 + 20), ("d/1", T0 + 30)):
            assert await found(log, identity, time_ms) == identity.encode()


async def test_a_broker_that_is_gone_is_told_in_time_and_one_that_is_back_is_used() -> None:
    with EmbeddedBroker() as broker:
        log = Log(GuardSettings.embedded(broker.bootstrap_servers), lambda: range(4), NONE_KEPT, timeout_s=1.0)
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(Unanswered):
        await found(log, "d/1", T0)
    assert loop.time() - began < 4
    await log.close()


async def test_a_record_is_found_between_the_ends_of_transactions_and_what_was_given_up(kafka: RealKafka) -> None:
    names = topics(kafka.prefix)
    for name in ("records", "control"):
        kafka.create_topic(name)
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=kafka.prefix + "w")
    await producer.start()
    settings = GuardSettings.of(bootstrap_servers=kafka.bootstrap_servers, prefix=kafka.prefix)
    log = Log(settings, lambda: range(1), NONE_KEPT)
    try:
        for n in range(40):
            async with producer.transaction():
                await write(producer, names.records, [(f"d{n}/1", T0 + 10 * n)])
            await producer.begin_transaction()
            await write(producer, names.records, [(f"d{n}/1", T0 + 10 * n), (f"gone{n}/1", T0 + 10 * n)])
            await producer.abort_transaction()
        for n in (0, 1, 20, 38, 39):
            assert await found(log, f"d{n}/1", T0 + 10 * n) == f"d{n}/1".encode()
        with pytest.raises(NotFound):
            await found(log, "gone39/1", T0 + 390)
    finally:
        await log.close()
        await producer.stop()


async def test_a_record_is_found_after_the_clock_was_set_back_by_an_hour_and_forward_again(kafka: RealKafka) -> None:
    names = topics(kafka.prefix)
    for name in ("records", "control"):
        kafka.create_topic(name, message_timestamp_type="LogAppendTime")
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    await producer.start()
    settings = GuardSettings.of(bootstrap_servers=kafka.bootstrap_servers, prefix=kafka.prefix)
    log = Log(settings, lambda: range(1), NONE_KEPT)
    hour_ms = 3_600_000
    times = [*range(0, 30_000, 1_000), *range(-hour_ms, -hour_ms + 30_000, 1_000), *range(40_000, 70_000, 1_000)]
    written = [(f"d{n}/1", T0 + time_ms) for n, time_ms in enumerate(times)]
    try:
        await write(producer, names.records, written)
        await write(producer, names.control, written)
        for n in (0, 15, 29, 30, 45, 59, 60, 75, 89):
            identity, time_ms = written[n]
            assert await found(log, identity, time_ms, n) == identity.encode()
        with pytest.raises(NotFound):
            await found(log, "other/1", T0, 45)
        with pytest.raises(NotFound):
            await found(log, "other/1", T0, 1_000)
    finally:
        await log.close()
        await producer.stop()


@asynccontextmanager
async def _producer(log: Log) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(bootstrap_servers=log._settings.bootstrap_servers)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()
