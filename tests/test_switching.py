"""An operator's switch in the stream: read from the log, kept, read back, and never loosened by what is not one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from guard_rig import CONTRACT, PARTITIONS, REGION, Rig, contracts, guarded, proposal, report, running
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streams.broker import EmbeddedBroker
from streams.commands.record import REPLAYED
from streams.commands.switch import switch as write_by_command
from streams.deciding import Read, Resume
from streams.guard import Guard, unix_ms
from streams.guard_books import Books
from streams.guard_counters import Counters
from streams.guard_intake import Intake
from streams.guard_reading import Reached
from streams.guard_release import Release
from streams.guard_restore import ANSWERED_LIMIT, OPEN_LIMIT_MS, Past, ProposalKey, Said, Start, find_start
from streams.lifecycle import stop_all
from streams.messages import DecisionMessage, SwitchMessage
from streams.publishing import Outgoing
from streams.recorder import Recorder
from streams.replay import replay
from streams.settings import GuardSettings
from streams.switching import (
    BadSwitch,
    Kept,
    Switches,
    kept_document,
    partitions_for,
    read_kept,
    read_switch,
    write_switch,
)
from streams.topics import partition_of, topics
from streams.tuning import LiveTuning, Tuning
from xapp.signing import KnownKeys, Signer, sign_document

T = 1_800_000_000_000
NAMES = topics()
SETTINGS = GuardSettings.embedded("nowhere:1")
MODES = ("live", "hold", "shadow")
STRICT = {"hold": 0, "shadow": 1, "live": 2}
OTHER = next(name for name in map(str, range(99)) if partition_of(name, range(PARTITIONS)) == Rig.partition_of_region())
"""Another region of the same partition."""


def said(mode: str, region: str | None = None, **over: Any) -> dict[str, Any]:
    document = {"format": "wirelessops.switch/1", "switch_id": "s-1", "mode": mode, "operator": "alice"}
    return {**document, "reason": "a storm", "at_ms": unix_ms(), "region": region, **over}


def switch(mode: str, region: str | None = None, **over: Any) -> bytes:
    return orjson.dumps(said(mode, region, **over))


def key(region: str | None) -> bytes | None:
    return None if region is None else region.encode()


# Pure: which is in force.

SCOPES = st.sampled_from([None, REGION, OTHER])


@given(st.lists(st.tuples(SCOPES, st.sampled_from(MODES)), max_size=12))
def test_the_newest_of_each_scope_counts_and_of_both_scopes_the_stricter(log: list[tuple[str | None, str]]) -> None:
    switches = Switches()
    for offset, (scope, mode) in enumerate(log):
        switches.take(Kept(scope, offset, read_switch(said(mode, scope, switch_id=str(offset)), scope)))
    for region in (REGION, OTHER, "a third"):
        newest = {scope: mode for scope, mode in log if scope in (None, region)}
        strictest = min(newest.values(), key=STRICT.__getitem__, default="live")
        found = switches.in_force(region)
        assert ("live" if found is None else found.mode) == strictest
    assert {scope for scope, _ in switches.listed()} == {s for s, mode in dict(log).items() if mode != "live"}


BAD: list[tuple[dict[str, Any], str | None]] = [
    *((said(mode), REGION) for mode in ("", "off", "LIVE", "Live", "release", None, 1, ["live"])),
    *((said("live", **{name: bad}), REGION) for name in ("operator", "reason", "switch_id") for bad in ("", None, 5)),
    *((said("live", **{name: "x" * 501}), REGION) for name in ("operator", "reason", "switch_id", "region")),
    *((said("live", at_ms=bad), REGION) for bad in (None, 5, "now", 1.5, True, unix_ms() * 1000)),
    *(({k: v for k, v in said("live").items() if k != gone}, REGION) for gone in ("mode", "operator", "reason")),
    (said("live", verdict="approve"), REGION),
    (said("live", regions=["north"]), REGION),
    (said("live", region=""), REGION),
    (said("live", OTHER), REGION),
    (said("live", REGION), None),
]


@pytest.mark.parametrize(("bad", "region"), BAD)
def test_what_is_no_switch_for_its_key_is_refused_with_the_place(bad: dict[str, Any], region: str | None) -> None:
    with pytest.raises(BadSwitch, match=r"^\$\."):
        read_switch(bad, region)


def test_a_key_alone_names_the_region() -> None:
    assert read_switch(said("hold"), REGION).mode == "hold"
    assert read_switch(said("hold", REGION), REGION).region == REGION


def test_a_switch_of_a_region_goes_to_its_partition_and_one_of_none_to_all() -> None:
    assert partitions_for(None, [2, 0, 1]) == (0, 1, 2)
    assert partitions_for(REGION, range(PARTITIONS)) == (Rig.partition_of_region(),)


# Owners that come and go: the books, the intake and what it keeps, on a log that the test writes.

Write = tuple[str, Any]


@dataclass
class Log:
    """One partition's `answers`, `controls` and last decision. `begin`: what retention left of `answers`; `kept`: how
    far they had been read when `controls` was written last.
    """

    answers: list[tuple[bytes | None, bytes, str | None]] = field(default_factory=list)  # with the mode of a good one
    begin: int = 0
    kept: int = 0
    controls: list[Outgoing] = field(default_factory=list)
    decided_at: int | None = None  # how far the last decision had read `answers`

    def newest(self, region: str) -> str:
        """The mode that the log asks for."""
        scopes = (None, region.encode())
        modes = {where: mode for where, _, mode in self.answers if mode is not None and where in scopes}
        return min(modes.values(), key=STRICT.__getitem__, default="live")


class Owner:
    """A new owner of the partition: what it knows, as `find_start` and `read_past` would tell it."""

    def __init__(self, log: Log) -> None:
        self.log = log
        partition = Rig.partition_of_region()
        kept = [read_kept(orjson.loads(m.value), partition) for m in log.controls]
        newest = {one.region: one for one in kept if one is not None}
        past = Past(switches=list(newest.values()))
        begin = log.begin if log.decided_at is None else max(log.begin, min(log.decided_at, len(log.answers)))
        self.answers = TopicPartition(NAMES.answers, partition)
        inputs = (NAMES.telemetry, NAMES.outcomes, NAMES.proposals, NAMES.queries)
        positions = {TopicPartition(name, partition): 0 for name in inputs} | {self.answers: begin}
        start = Start(positions, {self.answers: len(log.answers)}, 0, frozenset(), None)
        self.books = Books(partition, range(PARTITIONS), SETTINGS, contracts(), past, start)
        self.outbox: list[Outgoing] = []
        release, tuning = Release(partition, SETTINGS, lambda: T, None), LiveTuning(Tuning.of(SETTINGS))
        self.intake = Intake(self.books, SETTINGS, tuning, lambda: T, release, Counters(), self.outbox, asyncio.Event())
        self.read = begin

    async def read_to(self, end: int) -> None:
        for offset in range(self.read, end):
            message_key, value, _ = self.log.answers[offset]
            message = SimpleNamespace(
                topic=NAMES.answers, partition=self.answers.partition, offset=offset, timestamp=T, key=message_key,
                value=value, headers=(),
            )  # fmt: skip
            self.intake.receive([message], Reached(NAMES.answers, self.answers.partition, offset + 1))
        self.read = max(self.read, end)
        await self.intake.take_in()

    def may_apply(self, region: str) -> bool:
        return self.books.warm and self.books.switches.in_force(region) is None

    def publish(self) -> None:
        """A batch without a decision stands: also of an owner that is not warm yet."""
        self.log.controls += [m for m in self.outbox if m.topic == NAMES.controls]
        self.outbox.clear()
        if self.books.warm:
            self.log.kept = max(self.log.kept, self.read)

    def decide(self) -> None:
        """A batch stands: all that was to be kept, and how far its decision had read."""
        if self.books.warm:
            self.publish()
            self.log.decided_at = self.read


STEPS = st.one_of(
    st.tuples(st.just("write"), SCOPES, st.sampled_from(MODES)),
    st.tuples(st.just("junk"), SCOPES, st.sampled_from([b"{", switch("off"), switch("live", "elsewhere"), b"{}"])),
    st.tuples(st.just("read"), st.integers(1, 4), st.none()),
    st.tuples(st.just("publish"), st.none(), st.none()),
    st.tuples(st.just("decide"), st.none(), st.none()),
    st.tuples(st.just("restart"), st.none(), st.none()),
    st.tuples(st.just("retention"), st.none(), st.none()),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, max_size=30))
@example(  # an owner that has not read all yet again must not keep what is older
    [("write", None, "live"), ("write", None, "hold"), ("read", 2, None), ("publish", None, None),
     ("restart", None, None), ("read", 1, None), ("publish", None, None), ("retention", None, None),
     ("restart", None, None)]
)  # fmt: skip
def test_whatever_is_written_read_lost_and_restarted_nothing_is_released_while_the_newest_switch_is_not_live(
    steps: list[tuple[Any, Any, Any]],
) -> None:
    async def run() -> None:
        log = Log()
        owner = Owner(log)
        for step, one, two in steps:
            if step == "write":
                log.answers.append((key(one), switch(two, one), two))
            elif step == "junk":
                log.answers.append((key(one), two, None))
            elif step == "read":
                await owner.read_to(min(owner.read + one, len(log.answers)))
            elif step == "publish":
                owner.publish()
            elif step == "decide":
                owner.decide()
            elif step == "restart":
                owner = Owner(log)
                await owner.read_to(owner.read)
            elif step == "retention":
                log.begin = log.kept
            seen = Log(log.answers[: owner.read])
            for region in (REGION, OTHER):
                assert owner.may_apply(region) == (owner.books.warm and seen.newest(region) == "live")
        await owner.read_to(len(log.answers))
        for region in (REGION, OTHER):
            assert owner.may_apply(region) == (log.newest(region) == "live")

    asyncio.run(run())


def interim(n: int, sequence: int, *, final: bool, decided_at_ms: int = T, action: str = "ESCALATE") -> Said:
    return Said(
        key=ProposalKey(REGION, f"p{n}"), digest="d", sequence=sequence, attempt=1, final=final, action=action,
        codes=frozenset({"conflict"}), decided_at_ms=decided_at_ms, read=Read(0, 0, 0), resume=Resume(0, 0),
        proposal_offset=n, lease=None, asked=None,
    )  # fmt: skip


def owner_after(*said_before: Said) -> Owner:
    owner = Owner(Log())
    owner.books._take_up(Past(said=list(said_before)))
    return owner


def test_while_one_waits_for_a_person_no_answered_proposal_behind_it_is_decided_twice() -> None:
    """However many were answered since: they are read again by a new owner."""
    many = [interim(n, n, final=True, action="APPLY") for n in range(1, ANSWERED_LIMIT + 50)]
    owner = owner_after(interim(0, 0, final=False), *many)
    assert all(owner.books.known(one.key) == "d" for one in many)
    assert owner.books.known(ProposalKey(REGION, "p0")) is None


@pytest.mark.parametrize("ago_ms", [0, 1_000, OPEN_LIMIT_MS, 10 * OPEN_LIMIT_MS])
@pytest.mark.parametrize("deadline_ms", [None, T + 10 * OPEN_LIMIT_MS])
async def test_a_proposal_that_is_taken_up_again_and_again_does_not_live_for_ever(
    ago_ms: int, deadline_ms: int | None
) -> None:
    owner = owner_after(interim(0, 0, final=False, decided_at_ms=T - ago_ms))
    message = SimpleNamespace(
        topic=NAMES.proposals, partition=owner.answers.partition, offset=0, timestamp=T, key=REGION.encode(),
        value=proposal("p0", deadline_ms=deadline_ms), headers=(),
    )  # fmt: skip
    owner.intake.receive([message], Reached(NAMES.proposals, owner.answers.partition, 1))
    await owner.intake.take_in()
    taken = owner.books.open.first()
    assert taken is not None
    assert taken.escalated_until_ms == T - ago_ms + OPEN_LIMIT_MS
    assert taken.until_ms <= T - ago_ms + OPEN_LIMIT_MS


# On a broker.


async def the_final(rig: Rig, proposal_id: str) -> dict[str, Any]:
    return await rig.wait_for("control", lambda d: d["proposal_id"] == proposal_id and d["final"])


async def put(rig: Rig, mode: str, region: str | None = None, **over: Any) -> Any:
    """Write one to the partition of the region, without a key where the region is None."""
    value = switch(mode, region, **over)
    where = rig.partition_of_region()
    return await rig._producer.send_and_wait(rig.prefix + "answers", value, key=key(region), partition=where)


async def taken(guard: Guard, mode: str | None, region: str = REGION) -> None:
    """Until the guard has read it."""
    books = guard._desks[Rig.partition_of_region()].books
    async with asyncio.timeout(8):
        while getattr(books.switches.in_force(region), "mode", None) != mode:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.005)


def blocking(decision: dict[str, Any]) -> list[str]:
    return [v["code"] for v in decision["violations"] if v["blocking"]]


async def test_under_the_kill_switch_a_proposal_waits_and_its_release_lets_it_through() -> None:
    async with guarded() as (rig, guard):
        await rig.send("telemetry", report("r1", 9))
        await put(rig, "hold")
        await taken(guard, "hold")
        await rig.send("proposals", proposal("p1", deadline_ms=unix_ms() + 60_000))
        held = await rig.decision("p1")
        assert (held["action"], held["final"], blocking(held), held["lease"]) == ("HOLD", False, ["kill_switch"], None)
        assert held["until_ms"] is not None
        DecisionMessage.model_validate(held)
        released = unix_ms()
        await put(rig, "live")
        done = await the_final(rig, "p1")
        assert (done["action"], done["attempt"], done["until_ms"]) == ("APPLY", 2, None)
        assert done["decided_at_ms"] - released < 700, "woken by the switch, not found by the look of every second"


async def test_what_a_guard_kept_that_is_trusted_no_more_still_holds_back_and_never_releases() -> None:
    """The message itself is long gone from `answers`, as after its retention."""
    where = Rig.partition_of_region()
    signers = [Signer.of_seed(bytes([n]) * 32) for n in range(2)]

    async def keep(rig: Rig, mode: str, offset: int, signer: Signer) -> None:
        kept = Kept(None, offset, SwitchMessage.model_validate(said(mode)))
        value = sign_document(kept_document(kept, where), signer)
        await rig._producer.send_and_wait(rig.prefix + "controls", value, key=b'{"switch":null}', partition=where)

    with EmbeddedBroker() as broker:
        rig = Rig(broker.bootstrap_servers)
        await rig.open()
        settings = GuardSettings.embedded(broker.bootstrap_servers, hold_ms=0)
        for number, (mode, offset, signer, held) in enumerate(
            [("hold", 5, 0, True), ("live", 6, 0, True), ("live", 7, 1, False), ("hold", 4, 0, False)]
        ):
            await keep(rig, mode, offset, signers[signer])
            guard = Guard(settings, contracts(), signer=signers[1], trusted=KnownKeys([signers[1].public_key]))
            async with running(guard):
                await rig.send("telemetry", report(f"r{number}", 9))
                await rig.send("proposals", proposal(f"p{number}"))
                assert blocking(await the_final(rig, f"p{number}")) == (["kill_switch"] if held else []), number
        await rig.close()


async def test_under_the_kill_switch_a_proposal_ends_at_hold_ms_and_other_actions_are_what_they_were() -> None:
    async with guarded(hold_ms=200) as (rig, guard):
        await put(rig, "hold")
        await taken(guard, "hold")
        await rig.send("proposals", proposal("cold"))
        assert blocking(await the_final(rig, "cold")) == ["missing"]
        await rig.send("telemetry", report("r1", 9))
        await rig.send("proposals", proposal("p1"))
        done = await the_final(rig, "p1")
        assert (done["action"], blocking(done)) == ("HOLD", ["kill_switch"])
        await rig.send("proposals", proposal("odd", plan=[]))
        assert (await the_final(rig, "odd"))["action"] == "ABSTAIN"


async def test_in_shadow_a_hold_is_final_at_once_and_one_that_waits_ends_when_shadow_comes() -> None:
    async with guarded() as (rig, guard):
        await rig.send("telemetry", report("r1", 9))
        await put(rig, "hold")
        await taken(guard, "hold")
        await rig.send("proposals", proposal("waits", deadline_ms=unix_ms() + 60_000))
        await rig.decision("waits")
        await put(rig, "shadow")
        await rig.send("proposals", proposal("p1", deadline_ms=unix_ms() + 60_000))
        for name, attempt in (("waits", 2), ("p1", 1)):
            done = await the_final(rig, name)
            assert (done["action"], done["attempt"], blocking(done)) == ("HOLD", attempt, ["shadow"])
            assert done["explanation"].startswith("Shadow mode: APPLY would have been released: bandwidth = 8 MHz")
            assert (done["released"], done["lease"], done["until_ms"]) == (None, None, None)


async def test_a_switch_of_a_region_is_for_that_region_alone_and_the_stricter_counts() -> None:
    async with guarded(hold_ms=0) as (rig, guard):
        for region in (REGION, OTHER):
            await rig.send("telemetry", report(f"r/{region}", 9), key=region.encode())

        async def asked(name: str, region: str) -> list[str]:
            await rig.send("proposals", proposal(f"{name}/{region}"), key=region.encode())
            return blocking(await the_final(rig, f"{name}/{region}"))

        await put(rig, "hold", REGION)
        await taken(guard, "hold")
        assert [await asked("one", region) for region in (REGION, OTHER)] == [["kill_switch"], []]
        await put(rig, "shadow")
        await taken(guard, "shadow", OTHER)
        assert [await asked("both", region) for region in (REGION, OTHER)] == [["kill_switch"], ["shadow"]]
        await put(rig, "live", REGION)
        await taken(guard, "shadow")
        assert [await asked("all", region) for region in (REGION, OTHER)] == [["shadow"], ["shadow"]]


async def test_what_is_no_switch_is_a_dead_letter_and_loosens_nothing() -> None:
    async with guarded(hold_ms=0) as (rig, guard):
        await rig.send("telemetry", report("r1", 9))
        await put(rig, "hold")
        await taken(guard, "hold")
        sent = [
            await put(rig, "off"),
            await put(rig, "live", verdict="approve"),
            await put(rig, "live", at_ms=5),
            await rig.send("answers", switch("live", OTHER), key=REGION.encode()),
            await rig._producer.send_and_wait(
                "wirelessops.answers", switch("live"), key=REGION.encode(),
                partition=(rig.partition_of_region() + 1) % PARTITIONS,
            ),
            await rig._producer.send_and_wait(
                "wirelessops.answers", switch("live"), key=b"", partition=rig.partition_of_region()
            ),
        ]  # fmt: skip
        for one in sent:
            assert (await rig.dead_letter(one))["reason"]
        await rig.send("proposals", proposal("p1"))
        assert blocking(await the_final(rig, "p1")) == ["kill_switch"]


async def test_a_message_of_another_kind_without_a_key_stays_a_dead_letter() -> None:
    answer = {"answer_id": "a", "decision_id": "d", "proposal_id": "p", "verdict": "deny", "operator": "alice",
              "reason": "no", "at_ms": unix_ms()}  # fmt: skip
    async with guarded() as (rig, _):
        where = rig.partition_of_region()
        sent = await rig._producer.send_and_wait("wirelessops.answers", orjson.dumps(answer), partition=where)
        assert "no region" in (await rig.dead_letter(sent))["reason"]


async def test_a_switch_outlives_guards_and_counts_where_it_was_set_while_none_ran() -> None:
    with EmbeddedBroker() as broker:
        options = GuardSettings.embedded(broker.bootstrap_servers, hold_ms=0)
        rig = Rig(broker.bootstrap_servers)
        await rig.open()
        try:
            for mode, code in (("shadow", "shadow"), ("hold", "kill_switch"), (None, "kill_switch")):
                if mode is not None:
                    await put(rig, mode)  # no guard runs
                async with running(Guard(options, contracts())):
                    await rig.send("telemetry", report(f"r/{mode}", 9))
                    await rig.send("proposals", proposal(f"p/{mode}"))
                    assert blocking(await the_final(rig, f"p/{mode}")) == [code]
        finally:
            await rig.close()


async def test_a_switch_set_long_before_a_guard_starts_is_read_where_no_decision_says_that_it_was_kept() -> None:
    """An hour later, by a broker that finds times: what is read back otherwise are the last ten minutes."""
    with EmbeddedBroker() as broker:
        rig = Rig(broker.bootstrap_servers)
        await rig.open()
        consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap_servers)
        await consumer.start()
        try:
            first, second = await put(rig, "hold"), await put(rig, "shadow")
            later_ms, where = unix_ms() + 3_600_000, rig.partition_of_region()
            decided = interim(0, 0, final=True)
            for past, offset in (
                (Past(), first.offset),
                (Past(said=[decided]), first.offset),
                (Past(said=[replace(decided, read=Read(0, 0, second.offset))]), second.offset),
                (Past(said=[replace(decided, read=Read(0, 0, 10**6))]), first.offset),  # the topic was made anew
            ):
                start = await find_start(consumer, NAMES, where, past, None, later_ms, 60_000, 60_000, finds_times=True)
                assert start.positions[TopicPartition(NAMES.answers, where)] == offset
                assert start.warm_at[TopicPartition(NAMES.answers, where)] == second.offset + 1
        finally:
            await consumer.stop()
            await rig.close()


async def test_until_ms_proposer_and_contract_are_told_and_what_is_too_long_for_a_message_is_not() -> None:
    async with guarded() as (rig, _):
        now = unix_ms()
        await rig.send("proposals", proposal("p1", deadline_ms=now + 5_000))
        held = await rig.decision("p1")
        assert (held["until_ms"], held["proposer"], held["contract_ref"]) == (now + 5_001, "xapp:test", "test/1")
        for name, over in (("number", {"proposer": 7}), ("long", {"proposer": "x" * 1001, "contract_ref": None})):
            await rig.send("proposals", proposal(name, **over))
            done = await the_final(rig, name)
            assert (done["action"], done["proposer"], done["until_ms"]) == ("ABSTAIN", None, None)
            DecisionMessage.model_validate(done)


async def test_a_switch_is_recorded_and_replayed_to_the_same_bytes_also_where_it_was_set_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "contracts"
    folder.mkdir()
    (folder / "test.json").write_bytes(orjson.dumps(CONTRACT))
    names = [f"wirelessops.{name}" for name in REPLAYED]
    files = [tmp_path / "whole.jsonl.gz", tmp_path / "later.jsonl.gz"]
    async with guarded(signer=Signer.of_seed(bytes(32)), hold_ms=200) as (rig, guard):
        recorders = [Recorder(rig.bootstrap_servers, names, files[0])]
        await recorders[0].start()
        reading = [asyncio.create_task(recorders[0].run())]
        await put(rig, "hold")
        await taken(guard, "hold")
        await rig.send("proposals", proposal("before"))
        await the_final(rig, "before")
        recorders.append(Recorder(rig.bootstrap_servers, names, files[1], whole=("wirelessops.controls",)))
        await recorders[1].start()
        reading.append(asyncio.create_task(recorders[1].run()))
        await rig.send("telemetry", report("r1", 9))
        for number, mode in enumerate(("hold", "shadow", "live")):
            await put(rig, mode)
            await taken(guard, None if mode == "live" else mode)
            await rig.send("proposals", proposal(f"p{number}"))
            await the_final(rig, f"p{number}")
        for recorder in recorders:
            recorder.stop()
        await asyncio.gather(*reading)
    for file in files:
        capsys.readouterr()
        code = replay([file], as_json=True, contracts_dir=folder)
        summary = orjson.loads(capsys.readouterr().out)
        assert (code, summary["differing"]) == (0, []), file.name
        assert summary["live"]["matching"] == summary["live"]["decisions"] > 0


# An escalation waits for a person.

TWO: dict[str, Any] = {
    **CONTRACT,
    "fields": {**CONTRACT["fields"], "cqi": {**CONTRACT["fields"]["cqi"], "sources": ["e2:gnb-1", "rt:north"]}},
}


async def dispute(rig: Rig, event_time_ms: int | None = None) -> None:
    now = unix_ms() if event_time_ms is None else event_time_ms
    for name, value, source in (("one", 3, "e2:gnb-1"), ("two", 12, "rt:north")):
        await rig.send("telemetry", report(name, value, event_time_ms=now, source=source))


async def test_an_escalation_without_a_deadline_waits_for_a_person_longer_than_for_evidence() -> None:
    async with guarded(document=TWO, hold_ms=100) as (rig, _):
        await dispute(rig)
        await rig.send("proposals", proposal("p1"))
        asked = await rig.decision("p1")
        assert (asked["action"], asked["final"]) == ("ESCALATE", False)
        assert asked["until_ms"] - asked["decided_at_ms"] > 500_000
        await rig.send("proposals", proposal("hold", bindings={"cell": "2", "ue": "7"}))
        assert (await the_final(rig, "hold"))["action"] == "HOLD", "evidence is waited for as long as before"
        answer = {"answer_id": "a", "decision_id": asked["decision_id"], "proposal_id": "p1", "verdict": "approve",
                  "operator": "alice", "reason": "seen", "at_ms": unix_ms(), "settles": [
                      {"field": "cqi", "subject": "cell:1/ue:7", "value": 12, "unit": "1",
                       "observations": ["one#0", "two#0"]}]}  # fmt: skip
        await rig.send("answers", orjson.dumps(answer))
        assert (await the_final(rig, "p1"))["action"] == "APPLY"


async def test_an_escalation_that_nobody_answers_ends_as_one_after_its_time() -> None:
    async with guarded(document=TWO, hold_ms=50, escalation_ms=400) as (rig, _):
        await dispute(rig)
        await rig.send("proposals", proposal("p1"))
        first = await rig.decision("p1")
        done = await the_final(rig, "p1")
        assert (done["action"], done["attempt"], done["until_ms"]) == ("ESCALATE", 2, None)
        assert done["decided_at_ms"] >= first["until_ms"]


async def test_an_escalation_that_becomes_a_hold_after_hold_ms_ends() -> None:
    async with guarded(document=TWO, hold_ms=50) as (rig, _):
        await dispute(rig, unix_ms() - 29_000)  # the evidence is stale within a second
        await rig.send("proposals", proposal("p1"))
        assert (await rig.decision("p1"))["action"] == "ESCALATE"
        done = await the_final(rig, "p1")
        assert (done["action"], blocking(done)) == ("HOLD", ["stale", "stale"])


async def test_of_many_that_are_open_only_so_many_wait_for_a_person() -> None:
    async with guarded(document=TWO, hold_ms=300, queue_limit=8) as (rig, guard):
        await dispute(rig)
        for n in range(12):
            await rig.send("proposals", proposal(f"p{n}"))
        book = guard._desks[rig.partition_of_region()].books.open
        async with asyncio.timeout(8):
            while sum(d["final"] for d in rig.decisions()) < 8 or len(book) > 4:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.01)
        assert {d["action"] for d in rig.decisions()} == {"ESCALATE"}


# The command line.


def wirelessops(*arguments: str) -> Callable[[], Any]:
    async def run() -> tuple[int, str, str]:
        command = [sys.executable, "-c", "from streams.cli import main; main()", *arguments]
        process = await asyncio.create_subprocess_exec(*command, stdout=-1, stderr=-1)
        out, err = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()

    return run


async def test_the_command_writes_to_every_partition_or_to_that_of_a_region() -> None:
    async with guarded(hold_ms=0) as (rig, guard):
        base = ("--bootstrap-servers", rig.bootstrap_servers, "--operator", "alice", "--reason", "a storm")
        code, out, err = await wirelessops("switch", "hold", *base)()
        told = orjson.loads(out)
        assert (code, told["partitions"], told["failed"]) == (0, list(range(PARTITIONS)), []), err
        assert (told["switch"]["mode"], told["switch"]["region"]) == ("hold", None)
        await taken(guard, "hold")
        await rig.send("telemetry", report("r1", 9))
        await rig.send("proposals", proposal("p1"))
        assert blocking(await the_final(rig, "p1")) == ["kill_switch"]
        code, out, err = await wirelessops("switch", "shadow", "--region", OTHER, *base)()
        assert (code, orjson.loads(out)["partitions"]) == (0, [rig.partition_of_region()]), err


@pytest.mark.parametrize("bad", [{"mode": "hodl"}, {"reason": ""}, {"operator": "x" * 101}, {"region": ""},
                                 {"prefix": "a b"}, {"kafka_config": Path("/no/such")}])  # fmt: skip
def test_a_bad_option_is_told_and_nothing_is_written(bad: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    options = {"operator": "alice", "reason": "a storm", "region": None, "prefix": "wirelessops.", "kafka_config": None}
    code = write_by_command("nowhere:1", **{"mode": "hold", **options, **bad})
    said_to = capsys.readouterr()
    assert (code, said_to.out) == (2, "")
    assert said_to.err


async def test_a_switch_that_no_broker_takes_is_told_as_failed_in_time() -> None:
    with EmbeddedBroker() as broker:
        rig = Rig(broker.bootstrap_servers)
        await rig.open()
        message = SwitchMessage.model_validate(said("hold"))
        written = await write_switch(rig._producer, NAMES, range(PARTITIONS), message)
        assert (written.partitions, written.failed, written.why) == ((0, 1, 2, 3), (), None)
    try:
        began = asyncio.get_running_loop().time()
        written = await write_switch(rig._producer, NAMES, range(PARTITIONS), message, timeout_s=0.5)
        assert (written.partitions, written.failed) == ((), (0, 1, 2, 3))
        assert written.why
        assert asyncio.get_running_loop().time() - began < 3
    finally:
        await stop_all(rig.close(), timeout_s=0.5)
