"""One Kafka transaction a batch, through librdkafka, under a transactional id that belongs to the partition.

Whoever starts last under an id is the only one who may commit: an owner that was paused, or is believed dead, is
fenced by the broker (Kafka protocol, InitProducerId; KIP-98). librdkafka's calls block, so each publisher has a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

import structlog
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException, Producer

from streams.publishing import Fenced, Late, Outgoing, PublishError, TooLarge

TRANSACTION_TIMEOUT_MS: Final = 10_000
"""After it the broker ends a transaction whose owner is gone; a new owner ends it at once."""
_OPEN_S: Final = 30.0
_ABORT_S: Final = 5.0
_BATCH_S: Final = 9.0
"""Bound on one batch, below the transaction's: longer, and its outcome is read from the log."""

_ANY_PARTITION: Final = -1

_FENCED: Final = frozenset(
    {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.INVALID_TXN_STATE}
)

log = structlog.get_logger(__name__)
T = TypeVar("T")


class _Purged(PublishError):
    """librdkafka dropped what was queued: the transaction is aborted, and the next one can be whole."""


class TransactionalPublisher:
    """The one writer of a partition. `options`: librdkafka's, to reach the broker."""

    atomic = True

    def __init__(self, transactional_id: str, options: Mapping[str, Any], max_message_bytes: int) -> None:
        self._id = transactional_id
        self._options = {
            **options,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "linger.ms": 0,
            "socket.nagle.disable": True,
            "message.max.bytes": max_message_bytes,
            "retry.backoff.ms": 20,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 500,
            "topic.metadata.refresh.interval.ms": 60_000,
            "log_level": 2,
        }
        self._producer: Producer | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=transactional_id)

    async def open(self) -> None:
        """See streams.publishing.Publisher."""
        await self._in_thread(self._open)

    async def publish(self, records: Sequence[Outgoing], rest: Sequence[Outgoing]) -> None:
        """See streams.publishing.Publisher."""
        await self._in_thread(lambda: self._publish(records, rest))

    async def close(self) -> None:
        """Leave the thread to end by itself; what is open is ended by the next owner, or by its timeout."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(KafkaException, RuntimeError):
                producer.purge()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, call)
        except KafkaException as exception:
            error = exception.args[0]
            if error.code() in _FENCED:
                raise Fenced(f"{self._id}: {error.str()}") from exception
            raise PublishError(f"{self._id}: {error.str()}") from exception
        except BufferError as error:
            raise PublishError(f"{self._id}: the batch is larger than the client's queue") from error

    def _open(self) -> None:
        self._producer = Producer(self._options)
        _while_retriable(lambda left_s: self._made.init_transactions(left_s), _OPEN_S)

    @property
    def _made(self) -> Producer:
        if self._producer is None:
            raise PublishError(f"{self._id}: closed")
        return self._producer

    def _publish(self, records: Sequence[Outgoing], rest: Sequence[Outgoing]) -> None:
        """Once more where the first attempt only took over the gap in sequence numbers that a refused message left."""
        try:
            self._attempt(records, rest)
        except _Purged:
            self._attempt(records, rest)

    def _attempt(self, records: Sequence[Outgoing], rest: Sequence[Outgoing]) -> None:
        producer = self._made
        ends_at = time.monotonic() + _BATCH_S
        producer.begin_transaction()
        try:
            self._write(producer, records, ends_at)
            appended = self._write(producer, rest, ends_at)
        except (TooLarge, PublishError):
            self._abort(producer)
            raise
        except KafkaException as exception:
            if exception.args[0].txn_requires_abort():
                self._abort(producer)
            raise
        if any(_is_late(message, at_ms) for message, at_ms in zip(rest, appended, strict=True)):
            self._abort(producer)
            raise Late
        try:
            _while_retriable(producer.commit_transaction, max(1.0, ends_at - time.monotonic()))
        except KafkaException as exception:
            if exception.args[0].txn_requires_abort():
                self._abort(producer)
            raise

    def _write(self, producer: Producer, messages: Sequence[Outgoing], ends_at: float) -> list[int]:
        """Write and wait for all acknowledgements. Gives the append time of each message, Unix ms."""
        appended = [0] * len(messages)
        failed: list[tuple[int, KafkaError]] = []

        def acknowledged(index: int) -> Callable[[KafkaError | None, Any], None]:
            def note(error: KafkaError | None, message: Any) -> None:
                if error is not None:
                    failed.append((index, error))
                else:
                    kind, at_ms = message.timestamp()
                    # of a topic that keeps the writer's time: at the latest now, as the acknowledgement is here
                    appended[index] = at_ms if kind == TIMESTAMP_LOG_APPEND_TIME else time.time_ns() // 1_000_000

            return note

        for index, message in enumerate(messages):
            try:
                producer.produce(
                    message.topic,
                    message.value,
                    message.key,
                    _ANY_PARTITION if message.partition is None else message.partition,
                    on_delivery=acknowledged(index),
                    headers=[*message.headers],
                )
            except KafkaException as exception:
                if exception.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
                    raise TooLarge(message) from exception
                raise
        left = _flush(producer, max(0.0, ends_at - time.monotonic())) if messages else 0
        refused = [messages[index] for index, error in failed if error.code() == KafkaError.MSG_SIZE_TOO_LARGE]
        if refused:  # with all that stood in one batch of the protocol with it
            raise TooLarge(max(refused, key=lambda message: len(message.value)))
        for index, error in failed:
            if error.code() in _FENCED:
                raise Fenced(f"{self._id}: {error.str()}")
            kind = _Purged if error.code() == KafkaError._PURGE_QUEUE else PublishError
            raise kind(f"{self._id}: {messages[index].topic}: {error.str()}")
        if left:
            raise PublishError(f"{self._id}: {left} messages are not acknowledged within {_BATCH_S:g} s")
        return appended

    def _abort(self, producer: Producer) -> None:
        """End the transaction with nothing visible. Raises KafkaException where that is not sure."""
        _while_retriable(producer.abort_transaction, _ABORT_S)


def _while_retriable(call: Callable[[float], Any], bound_s: float) -> None:
    """Repeat a call of the transactional API while it may be: it goes on with what it began before."""
    ends_at = time.monotonic() + bound_s
    while True:
        try:
            call(max(0.1, ends_at - time.monotonic()))
        except KafkaException as exception:
            if not exception.args[0].retriable() or time.monotonic() > ends_at:
                raise
            time.sleep(0.02)
        else:
            return


def _flush(producer: Producer, bound_s: float) -> int:
    """Wait for acknowledgements; gives how many are still out.

    Once fenced, librdkafka's binding runs the delivery reports with its error raised already, and Python then says
    SystemError: the real error is its cause.
    """
    try:
        return int(producer.flush(bound_s))
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from error
        raise


def _is_late(message: Outgoing, appended_ms: int) -> bool:
    return message.valid_until_ms is not None and appended_ms > message.valid_until_ms
