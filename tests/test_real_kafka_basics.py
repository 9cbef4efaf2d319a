"""What the control path takes for granted of Kafka, asked of a real one."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from aiokafka.errors import InvalidReplicationFactorError, OffsetOutOfRangeError, ProducerFenced, for_code
from confluent_kafka import KafkaError, KafkaException, Producer
from real_kafka import RealKafka, create_topic

from streams.guard_kafka import connect_producer, ensure_topics
from streams.kafka_cluster import KafkaCluster
from streams.settings import GuardSettings

WAIT_S = 20.0
LONG_AGO_MS = 1_000_000_000_000


async def read_all(bootstrap_servers: str, topic: str, **options: Any) -> list[bytes]:
    """The values of partition 0 up to the end that a consumer of these options sees now."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap_servers, enable_auto_commit=False, **options)
    tp = TopicPartition(topic, 0)
    found: list[bytes] = []
    await consumer.start()
    try:
        consumer.assign([tp])
        end = (await consumer.end_offsets([tp]))[tp]
        consumer.seek(tp, 0)
        async with asyncio.timeout(WAIT_S):
            while await consumer.position(tp) < end:
                found += [m.value for m in (await consumer.getmany(tp, timeout_ms=200)).get(tp, ())]
    finally:
        await consumer.stop()
    return found


def transactional(bootstrap_servers: str, name: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "transactional.id": name,
            "transaction.timeout.ms": 60_000,
            "linger.ms": 0,
            "log_level": 0,
        }
    )
    producer.init_transactions(WAIT_S)
    return producer


async def test_missing_topics_are_created_once_with_the_partitions_asked_for(kafka: RealKafka) -> None:
    settings = GuardSettings.of(bootstrap_servers=kafka.bootstrap_servers, prefix=kafka.prefix, partitions=3)
    producer = await connect_producer(settings)
    try:
        made = await ensure_topics(settings, producer)
        again = await ensure_topics(settings, producer)
    finally:
        await producer.stop()
    assert made == again
    assert not made.embedded
    assert set(made.partitions) == set(settings.topics.names())
    assert {made.partitions[name] for name in settings.topics.keyed_by_region()} == {(0, 1, 2)}


async def test_guards_that_start_together_agree_on_the_topics(kafka: RealKafka) -> None:
    settings = GuardSettings.of(bootstrap_servers=kafka.bootstrap_servers, prefix=kafka.prefix)

    async def start() -> Any:
        producer = await connect_producer(settings)
        try:
            return await ensure_topics(settings, producer)
        finally:
            await producer.stop()

    first, *others = await asyncio.gather(*(start() for _ in range(3)))
    assert others == [first, first]


async def test_aiokafka_says_only_in_its_answer_that_a_topic_was_not_created(kafka: RealKafka) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    await admin.start()
    try:
        answer = await admin.create_topics([NewTopic(kafka.prefix + "three", 1, replication_factor=3)])
    finally:
        await admin.close()
    assert [for_code(code) for _, code, _ in answer.topic_errors] == [InvalidReplicationFactorError]


async def test_offsets_are_found_by_time(kafka: RealKafka) -> None:
    topic = kafka.create_topic("times")
    tp = TopicPartition(topic, 0)
    async with (
        AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer,
        AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap_servers) as consumer,
    ):
        for at in (1_000, 2_000, 3_000):
            await producer.send_and_wait(topic, b"", partition=0, timestamp_ms=LONG_AGO_MS + at)
        consumer.assign([tp])
        found = (await consumer.offsets_for_times({tp: LONG_AGO_MS + 1_500}))[tp]
        assert (found.offset, found.timestamp) == (1, LONG_AGO_MS + 2_000)
        assert (await consumer.offsets_for_times({tp: LONG_AGO_MS + 3_001}))[tp] is None


