"""Reading for the guard: one consumer for all partitions that this worker owns, handing over to their desks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError, RecordTooLargeError

POLL_MS: Final = 50
"""How long one read waits; an owner that is added or removed waits no longer either."""
_BEGINS_S: Final = 5.0
"""How long the brokers may take to say where topics begin, before they are asked anew."""

log = structlog.get_logger(__name__)


class Reached(NamedTuple):
    """All below `offset` was handed over: also where nothing stood there, as at the end of a transaction."""

    topic: str
    partition: int
    offset: int


class Lost(NamedTuple):
    """Offsets from `first` to `last` that could not be read, and why."""

    topic: str
    partition: int
    first: int
    last: int
    reason: str


class Taker(Protocol):
    """Who takes what was read of one partition, all its topics (`streams.guard_intake.Intake`)."""

    @property
    def positions(self) -> Mapping[TopicPartition, int]: ...

    def wants(self, topic: str) -> bool: ...

    def receive(self, messages: Iterable[Any], reached: Reached) -> None: ...

    def lost(self, lost: Lost) -> None: ...


class Reader:
    """Reads for takers, each the owner of one partition, what each wants."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer
        self._takers: dict[int, Taker] = {}
        self._served: dict[int, Taker] = {}  # those that the consumer stands where they want it
        self._positions: dict[TopicPartition, int] = {}
        self._marks: dict[TopicPartition, int] = {}
        self._changed = False
        self._heard: dict[TopicPartition, int | None] = {}
        self._heard_at = time.monotonic()
        self._round_at = time.monotonic()
        self._stopping = False

    @property
    def silent_s(self) -> float:
        """For how long no broker has answered a fetch, or no round of reading ended; whichever is longer."""
        return max(self.still_s, time.monotonic() - self._heard_at if self._takers else 0.0)

    @property
    def still_s(self) -> float:
        """For how long no round of reading ended."""
        return time.monotonic() - self._round_at

    def add(self, partition: int, taker: Taker) -> None:
        """Read for it from where it stands."""
        self._takers[partition] = taker
        self._changed = True

    def remove(self, partition: int) -> None:
        """Read no more for it."""
        self._changed = self._takers.pop(partition, None) is not None or self._changed

    def mark(self, tp: TopicPartition) -> int:
        """Where a topic ended when its broker last answered: what was written before anything read so far is below.

        (Over several brokers the mark is as old as the last answer of the partition's leader, a few ms.)
        """
        if tp not in self._consumer.assignment():
            return 0
        stable, known = self._consumer.last_stable_offset(tp), self._marks.get(tp, 0)
        mark = self._consumer.highwater(tp) or 0 if stable is None or stable < 0 else stable
        self._marks[tp] = max(mark, known)  # an assignment made anew knows none at first
        return self._marks[tp]

    def stop(self) -> None:
        """Ask `run` to end."""
        self._stopping = True

    async def run(self) -> None:
        """Read until `stop`."""
        while not self._stopping:
            if self._changed:
                await self._assign()
            if self._takers:
                self._pause()
                await self._round()
                self._listen()
            else:
                await asyncio.sleep(POLL_MS / 1000)
            self._round_at = time.monotonic()

    async def _assign(self) -> None:
        """Assigning anew forgets all positions: who was read for already goes on from where it was handed over; a new
        taker begins where it stands, though another one may have been further in the same partition.
        """
        self._changed = False
        takers = dict(self._takers)
        positions: dict[TopicPartition, int] = {}
        for partition, taker in takers.items():
            going_on = self._served.get(partition) is taker
            for tp, position in taker.positions.items():
                positions[tp] = await self._consumer.position(tp) if going_on else position
        self._served = takers
        self._positions = positions
        self._consumer.assign(list(positions))
        for tp, position in positions.items():
            self._consumer.seek(tp, position)
        self._heard = {}
        self._heard_at = time.monotonic()

    def _pause(self) -> None:
        paused = self._consumer.paused()
        for taker in self._served.values():
            for tp in taker.positions:
                wanted = taker.wants(tp.topic)
                if wanted == (tp in paused):
                    (self._consumer.resume if wanted else self._consumer.pause)(tp)

    async def _round(self) -> None:
        try:
            batch = await self._consumer.getmany(timeout_ms=POLL_MS)
        except OffsetOutOfRangeError as error:
            await self._skip_what_is_gone(error.args[0])
            return
        except RecordTooLargeError as error:
            _, tp, offset, *_ = error.args
            self._lost(tp, offset, offset, "larger than a fetch may be")
            return
        for tp in self._consumer.assignment():
            taker, position = self._taker(tp), await self._consumer.position(tp)
            if taker is not None and position != self._positions[tp]:
                self._positions[tp] = position
                taker.receive(batch.get(tp, ()), Reached(tp.topic, tp.partition, position))

    def _listen(self) -> None:
        heard = {tp: self._consumer.last_poll_timestamp(tp) for tp in self._consumer.assignment()}
        if heard != self._heard:
            self._heard, self._heard_at = heard, time.monotonic()

    async def _skip_what_is_gone(self, positions: Mapping[TopicPartition, int]) -> None:
        try:
            async with asyncio.timeout(_BEGINS_S):
                begins = await self._consumer.beginning_offsets(list(positions))
        except (KafkaError, OSError, TimeoutError) as error:
            log.warning("it is not known what was dropped: asked again", why=str(error) or type(error).__name__)
            await asyncio.sleep(POLL_MS / 1000)
            return  # the position is out of range still: the next fetch says so
        for tp, position in positions.items():
            self._consumer.seek(tp, begins[tp])
            if begins[tp] > position:
                self._lost(tp, position, begins[tp] - 1, "the broker no longer holds it: dropped before it was read")

    def _lost(self, tp: TopicPartition, first: int, last: int, reason: str) -> None:
        taker = self._taker(tp)
        if taker is not None:
            taker.lost(Lost(tp.topic, tp.partition, first, last, reason))

    def _taker(self, tp: TopicPartition) -> Taker | None:
        """Whom what was read now belongs to: nobody, while its owner is a new one and the consumer stands elsewhere."""
        taker = self._served.get(tp.partition)
        return taker if taker is self._takers.get(tp.partition) else None
