"""The loop closes: what a decision that is not final waits for, and the one final decision every proposal ends in."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import orjson
import pytest
from guard_rig import CONTRACT, REGION, Rig, contracts, guarded, proposal, report, running

from streams.broker import EmbeddedBroker
from streams.deciding import RegionState
from streams.guard import Guard, unix_ms
from streams.messages import OutcomeMessage
from streams.settings import GuardSettings

FAR_MS = 60_000
BANDWIDTH = {"value": 8, "unit": "MHz"}

TWO_SOURCES: dict[str, Any] = {
    **CONTRACT,
    "fields": {**CONTRACT["fields"], "cqi": {**CONTRACT["fields"]["cqi"], "sources": ["e2:gnb-1", "rt:north"]}},
}
LEASED: dict[str, Any] = {**CONTRACT, "control": {"key": "cell:{cell}/ue:{ue}/prb", "lease_ms": 5_000}}


def controlled(**control: Any) -> dict[str, Any]:
    return {**CONTRACT, "control": {"key": "cell:{cell}/ue:{ue}/prb", **control}}


def soon(ms: int = FAR_MS) -> int:
    return unix_ms() + ms


def outage(left: int = 2, after_ms: int = 50, source: str = "e2:gnb-1") -> bytes:
    return orjson.dumps(
        {
            "format": "wirelessops.source-status/1",
            "source": source,
            "status": "outage",
            "retryable": True,
            "retry_after_ms": after_ms,
            "retries_left": left,
            "event_time_ms": unix_ms() - 5,
        }
    )


async def final(rig: Rig, proposal_id: str) -> dict[str, Any]:
    return await rig.wait_for("control", lambda d: d["proposal_id"] == proposal_id and d["final"])


async def outcome(rig: Rig, decision: dict[str, Any], kind: str, at_ms: int | None = None) -> None:
    message = OutcomeMessage.model_validate(
        {
            "decision_id": decision["decision_id"],
            "proposal_id": decision["proposal_id"],
            "outcome": kind,
            "at_ms": unix_ms() if at_ms is None else at_ms,
        }
    )
    await rig.send("outcomes", message.model_dump_json().encode())


def the_way(rig: Rig, proposal_id: str) -> list[tuple[str, int, bool]]:
    return [(d["action"], d["attempt"], d["final"]) for d in rig.decisions(proposal_id)]


async def test_a_hold_is_decided_again_when_the_missing_evidence_arrives() -> None:
    async with guarded() as (rig, _):
        await rig.send("proposals", proposal("p1", deadline_ms=soon()))
        assert (await rig.decision("p1"))["final"] is False
        await rig.send("telemetry", report("r1", 9))
        assert (await final(rig, "p1"))["used"] == {"cqi": ["r1#0"]}
        assert the_way(rig, "p1") == [("HOLD", 1, False), ("APPLY", 2, True)]


async def test_evidence_that_does_not_touch_what_is_missing_publishes_nothing() -> None:
    async with guarded() as (rig, _):
        await rig.send("proposals", proposal("p1", deadline_ms=soon()))
        await rig.decision("p1")
        await rig.send("telemetry", report("other", 9, subject="cell:1/ue:8"))
        await rig.send("telemetry", report("r1", 9))
        await final(rig, "p1")
        assert the_way(rig, "p1") == [("HOLD", 1, False), ("APPLY", 2, True)]


async def test_a_deadline_that_passes_ends_a_hold_as_expired() -> None:
    async with guarded() as (rig, _):
        await rig.send("proposals", proposal("p1", deadline_ms=soon(300)))
        decision = await final(rig, "p1")
        assert next(v["code"] for v in decision["violations"] if v["blocking"]) == "expired"
        assert the_way(rig, "p1") == [("HOLD", 1, False), ("ABSTAIN", 2, True)]
        assert decision["decided_at_ms"] > orjson.loads(proposal("x", deadline_ms=0))["deadline_ms"]


async def test_without_a_deadline_a_hold_ends_as_one_after_its_time() -> None:
    async with guarded(hold_ms=200) as (rig, _):
        await rig.send("proposals", proposal("p1"))
        await final(rig, "p1")
        assert the_way(rig, "p1") == [("HOLD", 1, False), ("HOLD", 2, True)]


async def test_a_retry_asks_once_for_all_who_wait_and_is_decided_again_when_the_answer_comes() -> None:
    async with guarded() as (rig, _):
        await rig.send("telemetry", outage(after_ms=60_000))
        for n in range(5):
            await rig.send("proposals", proposal(f"p{n}", deadline_ms=soon(600_000)))
            assert (await rig.decision(f"p{n}"))["action"] == "RETRY"
        await rig.send("telemetry", report("answer", 9))
        for n in range(5):
            assert (await final(rig, f"p{n}"))["action"] == "APPLY"
        assert len(rig.written["requests"]) == 1


async def test_requests_are_bounded_by_what_the_source_allows_and_their_back_off_doubles() -> None:
    async with guarded(retry_budget_per_s=1_000) as (rig, _):
        await rig.send("telemetry", outage(left=3, after_ms=20))
        await rig.send("proposals", proposal("p1", deadline_ms=soon()))
        decision = await final(rig, "p1")
        assert decision["action"] == "ABSTAIN"
        requests = [orjson.loads(message.value) for message in rig.written["requests"]]
        assert [request["after_ms"] for request in requests] == [20, 40, 80]
        assert [request["left"] for request in requests] == [3, 2, 1]
        assert len({request["request_id"] for request in requests}) == 3
        attempts = [d["attempt"] for d in rig.decisions("p1")]
        assert attempts == list(range(1, len(attempts) + 1))
        for before, after in pairwise(requests):
            assert after["issued_at_ms"] >= before["issued_at_ms"] + before["after_ms"]


async def escalated(rig: Rig, proposal_id: str = "p1", **over: Any) -> dict[str, Any]:
    now = unix_ms()
    for name, value, source in (("one", 3, "e2:gnb-1"), ("two", 12, "rt:north")):
        identity = name if proposal_id == "p1" else f"{name}/{proposal_id}"
        await rig.send("telemetry", report(identity, value, event_time_ms=now, source=source))
    await rig.send("proposals", proposal(proposal_id, **{"deadline_ms": soon(), **over}))
    decision = await rig.decision(proposal_id)
    assert (decision["action"], decision["final"]) == ("ESCALATE", False)
    return decision


def answer(decision: dict[str, Any], verdict: str, **over: Any) -> bytes:
    document = {
        "format": "wirelessops.answer/1",
        "answer_id": f"a/{decision['proposal_id']}",
        "decision_id": decision["decision_id"],
        "proposal_id": decision["proposal_id"],
        "verdict": verdict,
        "operator": "alice",
        "reason": "the drive test agrees with the second source",
        "at_ms": unix_ms(),
        "settles": [],
        **over,
    }
    return orjson.dumps(document)


def settled(value: float, observations: list[str]) -> list[dict[str, Any]]:
    return [{"field": "cqi", "subject": "cell:1/ue:7", "value": value, "unit": "1", "observations": observations}]


async def test_an_operator_settles_the_conflict_that_the_answer_names() -> None:
    async with guarded(document=TWO_SOURCES) as (rig, guard):
        decision = await escalated(rig)
        await rig.send("answers", answer(decision, "approve", settles=settled(12, ["one#0", "two#0"])))
        done = await final(rig, "p1")
        assert (done["action"], done["attempt"]) == ("APPLY", 2)
        assert done["used"]["cqi"][0] not in ("one#0", "two#0")
        assert guard.stats()["answers"] == {"approve": 1}


@pytest.mark.parametrize(("later", "action"), [((3, 12), "APPLY"), ((3, 14), "ABSTAIN")])
async def test_an_answer_holds_while_the_sources_repeat_their_dispute_and_not_when_it_is_another(
    later: tuple[int, int], action: str
) -> None:
    async with guarded(document=TWO_SOURCES) as (rig, _):
        decision = await escalated(rig)
        named = [o for v in decision["violations"] if v["blocking"] for o in v["observations"]]
        for n, (value, source) in enumerate(zip(later, ("e2:gnb-1", "rt:north"), strict=True)):
            await rig.send("telemetry", report(f"later-{n}", value, source=source))
        await rig.ask(kind="as_of", query_id="q", name="cqi", subject="cell:1/ue:7")  # the reports are taken in
        await rig.send("answers", answer(decision, "approve", settles=settled(12, named)))
        if action == "ABSTAIN":
            await rig.send("answers", answer(decision, "deny", answer_id="late"))
        assert (await final(rig, "p1"))["action"] == action


async def test_an_answer_serves_who_proposes_after_it_while_it_is_fresh_and_the_dispute_the_same() -> None:
    async with guarded(document=TWO_SOURCES) as (rig, _):
        decision = await escalated(rig)
        await rig.send("answers", answer(decision, "approve", settles=settled(12, ["one#0", "two#0"])))
        assert (await final(rig, "p1"))["action"] == "APPLY"
        for n, (value, source) in enumerate(((3, "e2:gnb-1"), (12, "rt:north"))):
            await rig.send("telemetry", report(f"later-{n}", value, source=source))
        await rig.send("proposals", proposal("p2", deadline_ms=soon()))
        assert (await final(rig, "p2"))["action"] == "APPLY"


async def test_an_answer_holds_though_the_guard_keeps_no_report_that_the_operator_looked_at() -> None:
    async with guarded(document=TWO_SOURCES, history_count=1) as (rig, _):
        decision = await escalated(rig)
        for n, (value, source) in enumerate(((3, "e2:gnb-1"), (12, "rt:north"))):
            await rig.send("telemetry", report(f"repeated-{n}", value, source=source))
        view = await rig.ask(kind="as_of", query_id="q", name="cqi", subject="cell:1/ue:7")
        assert {o["id"] for o in view["observations"]} == {"repeated-0#0", "repeated-1#0"}
        seen = [
            {"id": f"{name}#0", "source": source, "name": "cqi", "subject": "cell:1/ue:7", "value": value, "unit": "1"}
            for name, source, value in (("one", "e2:gnb-1", 3), ("two", "rt:north", 12))
        ]
        unseen = settled(12, ["one#0", "two#0"])
        await rig.send("answers", answer(decision, "approve", answer_id="unseen", settles=unseen))
        again = await rig.wait_for("control", lambda d: d["attempt"] == 2)
        assert again["action"] == "ESCALATE", "nothing says what the dispute was: unknown never permits"
        await rig.send("answers", answer(decision, "approve", settles=[{**unseen[0], "seen": seen}]))
        assert (await final(rig, "p1"))["action"] == "APPLY"


async def test_a_person_may_take_longer_than_evidence_is_kept() -> None:
    """70 s after the dispute, where the store keeps 60 s: `history_ms` and `escalation_ms` need no relation."""
    began_ms, ahead_ms = unix_ms() - 70_000, -70_000
    sources = (("e2:gnb-1", 3), ("rt:north", 12))
    async with guarded(lambda: unix_ms() + ahead_ms, TWO_SOURCES, hold_ms=10_000) as (rig, guard):
        assert guard.settings.history_ms == 60_000
        for source, value in sources:
            old = report(f"old/{source}", value, began_ms, source=source)
            await rig.send("telemetry", old, timestamp_ms=began_ms)
        await rig.send("proposals", proposal("p1", created_at_ms=began_ms), timestamp_ms=began_ms)
        decision = await rig.decision("p1")
        assert (decision["action"], decision["final"]) == ("ESCALATE", False)
        for source, value in sources:
            await rig.send("telemetry", report(f"new/{source}", value, source=source))
        ahead_ms = 0
        view = await rig.ask(kind="as_of", query_id="q", name="cqi", subject="cell:1/ue:7")
        assert {o["id"] for o in view["observations"]} == {f"new/{source}#0" for source, _ in sources}
        looked = [
            {"id": f"old/{source}#0", "source": source, "name": "cqi", "subject": "cell:1/ue:7", "value": value,
             "unit": "1"}
            for source, value in sources
        ]  # fmt: skip
        said = settled(12, [each["id"] for each in looked])[0]
        await rig.send("answers", answer(decision, "approve", settles=[{**said, "seen": looked}]))
        assert (await final(rig, "p1"))["action"] == "APPLY"


async def test_an_answer_settles_nothing_that_it_does_not_name() -> None:
    async with guarded(document=TWO_SOURCES) as (rig, _):
        decision = await escalated(rig)
        await rig.send("answers", answer(decision, "approve", settles=settled(12, ["one#0"])))
        again = await rig.wait_for("control", lambda d: (d["proposal_id"], d["attempt"]) == ("p1", 2))
        assert (again["action"], again["final"]) == ("ESCALATE", False), "who answers hears what came of it"
        await rig.send("answers", answer(decision, "deny", answer_id="later"))
        assert (await final(rig, "p1"))["action"] == "ABSTAIN"
        assert "APPLY" not in [d["action"] for d in rig.decisions("p1")]


async def test_a_denial_ends_the_proposal() -> None:
    async with guarded(document=TWO_SOURCES) as (rig, _):
        decision = await escalated(rig)
        await rig.send("answers", answer(decision, "deny"))
        done = await final(rig, "p1")
        assert done["action"] == "ABSTAIN"
        assert "denied" in [v["code"] for v in done["violations"]]
        await rig.send("proposals", proposal("p2", deadline_ms=soon()))
        assert (await rig.decision("p2"))["action"] == "ESCALATE"


async def test_evidence_that_is_late_for_a_moment_takes_no_proposal_from_a_person() -> None:
    ahead_ms = 0
    async with guarded(lambda: unix_ms() + ahead_ms, TWO_SOURCES, hold_ms=5_000) as (rig, _):
        decision = await escalated(rig, deadline_ms=None)
        ahead_ms = 28_000  # hold_ms is long over; the evidence is fresh for 30 s
        await rig.send("answers", answer(decision, "approve", settles=settled(12, ["one#0"])))
        await rig.wait_for("control", lambda d: d["attempt"] == 2)
        ahead_ms = 36_000  # nobody looked for longer than hold_ms, as on a machine that is busy
        held = await rig.wait_for("control", lambda d: d["attempt"] == 3)
        assert (held["action"], held["final"]) == ("HOLD", False)
        assert held["until_ms"] > held["decided_at_ms"]
        await rig.send("answers", answer(decision, "deny", answer_id="later"))
        assert (await final(rig, "p1"))["action"] == "ABSTAIN"


async def test_what_was_escalated_ends_as_what_it_became_where_it_stays_that() -> None:
    ahead_ms = 0
    async with guarded(lambda: unix_ms() + ahead_ms, TWO_SOURCES, hold_ms=200) as (rig, _):
        await escalated(rig, deadline_ms=None)
        ahead_ms = 31_000
        assert (await final(rig, "p1"))["action"] == "HOLD"


async def test_telemetry_cannot_speak_as_an_operator() -> None:
    async with guarded(document=TWO_SOURCES) as (rig, _):
        decision = await escalated(rig)
        measurement = {
            "name": "cqi",
            "value": 12,
            "unit": "1",
            "origin": "operator",
            "parents": ["one#0", "two#0"],
        }
        sent = await rig.send("telemetry", report("forged", 0, source="operator:eve", measurements=[measurement]))
        assert "origin" in (await rig.dead_letter(sent))["reason"]
        await rig.send("answers", answer(decision, "deny"))
        assert (await final(rig, "p1"))["action"] == "ABSTAIN"


@pytest.mark.parametrize("bad", [b"{", None, b"{}", orjson.dumps({"verdict": "maybe"})])
@pytest.mark.parametrize("topic", ["answers", "outcomes"])
async def test_bad_answers_and_outcomes_are_dead_letters(topic: str, bad: bytes | None) -> None:
    async with guarded() as (rig, _):
        assert (await rig.dead_letter(await rig.send(topic, bad)))["reason"]
        await rig.send("telemetry", report("r1", 9))
        await rig.send("proposals", proposal("p1"))
        assert (await rig.decision("p1"))["action"] == "APPLY"


async def test_a_lease_holds_back_another_value_and_its_end_lets_it_through() -> None:
    async with guarded(document=controlled(lease_ms=400)) as (rig, _):
        await rig.send("telemetry", report("r1", 9))
        await rig.send("proposals", proposal("first", deadline_ms=soon()))
        granted = await final(rig, "first")
        assert granted["lease"]["values"] == {"bandwidth": BANDWIDTH}
        await rig.send("proposals", proposal("same", deadline_ms=soon(), proposer="xapp:other"))
        assert (await final(rig, "same"))["lease"]["merged_with"] == "first"
        other = {"bandwidth": {"value": 5, "unit": "MHz"}}
        await rig.send("proposals", proposal("other", deadline_ms=soon(), plan=other))
        held = await rig.decision("other")
        assert (held["action"], held["final"]) == ("HOLD", False)
        assert [v["code"] for v in held["violations"] if v["blocking"]] == ["lease_conflict"]
        done = await final(rig, "other")
        assert done["action"] == "APPLY"
        assert done["decided_at_ms"] > granted["lease"]["lease_until_ms"]


async def test_two_values_for_one_key_in_one_batch_are_never_both_applied() -> None:
    async with guarded(document=LEASED) as (rig, _):
        await rig.send("telemetry", report("r1", 9))
        plans = [{"bandwidth": {"value": 5 + n % 7, "unit": "MHz"}} for n in range(40)]
        sends = [
            rig.send("proposals", proposal(f"p{n}", plan=plan, deadline_ms=soon(2_500))) for n, plan in enumerate(plans)
        ]
        await asyncio.gather(*sends)
        values = set()
        for n in range(40):
            decision = await final(rig, f"p{n}")
            if decision["action"] == "APPLY":
                values.add(decision["released"]["bandwidth"]["value"])
        assert len(values) == 1


async def test_a_refused_control_ends_its_lease_at_once() -> None:
    async with guarded(document=LEASED) as (rig, _):
        await rig.send("telemetry", report("r1", 9))
        await rig.send("proposals", proposal("first", deadline_ms=soon()))
        granted = await final(rig, "first")
        other = {"bandwidth": {"value": 5, "unit": "MHz"}}
        await rig.send("proposals", proposal("other", deadline_ms=soon(), plan=other))
        assert (await rig.decision("other"))["action"] == "HOLD"
        await outcome(rig, granted, "refused")
        assert (await final(rig, "other"))["action"] == "APPLY"


async def test_no_acknowledgement_is_told_and_so_are_an_effect_and_its_absence() -> None:
    effect = {"expr": "cqi >= 10", "within_ms": 1_500}
    document = controlled(ack_ms=1_500, effect=effect)
    async with guarded(document=document) as (rig, _):
        await rig.send("telemetry", report("r1", 9))
        said = {}
        for name in ("shown", "not shown", "silent"):
            await rig.send("proposals", proposal(name, deadline_ms=soon()))
            said[name] = await final(rig, name)
            assert said[name]["action"] == "APPLY"
            if name != "silent":
                await outcome(rig, said[name], "applied", unix_ms() - 5)
            if name == "shown":
                await rig.send("telemetry", report("better", 12))
                await rig.wait_for("outcomes", lambda o: o["outcome"] == "effect")
                await rig.send("telemetry", report("worse", 3))
        for name, kind in (("silent", "unacknowledged"), ("shown", "effect"), ("not shown", "no_effect")):
            told = await rig.wait_for(
                "outcomes",
                lambda o, name=name, kind=kind: (o["proposal_id"], o["outcome"]) == (name, kind),
            )
            assert told["decision_id"] == said[name]["decision_id"]
        kinds = [orjson.loads(message.value)["outcome"] for message in rig.written["outcomes"]]
        assert kinds.count("unacknowledged") == 1


async def test_leases_requests_and_open_proposals_survive_the_guard() -> None:
    with EmbeddedBroker() as broker:
        settings = GuardSettings.embedded(broker.bootstrap_servers)
        rig = Rig(broker.bootstrap_servers)
        other = {"bandwidth": {"value": 5, "unit": "MHz"}}
        async with running(Guard(settings, contracts(LEASED))):
            await rig.open()
            await rig.send("telemetry", report("r1", 9))
            await rig.send("proposals", proposal("first", deadline_ms=soon()))
            granted = await final(rig, "first")
            await rig.send("proposals", proposal("dark", deadline_ms=soon(), bindings={"cell": "1", "ue": "8"},
                                                 control_key="cell:1/ue:8/prb"))  # fmt: skip
            assert (await rig.decision("dark"))["action"] == "HOLD"
        async with running(Guard(settings, contracts(LEASED))):
            await rig.send("proposals", proposal("other", deadline_ms=soon(), plan=other))
            held = await rig.decision("other")
            assert [v["code"] for v in held["violations"] if v["blocking"]] == ["lease_conflict"]
            assert held["decided_at_ms"] <= granted["lease"]["lease_until_ms"]
            await rig.send("telemetry", report("r2", 9, subject="cell:1/ue:8"))
            await final(rig, "dark")
            assert the_way(rig, "dark") == [("HOLD", 1, False), ("APPLY", 2, True)]
        sequences = [d["sequence"] for d in rig.decisions()]
        assert sequences == list(range(len(sequences)))
        await rig.close()


async def test_every_proposal_of_a_crowd_gets_one_final_decision_whatever_the_queue() -> None:
    async with guarded(queue_limit=10, hold_ms=300) as (rig, _):
        await rig.send("telemetry", report("r1", 9))
        kinds = [{}, {"bindings": {"cell": "1", "ue": "9"}}, {"plan": {"bandwidth": {"value": 99, "unit": "MHz"}}}]
        await asyncio.gather(
            *(
                rig.send("proposals", proposal(f"p{n}", deadline_ms=soon(400) if n % 2 else None, **kinds[n % 3]))
                for n in range(300)
            )
        )
        for n in range(300):
            await final(rig, f"p{n}")
        finals = [d["proposal_id"] for d in rig.decisions() if d["final"]]
        assert len(finals) == len(set(finals)) == 300
        assert REGION in {d["region"] for d in rig.decisions()}


async def test_under_overload_what_is_in_time_is_released_and_what_is_late_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each decision costs 20 ms of a clock that nothing else moves; deadlines come in no order."""
    now_ms = unix_ms()
    decide = RegionState.decide

    def slow(*given: Any) -> Any:
        nonlocal now_ms
        now_ms += 20
        return decide(*given)

    async with guarded(lambda: now_ms) as (rig, _):
        await rig.send("telemetry", report("r1", 9, event_time_ms=now_ms), timestamp_ms=now_ms)
        await rig.send("proposals", proposal("first", created_at_ms=now_ms))
        await rig.decision("first")
        monkeypatch.setattr(RegionState, "decide", slow)
        start_ms = now_ms
        deadlines = {f"p{n}": start_ms + 1 + 20 * ((n * 37) % 400) for n in range(400)}
        await asyncio.gather(
            *(
                rig.send("proposals", proposal(name, created_at_ms=start_ms, deadline_ms=deadline))
                for name, deadline in deadlines.items()
            )
        )
        decisions = {name: await final(rig, name) for name in deadlines}
    in_time = {name for name, d in decisions.items() if d["action"] == "APPLY"}
    assert len(in_time) > 100
    assert all(decisions[name]["decided_at_ms"] <= deadlines[name] for name in in_time)
    for name in decisions.keys() - in_time:
        assert decisions[name]["action"] == "ABSTAIN"
        assert "expired" in [v["code"] for v in decisions[name]["violations"]]
        assert decisions[name]["decided_at_ms"] > deadlines[name]


