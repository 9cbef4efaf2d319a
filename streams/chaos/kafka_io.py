"""Kafka as the harness uses it: librdkafka's clients, topics made before anyone needs them, whole partitions read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from streams.chaos.history import Message

_WAIT_S: Final = 30.0
_SILENCE_S: Final = 30.0
_TOPIC: Final = {"message.timestamp.type": "LogAppendTime", "retention.ms": "-1"}


def producer(bootstrap_servers: str, **more: Any) -> Any:
    """A producer that waits for all replicas, and sends a key where Java's client would."""
    from confluent_kafka import Producer

    settings = {
        "bootstrap.servers": bootstrap_servers,
        "acks": "all",
        "enable.idempotence": True,
        "partitioner": "murmur2_random",
        "linger.ms": 5,
        "delivery.timeout.ms": 8000,
        "log_level": 0,
    }
    return Producer(settings | more)


def consumer(bootstrap_servers: str, **more: Any) -> Any:
    """A reader of committed messages, to be assigned by hand."""
    from confluent_kafka import Consumer

    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "chaos",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 20,
        "log_level": 0,
    }
    return Consumer(settings | more)


def make_topics(bootstrap_servers: str, names: Sequence[str], partitions: int, replication: int) -> None:
    """Create topics whose timestamps are the broker's. Raises KafkaException."""
    from confluent_kafka.admin import AdminClient, NewTopic

    config = _TOPIC | {"min.insync.replicas": str(max(1, replication - 1))}
    topics = [NewTopic(name, partitions, replication, config=config) for name in names]
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    for made in admin.create_topics(topics, operation_timeout=_WAIT_S, request_timeout=_WAIT_S).values():
        made.result()


def under_replicated(bootstrap_servers: str, replication: int) -> int:
    """Partitions with fewer replicas in sync than there are to be."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    topics = admin.list_topics(timeout=_WAIT_S).topics.values()
    return sum(len(p.isrs) < min(replication, len(p.replicas)) for t in topics for p in t.partitions.values())


def hidden(bootstrap_servers: str, names: Sequence[str], partitions: int) -> list[str]:
    """Partitions whose end a transactional reader does not see, because a transaction is open."""
    from confluent_kafka import IsolationLevel, TopicPartition
    from confluent_kafka.admin import AdminClient, OffsetSpec

    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    latest: Any = OffsetSpec.latest  # untyped
    asked = {TopicPartition(name, p): latest() for name in names for p in range(partitions)}
    ends = []
    for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
        answers = admin.list_offsets(asked, isolation_level=level, request_timeout=_WAIT_S)
        ends.append({(tp.topic, tp.partition): answer.result().offset for tp, answer in answers.items()})
    return [f"{topic} {partition}" for (topic, partition), end in ends[0].items() if end != ends[1][topic, partition]]


def read_partition(bootstrap_servers: str, topic: str, partition: int) -> Iterator[Message]:
    """All committed messages of a partition as it is now. Raises TimeoutError where its end does not come."""
    from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException, TopicPartition

    reader = consumer(bootstrap_servers, **{"enable.partition.eof": True, "fetch.wait.max.ms": 100})
    try:
        reader.assign([TopicPartition(topic, partition, 0)])
        ends_at = time.monotonic() + _SILENCE_S
        while time.monotonic() < ends_at:
            for message in reader.consume(500, 0.05):  # waits so long where there are fewer
                ends_at = time.monotonic() + _SILENCE_S
                if message.error() is None:
                    kind, timestamp_ms = message.timestamp()
                    appended = kind == TIMESTAMP_LOG_APPEND_TIME
                    yield Message(message.offset(), timestamp_ms, message.key(), message.value(), appended)
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    return
                elif message.error().fatal():
                    raise KafkaException(message.error())
        raise TimeoutError(f"{topic} {partition}: not read to its end")
    finally:
        reader.close()
