"""Reaching Kafka within a bound: clients of the guard, and the topics it needs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, TopicAlreadyExistsError

from streams.settings import GuardSettings

_RETRY_S: Final = 0.25
_REQUEST_TIMEOUT_MS: Final = 10_000
_PARTITION_FETCH_BYTES: Final = 4_000_000

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


async def connect_producer(settings: GuardSettings) -> AIOKafkaProducer:
    """A started idempotent producer without linger. Raises Unreachable."""

    async def attempt() -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            bootstrap_servers=settings.bootstrap_servers,
            client_id=f"wirelessops-{settings.guard_name}",
            enable_idempotence=True,
            linger_ms=0,
            max_request_size=settings.max_message_bytes,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
        )
        try:
            await producer.start()
        except BaseException:
            await producer.stop()
            raise
        return producer

    return await within(settings, "producer", attempt)


async def connect_consumer(settings: GuardSettings, group: str | None) -> AIOKafkaConsumer:
    """A started consumer, to be assigned and sought by hand. Raises Unreachable."""

    async def attempt() -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=settings.bootstrap_servers,
            client_id=f"wirelessops-{settings.guard_name}",
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_wait_ms=settings.fetch_wait_ms,
            max_partition_fetch_bytes=_PARTITION_FETCH_BYTES,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
        )
        try:
            await consumer.start()
        except BaseException:
            await consumer.stop()
            raise
        return consumer

    return await within(settings, "consumer", attempt)


async def ensure_topics(settings: GuardSettings, producer: AIOKafkaProducer) -> Mapping[str, tuple[int, ...]]:
    """Topic → partition ids, creating the topics that are missing.

    A cluster without a controller (the embedded broker) makes a topic when first asked for it. Raises Unreachable
    where a topic does not come into being, or where the topics keyed by region have not equally many partitions.
    """
    names = settings.topics.names()
    await _create(settings, names)

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
    return partitions


async def _create(settings: GuardSettings, names: tuple[str, ...]) -> None:
    async def attempt() -> None:
        admin = AIOKafkaAdminClient(
            bootstrap_servers=settings.bootstrap_servers, request_timeout_ms=_REQUEST_TIMEOUT_MS
        )
        try:
            await admin.start()
            missing = sorted(set(names) - set(await admin.list_topics()))
            cluster = await admin.describe_cluster()
            if cluster["controller_id"] not in {broker["node_id"] for broker in cluster["brokers"]}:
                log.info("the cluster has no controller: topics appear on first use")
            elif missing:
                created = [NewTopic(name, settings.partitions, settings.replication) for name in missing]
                await admin.create_topics(created)
                log.info("topics created", topics=missing, partitions=settings.partitions)
        except TopicAlreadyExistsError:
            log.info("topics were created by another")
        finally:
            await admin.close()

    await within(settings, "topics", attempt)
