"""Reading partitions up to offsets that are known."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

_POLL_MS: Final = 200


async def read_to(
    consumer: AIOKafkaConsumer, ends: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int] | None = None
) -> AsyncIterator[Any]:
    """Messages of the partitions in `ends`, up to those offsets, from `starts` (none: from where the consumer stands).

    What the broker dropped meanwhile is passed over.
    """
    for tp, start in (starts or {}).items():
        consumer.seek(tp, start)
    while waiting := [tp for tp, end in ends.items() if await consumer.position(tp) < end]:
        try:
            batch = await consumer.getmany(*waiting, timeout_ms=_POLL_MS)
        except OffsetOutOfRangeError as error:
            for tp in error.args[0]:
                consumer.seek(tp, (await consumer.beginning_offsets([tp]))[tp])
            continue
        for messages in batch.values():
            for message in messages:
                yield message
