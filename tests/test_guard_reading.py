"""What a guard reads: a kill switch behind a flood, and what the broker dropped before it was read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError, KafkaTimeoutError, TopicAuthorizationFailedError
from guard_rig import PARTITIONS, REGION, Rig, contracts, proposal, report

from streams import guard_intake
from streams.broker import EmbeddedBroker
from streams.guard_books import Books
from streams.guard_counters import Counters
from streams.guard_desk import Desk
from streams.guard_intake import Intake
from streams.guard_reading import Lost, Reached, Reader
from streams.guard_release import Release
from streams.guard_restore import Past, Start
from streams.observing import Observers
from streams.publishing import Late, Outgoing
from streams.settings import GuardSettings
from streams.support_watch import MapsInForce
from streams.topics import topics
from streams.tuning import LiveTuning, Tuning

T = 1_800_000_000_000
NAMES = topics()
SETTINGS = GuardSettings.embedded("nowhere:1")
PARTITION = Rig.partition_of_region()
PLACE = TopicPartition(NAMES.telemetry, PARTITION)
HOLD = b"""{"format": "wirelessops.switch/1", "switch_id": "s-1", "mode": "hold", "operator": "alice",
"reason": "a storm", "at_ms": 1800000000000}"""


def a_message(topic: str, offset: int, value: bytes, key: bytes | None = REGION.encode()) -> Any:
    return SimpleNamespace(
        topic=topic, partition=PARTITION, offset=offset, timestamp=T, key=key, value=value, headers=()
    )


def put(intake: Intake, topic: str, values: Iterable[bytes], first: int = 0) -> None:
    messages = [a_message(topic, first + n, value) for n, value in enumerate(values)]
    intake.receive(messages, Reached(topic, PARTITION, first + len(messages)))


class Kept:
    """Keeps what is published; `before` is called with each batch, and may say that it is late."""

    atomic = True

    def __init__(self) -> None:
        self.published: list[Outgoing] = []
        self.before: Any = lambda messages: None

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def publish(self, records: Any, messages: Any) -> None:
        self.before(messages)
        self.published += messages


def a_desk() -> tuple[Desk, Kept]:
    """The owner of the region's partition, warm, at T."""
    inputs = (NAMES.telemetry, NAMES.outcomes, NAMES.proposals, NAMES.queries, NAMES.answers)
    start = Start({TopicPartition(name, PARTITION): 0 for name in inputs}, {}, 0, frozenset(), None)
    books = Books(PARTITION, range(PARTITIONS), SETTINGS, contracts(), Past(), start)
    publisher, tuning = Kept(), LiveTuning(Tuning.of(SETTINGS))
    release, observers = Release(PARTITION, SETTINGS, lambda: T, None), Observers((), lambda _: None)
    desk = Desk(
        books, SETTINGS, tuning, contracts(), lambda: T, publisher, release, Counters(), lambda _: 0, observers,
        MapsInForce(),
    )  # fmt: skip
    return desk, publisher


def actions(publisher: Kept) -> list[str]:
    return [orjson.loads(m.value)["action"] for m in publisher.published if m.topic == NAMES.control]


async def test_nothing_is_decided_while_a_switch_that_was_read_stands_behind_a_flood() -> None:
    """Telemetry that is refused ends the taking in early, so that its dead letters are written."""
    desk, publisher = a_desk()
    put(desk.intake, NAMES.telemetry, [report("r1", 9, T - 10)])
    put(desk.intake, NAMES.proposals, [proposal("p1", created_at_ms=T - 5)])
    put(desk.intake, NAMES.telemetry, [b"{"] * 2_000, first=1)
    put(desk.intake, NAMES.answers, [HOLD])
    while desk.intake:
        await desk._turn()
    assert actions(publisher) == ["HOLD"]


async def test_a_release_that_stands_behind_a_flood_stops_nobody() -> None:
    desk, publisher = a_desk()
    put(desk.intake, NAMES.answers, [HOLD])
    put(desk.intake, NAMES.telemetry, [report("r1", 9, T - 10)])
    put(desk.intake, NAMES.proposals, [proposal("p1", created_at_ms=T - 5)])
    put(desk.intake, NAMES.telemetry, [b"{"] * 2_000, first=1)
    put(desk.intake, NAMES.answers, [HOLD.replace(b"hold", b"live")], first=1)
    await desk._turn()
    assert (actions(publisher), len(desk.intake) > 1_000) == (["HOLD"], True)
    while desk.intake:
        await desk._turn()
    assert actions(publisher) == ["HOLD", "APPLY"]


