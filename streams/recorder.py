"""Records topics as they are written: one file, every partition, in the order read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from streams.kafka_config import PLAINTEXT
from streams.kafka_security import KafkaSecurity
from streams.lifecycle import stop_all
from streams.reading import read_to
from streams.recording import RecordedMessage, RecordingWriter

_POLL_MS: Final = 200
_FETCH_WAIT_MS: Final = 20
_CONNECT_S: Final = 15.0
_STOP_S: Final = 3.0
_PARTITION_FETCH_BYTES: Final = 4_000_000


class Recorder:
    """Records what is committed to the given topics into `out` until `stop()`.

    `start()` returns once the starting offsets are fixed.

    Telemetry comes before what was decided on it only per partition of one topic; offsets say the rest.
    `from_beginning`: what the topics hold already, too; `whole`: topics of which that is always recorded. `start()`
    raises KafkaError or TimeoutError where Kafka does not answer within 15 s, OSError where the file cannot be written.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topics: Sequence[str],
        out: Path,
        *,
        from_beginning: bool = False,
        whole: Sequence[str] = (),
        security: KafkaSecurity = PLAINTEXT,
    ) -> None:
        self._options = security.aiokafka_options()
        self._bootstrap_servers = bootstrap_servers
        self._topics = topics
        self._out = out
        self._whole = frozenset(topics if from_beginning else whole)
        self._stopping = False
        self._consumer: AIOKafkaConsumer | None = None
        self._writer: RecordingWriter | None = None

    @property
    def count(self) -> int:
        """Messages written so far."""
        return 0 if self._writer is None else self._writer.count

    async def start(self) -> None:
        """Connect and fix where recording starts."""
        self._writer = RecordingWriter(self._out)
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap_servers,
            group_id=None,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=_FETCH_WAIT_MS,
            max_partition_fetch_bytes=_PARTITION_FETCH_BYTES,
            isolation_level="read_committed",
            **self._options,
        )
        try:
            async with asyncio.timeout(_CONNECT_S):
                await self._consumer.start()
                await self._assign(self._consumer)
        except BaseException:
            await self._close()
            raise

    async def run(self) -> None:
        """Record until `stop()`; the file is closed then, also on cancellation."""
        assert self._consumer is not None
        assert self._writer is not None
        try:
            while not self._stopping:
                self._write(await self._consumer.getmany(timeout_ms=_POLL_MS))
            async for message in read_to(self._consumer, await self._consumer.end_offsets(self._consumer.assignment())):
                self._writer.write(_recorded(message))
        finally:
            await self._close()

    def stop(self) -> None:
        """Ask `run()` to end, after what has arrived by now."""
        self._stopping = True

    def _write(self, batch: Mapping[TopicPartition, Sequence[Any]]) -> None:
        assert self._writer is not None
        for messages in batch.values():
            for message in messages:
                self._writer.write(_recorded(message))
        if batch:
            self._writer.flush()

    async def _assign(self, consumer: AIOKafkaConsumer) -> None:
        tps: list[TopicPartition] = []
        async with AIOKafkaProducer(bootstrap_servers=self._bootstrap_servers, **self._options) as producer:
            for topic in self._topics:
                tps.extend(
                    TopicPartition(topic, partition) for partition in sorted(await producer.partitions_for(topic))
                )
        consumer.assign(tps)
        begins, ends = await consumer.beginning_offsets(tps), await consumer.end_offsets(tps)
        for tp in tps:
            consumer.seek(tp, (begins if tp.topic in self._whole else ends)[tp])

    async def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        if self._consumer is not None:
            consumer, self._consumer = self._consumer, None
            await stop_all(consumer.stop(), timeout_s=_STOP_S)


def _recorded(message: Any) -> RecordedMessage:
    return RecordedMessage(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        timestamp_ms=message.timestamp,
        key=message.key,
        value=message.value,
        headers=tuple((name, value or b"") for name, value in message.headers),
    )
