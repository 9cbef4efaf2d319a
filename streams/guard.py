"""The guard's control path: telemetry and proposals in, records and decisions out, offsets in our hands.

One consumer reads `telemetry`, `proposals` and `queries` in batches, assigned by hand. The telemetry of a batch is
taken in before its proposals are decided and its questions answered. Offsets are committed only for what was answered,
dropped as a repeat, or written as a dead letter. A failure of ours ends the service with nothing released.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson
import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from streams.answering import BadQuery, answer, read_query
from streams.deciding import History, NotAProposal, RegionState, Stamp, read_proposal_bytes
from streams.guard_counters import Counters
from streams.guard_kafka import connect_consumer, connect_producer, ensure_topics
from streams.guard_reading import Reader
from streams.guard_release import Pending, Release
from streams.guard_restore import committed_or_beginning, read_back, telemetry_starts
from streams.lifecycle import stop_all
from streams.messages import AsOfQuery, Evidence, ViewMessage, ViewQuery
from streams.reading import read_to
from streams.settings import GuardSettings
from streams.telemetry import Undecodable
from streams.topics import NoRegion, partition_of, region_of
from xapp.contract import Contract
from xapp.evidence.store import Contradiction

_POLL_MS: Final = 200
_COMMIT_S: Final = 0.25
_AT_ONCE: Final = 64
"""Proposals decided before telemetry is read again, so that a flood of them does not let the evidence age."""
_BREATHE: Final = 64
"""Telemetry messages between two turns of the event loop, so that a backlog does not silence the web."""

log = structlog.get_logger(__name__)


def unix_ms() -> int:
    """The host's clock, Unix ms."""
    return time.time_ns() // 1_000_000


