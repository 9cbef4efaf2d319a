"""What a guard must know of its past before it answers: sequences and answered proposals, and where to read on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

READ_BACK: Final = 10_000
"""How many decisions of a partition are read back: a repeat of an older proposal is kept out by its offset alone."""

_POLL_MS: Final = 200


@dataclass(frozen=True, slots=True)
class Answered:
    """One proposal that a decision on `control` answers."""

    region: str
    proposal_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class Past:
    """Per control partition: the next sequence, and the answered proposals in order."""

    sequences: Mapping[int, int]
    answered: Mapping[int, Sequence[Answered]]


async def read_back(consumer: AIOKafkaConsumer, topic: str, partitions: Sequence[int]) -> Past:
    """Read the newest decisions of each control partition.

    `consumer` belongs to no group and is assigned anew. Messages that are no decision are passed over.
    """
    tps = [TopicPartition(topic, partition) for partition in partitions]
    consumer.assign(tps)
    begins, ends = await consumer.beginning_offsets(tps), await consumer.end_offsets(tps)
    for tp in tps:
        consumer.seek(tp, max(begins[tp], ends[tp] - READ_BACK))
    sequences: dict[int, int] = {}
    answered: defaultdict[int, list[Answered]] = defaultdict(list)
    async for tp, message in read_to(consumer, ends):
        found = _decision(message.value)
        if found is not None:
            sequence, answer = found
            sequences[tp.partition] = max(sequences.get(tp.partition, 0), sequence + 1)
            answered[tp.partition].append(answer)
    return Past(sequences, answered)


async def read_to(consumer: AIOKafkaConsumer, ends: Mapping[TopicPartition, int]) -> Any:
    """Messages of the partitions in `ends`, up to those offsets; what the broker dropped meanwhile is passed over."""
    while waiting := [tp for tp, end in ends.items() if await consumer.position(tp) < end]:
        try:
            batch = await consumer.getmany(*waiting, timeout_ms=_POLL_MS)
        except OffsetOutOfRangeError as error:
            for tp in error.args[0]:
                begin = (await consumer.beginning_offsets([tp]))[tp]
                consumer.seek(tp, begin)
            continue
        for tp, message in _flat(batch):
            yield tp, message


def _flat(batch: Mapping[TopicPartition, Sequence[Any]]) -> Iterator[tuple[TopicPartition, Any]]:
    for tp, messages in batch.items():
        for message in messages:
            yield tp, message


def _decision(value: bytes | None) -> tuple[int, Answered] | None:
    try:
        document = orjson.loads(value or b"")
        answer = Answered(document["region"], document["proposal_id"], document["proposal_digest"])
        sequence = document["sequence"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    return (sequence, answer) if isinstance(sequence, int) else None


async def telemetry_starts(
    consumer: AIOKafkaConsumer, tps: Sequence[TopicPartition], since_ms: int
) -> dict[TopicPartition, int]:
    """Where to read telemetry from, to hold everything since a time; from the beginning where a broker cannot say."""
    begins = await consumer.beginning_offsets(tps)
    found = await consumer.offsets_for_times(dict.fromkeys(tps, since_ms))
    return {tp: begins[tp] if found.get(tp) is None else found[tp].offset for tp in tps}


async def committed_or_beginning(
    consumer: AIOKafkaConsumer, tps: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """Where the group stopped, or the beginning where it never read."""
    begins = await consumer.beginning_offsets(tps)
    starts = {}
    for tp in tps:
        committed = await consumer.committed(tp)
        starts[tp] = begins[tp] if committed is None else committed
    return starts
