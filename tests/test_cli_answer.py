"""`wirelessops answer`: what a person says from a shell, and what it refuses to say."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from guard_rig import REGION, guarded, proposal, report
from typer.testing import CliRunner, Result
from web_rig import TWO_SOURCES, repeat_the_dispute

from streams.cli import app
from streams.guard import unix_ms


async def types(bootstrap_servers: str, proposal_id: str, verdict: str, *options: str) -> Result:
    """The command, in a thread: the guard goes on."""
    words = ["answer", proposal_id, verdict, "--bootstrap-servers", bootstrap_servers, "--region", REGION,
             "--operator", "alice", "--reason", "maintenance", *options]  # fmt: skip
    return await asyncio.to_thread(CliRunner().invoke, app, words)


async def escalated(rig: Any, proposal_id: str, **over: Any) -> dict[str, Any]:
    now_ms = unix_ms()
    for value, source in ((3, "e2:gnb-1"), (12, "rt:north")):
        await rig.send("telemetry", report(f"{proposal_id}/{source}", value, now_ms, source=source))
    await rig.send("proposals", proposal(proposal_id, **over))
    said: dict[str, Any] = await rig.decision(proposal_id)
    assert (said["action"], said["final"]) == ("ESCALATE", False)
    return said


async def test_without_a_value_it_lists_what_is_disputed_and_with_one_the_guard_decides() -> None:
    async with guarded(document=TWO_SOURCES) as (rig, _):
        said = await escalated(rig, "p1")
        assert "e2:gnb-1 says 3, rt:north says 12" in said["explanation"]
        asked = await types(rig.bootstrap_servers, "p1", "approve")
        assert (asked.exit_code, asked.stdout) == (1, "")
        assert "3 1 from e2:gnb-1" in asked.stderr
        given = await types(rig.bootstrap_servers, "p1", "approve", "--settle", "cqi=12")
        assert (given.exit_code, given.stderr) == (0, "")
        written = orjson.loads(given.stdout)
        assert (written["decision_id"], written["operator"]) == (said["decision_id"], "alice")
        done = await rig.wait_for("control", lambda d: d["proposal_id"] == "p1" and d["final"])
        assert (done["action"], done["used"]["cqi"]) == ("APPLY", [f"answer/{written['answer_id']}#1"])


async def test_an_approval_holds_though_the_guard_keeps_no_report_that_was_looked_at() -> None:
    async with guarded(document=TWO_SOURCES, history_count=1) as (rig, _):
        await escalated(rig, "p1")
        await repeat_the_dispute(rig)
        given = await types(rig.bootstrap_servers, "p1", "approve", "--settle", "cqi=12")
        assert (given.exit_code, given.stderr) == (0, "")
        seen = {o["id"]: o["value"] for o in orjson.loads(given.stdout)["settles"][0]["seen"]}
        assert seen == {"p1/e2:gnb-1#0": 3, "p1/rt:north#0": 12}
        done = await rig.wait_for("control", lambda d: d["proposal_id"] == "p1" and d["final"])
        assert done["action"] == "APPLY"


async def test_what_has_its_final_decision_is_not_answered_and_that_decision_is_said() -> None:
    async with guarded(document=TWO_SOURCES, escalation_ms=300) as (rig, _):
        await escalated(rig, "p1")
        done = await rig.wait_for("control", lambda d: d["proposal_id"] == "p1" and d["final"])
        assert done["action"] == "ESCALATE", "what ends unanswered ends as what it is"
        asked = await types(rig.bootstrap_servers, "p1", "deny")
        assert (asked.exit_code, asked.stdout) == (1, "")
        assert f"final decision is ESCALATE: {done['explanation']}" in asked.stderr
        unknown = await types(rig.bootstrap_servers, "p2", "deny")
        assert (unknown.exit_code, "no record of proposal 'p2'" in unknown.stderr) == (1, True)
