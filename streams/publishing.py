"""Publishing a batch so that it stands as a whole or not at all: records first, then what rests on them.

Two ways, by what the broker can: one Kafka transaction a batch under a transactional id of the partition
(`streams.transactions`), or here an idempotent producer, for the embedded broker, where one guard is alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

Headers = list[tuple[str, bytes]]


@dataclass(frozen=True, slots=True, eq=False)
class Outgoing:
    """One message to be written. `partition` of None: any.

    `valid_until_ms`: the append time, Unix ms, after which it must not stand in its topic; None: whenever.
    """

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes
    headers: Headers
    valid_until_ms: int | None = None


class PublishError(RuntimeError):
    """Nothing of the batch is visible, or it is unknown what is: read the log again before going on."""


class Fenced(PublishError):
    """Another owner of the partition has begun: nothing of this batch, and nothing later, is visible."""


class Late(Exception):
    """Nothing of the batch is visible: an APPLY would have come after the end of its authority."""


class TooLarge(Exception):
    """Nothing of the batch is visible: the broker takes no message as large as `message`."""

    def __init__(self, message: Outgoing) -> None:
        super().__init__(f"{message.topic}: {len(message.value)} bytes are more than the broker takes")
        self.message = message


class Publisher(Protocol):
    """Writes all that one partition's owner writes. `atomic`: a batch that is given up leaves nothing behind."""

    atomic: bool

    async def open(self) -> None:
        """Become the only writer: what a former owner left open is ended. Raises PublishError."""

    async def publish(self, records: Sequence[Outgoing], rest: Sequence[Outgoing]) -> None:
        """Write a batch: all of `records` is acknowledged before any of `rest` is sent.

        Raises Late and TooLarge (the batch may be made anew and published again), Fenced and PublishError.
        """

    async def close(self) -> None:
        """Give up; never raises."""


class PlainPublisher:
    """An idempotent aiokafka producer, shared by all partitions. `clock` gives Unix ms."""

    atomic = False

    def __init__(self, producer: AIOKafkaProducer, clock: Callable[[], int]) -> None:
        self._producer = producer
        self._clock = clock

    async def open(self) -> None:
        """Nothing to do: the producer is started by its owner."""

    async def publish(self, records: Sequence[Outgoing], rest: Sequence[Outgoing]) -> None:
        """See Publisher. Without transactions records stand although the rest is late or fails."""
        await self._send_all(records)
        now_ms = self._clock()
        if any(m.valid_until_ms is not None and m.valid_until_ms < now_ms for m in rest):
            raise Late
        await self._send_all(rest)

    async def close(self) -> None:
        """Nothing to do."""

    async def _send_all(self, messages: Sequence[Outgoing]) -> None:
        acks = [(message, await self._send(message)) for message in messages]
        results = await asyncio.gather(*(ack for _, ack in acks), return_exceptions=True)
        for (message, _), result in zip(acks, results, strict=True):
            if isinstance(result, KafkaError):
                raise PublishError(f"{message.topic}: {result}") from result
            if isinstance(result, BaseException):
                raise result

    async def _send(self, message: Outgoing) -> Awaitable[Any]:
        try:
            ack: Awaitable[Any] = await self._producer.send(
                message.topic, message.value, key=message.key, partition=message.partition, headers=message.headers
            )
        except KafkaError as error:
            raise PublishError(f"{message.topic}: {error}") from error
        return ack