async def test_no_apply_of_a_batch_that_came_late_is_tried_again_once_a_switch_was_read() -> None:
    desk, publisher = a_desk()
    put(desk.intake, NAMES.telemetry, [report("r1", 9, T - 10)])
    put(desk.intake, NAMES.proposals, [proposal("p1", created_at_ms=T - 5)])

    def late(messages: Any) -> None:
        publisher.before = lambda messages: None
        put(desk.intake, NAMES.answers, [HOLD])
        raise Late

    publisher.before = late
    await desk._turn()
    assert actions(publisher) == []
    await desk._turn()
    desk.books.open.wake_due(T + 60_000)
    await desk._turn()
    assert actions(publisher) == ["HOLD"]
    put(desk.intake, NAMES.answers, [HOLD.replace(b"hold", b"live")], first=1)
    await desk._turn()
    assert actions(publisher) == ["HOLD", "APPLY"]


async def test_however_full_an_inbox_is_answers_are_read_until_they_are_too_many_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guard_intake, "_MESSAGES", 100)
    monkeypatch.setattr(guard_intake, "_BYTES", 1_000)
    intake = a_desk()[0].intake
    assert all(map(intake.wants, (NAMES.telemetry, NAMES.proposals, NAMES.outcomes, NAMES.answers)))
    put(intake, NAMES.telemetry, [b""] * 100)
    assert [t for t in (NAMES.telemetry, NAMES.proposals, NAMES.outcomes, NAMES.answers) if intake.wants(t)] == [
        NAMES.answers
    ]
    put(intake, NAMES.answers, [b"{" * 1_001])
    assert not intake.wants(NAMES.answers)
    await intake.take_in()
    assert all(map(intake.wants, (NAMES.telemetry, NAMES.proposals, NAMES.outcomes, NAMES.answers)))
    put(intake, NAMES.answers, [b""] * 100, first=1)
    assert not intake.wants(NAMES.answers)
    await intake.take_in()
    put(intake, NAMES.telemetry, [b"x" * 1_001], first=100)
    assert [t for t in (NAMES.telemetry, NAMES.proposals, NAMES.answers) if intake.wants(t)] == [NAMES.answers]


class Taking:
    """Takes what is read, from offset 0."""

    def __init__(self, topic: str) -> None:
        self.positions: Mapping[TopicPartition, int] = {TopicPartition(topic, 0): 0}
        self.gone: list[Lost] = []
        self.reached = 0
        self.more = asyncio.Event()

    def wants(self, topic: str) -> bool:
        return True

    def receive(self, messages: Iterable[Any], reached: Reached) -> None:
        self.reached = reached.offset
        self.more.set()

    def lost(self, lost: Lost) -> None:
        self.gone.append(lost)


class Forgetful(AIOKafkaConsumer):  # type: ignore[misc]
    """A consumer whose brokers do not say at once where topics begin."""

    faults: list[Exception]

    async def beginning_offsets(self, partitions: Any) -> Any:
        if self.faults:
            raise self.faults.pop()
        return await super().beginning_offsets(partitions)


@pytest.mark.parametrize("fault", [KafkaTimeoutError(), TopicAuthorizationFailedError("t"), KafkaError(), OSError()])
async def test_what_was_dropped_before_it_was_read_is_told_though_kafka_fails_meanwhile(fault: Exception) -> None:
    with EmbeddedBroker() as broker:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, max_request_size=2_000_000)
        consumer = Forgetful(
            bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="none", fetch_max_wait_ms=2,
            enable_auto_commit=False,
        )  # fmt: skip
        consumer.faults = [fault]
        await producer.start()
        await consumer.start()
        try:
            for _ in range(8):
                await producer.send_and_wait("t", b"x" * 900_000, partition=0)
            taker, reader = Taking("t"), Reader(consumer)
            reader.add(0, taker)
            running = asyncio.create_task(reader.run())
            async with asyncio.timeout(8):
                while taker.reached < 8 and not running.done():
                    await asyncio.wait({running, asyncio.create_task(taker.more.wait())}, return_when="FIRST_COMPLETED")
                    taker.more.clear()
            reader.stop()
            await running
            assert not consumer.faults
            assert [(lost.topic, lost.first) for lost in taker.gone] == [("t", 0)]
        finally:
            await consumer.stop()
            await producer.stop()
