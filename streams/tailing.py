"""A producer, and a consumer that reads topics of one region from now on: how clients of a guard connect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from streams.kafka_config import PLAINTEXT
from streams.kafka_security import KafkaSecurity
from streams.topics import partition_of


class Tail(NamedTuple):
    """Both ends, started; `partition` is the region's in every topic that is keyed by region."""

    producer: AIOKafkaProducer
    consumer: AIOKafkaConsumer
    partition: int


async def connect_at_end(
    bootstrap_servers: str, region: str, written: Sequence[str], read: Sequence[str], fetch_wait_ms: int,
    security: KafkaSecurity = PLAINTEXT,
) -> Tail:  # fmt: skip
    """Connect to write to `written` and read what is committed to `read`, from its end.

    Raises `aiokafka.errors.KafkaError`.
    """
    options = security.aiokafka_options()
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=0, enable_idempotence=True, **options)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        group_id=None,
        auto_offset_reset="latest",
        fetch_max_wait_ms=fetch_wait_ms,
        isolation_level="read_committed",
        **options,
    )
    try:
        await producer.start()
        for topic in (*written, *read):
            partitions = await producer.partitions_for(topic)
        partition = partition_of(region, sorted(partitions))
        await consumer.start()
        tails = [TopicPartition(topic, partition) for topic in read]
        consumer.assign(tails)
        for tp, end in (await consumer.end_offsets(tails)).items():
            consumer.seek(tp, end)
    except BaseException:
        await consumer.stop()
        await producer.stop()
        raise
    return Tail(producer, consumer, partition)
