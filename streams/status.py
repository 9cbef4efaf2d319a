"""`wirelessops.status/1`: what the owner of each partition says of it, once a second.

The page shows it, metrics are taken from it, and whether it is acknowledged tells whether the log can be written.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import orjson
import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from streams.guard_books import Books
from streams.headers import cloud_event
from streams.settings import GuardSettings
from streams.topics import MAX_REGION_LENGTH
from xapp.contract import PLACEHOLDER, Contract
from xapp.evidence.sources import SourceHistory
from xapp.evidence.store import EvidenceStore

FORMAT: Final = "wirelessops.status/1"
EVERY_S: Final = 1.0
MOST_SOURCES: Final = 500
_BREATHE: Final = 256
"""Sources looked at between two turns of the event loop: deciding goes first."""
_SURVEY_SHARE: Final = 0.05
"""The part of the time that looking at sources may take: very many are looked at less often than once a second."""
_REMEMBERED: Final = 100_000
_ENDS_S: Final = 1.0

log = structlog.get_logger(__name__)

_Listed = tuple[tuple[str, int], ...]


class Freshness:
    """How old the evidence of a source may be: the tightest limit of any contract's field that lists it, and that it
    reports.
    """

    def __init__(self, contracts: Iterable[Contract]) -> None:
        limits: dict[str, dict[str, int]] = {}  # template of a source → name that it may report → ms
        for contract in contracts:
            for f in contract.fields.values():
                for template in f.sources:
                    of_names = limits.setdefault(template, {})
                    of_names |= {name: min(f.freshness_ms, of_names.get(name, f.freshness_ms)) for name in f.names}
        self._patterns = [
            (re.compile(".+".join(re.escape(part) for part in PLACEHOLDER.split(template)[::2]), re.DOTALL), of_names)
            for template, of_names in limits.items()
        ]
        self._known: dict[str, _Listed] = {}
        self._same: dict[_Listed, _Listed] = {}  # few, and each the same of many sources

    def limit_ms(self, source: str, reported: Container[str]) -> int | None:
        """The limit of a source that reported these normalised names, ms; where it is listed for none of them, the
        tightest of what it is listed for. None for one that no contract lists (an operator, a stranger), and for a name
        that no place is made for: longer than 249 characters, or not printable.
        """
        if len(source) > MAX_REGION_LENGTH or not source.isprintable():
            return None
        if source not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[source] = self._listed(source)
        listed = self._known[source]
        return next((ms for name, ms in listed if name in reported), listed[0][1] if listed else None)

    def _listed(self, source: str) -> _Listed:
        """The names that a source is listed for, with the limit of each, the tightest first."""
        found: dict[str, int] = {}
        for pattern, of_names in self._patterns:
            if pattern.fullmatch(source):
                found |= {name: min(ms, found.get(name, ms)) for name, ms in of_names.items()}
        listed = tuple(sorted(found.items(), key=lambda item: item[1]))
        return self._same.setdefault(listed, listed)


@dataclass(frozen=True, slots=True)
class SourceView:
    """One source as `messages.SourceStatusItem` has it."""

    region: str
    source: str
    state: str
    event_time_ms: int | None
    ingest_time_ms: int | None
    limit_ms: int
    period_ms: int | None

    def age_ms(self, t_ms: int) -> int | None:
        """How old its newest report is at t; None where none is held."""
        return None if self.event_time_ms is None else max(0, t_ms - self.event_time_ms)

    def excess(self, t_ms: int) -> float:
        """Its age as a multiple of its limit; without a report it is as old as can be."""
        age_ms = self.age_ms(t_ms)
        return float("inf") if age_ms is None else age_ms / max(1, self.limit_ms)

    def standing(self, t_ms: int) -> str:
        """`outage`; `stale` where it is up, and older than its limit; else `up`."""
        return "stale" if self.state == "up" and self.excess(t_ms) > 1 else self.state


@dataclass(frozen=True, slots=True)
class Survey:
    """The sources of a partition that some contract lists: the worst, worst first, how many stand how, and how many
    there are beside the worst. `busy_s`: what looking took of this thread's CPU, seconds.
    """

    worst: Sequence[SourceView] = ()
    counts: Mapping[str, int] = field(default_factory=lambda: {"up": 0, "outage": 0, "stale": 0})
    omitted: int = 0
    busy_s: float = 0.0


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One `messages.StatusMessage`, as it is written."""

    guard: str
    partition: int
    at_ms: int
    started_at_ms: int
    warm: bool
    why_not_ready: str | None
    open: Mapping[str, int]
    behind: Mapping[str, int]
    decisions: int
    records: int
    leases: int
    sources: Sequence[SourceView]
    source_counts: Mapping[str, int]
    omitted: int
    switches: Sequence[Mapping[str, Any]]
    format: str = FORMAT

    def value(self) -> bytes:
        """The value of its message."""
        return orjson.dumps(self)


