"""Alarms: what waits for a person is raised at the alarm manager, once, and cleared when it is decided."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from alarm_manager import AlarmManager, serving
from guard_rig import CONTRACT, REGION, Rig, contracts, proposal, report, running
from hypothesis import given
from hypothesis import strategies as st

from streams import alarm_posting, alarm_watch
from streams.alarm_posting import AlarmPoster
from streams.alarm_watch import AlarmWatch, EscalationBell
from streams.alarms import (
    DEFINITIONS,
    MOST_ESCALATIONS,
    OF_GUARDS,
    Alarm,
    AlarmBook,
    Alarms,
    Identity,
    Notice,
    Problem,
    escalations,
)
from streams.broker import EmbeddedBroker
from streams.configuration import Configuration
from streams.guard import Guard, unix_ms
from streams.guard_restore import ProposalKey
from streams.settings import GuardSettings

ESCALATION = int(Problem.ESCALATION)
APPLICATION = "wirelessops"
DISPUTED: dict[str, Any] = {
    **CONTRACT,
    "fields": {**CONTRACT["fields"], "cqi": {**CONTRACT["fields"]["cqi"], "sources": ["e2:gnb-1", "o1:gnb-1"]}},
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alarm_posting, "LOOK_S", 0.1)
    monkeypatch.setattr(alarm_posting, "FIRST_WAIT_S", 0.05)
    monkeypatch.setattr(alarm_posting, "LONGEST_WAIT_S", 0.2)
    monkeypatch.setattr(alarm_watch, "SETTLED_MS", 300)


# The book.


def identity(name: str) -> Identity:
    return Identity(Problem.ESCALATION, REGION, name)


def tell(book: AlarmBook, active: set[Identity], *, taken: bool = True, heard: bool = True) -> bool:
    """Tell the next notice to a manager that has `active`; gives whether it changed anything there."""
    notice = book.next()
    if notice is None:
        return True
    changes = notice.raises != (notice.identity in active)
    if taken:
        (active.add if notice.raises else active.discard)(notice.identity)
    if taken and heard:
        book.told(notice)
    return changes


def change(book: AlarmBook, standing: set[Identity], step: str, name: str) -> None:
    if step == "put":
        book.put(Alarm(identity(name), "x"))
        standing.add(identity(name))
    elif step == "clear":
        book.clear(identity(name))
        standing.discard(identity(name))


CHANGES = st.tuples(st.sampled_from(["put", "clear"]), st.sampled_from("abc"))
SENDINGS = st.tuples(st.sampled_from(["told", "lost", "taken and not heard", "begun", "ended", "remind"]), st.just(""))


@given(st.lists(CHANGES | SENDINGS))
def test_whatever_is_lost_on_the_way_the_manager_has_what_stands_in_the_end(steps: list[tuple[str, str]]) -> None:
    book, active, standing = AlarmBook(), set[Identity](), set[Identity]()
    begun = None
    for step, name in steps:
        change(book, standing, step, name)
        if step == "remind":
            book.remind()
        elif step == "begun" and begun is None:
            begun = book.next()
        elif begun is not None and step == "ended":
            (active.add if begun.raises else active.discard)(begun.identity)
            book.told(begun)
            begun = None
        elif begun is None and name == "":  # one after the other
            tell(book, active, taken=step != "lost", heard=step == "told")
    for _ in range(len(book)):
        tell(book, active)
    assert (active, book.next()) == (standing, None)


@given(st.lists(CHANGES | st.just(("told", ""))))
def test_the_manager_is_told_nothing_that_it_has_already(steps: list[tuple[str, str]]) -> None:
    book, active, standing = AlarmBook(), set[Identity](), set[Identity]()
    for step, name in steps:
        change(book, standing, step, name)
        if step == "told":
            assert tell(book, active)


def test_what_is_raised_and_cleared_while_nothing_can_be_told_is_never_told() -> None:
    book = AlarmBook()
    for number in range(10_000):
        book.put(Alarm(identity(str(number)), "x"))
        book.clear(identity(str(number)))
        if number % 100 == 0:
            book.next()
            assert len(book) <= 100
    assert book.next() is None


# What stands.


def alarms() -> Alarms:
    return Alarms(APPLICATION, "w1", lambda _: 0, lambda: None)


def hold_escalations(held: Alarms, numbers: range) -> None:
    waiting = ((ProposalKey(REGION, str(number)), ["conflict"]) for number in numbers)
    for problem, standing in escalations(waiting, 0, APPLICATION).items():
        held.hold(problem, 0, standing)


def test_a_storm_of_escalations_is_so_many_alarms_and_one_that_says_there_are_more() -> None:
    held = alarms()
    hold_escalations(held, range(5_000))
    assert len(held.book.standing) == MOST_ESCALATIONS + 1
    assert sum(known.problem is Problem.MORE_ESCALATIONS for known in held.book.standing) == 1
    hold_escalations(held, range(4_990, 5_000))
    assert {known.identifying for known in held.book.standing} == {str(number) for number in range(4_990, 5_000)}
    hold_escalations(held, range(0))
    assert not held.book.standing
    assert held.book.next() is None  # nothing was told meanwhile


def test_a_partition_that_is_given_up_is_left_to_its_next_owner() -> None:
    held = alarms()
    hold_escalations(held, range(3))
    first = held.book.next()
    assert first is not None
    held.book.told(first)
    held.give_up(0)
    assert held.book.next() is None
    assert not held.book.standing


def told_before(problem: Problem, managed: str, identifying: str, application: str = APPLICATION) -> dict[str, Any]:
    return {
        "managedObjectId": managed,
        "applicationId": application,
        "specificProblem": int(problem),
        "identifyingInfo": identifying,
    }


def test_what_the_manager_has_of_a_predecessor_is_cleared_where_it_does_not_stand_and_nothing_else_is() -> None:
    held = alarms()
    hold_escalations(held, range(2))
    for notice in iter(held.book.next, None):
        held.book.told(notice)
    held.compare(
        [
            told_before(Problem.ESCALATION, REGION, "0"),
            told_before(Problem.ESCALATION, REGION, "1"),
            told_before(Problem.ESCALATION, REGION, "old"),
            told_before(Problem.ESCALATION, REGION, "old", application="another"),
            told_before(Problem.SOURCE_OUTAGE, REGION, "not looked at yet"),
            {"applicationId": APPLICATION, "specificProblem": 8004, "managedObjectId": "SEP", "identifyingInfo": ""},
            {"applicationId": APPLICATION, "specificProblem": "?"},
        ]
    )
    notice = held.book.next()
    assert notice is not None
    assert (notice.identity, notice.raises) == (Identity(Problem.ESCALATION, REGION, "old"), False)
    held.book.told(notice)
    assert held.book.next() is None


@pytest.mark.parametrize("problem", sorted(OF_GUARDS))
def test_what_a_guard_says_of_itself_no_other_guard_clears(problem: Problem) -> None:
    held = alarms()
    others, former = ((told_before(problem, APPLICATION, f"guard {name}")) for name in ("w2", "w1"))
    held.compare([others])
    assert held.book.next() is None
    held.say(problem, "so")
    raised = held.book.next()
    assert raised is not None
    held.book.told(raised)
    held.say_no_more()
    cleared = held.book.next()
    assert cleared == Notice(Identity(problem, APPLICATION, "guard w1"), None)
    held.book.told(cleared)
    held.compare([others, former])
    assert held.book.next() == cleared, "of its own former life"


def test_a_switch_in_partitions_of_another_guard_alone_is_cleared_by_that_guard_alone() -> None:
    held = alarms()
    held.hold(Problem.SWITCH, 0, [])
    held.compare([told_before(Problem.SWITCH, APPLICATION, "partition 1")])
    assert held.book.next() is None
    held.compare([told_before(Problem.SWITCH, APPLICATION, "partition 0")])
    notice = held.book.next()
    assert notice is not None
    assert (notice.identity.identifying, notice.raises) == ("partition 0", False)


def test_every_problem_has_a_definition_of_its_own() -> None:
    assert DEFINITIONS.keys() == set(Problem)
    assert len({definition.text for definition in DEFINITIONS.values()}) == len(Problem)


# Posting.


@asynccontextmanager
async def posting(url: str, held: list[Alarm]) -> AsyncIterator[AlarmPoster]:
    poster = AlarmPoster(url, APPLICATION, "w1", lambda _: 0)
    poster.look = lambda: poster.alarms.hold(Problem.ESCALATION, 0, held)
    await poster.start()
    try:
        yield poster
    finally:
        await poster.stop()


def one(name: str) -> Alarm:
    return Alarm(identity(name), "conflict")


async def test_alarms_are_kept_while_the_manager_is_down_and_told_when_it_is_up() -> None:
    manager, held = AlarmManager(), [one("a"), one("b")]
    async with serving(manager) as url:
        port = int(url.split(":")[2].partition("/")[0])
    async with posting(url, held):
        await asyncio.sleep(0.2)
        held.remove(one("a"))
        async with serving(manager, port):
            await manager.until(lambda: manager.identities(ESCALATION) == {"b"})
    assert manager.history == [("RAISE", (REGION, APPLICATION, ESCALATION, "b"))]


@pytest.mark.parametrize("status", [500, 503, 404, 302])
async def test_a_clear_is_not_lost_in_an_outage(status: int) -> None:
    manager, held = AlarmManager(), [one("a")]
    async with serving(manager) as url, posting(url, held) as poster:
        await manager.until(lambda: manager.identities(ESCALATION) == {"a"})
        manager.status = status
        before = manager.requests
        held.clear()
        poster.wake()
        await manager.until(lambda: manager.requests > before + 2)
        assert manager.active
        manager.status = 200
        await manager.until(lambda: not manager.active)
        assert [action for action, _ in manager.history] == ["RAISE", "CLEAR"]


async def test_a_manager_that_was_restarted_without_memory_is_told_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alarm_posting, "REMIND_S", 0.3)
    manager, held = AlarmManager(), [one("a")]
    async with serving(manager) as url, posting(url, held):
        await manager.until(lambda: bool(manager.active))
        manager.forget()
        await manager.until(lambda: bool(manager.active))
    assert [action for action, _ in manager.history] == ["RAISE", "RAISE"]


async def test_what_a_former_owner_raises_after_its_partition_was_taken_up_is_cleared_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(alarm_posting, "AGAIN_S", 0.5)
    manager, held = AlarmManager(), [one("a")]
    async with serving(manager) as url, posting(url, held) as poster:
        await manager.until(lambda: manager.identities(ESCALATION) == {"a"})
        poster.compare()
        before = manager.requests
        await manager.until(lambda: manager.requests >= before + 2)
        late = {**manager.active[REGION, APPLICATION, ESCALATION, "a"], "identifyingInfo": "late"}
        manager.active[REGION, APPLICATION, ESCALATION, "late"] = late
        await manager.until(lambda: manager.identities(ESCALATION) == {"a"})


async def test_what_a_guard_said_of_itself_ends_with_it_and_no_escalation_does() -> None:
    manager, held = AlarmManager(), [one("a")]
    async with serving(manager) as url:
        async with posting(url, held) as poster:
            poster.alarms.say(Problem.DEAD_LETTERS, "telemetry")
            await manager.until(lambda: len(manager.active) == 2)
        assert {known[2] for known in manager.active} == {ESCALATION}


async def test_an_alarm_that_is_refused_keeps_no_other_one_back() -> None:
    manager, held = AlarmManager(), [one("a")]
    async with serving(manager) as url, posting(url, held) as poster:
        await manager.until(lambda: bool(manager.active))
        manager.status = 422
        held.append(one("refused"))
        before = manager.requests
        poster.wake()
        await manager.until(lambda: manager.requests > before)
        manager.status = 200
        held.append(one("b"))
        poster.wake()
        await manager.until(lambda: "b" in manager.identities(ESCALATION))


async def test_stopping_waits_for_no_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alarm_posting, "FLUSH_S", 0.2)
    manager = AlarmManager()
    manager.answers.clear()
    async with serving(manager) as url:
        async with asyncio.timeout(2), posting(url, [one("a")]):
            await manager.until(lambda: manager.requests > 0)
        assert not manager.active


# A guard.


@asynccontextmanager
async def guarding(server: str, url: str, **options: Any) -> AsyncIterator[Configuration]:
    """A guard that posts its alarms, as `wirelessops run` puts it together; its configuration."""
    bell = EscalationBell()
    settings = GuardSettings.embedded(server, alarm_url=url, **options)
    guard = Guard(settings, contracts(DISPUTED), observers=[bell])
    poster = AlarmPoster(url, APPLICATION, settings.guard_name, guard.partition_of)
    configuration = Configuration(settings, guard.tuning)
    poster.look = AlarmWatch(poster.alarms, guard, configuration, unix_ms, poster.compare).look
    bell.ring = poster.wake
    await poster.start()
    async with running(guard):
        try:
            yield configuration
        finally:
            await poster.stop()


async def escalate(rig: Rig, *proposals: str) -> list[dict[str, Any]]:
    """Two sources disagree: the decisions on proposals that rest on them."""
    await rig.send("telemetry", report("e", 5))
    await rig.send("telemetry", report("o", 12, source="o1:gnb-1"))
    for name in proposals:
        await rig.send("proposals", proposal(name, control_key=f"cell:1/ue:7/{name}"))
    decisions = [await rig.decision(name) for name in proposals]
    assert {decision["action"] for decision in decisions} == {"ESCALATE"}
    return decisions


async def deny(rig: Rig, decision: dict[str, Any]) -> None:
    answer = {
        "format": "wirelessops.answer/1", "answer_id": f"a-{decision['proposal_id']}",
        "decision_id": decision["decision_id"], "proposal_id": decision["proposal_id"], "verdict": "deny",
        "operator": "alice", "reason": "no", "at_ms": unix_ms(), "settles": [],
    }  # fmt: skip
    await rig.send("answers", orjson.dumps(answer))
    await rig.wait_for("control", lambda d: d["proposal_id"] == decision["proposal_id"] and d["final"])


@asynccontextmanager
async def world() -> AsyncIterator[tuple[EmbeddedBroker, Rig, AlarmManager, str]]:
    manager = AlarmManager()
    with EmbeddedBroker() as broker:
        rig = Rig(broker.bootstrap_servers)
        async with serving(manager) as url:
            try:
                yield broker, rig, manager, url
            finally:
                await rig.close()


async def test_an_escalation_is_an_alarm_until_a_person_answers() -> None:
    async with world() as (broker, rig, manager, url), guarding(broker.bootstrap_servers, url):
        await rig.open()
        decided = await escalate(rig, "p1", "p2")
        await manager.until(lambda: manager.identities(ESCALATION) == {"p1", "p2"})
        alarm = manager.active[REGION, APPLICATION, ESCALATION, "p1"]
        assert (alarm["additionalInfo"], alarm["perceivedSeverity"]) == ("conflict", "MAJOR")
        await deny(rig, decided[0])
        await manager.until(lambda: manager.identities(ESCALATION) == {"p2"})


async def test_an_escalation_that_is_one_no_longer_is_no_alarm() -> None:
    async with world() as (broker, rig, manager, url), guarding(broker.bootstrap_servers, url):
        await rig.open()
        await escalate(rig, "p1")
        await manager.until(lambda: manager.identities(ESCALATION) == {"p1"})
        await rig.send("telemetry", report("o2", 5, source="o1:gnb-1"))
        await rig.wait_for("control", lambda d: d["proposal_id"] == "p1" and d["action"] == "APPLY")
        await manager.until(lambda: not manager.identities(ESCALATION))


async def test_a_restart_raises_nothing_twice_and_clears_what_its_predecessor_raised() -> None:
    async with world() as (broker, rig, manager, url):
        async with guarding(broker.bootstrap_servers, url, guard_name="first"):
            await rig.open()
            decided = await escalate(rig, "p1", "p2")
            await manager.until(lambda: manager.identities(ESCALATION) == {"p1", "p2"})
        manager.active[REGION, APPLICATION, ESCALATION, "decided long ago"] = {
            **manager.active[REGION, APPLICATION, ESCALATION, "p1"], "identifyingInfo": "decided long ago",
        }  # fmt: skip
        async with guarding(broker.bootstrap_servers, url, guard_name="second"):
            await manager.until(lambda: manager.identities(ESCALATION) == {"p1", "p2"})
            await deny(rig, decided[0])
            await manager.until(lambda: manager.identities(ESCALATION) == {"p2"})
        assert sum(action == "RAISE" and known[2] == ESCALATION for action, known in manager.history) == 2


async def test_a_guard_that_is_cut_off_from_kafka_tells_nothing_of_partitions_that_others_may_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(alarm_posting, "REMIND_S", 0.1)
    async with world() as (broker, rig, manager, url), guarding(broker.bootstrap_servers, url):
        await rig.open()
        await escalate(rig, "p1")
        await manager.until(lambda: manager.identities(ESCALATION) == {"p1"})
        with monkeypatch.context() as cut_off:
            cut_off.setattr("streams.guard._STUCK_S", -1)
            before = manager.requests
            await manager.until(lambda: manager.requests > before + 3)
            manager.forget()  # or: another guard has cleared it
            before = manager.requests
            await manager.until(lambda: manager.requests > before + 3)
            assert not manager.active
        await manager.until(lambda: manager.identities(ESCALATION) == {"p1"})


async def test_what_could_not_be_raised_before_the_end_is_raised_by_the_successor() -> None:
    async with world() as (broker, rig, manager, url):
        manager.status = 500
        async with guarding(broker.bootstrap_servers, url):
            await rig.open()
            await escalate(rig, "p1")
        assert not manager.active
        manager.status = 200
        async with guarding(broker.bootstrap_servers, url):
            await manager.until(lambda: manager.identities(ESCALATION) == {"p1"})


async def test_a_manager_that_never_answers_keeps_no_decision_waiting() -> None:
    async with world() as (broker, rig, manager, url):
        manager.answers.clear()
        async with guarding(broker.bootstrap_servers, url):
            await rig.open()
            await escalate(rig, *(f"p{number}" for number in range(100)))
            await manager.until(lambda: manager.requests > 0)
            await rig.send("telemetry", report("o2", 5, source="o1:gnb-1"))
            await rig.wait_for("control", lambda d: d["proposal_id"] == "p7" and d["action"] == "APPLY")
            assert not manager.active


async def test_a_source_in_outage_a_dead_letter_and_a_refused_descriptor_are_alarms() -> None:
    async with world() as (broker, rig, manager, url), guarding(broker.bootstrap_servers, url) as configuration:
        await rig.open()
        await rig.send("telemetry", report("e", 5))
        outage = {
            "format": "wirelessops.source-status/1", "source": "e2:gnb-1", "status": "outage",
            "event_time_ms": unix_ms(),
        }  # fmt: skip
        await rig.send("telemetry", orjson.dumps(outage))
        await rig.send("proposals", b"no proposal")
        configuration.refused = "config-file.json: $.controls.hold_ms: no"
        await manager.until(lambda: manager.identities(int(Problem.SOURCE_OUTAGE)) == {"e2:gnb-1"})
        await manager.until(lambda: bool(manager.identities(int(Problem.DEAD_LETTERS))))
        await manager.until(lambda: bool(manager.identities(int(Problem.DESCRIPTOR_REFUSED))))
        configuration.refused = None
        await rig.send("telemetry", orjson.dumps({**outage, "status": "up", "event_time_ms": unix_ms()}))
        await manager.until(lambda: {known[2] for known in manager.active} == {int(Problem.DEAD_LETTERS)})


async def test_a_switch_that_releases_nothing_is_an_alarm_until_it_is_live_again() -> None:
    def switch(mode: str) -> bytes:
        document = {"format": "wirelessops.switch/1", "switch_id": mode, "mode": mode, "operator": "alice"}
        return orjson.dumps({**document, "reason": "storm", "at_ms": unix_ms(), "region": REGION})

    problem = int(Problem.SWITCH)
    async with world() as (broker, rig, manager, url), guarding(broker.bootstrap_servers, url):
        await rig.open()
        await rig.send("answers", switch("hold"))
        place = f"partition {rig.partition_of_region()}"
        await manager.until(lambda: (REGION, APPLICATION, problem, place) in manager.active)
        alarm = manager.active[REGION, APPLICATION, problem, place]
        assert alarm["additionalInfo"] == "hold: alice: storm"
        await rig.send("answers", switch("live"))
        await manager.until(lambda: not manager.identities(problem))