async def test_a_guard_whose_broker_is_gone_says_that_it_is_not_ready() -> None:
    broker = EmbeddedBroker().start()
    async with running(Guard(GuardSettings.embedded(broker.bootstrap_servers, stop_timeout_s=2), contracts())) as _:
        pass
    guard = Guard(GuardSettings.embedded(broker.bootstrap_servers, stop_timeout_s=2), contracts())
    async with running(guard):
        assert guard.ready
        broker.stop()
        async with asyncio.timeout(15):
            while guard.ready:  # noqa: ASYNC110 - readiness is asked for, it tells nobody
                await asyncio.sleep(0.05)
        assert "nothing was read" in str(guard.why_not_ready())


async def test_a_source_is_not_asked_again_for_a_restart_of_the_guard() -> None:
    """It sends nothing, so nothing that comes after the restart could tell that it was asked."""
    with EmbeddedBroker() as broker:
        settings = GuardSettings.embedded(broker.bootstrap_servers)
        rig = Rig(broker.bootstrap_servers)
        for run in range(3):
            async with running(Guard(settings, contracts())):
                if run == 0:
                    await rig.open()
                    await rig.send("telemetry", outage(left=1, after_ms=60_000))
                await rig.send("proposals", proposal(f"p{run}", deadline_ms=soon(600_000)))
                decision = await rig.decision(f"p{run}")
                assert (decision["action"], decision["retry"]["left"]) == ("RETRY", 1)
        assert len(rig.written["requests"]) == 1
        await rig.close()


