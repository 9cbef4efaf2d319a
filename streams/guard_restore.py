"""What a guard must know of its past before it answers: sequences and answered proposals, and where to read on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson
from aiokafka import AIOKafkaConsumer, TopicPartition

from streams.reading import read_to

READ_BACK: Final = 10_000
"""How many decisions of a partition are read back: a repeat of an older proposal is kept out by its offset alone."""


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
    async for message in read_to(consumer, ends):
        found = _decision(message.value)
        if found is not None:
            sequence, answer = found
            partition: int = message.partition
            sequences[partition] = max(sequences.get(partition, 0), sequence + 1)
            answered[partition].append(answer)
    return Past(sequences, answered)


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
