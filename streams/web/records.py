"""Single messages of the log, found again: a decision where it stands on `control`, and its record by its time.

A record that this guard keeps by itself (`streams.web.kept_records`) is taken from there; all others from the topic.
The records of a partition stand in the order of its decisions, so the first of a time is found by bisection, a single
read each step. Where that finds none, the clock was set back further: then Kafka is asked what it took at the time of
the decision, which it took with its record. Between two of them there may be ends of transactions and what was given
up: a read goes on to the next message that counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import ConsumerStoppedError, KafkaError, OffsetOutOfRangeError

from streams.headers import attributes, decision_event
from streams.lifecycle import stop_all
from streams.settings import GuardSettings
from streams.web.kept_records import KeptRecords
from streams.web.summaries import DecisionId

_POLL_MS: Final = 200
_FETCH_BYTES: Final = 65_536
"""Of one read; a broker always gives one message, however large."""
_MARGINS_MS: Final = (0, 5_000)
"""How much before its time a record may stand, tried in turn: clocks are set back, and differ between two owners."""
_WITHIN_MS: Final = 5_000
"""How much after its time it is looked for."""
_LOOK_AT: Final = 5_000
"""At how many messages in a row one search looks."""
_TIMEOUT_S: Final = 8.0
_STOP_S: Final = 2.0


class NotFound(LookupError):
    """The log does not hold it, or no longer."""


class Unanswered(RuntimeError):
    """Kafka did not answer in time."""


class Log:
    """Reads single messages, one search at a time, by a consumer of its own that is made when it is first needed.

    `partitions` gives those that there are; none before the guard has made the topics. `kept`: where records are looked
    for first.
    """

    def __init__(
        self,
        settings: GuardSettings,
        partitions: Callable[[], Sequence[int]],
        kept: KeptRecords,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self._settings = settings
        self._partitions = partitions
        self._kept = kept
        self._timeout_s = timeout_s
        self._consumer: AIOKafkaConsumer | None = None
        self._turn = asyncio.Lock()

    async def decision(self, where: DecisionId) -> Any:
        """The message of a decision. Raises NotFound, Unanswered."""
        tp = TopicPartition(self._settings.topics.control, where.partition)
        async with self._search(tp) as consumer:
            begin, end = await _bounds(consumer, tp)
            if where.offset < begin:
                raise NotFound(f"decision {where} is gone: {self._whose_fault}")
            if where.offset >= end:
                raise NotFound(f"there is no decision {where}")
            found = await _next(consumer, tp, where.offset, end)
            if found is None or found.offset != where.offset:
                raise NotFound(f"there is no decision {where}")
            return found

    async def record(self, where: DecisionId, decision_id: str, attempt: int, decided_at_ms: int) -> bytes:
        """The DSSE envelope of the record of the decision that stands there. Raises NotFound, Unanswered."""
        identity = decision_event(decision_id, attempt)
        kept = self._kept.find(where.partition, identity)
        if kept is not None:
            return kept
        tp = TopicPartition(self._settings.topics.records, where.partition)
        decision = TopicPartition(self._settings.topics.control, where.partition)
        async with self._search(tp) as consumer:
            begin, end = await _bounds(consumer, tp)
            for margin_ms in _MARGINS_MS:
                start = await _first_since(consumer, tp, begin, end, decided_at_ms - margin_ms)
                value = await _named(consumer, tp, start, end, identity, decided_at_ms + _WITHIN_MS)
                if value is not None:
                    return value
            consumer.assign([tp, decision])
            consumer.pause(tp)
            taken = await _next(consumer, decision, where.offset, (await _bounds(consumer, decision))[1])
            consumer.pause(decision)
            consumer.resume(tp)
            if taken is not None and taken.offset == where.offset:
                since = (await consumer.offsets_for_times({tp: max(0, taken.timestamp - _MARGINS_MS[-1])}))[tp]
                value = (
                    None if since is None else await _named(consumer, tp, max(begin, since.offset), end, identity, None)
                )
                if value is not None:
                    return value
            raise NotFound(f"the record of {identity} is gone: {self._whose_fault}")

    @property
    def _whose_fault(self) -> str:
        """Why what was written is found no more."""
        if self._kept.wanted:
            return "the embedded broker kept it no longer; a real Kafka keeps it as long as the topic's retention"
        return "Kafka holds it no longer (the topic's retention), or out of its order"

    async def close(self) -> None:
        """Give up; never raises."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await stop_all(consumer.stop(), timeout_s=_STOP_S)

    @asynccontextmanager
    async def _search(self, tp: TopicPartition) -> AsyncIterator[AIOKafkaConsumer]:
        try:
            async with asyncio.timeout(self._timeout_s), self._turn:
                if tp.partition not in self._partitions():
                    raise NotFound(f"there is no partition {tp.partition}")
                try:
                    consumer = await self._connected()
                    consumer.assign([tp])
                    yield consumer
                    consumer.pause(tp)
                except NotFound:
                    raise
                except BaseException:
                    await self.close()
                    raise
        except (KafkaError, ConsumerStoppedError, OSError, TimeoutError) as error:
            raise Unanswered(f"Kafka did not answer in time: {str(error) or type(error).__name__}") from error

    async def _connected(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            settings = self._settings
            consumer = AIOKafkaConsumer(
                bootstrap_servers=settings.bootstrap_servers,
                client_id=f"wirelessops-{settings.guard_name}-log",
                group_id=None,
                auto_offset_reset="none",
                fetch_max_wait_ms=settings.fetch_wait_ms,
                max_partition_fetch_bytes=_FETCH_BYTES,
                isolation_level="read_committed",
                **settings.security.aiokafka_options(),
            )
            self._consumer = consumer
            await consumer.start()
        return self._consumer


async def _bounds(consumer: AIOKafkaConsumer, tp: TopicPartition) -> tuple[int, int]:
    begins, ends = await consumer.beginning_offsets([tp]), await consumer.end_offsets([tp])
    return begins[tp], ends[tp]


async def _next(consumer: AIOKafkaConsumer, tp: TopicPartition, offset: int, end: int) -> Any | None:
    """The first message at or after an offset, before `end`; None where there is none."""
    consumer.seek(tp, offset)
    while await consumer.position(tp) < end:
        try:
            batch = await consumer.getmany(tp, timeout_ms=_POLL_MS, max_records=1)
        except OffsetOutOfRangeError:  # dropped meanwhile
            consumer.seek(tp, (await consumer.beginning_offsets([tp]))[tp])
            continue
        for message in batch.get(tp, ()):
            return message if message.offset < end else None
    return None


async def _first_since(consumer: AIOKafkaConsumer, tp: TopicPartition, begin: int, end: int, time_ms: int) -> int:
    """An offset after all messages of an earlier time, and at or before the first of this time or a later one."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        timed = await _next_timed(consumer, tp, middle, high)
        if timed is None or timed[1] >= time_ms:
            high = middle
        else:
            low = timed[0] + 1
    return low


async def _next_timed(consumer: AIOKafkaConsumer, tp: TopicPartition, offset: int, end: int) -> tuple[int, int] | None:
    """Offset and time of the first message at or after an offset that says its time, before `end`."""
    while True:
        message = await _next(consumer, tp, offset, end)
        if message is None:
            return None
        said_ms = _time_of(attributes(message.headers))
        if said_ms is not None:
            return message.offset, said_ms
        offset = message.offset + 1


async def _named(
    consumer: AIOKafkaConsumer, tp: TopicPartition, start: int, end: int, identity: str, until_ms: int | None
) -> bytes | None:
    """The value of the message of that CloudEvents id, looked for from `start` until a message is later.

    `until_ms` of None: whatever times they say.
    """
    if start >= end:
        return None
    consumer.seek(tp, start)
    seen = 0
    while seen < _LOOK_AT and await consumer.position(tp) < end:
        try:
            batch = await consumer.getmany(tp, timeout_ms=_POLL_MS)
        except OffsetOutOfRangeError:  # dropped meanwhile
            consumer.seek(tp, (await consumer.beginning_offsets([tp]))[tp])
            continue
        for message in batch.get(tp, ()):
            seen += 1
            said = attributes(message.headers)
            if said.get("id") == identity and message.value is not None:
                value: bytes = message.value
                return value
            said_ms = _time_of(said)
            if until_ms is not None and said_ms is not None and said_ms > until_ms:
                return None
    return None


def _time_of(said: Mapping[str, str]) -> int | None:
    try:
        return round(datetime.fromisoformat(said["time"]).timestamp() * 1000)
    except (KeyError, ValueError, OverflowError):
        return None