async def test_a_topic_of_append_time_tells_both_clients_when_a_message_was_appended(kafka: RealKafka) -> None:
    topic = kafka.create_topic("appended", message_timestamp_type="LogAppendTime")
    before = time.time_ns() // 1_000_000
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        told = await producer.send_and_wait(topic, b"", partition=0, timestamp_ms=LONG_AGO_MS)
    assert told.timestamp_type == 1
    assert before <= told.timestamp <= time.time_ns() // 1_000_000

    delivered: list[Any] = []
    plain = Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    plain.produce(topic, b"", timestamp=LONG_AGO_MS, on_delivery=lambda error, message: delivered.append(message))
    assert plain.flush(WAIT_S) == 0
    assert delivered[0].timestamp()[0] == 2  # TIMESTAMP_LOG_APPEND_TIME
    assert before <= delivered[0].timestamp()[1] <= time.time_ns() // 1_000_000


async def test_a_transaction_tells_the_append_time_before_its_commit_and_can_still_be_aborted(kafka: RealKafka) -> None:
    topic = kafka.create_topic("control", message_timestamp_type="LogAppendTime")
    producer = transactional(kafka.bootstrap_servers, kafka.prefix + "guard.0")
    delivered: list[Any] = []
    producer.begin_transaction()
    producer.produce(topic, b"late", on_delivery=lambda error, message: delivered.append(message))
    assert producer.flush(WAIT_S) == 0
    assert delivered[0].timestamp()[0] == 2
    producer.abort_transaction(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic, b"in time")
    producer.commit_transaction(WAIT_S)
    assert await read_all(kafka.bootstrap_servers, topic, isolation_level="read_committed") == [b"in time"]
    assert await read_all(kafka.bootstrap_servers, topic) == [b"late", b"in time"]


async def test_a_reader_of_what_is_committed_waits_before_an_open_transaction(kafka: RealKafka) -> None:
    topic = kafka.create_topic("open")
    producer = transactional(kafka.bootstrap_servers, kafka.prefix + "guard.0")
    producer.begin_transaction()
    producer.produce(topic, b"pending", partition=0)
    producer.flush(WAIT_S)
    other = Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    other.produce(topic, b"plain", partition=0)
    other.flush(WAIT_S)
    assert await read_all(kafka.bootstrap_servers, topic, isolation_level="read_committed") == []
    producer.commit_transaction(WAIT_S)
    assert await read_all(kafka.bootstrap_servers, topic, isolation_level="read_committed") == [b"pending", b"plain"]


async def test_whoever_starts_later_under_a_name_fences_whoever_was_there(kafka: RealKafka) -> None:
    topic = kafka.create_topic("fenced")
    name = kafka.prefix + "guard.0"
    former = transactional(kafka.bootstrap_servers, name)
    former.begin_transaction()
    former.produce(topic, b"former")
    former.flush(WAIT_S)
    latter = transactional(kafka.bootstrap_servers, name)
    latter.begin_transaction()
    latter.produce(topic, b"latter")
    latter.commit_transaction(WAIT_S)
    with pytest.raises(KafkaException) as refused:
        former.commit_transaction(WAIT_S)
    error: KafkaError = refused.value.args[0]
    assert error.code() == KafkaError._FENCED
    assert error.fatal()
    assert await read_all(kafka.bootstrap_servers, topic, isolation_level="read_committed") == [b"latter"]


async def test_aiokafka_says_that_it_was_fenced(kafka: RealKafka) -> None:
    topic = kafka.create_topic("fenced")
    name = kafka.prefix + "guard.0"
    former = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=name)
    await former.start()
    try:
        await former.begin_transaction()
        await former.send_and_wait(topic, b"former", partition=0)
        transactional(kafka.bootstrap_servers, name)
        with pytest.raises(ProducerFenced):
            await former.commit_transaction()
    finally:
        await former.stop()
    assert await read_all(kafka.bootstrap_servers, topic, isolation_level="read_committed") == []


OPENS_AND_LATER_COMMITS = """
import sys
from confluent_kafka import KafkaException, Producer
servers, name, topic = sys.argv[1:]
producer = Producer({"bootstrap.servers": servers, "transactional.id": name, "log_level": 0})
producer.init_transactions(20)
producer.begin_transaction()
producer.produce(topic, b"of the paused", partition=0)
producer.flush(20)
print("open", flush=True)
sys.stdin.readline()
try:
    producer.commit_transaction(20)
    print("committed", flush=True)
except KafkaException as error:
    print(error.args[0].name(), error.args[0].fatal(), flush=True)
"""