class Guard:
    """The control path. `start()`, then `run()` until `stop()`; `ready` says whether proposals are being decided.

    `clock` gives t, Unix ms. `run()` raises whatever made it fail; nothing is released after that.
    """

    def __init__(
        self, settings: GuardSettings, contracts: Mapping[str, Contract], clock: Callable[[], int] = unix_ms
    ) -> None:
        self.settings = settings
        self.counters = Counters()
        self.ready = False
        self._topics = settings.topics
        self._contracts = contracts
        self._clock = clock
        self._history = History(settings.history_ms, settings.history_count)
        self._states: dict[tuple[int, str], RegionState] = {}
        self._partitions: tuple[int, ...] = ()
        self._sequences: dict[int, int] = defaultdict(int)
        self._telemetry_next: dict[int, int] = {}
        self._done: dict[TopicPartition, int] = {}
        self._reported: dict[int, int] = defaultdict(int)
        self._stopping = False
        self._serving: asyncio.Task[None] | None = None
        self._consumer: AIOKafkaConsumer | None = None
        self._producer: AIOKafkaProducer | None = None
        self._reader: Reader | None = None
        self._release: Release | None = None

    async def start(self) -> None:
        """Connect, restore the past, take in the telemetry that is there. Raises `guard_kafka.Unreachable`."""
        try:
            self._producer = await connect_producer(self.settings)
            self._release = Release(self.settings, self._producer, self._clock, self.counters)
            found = await ensure_topics(self.settings, self._producer)
            self._partitions = found[self._topics.proposals]
            await self._restore()
            self._consumer = await connect_consumer(
                self.settings, f"{self.settings.prefix}guard.{self.settings.guard_name}"
            )
            await self._catch_up()
        except BaseException:
            await self._close(self.settings.stop_timeout_s)
            raise
        self.ready = True
        log.info("guard ready", partitions=len(self._partitions), contracts=sorted(self._contracts))

    async def run(self) -> None:
        """Decide until `stop()`. Raises what made it fail: a bug of ours, or a record that cannot be written."""
        committing = asyncio.create_task(self._commit_often(), name="guard commits")
        self._serving = asyncio.create_task(self._serve(), name="guard serves")
        try:
            await self._serving
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        except Exception:
            log.exception("guard failed: nothing more is released")
            raise
        finally:
            self.ready = False
            committing.cancel()
            await asyncio.gather(committing, return_exceptions=True)

    async def stop(self) -> None:
        """Finish the batch in hand, commit, and close, all within `stop_timeout_s`; later calls do nothing."""
        self._stopping = True
        self.ready = False
        bound = self.settings.stop_timeout_s / 2
        if self._serving is not None and not self._serving.done():
            _, late = await asyncio.wait({self._serving}, timeout=bound)
            for task in late:
                task.cancel()
        await stop_all(self._commit(), timeout_s=bound / 2)
        await self._close(bound / 2)

    def state(self, region: str) -> RegionState:
        """The state of a region; an empty one, not kept, where nothing of it was read yet."""
        held = self._states.get((partition_of(region, self._partitions), region))
        return RegionState(region, self._contracts, self._history) if held is None else held

    def ask(self, region: str, query: AsOfQuery | ViewQuery) -> ViewMessage:
        """Answer a question at the guard's clock."""
        partition = partition_of(region, self._partitions)
        return answer(self.state(region), query, self._clock(), self._evidence(partition))

    async def dead_letter(self, **letter: Any) -> None:
        """Write the dead letter of a message that another reader of this service could not use.

        Arguments: those of `streams.deadletters.dead_letter`, but for its bound.
        """
        if self._release is None:
            raise RuntimeError("the guard is not connected")
        await self._release.letter(**letter)

    def stats(self) -> dict[str, Any]:
        """Counters, and how many observations each region holds."""
        return {
            "guard": self.settings.guard_name,
            "ready": self.ready,
            "regions": {region: len(state.store) for (_, region), state in sorted(self._states.items())},
            **self.counters.document(),
        }

    async def _restore(self) -> None:
        reader = await connect_consumer(self.settings, None)
        try:
            past = await read_back(reader, self._topics.control, self._partitions)
        finally:
            await reader.stop()
        self._sequences.update(past.sequences)
        for partition, answers in past.answered.items():
            for answered in answers:
                self._state(partition, answered.region).remember(answered.proposal_id, answered.digest)

    async def _catch_up(self) -> None:
        assert self._consumer is not None
        asked = [
            TopicPartition(topic, partition)
            for topic in (self._topics.proposals, self._topics.queries)
            for partition in self._partitions
        ]
        telemetry = [TopicPartition(self._topics.telemetry, partition) for partition in self._partitions]
        self._consumer.assign([*telemetry, *asked])
        starts = await telemetry_starts(self._consumer, telemetry, self._clock() - self.settings.history_ms)
        starts |= await committed_or_beginning(self._consumer, asked)
        for tp, offset in starts.items():
            self._consumer.seek(tp, offset)
        self._telemetry_next = {tp.partition: starts[tp] for tp in telemetry}
        self._consumer.pause(*asked)
        for tp in telemetry:
            self._reported[tp.partition] = await self._consumer.committed(tp) or 0
        async for message in read_to(self._consumer, await self._consumer.end_offsets(telemetry)):
            await self._ingest(message)
        self._consumer.resume(*asked)
        self._reader = Reader(self._consumer, self._topics.telemetry, self._lost)

    async def _serve(self) -> None:
        assert self._reader is not None
        waiting: list[Any] = []
        while not self._stopping:
            telemetry, more = await self._reader.fetch(0 if waiting else _POLL_MS)
            asked = waiting + more
            asked, waiting = asked[:_AT_ONCE], asked[_AT_ONCE:]
            await self._ingest_all(telemetry)
            waiting += await self._read_on(self._reader, asked)
            if not self._stopping:
                await self._handle(asked)

    async def _read_on(self, reader: Reader, asked: Sequence[Any]) -> list[Any]:
        """Take in the telemetry that was there before what is asked; gives what was asked meanwhile."""
        marks = reader.marks({message.partition for message in asked})
        later: list[Any] = []
        while not self._stopping and await reader.is_behind(marks):
            telemetry, more = await reader.fetch(_POLL_MS)
            await self._ingest_all(telemetry)
            later += more
        return later

    async def _handle(self, asked: Sequence[Any]) -> None:
        assert self._release is not None
        proposals = self._topics.proposals
        answers = [await self._answer(message) for message in asked if message.topic != proposals]
        pendings = [await self._decide(message) for message in asked if message.topic == proposals]
        await self._release.decisions([pending for pending in pendings if pending is not None])
        await asyncio.gather(*(sent for sent in answers if sent is not None))
        for message in asked:
            self._done[TopicPartition(message.topic, message.partition)] = message.offset + 1

    async def _ingest_all(self, messages: Sequence[Any]) -> None:
        for count, message in enumerate(messages, start=1):
            await self._ingest(message)
            self._done[TopicPartition(message.topic, message.partition)] = message.offset + 1
            if count % _BREATHE == 0:
                await asyncio.sleep(0)

    async def _ingest(self, message: Any) -> None:
        self.counters.telemetry_messages += 1
        try:
            state = self._state_of(message)
            ingested = state.ingest(message.value, message.timestamp)
        except (NoRegion, Undecodable, Contradiction) as error:
            if message.offset >= self._reported[message.partition]:
                await self._reject(message, str(error))
        else:
            self.counters.observations += ingested.observations
            self.counters.repeated_reports += ingested.duplicate
            self.counters.unknown_keys += ingested.unknown_keys
        self._telemetry_next[message.partition] = message.offset + 1

    async def _decide(self, message: Any) -> Pending | None:
        self.counters.proposals += 1
        try:
            proposal = read_proposal_bytes(message.value)
            state = self._state_of(message)
            if state.is_repeat(proposal):
                self.counters.repeated_proposals += 1
                return None
        except (NoRegion, NotAProposal) as error:
            await self._reject(message, str(error))
            return None
        partition: int = message.partition
        stamp = Stamp(
            guard=self.settings.guard_name,
            sequence=self._sequences[partition],
            topic=self._topics.telemetry,
            partition=partition,
            offset=self._telemetry_next[partition],
        )
        t_ms = self._clock()
        outcome = state.decide(proposal, t_ms, stamp)
        self._sequences[partition] += 1
        state.remember(proposal.proposal_id, proposal.digest)
        return Pending(message, state, proposal, stamp, t_ms, outcome)

    async def _answer(self, message: Any) -> Any:
        assert self._release is not None
        self.counters.queries += 1
        try:
            region = self._region_of(message)
            query = read_query(message.value)
        except (NoRegion, BadQuery) as error:
            await self._reject(message, str(error))
            return None
        reply = orjson.dumps(self.ask(region, query).model_dump())
        return asyncio.create_task(self._view(message, query.query_id, reply))

    async def _view(self, message: Any, query_id: str, reply: bytes) -> None:
        """Send an answer; one that no message can carry is a dead letter of its question."""
        assert self._release is not None
        try:
            await (await self._release.view(message, query_id, reply))
        except MessageSizeTooLargeError:
            await self._reject(message, f"its answer of {len(reply)} bytes is larger than a message may be")

    async def _reject(self, message: Any, reason: str) -> None:
        log.warning("dead letter", topic=message.topic, partition=message.partition, offset=message.offset, why=reason)
        assert self._release is not None
        await self._release.dead_letter(message, reason)

    async def _lost(self, tp: TopicPartition, first: int, last: int, reason: str) -> None:
        assert self._release is not None
        log.error("messages lost", topic=tp.topic, partition=tp.partition, first=first, last=last, why=reason)
        await self._release.lost_range(tp.topic, tp.partition, first, last, reason)
        if tp.topic == self._topics.telemetry:
            self._telemetry_next[tp.partition] = last + 1
        self._done[tp] = last + 1

    def _state_of(self, message: Any) -> RegionState:
        return self._state(message.partition, self._region_of(message))

    def _region_of(self, message: Any) -> str:
        region = region_of(message.key)
        expected = partition_of(region, self._partitions)
        if message.partition != expected:
            raise NoRegion(f"region {region!r} belongs to partition {expected}: write it there (murmur2 of the key)")
        return region

    def _state(self, partition: int, region: str) -> RegionState:
        state = self._states.get((partition, region))
        if state is None:
            state = self._states[partition, region] = RegionState(region, self._contracts, self._history)
        return state

    def _evidence(self, partition: int) -> Evidence:
        return Evidence(
            topic=self._topics.telemetry, partition=partition, offset=self._telemetry_next.get(partition, 0)
        )

    async def _commit_often(self) -> None:
        while True:
            await asyncio.sleep(_COMMIT_S)
            try:
                await self._commit()
            except KafkaError as error:
                log.warning("offsets not committed: tried again", why=str(error))

    async def _commit(self) -> None:
        if self._done and self._consumer is not None:
            done, self._done = self._done, {}
            try:
                await self._consumer.commit(done)
            except BaseException:
                self._done = {**done, **self._done}
                raise

    async def _close(self, timeout_s: float) -> None:
        consumer, producer = self._consumer, self._producer
        self._consumer = self._producer = None
        await stop_all(*(client.stop() for client in (consumer, producer) if client is not None), timeout_s=timeout_s)
