"""Reading for the guard: batches split into telemetry and what is asked, and how far telemetry must be read first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError, RecordTooLargeError

Lost = Callable[[TopicPartition, int, int, str], Awaitable[None]]
"""Told of offsets, first to last, that were skipped unread, and why."""


class Reader:
    """One consumer, assigned and sought by its owner."""

    def __init__(self, consumer: AIOKafkaConsumer, telemetry: str, lost: Lost) -> None:
        self._consumer = consumer
        self._telemetry = telemetry
        self._lost = lost

    async def fetch(self, timeout_ms: int) -> tuple[list[Any], list[Any]]:
        """The messages that are there, telemetry and others, in offset order per partition; empty after the timeout."""
        try:
            batch = await self._consumer.getmany(timeout_ms=timeout_ms)
        except OffsetOutOfRangeError as error:
            await self._skip_what_is_gone(error.args[0])
            return [], []
        except RecordTooLargeError as error:
            _, tp, offset, *_ = error.args
            await self._lost(tp, offset, offset, "larger than a fetch may be")
            return [], []
        telemetry = [m for tp, messages in batch.items() if tp.topic == self._telemetry for m in messages]
        others = [m for tp, messages in batch.items() if tp.topic != self._telemetry for m in messages]
        return telemetry, others

    def marks(self, partitions: Iterable[int]) -> dict[TopicPartition, int]:
        """Where telemetry ended when the broker last answered: what was written before anything read so far is below.

        A fetch need not give all that is there, so a message may be read before telemetry that was written earlier.
        (Over several brokers the mark is as old as the last answer of the partition's leader, a few ms.)
        """
        tps = (TopicPartition(self._telemetry, partition) for partition in partitions)
        return {tp: self._consumer.highwater(tp) or 0 for tp in tps}

    async def is_behind(self, marks: Mapping[TopicPartition, int]) -> bool:
        """Whether some partition was not read up to its mark yet."""
        for tp, mark in marks.items():
            if await self._consumer.position(tp) < mark:
                return True
        return False

    async def _skip_what_is_gone(self, positions: Mapping[TopicPartition, int]) -> None:
        begins = await self._consumer.beginning_offsets(list(positions))
        for tp, position in positions.items():
            self._consumer.seek(tp, begins[tp])
            if begins[tp] > position:
                reason = "the broker no longer holds it: dropped before it was read"
                await self._lost(tp, position, begins[tp] - 1, reason)