@contextmanager
def opener(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process with an open transaction, which tries to commit once it is sent a line."""
    command = [sys.executable, "-c", OPENS_AND_LATER_COMMITS, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            yield process
        finally:
            process.kill()


async def test_a_paused_process_that_comes_back_releases_nothing(kafka: RealKafka) -> None:
    topic = kafka.create_topic("paused")
    name = kafka.prefix + "guard.0"
    with opener(kafka.bootstrap_servers, name, topic) as process:
        os.kill(process.pid, signal.SIGSTOP)
        successor = transactional(kafka.bootstrap_servers, name)
        successor.begin_transaction()
        successor.produce(topic, b"of the successor", partition=0)
        successor.commit_transaction(WAIT_S)
        os.kill(process.pid, signal.SIGCONT)
        said, _ = process.communicate("\n", timeout=WAIT_S)
    assert said.split() == ["_FENCED", "True"]
    assert await read_all(kafka.bootstrap_servers, topic, isolation_level="read_committed") == [b"of the successor"]


async def test_an_offset_whose_record_was_deleted_is_out_of_range(kafka: RealKafka) -> None:
    topic = kafka.create_topic("deleted")
    tp = TopicPartition(topic, 0)
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for number in range(5):
            await producer.send_and_wait(topic, b"%d" % number, partition=0)
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    await admin.start()
    try:
        await admin.delete_records({tp: RecordsToDelete(before_offset=3)})
    finally:
        await admin.close()
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="none")
    await consumer.start()
    try:
        consumer.assign([tp])
        assert (await consumer.beginning_offsets([tp]))[tp] == 3
        consumer.seek(tp, 1)
        with pytest.raises(OffsetOutOfRangeError):
            async with asyncio.timeout(WAIT_S):
                await consumer.getone()
    finally:
        await consumer.stop()


async def test_three_brokers_lose_one_and_nothing_that_was_acknowledged(kafka3: KafkaCluster) -> None:
    topic = create_topic(kafka3.bootstrap_servers, "survives")
    acknowledged: list[bytes] = []
    async with AIOKafkaProducer(
        bootstrap_servers=kafka3.bootstrap_servers, enable_idempotence=True, request_timeout_ms=3_000
    ) as producer:
        for number in range(60):
            if number == 20:
                await asyncio.to_thread(kafka3.kill, await leader(kafka3, topic))
            value = b"%d" % number
            async with asyncio.timeout(WAIT_S):
                await producer.send_and_wait(topic, value, partition=0)
            acknowledged.append(value)
    dead = next(broker for broker in range(3) if not kafka3.runs(broker))
    await asyncio.to_thread(kafka3.restart, dead)
    assert await read_all(kafka3.bootstrap_servers, topic) == acknowledged


async def test_a_transaction_outlives_the_broker_that_coordinates_it(kafka3: KafkaCluster) -> None:
    topic = create_topic(kafka3.bootstrap_servers, "transactions")
    producer = transactional(kafka3.bootstrap_servers, "guard.0")
    producer.begin_transaction()
    producer.produce(topic, b"decision", partition=0)
    producer.flush(WAIT_S)
    coordinator = await leader(kafka3, "__transaction_state", java_hash("guard.0") % 4)
    kafka3.kill(coordinator)
    await asyncio.to_thread(producer.commit_transaction, 3 * WAIT_S)
    await asyncio.to_thread(kafka3.restart, coordinator)
    found = await read_all(kafka3.bootstrap_servers, topic, isolation_level="read_committed")
    assert found == [b"decision"]


def java_hash(text: str) -> int:
    """Of a short ASCII text; by it, Kafka picks the partition of `__transaction_state` (four here) for a name."""
    value = 0
    for letter in text.encode():
        value = (31 * value + letter) & 0xFFFFFFFF
    return abs(value - (1 << 32) if value >> 31 else value)


async def leader(cluster: KafkaCluster, topic: str, partition: int = 0) -> int:
    admin = AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    await admin.start()
    try:
        (described,) = await admin.describe_topics([topic])
        found: int = next(p["leader"] for p in described["partitions"] if p["partition"] == partition)
        return found
    finally:
        await admin.close()
