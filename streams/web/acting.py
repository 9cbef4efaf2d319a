"""What operators do by the web: an answer to an ESCALATE, a switch; each is one message on `answers`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import uuid4

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from streams.escalations import answer_to, write_answer
from streams.guard import Guard
from streams.guard_kafka import Unreachable, connect_producer
from streams.lifecycle import stop_all
from streams.messages import AnswerMessage, SwitchMessage
from streams.switching import Written, write_switch
from streams.web.records import Unanswered

_TIMEOUT_S: Final = 8.0
_STOP_S: Final = 1.0


class Writer:
    """Writes to `answers` by a producer of its own: what fails here fails nothing of the control path."""

    def __init__(self, guard: Guard, clock: Callable[[], int], timeout_s: float = _TIMEOUT_S) -> None:
        self._guard = guard
        self._clock = clock
        self._timeout_s = timeout_s
        self._producer: AIOKafkaProducer | None = None
        self._turn = asyncio.Lock()

    async def answer(
        self, record: dict[str, Any], region: str, partition: int, *, operator: str, verdict: str, reason: str,
        settles: Sequence[str],
    ) -> AnswerMessage:  # fmt: skip
        """Answer an escalation by its record, and give the answer once Kafka has it.

        Raises `escalations.NotSettled` where it does not fit, `pydantic.ValidationError`, and Unanswered.
        """
        message = answer_to(
            record, answer_id=uuid4().hex, verdict=verdict, operator=operator, reason=reason, at_ms=self._clock(),
            said=settles,
        )  # fmt: skip
        try:
            async with asyncio.timeout(self._timeout_s):
                producer = await self._connected()
                await write_answer(producer, self._guard.settings.topics, region, partition, message)
        except (KafkaError, Unreachable, OSError, TimeoutError) as error:
            raise Unanswered(
                "the answer may not have been written: Kafka did not take it in time "
                f"({str(error) or type(error).__name__})"
            ) from error
        return message

    async def switch(self, message: SwitchMessage) -> Written:
        """Write a switch to all partitions that it is for. Raises Unanswered where Kafka cannot be reached at all."""
        try:
            async with asyncio.timeout(self._timeout_s):
                producer = await self._connected()
        except (KafkaError, Unreachable, OSError, TimeoutError) as error:
            raise Unanswered(f"Kafka did not answer in time: {str(error) or type(error).__name__}") from error
        return await write_switch(producer, self._guard.settings.topics, self._guard.partitions, message)

    async def close(self) -> None:
        """Give up; never raises."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await stop_all(producer.stop(), timeout_s=_STOP_S)

    async def _connected(self) -> AIOKafkaProducer:
        async with self._turn:
            if self._producer is None:
                self._producer = await connect_producer(self._guard.settings)
            return self._producer
