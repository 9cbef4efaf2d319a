"""Reaching Kafka within a bound: clients of the guard, and the topics it needs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError, NoError, TopicAlreadyExistsError, for_code

from streams.settings import GuardSettings

_RETRY_S: Final = 0.25
_REQUEST_TIMEOUT_MS: Final = 10_000
_PARTITION_FETCH_BYTES: Final = 4_000_000
_FRAMING_BYTES: Final = 100_000
_EMBEDDED: Final = "mockCluster"
"""How the ids of librdkafka's mock clusters begin: only they are served without a group and a fence."""
_SAFE_REPLICAS: Final = 2
"""With so many in sync a message outlives a broker; one of three may be down and writing goes on."""

log = structlog.get_logger(__name__)
T = TypeVar("T")


class Unreachable(RuntimeError):
    """Kafka could not be reached, or does not hold the topics needed, within the bound."""


async def within(settings: GuardSettings, what: str, attempt: Callable[[], Awaitable[T]]) -> T:
    """Repeat `attempt` while Kafka errs, for at most `connect_timeout_s`. Raises Unreachable with the last error."""
    last = "no answer"
    try:
        async with asyncio.timeout(settings.connect_timeout_s):
            while True:
                try:
                    return await attempt()
                except (KafkaError, OSError) as error:
                    last = str(error) or type(error).__name__
                    await asyncio.sleep(_RETRY_S)
    except TimeoutError as error:
        raise Unreachable(
            f"{what}: Kafka at {settings.bootstrap_servers} not ready within {settings.connect_timeout_s:g} s: {last} "
            "(without --bootstrap-servers an embedded broker is started)"
        ) from error


async def connect_producer(settings: GuardSettings, *, idempotent: bool = True) -> AIOKafkaProducer:
    """A started producer without linger, for acknowledgement by all in sync. Raises Unreachable.

    An idempotent one writes nothing twice, and nothing more to a partition where a message was refused: the gap in its
    sequence numbers stays. One that is not goes on.
    """

    async def attempt() -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            bootstrap_servers=settings.bootstrap_servers,
            client_id=f"wirelessops-{settings.guard_name}",
            acks="all",
            enable_idempotence=idempotent,
            linger_ms=0,
            max_request_size=settings.max_message_bytes,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
            **settings.security.aiokafka_options(),
        )
        try:
            await producer.start()
        except BaseException:
            await producer.stop()
            raise
        return producer

    return await within(settings, "producer", attempt)


async def connect_consumer(settings: GuardSettings, group: str | None) -> AIOKafkaConsumer:
    """A started consumer of what is committed, with or without a group. Raises Unreachable."""

    async def attempt() -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=settings.bootstrap_servers,
            client_id=f"wirelessops-{settings.guard_name}",
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="none" if group is None else "latest",  # a group only remembers: it reads nothing
            fetch_max_wait_ms=settings.fetch_wait_ms,
            max_partition_fetch_bytes=_PARTITION_FETCH_BYTES,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
            isolation_level="read_committed",
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=min(3_000, settings.session_timeout_ms // 3),
            rebalance_timeout_ms=settings.session_timeout_ms,
            partition_assignment_strategy=(StickyPartitionAssignor,),
            **settings.security.aiokafka_options(),
        )
        try:
            await consumer.start()
        except BaseException:
            await consumer.stop()
            raise
        return consumer

    return await within(settings, "consumer", attempt)


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a guard found: topic → partition ids, and whether it is an embedded broker.

    That one has neither groups of several members nor transactional reads.
    """

    partitions: Mapping[str, tuple[int, ...]]
    embedded: bool


async def ensure_topics(settings: GuardSettings, producer: AIOKafkaProducer) -> Cluster:
    """Find the topics, creating those that are missing.

    The embedded broker makes a topic when first asked for it. Raises Unreachable
    where a topic does not come into being, or where the topics keyed by region have not equally many partitions.
    """
    names = settings.topics.names()
    embedded = await _create(settings, names)

    async def attempt() -> dict[str, tuple[int, ...]]:
        found = {name: await producer.partitions_for(name) for name in names}
        missing = [name for name, partitions in found.items() if not partitions]
        if missing:
            raise KafkaError(f"no such topic: {', '.join(missing)}")
        return {name: tuple(sorted(partitions)) for name, partitions in found.items()}

    partitions = await within(settings, "topics", attempt)
    counts = {name: len(partitions[name]) for name in settings.topics.keyed_by_region()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise Unreachable(f"topics: those keyed by region need equally many partitions: {listed}")
    return Cluster(partitions, embedded)


def _check(topic_errors: Iterable[tuple[Any, ...]]) -> None:
    """aiokafka raises for no single topic. Raises the first error of one; that another was faster is none."""
    for name, code, *said in topic_errors:
        error = for_code(code)
        if error not in (NoError, TopicAlreadyExistsError):
            raise error(f"topic {name}: {said[0] if said and said[0] else error.__name__}")


def topic_config(settings: GuardSettings, name: str) -> dict[str, str]:
    """How a topic is created: the broker's clock stamps its messages, and it takes those of the size we write.

    `controls` and `status` keep the newest message of each key, however old; `status`, which grows by the second, is
    compacted every ten minutes.
    """
    config = {
        "message.timestamp.type": "LogAppendTime",
        "max.message.bytes": str(settings.max_message_bytes + _FRAMING_BYTES),
    }
    if name == settings.topics.controls:
        config |= {"cleanup.policy": "compact", "segment.ms": "3600000", "segment.bytes": "67108864"}
    if name == settings.topics.status:
        config |= {"cleanup.policy": "compact", "segment.ms": "600000", "segment.bytes": "16777216"}
    if settings.replication > _SAFE_REPLICAS:
        config["min.insync.replicas"] = str(_SAFE_REPLICAS)
    return config


async def _create(settings: GuardSettings, names: tuple[str, ...]) -> bool:
    """Create what is missing; gives whether the cluster is an embedded broker."""

    async def attempt() -> bool:
        admin = AIOKafkaAdminClient(
            bootstrap_servers=settings.bootstrap_servers,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
            **settings.security.aiokafka_options(),
        )
        try:
            await admin.start()
            missing = sorted(set(names) - set(await admin.list_topics()))
            cluster = await admin.describe_cluster()
            if str(cluster["cluster_id"]).startswith(_EMBEDDED):
                log.info("an embedded broker: topics appear on first use, this guard works alone")
                return True
            if missing:
                partitions, copies = settings.partitions, settings.replication
                created = [
                    NewTopic(name, partitions, copies, topic_configs=topic_config(settings, name)) for name in missing
                ]
                _check((await admin.create_topics(created)).topic_errors)
                log.info("topics created", topics=missing, partitions=settings.partitions)
        finally:
            await admin.close()
        return False

    return await within(settings, "topics", attempt)