async def survey(books: Books, freshness: Freshness, t_ms: int) -> Survey:
    """Look at all sources of a partition at t; others run meanwhile, every few hundred sources."""
    worst: list[tuple[bool, float, str, str, SourceView]] = []
    counts = {"up": 0, "outage": 0, "stale": 0}
    busy_s, began_s = 0.0, time.thread_time()
    for looked, (region, store, name, history) in enumerate(_histories(books), 1):
        if looked % _BREATHE == 0:
            busy_s += time.thread_time() - began_s
            await asyncio.sleep(0)
            began_s = time.thread_time()
        limit_ms = freshness.limit_ms(name, store.names_of(name))
        if limit_ms is None:
            continue
        outage, heard = history.state(t_ms), history.heard()
        view = SourceView(
            region=region,
            source=name,
            state="up" if outage is None else "outage",
            event_time_ms=heard.event_time_ms or None,
            ingest_time_ms=heard.ingest_time_ms or None,
            limit_ms=limit_ms,
            period_ms=heard.period_ms,
        )
        counts[view.standing(t_ms)] += 1
        worst.append((view.state == "up", -view.excess(t_ms), region, name, view))
        if len(worst) >= 2 * MOST_SOURCES:  # never more than so many are sorted at once
            worst = sorted(worst)[:MOST_SOURCES]
    views = [view for *_, view in sorted(worst)[:MOST_SOURCES]]
    busy_s += time.thread_time() - began_s
    return Survey(views, counts, sum(counts.values()) - len(views), busy_s)


def _histories(books: Books) -> Iterator[tuple[str, EvidenceStore, str, SourceHistory]]:
    for region, state in tuple(books.states.items()):
        for name, history in state.store.source_histories():
            yield region, state.store, name, history


def switches_of(books: Books) -> list[dict[str, Any]]:
    """The switches in force of a partition, as `messages.SwitchInForce` has them."""
    return [{"region": region, **asdict(switch)} for region, switch in books.switches.listed()]


