"""The guard's control path as a service: which partitions are ours, a desk for each, and one reader for all of them.

docs/control-path.md has the design. A failure of Kafka makes a desk begin anew from the log; a failure of ours ends the
service with nothing released.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, Final

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from streams.answering import answer
from streams.deciding import RegionState
from streams.guard_books import Books
from streams.guard_counters import Counters
from streams.guard_desk import Desk
from streams.guard_kafka import Unreachable, connect_consumer, connect_producer, ensure_topics
from streams.guard_ownership import Ownership
from streams.guard_reading import Reader
from streams.guard_release import Release
from streams.guard_restore import find_start, read_past
from streams.lifecycle import stop_all
from streams.messages import AsOfQuery, ViewMessage, ViewQuery
from streams.metrics import Metrics
from streams.observing import Observer, Observers
from streams.publishing import Fenced, PlainPublisher, Publisher, PublishError
from streams.settings import GuardSettings
from streams.status import PartitionStatus, StatusWriter
from streams.support_health import SupportHealth
from streams.support_watch import MapsInForce
from streams.topics import partition_of
from streams.tracing import Tracing
from streams.transactions import TransactionalPublisher
from streams.tuning import LiveTuning, Tuning
from xapp.contract import Contract
from xapp.signing import KnownKeys, Signer
from xapp.support.book import window_ms

_COMMIT_S: Final = 0.25
_AGAIN_S: Final = 0.5
_LOOK_S: Final = 0.01
_STOP_SHARE: Final = 0.6
"""What the control path may take of the time for stopping; the rest is for the app round it."""
_STUCK_S: Final = 5.0
"""A guard that has not read, or written, for so long is not ready: its client is stuck, or no broker answers."""
_DEAD_S: Final = 60.0
"""A guard that has not even tried to read for so long is not alive: each try is bounded, with Kafka or without."""

log = structlog.get_logger(__name__)


class NotHere(RuntimeError):
    """The region's partition is another worker's, or its evidence is still being rebuilt."""


def unix_ms() -> int:
    """The host's clock, Unix ms."""
    return time.time_ns() // 1_000_000


