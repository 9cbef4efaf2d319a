"""Publishing in the order that makes a decision safe: record acknowledged, then the decision, then the request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError

from streams.deadletters import dead_letter
from streams.deciding import Outcome, ProposalDocument, RegionState, Stamp
from streams.guard_counters import Counters
from streams.headers import cloud_event
from streams.settings import GuardSettings

_SINGLE_LETTERS: Final = 100


@dataclass(slots=True)
class Pending:
    """A decided proposal whose decision is not published yet. `message` is the proposal's Kafka message."""

    message: Any
    state: RegionState
    proposal: ProposalDocument
    stamp: Stamp
    t_ms: int
    outcome: Outcome


class Release:
    """Writes the guard's topics. `clock` gives Unix ms."""

    def __init__(
        self, settings: GuardSettings, producer: AIOKafkaProducer, clock: Callable[[], int], counters: Counters
    ) -> None:
        self._topics = settings.topics
        self._producer = producer
        self._clock = clock
        self._counters = counters
        self._source = f"/wirelessops/guard/{settings.guard_name}"
        self._max_bytes = settings.max_message_bytes

    async def decisions(self, pendings: Sequence[Pending]) -> None:
        """Release a batch in order: first all records are acknowledged, then the decisions go out.

        An APPLY whose authority ended while its record was written is decided again. A proposal whose record no
        broker takes for its size becomes a dead letter. Any other failure is raised, with nothing released.
        """
        if not pendings:
            return
        acks = [await self._record(pending) for pending in pendings]
        written = await asyncio.gather(*acks, return_exceptions=True)
        sent: list[Awaitable[Any]] = []
        for pending, result in zip(pendings, written, strict=True):
            if isinstance(result, MessageSizeTooLargeError):
                await self._unrecordable(pending)
                continue
            if isinstance(result, BaseException):
                raise result
            await self._decide_again_while_expired(pending)
            sent.append(await self._send(pending, self._topics.control, pending.outcome.control_value, "decision/1"))
            self._counters.decisions[pending.outcome.decision.action] += 1
            if pending.outcome.request_value is not None:
                value = pending.outcome.request_value
                sent.append(await self._send(pending, self._topics.requests, value, "request/1"))
                self._counters.requests += 1
        await asyncio.gather(*sent)

    async def dead_letter(self, message: Any, reason: str) -> None:
        """Write the dead letter of a consumed message and wait for its acknowledgement."""
        await self.letter(
            topic=message.topic,
            partition=message.partition,
            offset=message.offset,
            timestamp_ms=message.timestamp,
            key=message.key,
            value=message.value,
            reason=reason,
        )

    async def lost_range(self, topic: str, partition: int, first: int, last: int, reason: str) -> None:
        """Write dead letters of offsets that could not be read: one for each, the last one for all that remain."""
        singles = min(last, first + _SINGLE_LETTERS - 1)
        for offset in range(first, singles + 1):
            await self.letter(
                topic=topic,
                partition=partition,
                offset=offset,
                last_offset=last if offset == singles else offset,
                timestamp_ms=None,
                key=None,
                value=None,
                reason=reason,
            )

    async def view(self, message: Any, query_id: str, value: bytes) -> Awaitable[Any]:
        """Send the answer to a question; gives its acknowledgement."""
        headers = cloud_event(event_id=query_id, source=self._source, kind="wirelessops.view/1", time_ms=self._clock())
        ack: Awaitable[Any] = await self._producer.send(
            self._topics.views, value, key=message.key, partition=message.partition, headers=headers
        )
        return ack

    async def _record(self, pending: Pending) -> Awaitable[Any]:
        try:
            return await self._send(pending, self._topics.records, pending.outcome.record_value, "decision/1")
        except MessageSizeTooLargeError as error:
            refused: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            refused.set_exception(error)
            return refused

    async def _decide_again_while_expired(self, pending: Pending) -> None:
        while True:
            valid_until_ms = pending.outcome.decision.valid_until_ms
            now_ms = self._clock()
            if valid_until_ms is None or now_ms <= valid_until_ms:
                return
            self._counters.redecided += 1
            pending.t_ms = now_ms
            pending.outcome = pending.state.decide(pending.proposal, now_ms, pending.stamp)
            await (await self._record(pending))

    async def _send(self, pending: Pending, topic: str, value: bytes, kind: str) -> Awaitable[Any]:
        headers = cloud_event(
            event_id=f"{pending.outcome.decision.decision_id}/{pending.stamp.attempt}",
            source=self._source,
            kind=f"wirelessops.{kind}",
            time_ms=pending.t_ms,
        )
        ack: Awaitable[Any] = await self._producer.send(
            topic, value, key=pending.message.key, partition=pending.message.partition, headers=headers
        )
        return ack

    async def _unrecordable(self, pending: Pending) -> None:
        size = len(pending.outcome.record_value)
        await self.dead_letter(
            pending.message, f"its record of {size} bytes is larger than a message may be: nothing was released"
        )

    async def letter(self, **letter: Any) -> None:
        """Write one dead letter (arguments of `deadletters.dead_letter` but the bound) and wait for its ack."""
        now_ms = self._clock()
        event_id = f"{letter['topic']}/{letter['partition']}/{letter['offset']}"
        headers = cloud_event(event_id=event_id, source=self._source, kind="wirelessops.dead-letter/1", time_ms=now_ms)
        try:
            value = dead_letter(**letter, max_bytes=self._max_bytes)
            await self._producer.send_and_wait(self._topics.dead_letters, value, headers=headers)
        except MessageSizeTooLargeError:
            value = dead_letter(**letter, max_bytes=0)
            await self._producer.send_and_wait(self._topics.dead_letters, value, headers=headers)
        self._counters.dead_letters += 1