class StatusWriter:
    """Writes the status of every partition that is owned.

    `clock` gives Unix ms; `owned` the partitions with their books (None: still being rebuilt); `why_not_ready` what
    the guard says of itself; `producer` is not idempotent, else one message that was refused would be the last;
    `consumer` is asked for the ends of topics. `latest` holds what was made last.
    """

    def __init__(
        self,
        settings: GuardSettings,
        contracts: Mapping[str, Contract],
        clock: Callable[[], int],
        owned: Callable[[], Mapping[int, Books | None]],
        why_not_ready: Callable[[], str | None],
        producer: AIOKafkaProducer,
        consumer: AIOKafkaConsumer,
    ) -> None:
        self.latest: dict[int, PartitionStatus] = {}
        self._settings = settings
        self._freshness = Freshness(contracts.values())
        self._clock = clock
        self._owned = owned
        self._why_not_ready = why_not_ready
        self._producer = producer
        self._consumer = consumer
        self._started_at_ms = clock()
        self._ends: dict[TopicPartition, int] = {}
        self._since_s: dict[int, float] = {}  # partitions whose writes are not acknowledged, and since when
        self._writing: dict[int, asyncio.Task[None]] = {}
        self._surveys: dict[int, tuple[Books, float, Survey]] = {}

    @property
    def unacknowledged_s(self) -> float:
        """For how long writes to some partition have gone unacknowledged, seconds."""
        return max((time.monotonic() - since_s for since_s in self._since_s.values()), default=0.0)

    async def run(self) -> None:
        """Write until cancelled."""
        try:
            while True:
                began_s = time.monotonic()
                await self._round()
                await asyncio.sleep(max(0.0, EVERY_S - (time.monotonic() - began_s)))
        finally:
            for task in self._writing.values():
                task.cancel()

    async def _round(self) -> None:
        owned = self._owned()
        for lost in self.latest.keys() - owned.keys():
            del self.latest[lost]
            self._since_s.pop(lost, None)
            self._surveys.pop(lost, None)
        await self._find_ends([tp for books in owned.values() if books is not None for tp in books.next])
        for partition, books in owned.items():
            self.latest[partition] = await self._status(partition, books)
            if partition not in self._writing:
                self._since_s.setdefault(partition, time.monotonic())
                task = asyncio.create_task(self._write(partition, self.latest[partition]))
                self._writing[partition] = task

    async def _find_ends(self, places: list[TopicPartition]) -> None:
        try:
            async with asyncio.timeout(_ENDS_S):
                self._ends = await self._consumer.end_offsets(places) if places else {}
        except (KafkaError, OSError, TimeoutError):
            return  # the last known ones stand: that no broker answers is told by readiness

    async def _status(self, partition: int, books: Books | None) -> PartitionStatus:
        t_ms = self._clock()
        sources = Survey() if books is None else await self._survey(partition, books, t_ms)
        waiting = Counter[str]() if books is None else books.open.waiting_by_action()
        prefix = self._settings.prefix
        return PartitionStatus(
            guard=self._settings.guard_name,
            partition=partition,
            at_ms=t_ms,
            started_at_ms=self._started_at_ms,
            warm=books is not None and books.warm,
            why_not_ready=self._why_not_ready(),
            open={
                **{action: waiting[action] for action in ("HOLD", "RETRY", "ESCALATE")},
                "ready": 0 if books is None else books.open.ready,
            },
            behind={}
            if books is None
            else {
                tp.topic.removeprefix(prefix): max(0, self._ends.get(tp, position) - position)
                for tp, position in books.next.items()
            },
            decisions=0 if books is None else books.sequence,
            records=0 if books is None else books.chain.index,
            leases=0 if books is None else sum(state.controls.leased(t_ms) for state in books.states.values()),
            sources=sources.worst,
            source_counts=sources.counts,
            omitted=sources.omitted,
            switches=[] if books is None else switches_of(books),
        )

    async def _survey(self, partition: int, books: Books, t_ms: int) -> Survey:
        of, due_s, held = self._surveys.get(partition, (None, 0.0, Survey()))
        if of is not books or time.monotonic() >= due_s:
            held = await survey(books, self._freshness, t_ms)
            self._surveys[partition] = books, time.monotonic() + held.busy_s / _SURVEY_SHARE, held
        return held

    async def _write(self, partition: int, status: PartitionStatus) -> None:
        """One message; nothing more is written of the partition until its end is known."""
        settings = self._settings
        headers = cloud_event(
            event_id=f"{settings.guard_name}/{partition}/{status.at_ms}",
            source=f"/wirelessops/guard/{settings.guard_name}",
            kind=FORMAT,
            time_ms=status.at_ms,
        )
        try:
            await self._producer.send_and_wait(
                settings.topics.status, status.value(), str(partition).encode(), partition, headers=headers
            )
        except (KafkaError, OSError) as error:
            log.warning("status not written", partition=partition, why=str(error) or type(error).__name__)
        else:
            self._since_s.pop(partition, None)
        finally:
            self._writing.pop(partition, None)
