"""Which partitions this worker owns: all of them, where it is alone, or what its consumer group gives it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, Final

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from streams.lifecycle import first_of

_PUMP_MS: Final = 500
_PROBE_S: Final = 1.0
_ANSWER_S: Final = 5.0

log = structlog.get_logger(__name__)


class Ownership:
    """This worker's share of the partitions of `proposals`, told by `consumer`, which is started and has a group.

    The consumer reads nothing: it holds the membership (or, `alone`, only the group's offsets). `version` rises with
    every change; `changed` is set by it.
    """

    def __init__(self, consumer: AIOKafkaConsumer, proposals: str, partitions: Collection[int], *, alone: bool) -> None:
        self._consumer = consumer
        self._proposals = proposals
        self._alone = alone
        self._all = frozenset(partitions)
        self._pumping: asyncio.Task[None] | None = None
        self.owned: frozenset[int] = frozenset()
        self.version = 0
        self.changed = asyncio.Event()
        self._next = asyncio.Event()
        self.joined = False

    def start(self) -> None:
        """Join; the first change says what is owned."""
        if self._alone:
            self._consumer.assign([TopicPartition(self._proposals, p) for p in self._all])
            self._consumer.pause(*self._consumer.assignment())
            self._set(self._all)
        else:
            self._consumer.subscribe([self._proposals], listener=_Listener(self._assigned))
            self._pumping = asyncio.create_task(self._pump(), name="guard membership")

    async def committed(self, partition: int) -> int | None:
        """The group's offset of `proposals`; None where there is none, or it cannot be had in time."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                offset: int | None = await self._consumer.committed(TopicPartition(self._proposals, partition))
        except (KafkaError, TimeoutError):
            return None
        return offset

    async def commit(self, offsets: Mapping[int, int]) -> None:
        """Tell the group how far proposals are done: for the tools that show lag; the log itself says it exactly."""
        ours = {TopicPartition(self._proposals, p): o for p, o in offsets.items() if p in self.owned}
        if ours:
            await self._consumer.commit(ours)

    async def settled(self, version: int, bound_s: float) -> None:
        """Wait until the ownership changed since `version`, for at most `bound_s`."""
        if self.version == version:
            await first_of(self._next.wait(), timeout_s=bound_s)

    async def confirmed(self, partition: int) -> bool:
        """Whether the group still takes this worker for the owner: it lets no other one commit."""
        tp = TopicPartition(self._proposals, partition)
        try:
            async with asyncio.timeout(_ANSWER_S):
                await self._consumer.commit({tp: await self._consumer.committed(tp) or 0})
        except (KafkaError, TimeoutError):
            return False
        return partition in self.owned

    async def stop(self) -> None:
        """Leave the group."""
        if self._pumping is not None:
            self._pumping.cancel()
            await asyncio.gather(self._pumping, return_exceptions=True)
        await self._consumer.stop()

    async def _pump(self) -> None:
        """A member that does not ask for messages is taken for stuck; all is paused, so none come."""
        while True:
            try:
                await self._consumer.getmany(timeout_ms=_PUMP_MS)
            except KafkaError as error:
                log.warning("membership", why=str(error) or type(error).__name__)
                await asyncio.sleep(_PROBE_S)

    def _assigned(self, tps: Collection[TopicPartition]) -> None:
        self._consumer.pause(*tps)
        self._set(frozenset(tp.partition for tp in tps))

    def _set(self, owned: frozenset[int]) -> None:
        self.joined = True
        self.owned = owned
        self.version += 1
        self._next.set()
        self._next = asyncio.Event()
        self.changed.set()
        log.info("partitions owned", partitions=sorted(owned))


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Partitions are given up only once it is known which ones: until then the fence keeps us safe."""

    def __init__(self, assigned: Any) -> None:
        self._assigned = assigned

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Nothing yet."""

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """The whole new share."""
        self._assigned(assigned)
