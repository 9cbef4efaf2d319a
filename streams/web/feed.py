"""What feeds the board: one consumer without a group over every partition of the topics it is made of.

It shares its loop with the control path, so it reads little at a time and lets others go first; when Kafka fails it
it goes on from where it stood, and where the log no longer is what it was, with a new board.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError, RecordTooLargeError

from streams.guard_restore import OPEN_LIMIT_MS
from streams.lifecycle import stop_all
from streams.settings import GuardSettings
from streams.web.board import DECISIONS, TOPICS, Board, Topic, shares
from streams.web.summaries import DecisionId

_FETCH_WAIT_MS: Final = 100
"""How long a fetch waits at the broker: the page is told four times a second."""
_POLL_MS: Final = 250
_AT_ONCE: Final = 200
_BUSY_S: Final = 0.004
_YIELD_S: Final = 0.004
"""After so much work the control path gets its turn: never more than half of the loop's time is taken."""
_FETCH_BYTES: Final = 500_000
_REQUEST_TIMEOUT_MS: Final = 10_000
_AGAIN_S: Final = 1.0
_STOP_S: Final = 1.0
_BACK: Final[dict[Topic, int]] = {"outcomes": 2_000, "answers": 2_000, "status": 10}
"""How many of the last messages of each partition are read at the start, beside the decisions and all controls."""
_OPEN_BACK: Final = 100_000
"""Of `control`, all partitions together: so far back it is read at the start, to find what is open still."""
_OPEN_FOR_MS: Final = OPEN_LIMIT_MS + 10_000
"""Nothing is open for longer; clocks may be apart a little."""

_Offsets = Mapping[TopicPartition, int]

log = structlog.get_logger(__name__)


class Feed:
    """Reads into a board made by `new_board`; `board` is the one in use, which is another after `OffsetOutOfRange`."""

    def __init__(self, settings: GuardSettings, new_board: Callable[[], Board], clock: Callable[[], int]) -> None:
        self._settings = settings
        self._clock = clock
        self._new_board = new_board
        self._names: dict[str, Topic] = {getattr(settings.topics, topic): topic for topic in TOPICS}
        self._positions: dict[TopicPartition, int] = {}
        self._until: dict[TopicPartition, int] = {}
        self.board = new_board()
        self.caught_up = asyncio.Event()
        """Set once what the log held at the start is taken in."""

    async def run(self, begin: Callable[[], Awaitable[Sequence[int]]]) -> None:
        """Read until cancelled. `begin` gives the partitions once the guard has made the topics."""
        partitions = await begin()
        tps = [TopicPartition(name, partition) for name in self._names for partition in partitions]
        told = ""
        while True:
            consumer = self._consumer()
            try:
                await consumer.start()
                await self._stand(consumer, tps)
                told = ""
                while True:
                    await self._round(consumer)
            except OffsetOutOfRangeError:
                log.warning("the log is no longer what it was: the board begins anew")
                self.caught_up.clear()
                self._positions.clear()
                self.board = self._new_board()
            except (KafkaError, OSError, TimeoutError) as error:
                why = str(error) or type(error).__name__
                if why != told:
                    log.warning("the board is not fed: tried again", why=why)
                told = why
            except Exception:
                log.exception("the board is not fed: tried again")
            finally:
                await stop_all(consumer.stop(), timeout_s=_STOP_S)
            await asyncio.sleep(_AGAIN_S)

    def _consumer(self) -> AIOKafkaConsumer:
        settings = self._settings
        return AIOKafkaConsumer(
            bootstrap_servers=settings.bootstrap_servers,
            client_id=f"wirelessops-{settings.guard_name}-board",
            group_id=None,
            auto_offset_reset="none",
            fetch_max_wait_ms=max(_FETCH_WAIT_MS, settings.fetch_wait_ms),
            max_partition_fetch_bytes=_FETCH_BYTES,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
            isolation_level="read_committed",
            **settings.security.aiokafka_options(),
        )

    async def _stand(self, consumer: AIOKafkaConsumer, tps: Sequence[TopicPartition]) -> None:
        """Stand where it stood, or, at first, as far back as the board reaches."""
        consumer.assign(tps)
        if not self._positions:
            begins, ends = await consumer.beginning_offsets(tps), await consumer.end_offsets(tps)
            controls = [tp for tp in tps if self._names[tp.topic] == "control"]
            since_ms = max(0, self._clock() - _OPEN_FOR_MS)
            times = await consumer.offsets_for_times(dict.fromkeys(controls, since_ms))
            opened = {tp: ends[tp] if at is None else at.offset for tp, at in times.items()}
            self._positions = self._starts(begins, ends, opened)
            self._until = {tp: end for tp, end in ends.items() if self._positions[tp] < end}
        for tp, position in self._positions.items():
            consumer.seek(tp, position)

    def _starts(self, begins: _Offsets, ends: _Offsets, opened: _Offsets) -> dict[TopicPartition, int]:
        """`opened`: of the partitions of `control`, what may be open still stands from here on."""
        listed = shares({tp.partition: ends[tp] - begins[tp] for tp in opened}, DECISIONS)
        back = shares({tp.partition: ends[tp] - max(begins[tp], at) for tp, at in opened.items()}, _OPEN_BACK)
        starts = {}
        for tp, begin in begins.items():
            topic, partition = self._names[tp.topic], tp.partition
            if topic == "controls":
                starts[tp] = begin
            elif topic == "control":
                first = ends[tp] - listed[partition]
                self.board.list_from(DecisionId(partition, first))
                starts[tp] = min(first, ends[tp] - back[partition])
            else:
                starts[tp] = max(begin, ends[tp] - _BACK[topic])
        return starts

    async def _round(self, consumer: AIOKafkaConsumer) -> None:
        loop = asyncio.get_running_loop()
        try:
            batch = await consumer.getmany(timeout_ms=_POLL_MS, max_records=_AT_ONCE)
        except RecordTooLargeError as error:
            _, tp, offset, *_ = error.args
            self.board.passed_over[self._names[tp.topic]] += 1
            consumer.seek(tp, offset + 1)
            return
        began = loop.time()
        for tp, messages in batch.items():
            topic = self._names[tp.topic]
            for message in messages:
                self.board.take(topic, message)
                if loop.time() - began > _BUSY_S:
                    await asyncio.sleep(_YIELD_S)
                    began = loop.time()
        for tp in self._positions:
            self._positions[tp] = await consumer.position(tp)
        if not self.caught_up.is_set():
            self._until = {tp: end for tp, end in self._until.items() if self._positions[tp] < end}
            if not self._until:
                self.caught_up.set()
