"""The client any xApp can use."""

from __future__ import annotations

import asyncio

import pytest
from guard_rig import guarded, report
from web_rig import TWO_SOURCES

from streams.broker import EmbeddedBroker
from streams.client import GuardClient, NoAnswer, QueryRefused
from streams.guard import unix_ms

ASKED = {
    "contract_ref": "test/1",
    "bindings": {"cell": "1", "ue": "7"},
    "control_key": "cell:1/ue:7/prb",
    "plan": {"bandwidth": {"value": 8, "unit": "MHz"}},
}


async def test_proposing_gives_the_decision_on_the_evidence_sent_before() -> None:
    async with guarded() as (rig, _), GuardClient(rig.bootstrap_servers, region="north", name="xapp:slicer") as guard:
        await rig.send("telemetry", report("r1", 9))
        decision = await guard.propose(**ASKED)
        assert decision["action"] == "APPLY"
        assert decision["used"] == {"cqi": ["r1#0"]}


async def test_concurrent_proposals_each_get_their_own_answer() -> None:
    async with guarded() as (rig, _), GuardClient(rig.bootstrap_servers, region="north", name="xapp:slicer") as guard:
        ids = [f"p{n}" for n in range(50)]
        found = await asyncio.gather(*(guard.propose(**ASKED, proposal_id=proposal_id) for proposal_id in ids))
        assert [decision["proposal_id"] for decision in found] == ids


async def test_no_guard_gives_a_clear_timeout_and_the_client_still_closes() -> None:
    with EmbeddedBroker() as broker:
        async with GuardClient(broker.bootstrap_servers, region="north", name="xapp:slicer") as guard:
            with pytest.raises(NoAnswer, match=r"p1 within 0\.2 s"):
                await guard.propose(**ASKED, proposal_id="p1", timeout_s=0.2)


async def test_without_an_answer_it_says_what_the_guard_said_last() -> None:
    async with (
        guarded(document=TWO_SOURCES) as (rig, _),
        GuardClient(rig.bootstrap_servers, region="north", name="xapp:slicer") as guard,
    ):
        with pytest.raises(NoAnswer, match=r"HOLD, waits until \d{4}-\S+: .*missing.*cqi") as refused:
            await guard.propose(**ASKED, deadline_ms=unix_ms() + 60_000, timeout_s=1.0)
        assert refused.value.interim is not None
        assert refused.value.interim["action"] == "HOLD"
        for value, source in ((3, "e2:gnb-1"), (12, "rt:north")):
            await rig.send("telemetry", report(f"r/{source}", value, source=source))
        with pytest.raises(NoAnswer, match=r"ESCALATE, waits for a person until \S+: conflict of cqi"):
            await guard.propose(**ASKED, timeout_s=1.0)


async def test_views_and_as_of_reads() -> None:
    async with guarded() as (rig, _), GuardClient(rig.bootstrap_servers, region="north", name="xapp:slicer") as guard:
        await rig.send("telemetry", report("r1", 9))
        assert [o["value"] for o in await guard.as_of(name="cqi", subject="cell:1/ue:7")] == [9]
        assert await guard.view(contract_ref="test/1", bindings={"cell": "1", "ue": "7"})
        with pytest.raises(QueryRefused, match="none/1"):
            await guard.view(contract_ref="none/1")


async def test_a_client_that_is_not_open_says_so() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        await GuardClient("127.0.0.1:1", region="north", name="xapp:slicer").propose(**ASKED)


async def test_no_kafka_is_an_error_within_the_bound() -> None:
    client = GuardClient("127.0.0.1:1", region="north", name="xapp:slicer", connect_timeout_s=2)
    with pytest.raises(Exception, match=r"127\.0\.0\.1"):
        async with client:
            pass