class Guard:
    """The control path. `start()`, then `run()` until `stop()`; `ready` says whether proposals are being decided.

    `clock` gives t, Unix ms; without a `signer` everything it writes says that it is unsigned; `trusted`: keys of
    guards whose decisions are taken up, None for whatever the log holds; `observers` are told what was published, and
    so is `tracing`, whose spans decisions then name. Raises SettingsError for a `support_dir` that it must not start
    with. `run()` raises whatever made it fail; nothing is released after that.
    """

    def __init__(
        self,
        settings: GuardSettings,
        contracts: Mapping[str, Contract],
        clock: Callable[[], int] = unix_ms,
        signer: Signer | None = None,
        trusted: KnownKeys | None = None,
        observers: Iterable[Observer] = (),
        tracing: Tracing | None = None,
    ) -> None:
        self.settings = settings
        self.maps = MapsInForce(settings.support_dir, contracts)
        self.support_health = SupportHealth(self.maps, contracts, self._states, clock)
        self.tuning = LiveTuning(Tuning.of(settings))
        self.counters = Counters()
        self.metrics = Metrics(self, clock)
        self._traced = tracing is not None
        every = (self.metrics, *observers, *(() if tracing is None else (tracing,)))
        self._observers = Observers(every, self.counters.observer_failed)
        self.counters.observer_failures.update({type(observer).__name__: 0 for observer in every})
        self._topics = settings.topics
        self._contracts = contracts
        self._clock = clock
        self._signer = signer
        self._trusted = trusted
        self._partitions: tuple[int, ...] = ()
        self._desks: dict[int, Desk] = {}
        self._keepers: dict[int, asyncio.Task[None]] = {}
        self._gave_up: dict[int, str] = {}  # partitions that were begun anew, and why
        self._parts: list[asyncio.Task[None]] = []
        self._alone = settings.alone
        self._stopping = False
        self._failed = asyncio.Event()
        self._failure: BaseException | None = None
        self._producer: AIOKafkaProducer | None = None
        self._teller: AIOKafkaProducer | None = None
        self._ownership: Ownership | None = None
        self._reader: Reader | None = None
        self._consumer: Any = None
        self._status: StatusWriter | None = None

    @property
    def ready(self) -> bool:
        """Whether every partition of ours is being decided, and the brokers answer."""
        return self.why_not_ready() is None

    def why_not_ready(self) -> str | None:
        """What keeps the guard from deciding, in words; None where it is ready."""
        if self._stopping or self._failed.is_set():
            return "it is stopping"
        if self._ownership is None or self._reader is None or not self._ownership.joined:
            return "it has not joined its group"
        cold = [p for p in sorted(self._ownership.owned) if p not in self._desks or not self._desks[p].books.warm]
        if cold:
            return f"evidence of partitions {', '.join(map(str, cold))} is being rebuilt"
        for partition in sorted(self._gave_up.keys() & self._ownership.owned):
            if not self._desks[partition].recovered:
                return f"a batch of partition {partition} could not be written: {self._gave_up[partition]}"
        return self.why_cut_off()

    def why_dead(self) -> str | None:
        """Why only a restart helps; None where it lives. Kafka that is away is no reason."""
        if self._failure is not None:
            return "it failed: its log says why"
        if self._reader is not None and not self._stopping and self._reader.still_s > _DEAD_S:
            return f"it has not tried to read for {self._reader.still_s:.0f} s"
        return None

    def why_cut_off(self) -> str | None:
        """Why others may know better than this guard by now: it reads or writes nothing; None where it does."""
        if self._reader is None:
            return "it has not joined its group"
        if self._reader.silent_s > _STUCK_S:
            return f"nothing was read for {self._reader.silent_s:.0f} s: its consumer is stuck, or no broker answers"
        unwritten_s = self.unacknowledged_s
        if unwritten_s > _STUCK_S:
            return f"nothing written was acknowledged for {unwritten_s:.0f} s: the log cannot be written"
        return None

    @property
    def unacknowledged_s(self) -> float:
        """For how long the oldest write of ours has gone unacknowledged, seconds."""
        batches = (desk.writing_s for desk in self._desks.values())
        return max(0.0 if self._status is None else self._status.unacknowledged_s, *batches, 0.0)

    @property
    def statuses(self) -> Mapping[int, PartitionStatus]:
        """What was said last of each partition of ours, at most about a second ago."""
        return {} if self._status is None else self._status.latest

    @property
    def contracts(self) -> Mapping[str, Contract]:
        """By id."""
        return self._contracts

    @property
    def trusted(self) -> KnownKeys | None:
        """Keys of the guards whose decisions are taken up; None: whatever the log holds is."""
        return self._trusted

    @property
    def partitions(self) -> tuple[int, ...]:
        """All there are of each topic keyed by region; none before the topics were found or made."""
        return self._partitions

    @property
    def alone(self) -> bool:
        """Whether the broker is an embedded one, known once the topics were found."""
        return self._alone

    def observe(self, observer: Observer) -> None:
        """Tell an observer of every decision that is published from now on."""
        self._observers.add(observer)
        self.counters.observer_failures[type(observer).__name__] += 0  # what begins at 1 never rose, to an alert

    async def start(self) -> None:
        """Connect, join, take up what is ours. Alone, it returns once all evidence is rebuilt.

        Raises `guard_kafka.Unreachable`.
        """
        settings = self.settings
        try:
            self._producer = await connect_producer(settings)
            cluster = await ensure_topics(settings, self._producer)
            self._partitions = cluster.partitions[self._topics.proposals]
            self._alone = settings.alone or cluster.embedded
            self._consumer = await connect_consumer(settings, None)
            group = await connect_consumer(settings, f"{settings.prefix}guard")
            self._reader = Reader(self._consumer)
            self._ownership = Ownership(group, self._topics.proposals, self._partitions, alone=self._alone)
            self._ownership.start()
            self._teller = await connect_producer(settings, idempotent=False)
            self._status = StatusWriter(
                settings, self._contracts, self._clock, self._owned_books, self.why_not_ready, self._teller,
                self._consumer,
            )  # fmt: skip
            for part in (self._reader.run(), self._own(), self._commits(), self._status.run(), self.maps.watch()):
                self._parts.append(self._watched(asyncio.create_task(part)))
            if self._alone:
                await self.until_ready()
        except BaseException:
            await self.stop()
            raise

    def _books(self) -> list[tuple[int, Books]]:
        return [(partition, desk.books) for partition, desk in sorted(self._desks.items())]

    def rebuilt(self) -> dict[int, Books]:
        """The books of the partitions that are ours and rebuilt, as they stand: to look at, not to change."""
        owned = self._owned_books()
        return {partition: books for partition, books in owned.items() if books is not None and books.warm}

    def _states(self) -> list[RegionState]:
        return [state for books in self.rebuilt().values() for state in tuple(books.states.values())]

    def partition_of(self, region: str) -> int | None:
        """The partition of a region; None before the topics are known."""
        return partition_of(region, self._partitions) if self._partitions else None

    def _owned_books(self) -> dict[int, Books | None]:
        if self._ownership is None:
            return {}
        desks = {partition: self._desks.get(partition) for partition in sorted(self._ownership.owned)}
        return {partition: None if desk is None else desk.books for partition, desk in desks.items()}

    async def until_ready(self) -> None:
        """Wait until it is ready. Raises what made it fail before."""
        while self.why_not_ready() is not None and not self._failed.is_set():  # noqa: ASYNC110 - of many parts
            await asyncio.sleep(_LOOK_S)
        if self._failure is not None:
            raise self._failure

    async def run(self) -> None:
        """Decide until `stop()`. Raises what made it fail: a bug of ours."""
        try:
            await self._failed.wait()
        finally:
            self._halt()
        if self._failure is not None:
            raise self._failure

    async def stop(self) -> None:
        """Finish the batches in hand, commit, and close, all within `stop_timeout_s`; later calls do nothing."""
        self._halt()
        bound = self.settings.stop_timeout_s * _STOP_SHARE
        desks, keepers = dict(self._desks), set(self._keepers.values())  # a keeper that ends takes its desk away
        if keepers:
            await asyncio.wait(keepers, timeout=bound / 2)
        tasks = [*keepers, *self._parts]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=bound / 10)
        ownership, self._ownership = self._ownership, None
        if ownership is not None:
            await stop_all(self._commit(ownership, desks), ownership.stop(), timeout_s=bound / 5)
        clients = (self._consumer, self._producer, self._teller)
        self._consumer = self._producer = self._teller = None
        await stop_all(*(client.stop() for client in clients if client is not None), timeout_s=bound / 5)
        self._failed.set()

    def ask(self, region: str, query: AsOfQuery | ViewQuery) -> ViewMessage:
        """Answer a question at the guard's clock. Raises NotHere."""
        partition = self.partition_of(region)
        desk = None if partition is None else self._desks.get(partition)
        if desk is None or not desk.books.warm:
            raise NotHere(f"region {region!r} is not decided here: its partition is {partition}")
        return answer(desk.books.glance(region), query, self._clock(), desk.books.evidence())

    def stats(self) -> dict[str, Any]:
        """Counters, and what is held of each partition and region of ours."""
        return {
            "guard": self.settings.guard_name,
            "ready": self.ready,
            "why_not_ready": self.why_not_ready(),
            "signed_by": None if self._signer is None else self._signer.keyid,
            "partitions": {
                str(p): {"warm": books.warm, "open": len(books.open), "done": books.resume().proposals}
                for p, books in self._books()
            },
            "regions": {
                region: len(state.store)
                for _, books in self._books()
                for region, state in books.states.items()
            },
            **self.counters.document(),
        }

    def _halt(self) -> None:
        """No desk begins another turn."""
        self._stopping = True
        for desk in self._desks.values():
            desk.stop()

    def _watched(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        """A task whose failure is that of the guard."""

        def ended(done: asyncio.Task[None]) -> None:
            if done.cancelled() or done.exception() is None or self._failure is not None:
                return
            self._failure = done.exception()
            log.error("guard failed: nothing more is released", exc_info=self._failure)
            self._halt()
            self._failed.set()

        task.add_done_callback(ended)
        return task

    # Partitions of ours.

    async def _own(self) -> None:
        """A keeper for each partition of ours, and for no other."""
        assert self._ownership is not None
        ownership = self._ownership
        while True:
            await ownership.changed.wait()
            ownership.changed.clear()
            await self._give_up(self._keepers.keys() - ownership.owned)
            for partition in sorted(ownership.owned - self._keepers.keys()):
                task = asyncio.create_task(self._keep(partition, ownership), name=f"guard partition {partition}")
                self._keepers[partition] = self._watched(task)

    async def _give_up(self, partitions: Set[int]) -> None:
        keepers = [self._keepers.pop(partition) for partition in sorted(partitions)]
        for partition in partitions & self._desks.keys():
            self._desks[partition].stop()
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)

    async def _keep(self, partition: int, ownership: Ownership) -> None:
        """Own a partition until cancelled or stopped, beginning anew from the log whenever Kafka fails us."""
        while not self._stopping and partition in ownership.owned:
            version = ownership.version
            try:
                await self._sit(partition, ownership)
            except Fenced as error:
                self.counters.fenced += 1
                log.warning("partition lost to another worker", partition=partition, why=str(error))
                await ownership.settled(version, self.settings.session_timeout_ms / 1000)
                while ownership.version == version and not await ownership.confirmed(partition):
                    await ownership.settled(version, _AGAIN_S)
            except (PublishError, KafkaError, Unreachable, OSError, TimeoutError) as error:
                self.counters.reopened += 1
                why = str(error) or type(error).__name__
                self._gave_up[partition] = why
                log.warning("partition taken up again", partition=partition, why=why)
                await asyncio.sleep(_AGAIN_S)

    async def _sit(self, partition: int, ownership: Ownership) -> None:
        assert self._reader is not None
        publisher = self._publisher(partition)
        try:
            await publisher.open()
            desk = await self._restored(partition, ownership, publisher)
            self._desks[partition] = desk
            self._reader.add(partition, desk.intake)
            await desk.run()
        finally:
            self._reader.remove(partition)
            self._desks.pop(partition, None)
            await publisher.close()

    def _publisher(self, partition: int) -> Publisher:
        settings = self.settings
        if self._alone:
            assert self._producer is not None
            return PlainPublisher(self._producer, self._clock)
        options = {
            "bootstrap.servers": settings.bootstrap_servers,
            "client.id": f"wirelessops-{settings.guard_name}",
            **settings.security.librdkafka_options(),
        }
        return TransactionalPublisher(f"{settings.prefix}guard.{partition}", options, settings.max_message_bytes)

    async def _restored(self, partition: int, ownership: Ownership, publisher: Publisher) -> Desk:
        assert self._reader is not None
        settings, began = self.settings, time.monotonic()
        controls_ms = max(settings.history_ms, _longest_control_ms(self._contracts))
        evidence_ms = max(settings.history_ms, _longest_evidence_ms(self._contracts), self._counted_ms())
        committed = await ownership.committed(partition)
        consumer = await connect_consumer(settings, None)
        try:
            now_ms = self._clock()
            past = await read_past(consumer, self._topics, partition, now_ms - controls_ms, self._trusted)
            start = await find_start(
                consumer, self._topics, partition, past, committed, now_ms, evidence_ms, controls_ms,
                finds_times=not self._alone,
            )  # fmt: skip
        finally:
            await stop_all(consumer.stop(), timeout_s=settings.stop_timeout_s)
        took_s = round(time.monotonic() - began, 3)
        log.info("partition taken up", partition=partition, decisions=len(past.said), after_s=took_s)
        since_ms, counted_ms = start.telemetry_since_ms, self._counted_ms()
        if since_ms is not None and since_ms > now_ms - counted_ms:
            log.warning(
                "telemetry is retained for less than the support gate counts: it abstains until its window is full",
                partition=partition, retained_s=(now_ms - since_ms) / 1000, counted_s=counted_ms / 1000,
            )  # fmt: skip
        books = Books(partition, self._partitions, settings, self._contracts, past, start, self.maps.terms)
        release = Release(partition, settings, self._clock, self._signer, self._traced)
        return Desk(
            books, settings, self.tuning, self._contracts, self._clock, publisher, release, self.counters,
            self._reader.mark, self._observers, self.maps, start.gone,
        )  # fmt: skip

    def _counted_ms(self) -> int:
        """How far back the support gate counts visits, ms."""
        terms = self.maps.terms
        return max((window_ms(one, self._contracts[contract_id]) for contract_id, one in terms.items()), default=0)

    async def _commits(self) -> None:
        assert self._ownership is not None
        while True:
            await asyncio.sleep(_COMMIT_S)
            try:
                await self._commit(self._ownership, self._desks)
            except KafkaError as error:
                log.warning("offsets not committed: tried again", why=str(error) or type(error).__name__)

    async def _commit(self, ownership: Ownership, desks: Mapping[int, Desk]) -> None:
        await ownership.commit({p: desk.durable for p, desk in desks.items() if desk.books.warm})


def _longest_control_ms(contracts: Mapping[str, Contract]) -> int:
    """How far back the controls of any contract can matter, ms: leases, budget windows, what is watched."""
    longest = 0
    for contract in contracts.values():
        control = contract.control
        if control is not None:
            budget = 0 if control.budget is None else control.budget.per_ms or 0
            watched = (control.ack_ms or 0) + (0 if control.effect is None else control.effect.within_ms)
            longest = max(longest, control.lease_ms or 0, budget, watched)
    return longest


def _longest_evidence_ms(contracts: Mapping[str, Contract]) -> int:
    """How far back evidence can matter to any contract, ms: its freshness, its windows, and the clocks' skew."""
    longest = 0
    for contract in contracts.values():
        windows = [(c.window_ms or 0) + (c.max_gap_ms or 0) for c in contract.constraints]
        fresh = [field.freshness_ms for field in contract.fields.values()]
        longest = max(longest, max(fresh, default=0) + max(windows, default=0) + contract.max_clock_skew_ms)
    return longest