async def test_an_id_too_long_to_refer_to_is_a_dead_letter_and_the_partition_goes_on() -> None:
    async with guarded() as (rig, _):
        await rig.send("telemetry", report("r1", 9))
        longest, too_long = "x" * 1_000, "x" * 400_000
        letter = await rig.dead_letter(await rig.send("proposals", proposal(too_long)))
        assert "proposal_id" in letter["reason"]
        await rig.send("proposals", proposal(longest))
        assert (await rig.decision(longest))["action"] == "APPLY"


async def test_strange_keys_of_what_cannot_be_read_leave_nothing_behind() -> None:
    async with guarded() as (rig, guard):
        for n in range(50):
            for topic in ("telemetry", "outcomes", "answers"):
                await rig.send(topic, b"{", key=f"strange-{n}".encode())
        last = await rig.send("telemetry", b"{")
        await rig.dead_letter(last)
        assert guard.stats()["regions"] == {}


async def test_what_was_asked_before_the_clock_was_set_back_keeps_nobody_waiting_for_an_hour() -> None:
    now_ms = unix_ms()
    async with guarded(lambda: now_ms, hold_ms=300) as (rig, _):
        status = orjson.loads(outage(left=2, after_ms=50))
        await rig.send("telemetry", orjson.dumps({**status, "event_time_ms": now_ms - 10}), timestamp_ms=now_ms - 5)
        await rig.send("proposals", proposal("before", created_at_ms=now_ms, deadline_ms=now_ms + 60_000))
        assert (await rig.decision("before"))["asked"]["count"] == 1
        now_ms -= 3_600_000
        later = {**status, "event_time_ms": now_ms - 10}
        await rig.send("telemetry", orjson.dumps(later), timestamp_ms=now_ms - 5)
        await rig.send("proposals", proposal("after", created_at_ms=now_ms))
        decision = await rig.decision("after")
        assert decision["final"] is False, "it may wait for as long as it could have"
