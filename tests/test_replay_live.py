"""The law of own recordings: a recording of a live run, replayed, gives the live decisions byte for byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from guard_rig import CONTRACT, PREFIX, WAIT_S, Rig, contracts, guarded, proposal, recorded, report

from streams.deciding import History
from streams.guard import unix_ms
from streams.recording import RecordedMessage, RecordingWriter, read_recording
from streams.replay import replay
from streams.replay.own import Comparison, decide_again, read
from xapp.faithfulness import verify
from xapp.signing import Signer, open_envelope, sign_document

SIGNER = Signer.of_seed(bytes(32))
DOCUMENT = {
    **CONTRACT,
    "control": {
        "key": "cell:{cell}/ue:{ue}/prb",
        "lease_ms": 80,
        "ack_ms": 60,
        "budget": {"changes": 5, "per_ms": 400},
        "effect": {"expr": "cqi >= 3", "within_ms": 100},
    },
}
REGIONS = [b"north", b"south", b"east", b"west", b"centre"]


@dataclass(frozen=True, slots=True)
class Run:
    """A recorded run: the file, the folder of the guard's contracts, and what stood on `control`, by partition."""

    recording: Path
    contracts_dir: Path
    control: dict[int, list[bytes]]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():  # noqa: ASYNC110 - the recorder counts, and tells nobody
            await asyncio.sleep(0.01)


async def some_life(rig: Rig) -> tuple[int, int]:
    """Telemetry good, late, repeated, contradictory, unreadable; sources that fail; proposals of every kind, all mixed.

    Gives how many messages were sent, and how many of them get a decision.
    """
    sent = asked = 0

    async def send(topic: str, value: bytes, region: bytes) -> None:
        nonlocal sent
        await rig.send(topic, value, key=region)
        sent += 1

    for turn in range(6):
        for region in REGIONS:
            name = region.decode()
            now = unix_ms()
            await send("telemetry", report(f"{name}-{turn}", turn + 1, event_time_ms=now - 40 * turn), region)
            await send("telemetry", report(f"{name}-{turn}", turn + 1, event_time_ms=now - 40 * turn), region)
            plan = {"bandwidth": {"value": 8 + (turn + len(name)) % 2, "unit": "MHz"}}
            await send("proposals", proposal(f"{name}-{turn}", plan=plan), region)
            asked += 1
        await send("telemetry", report(f"north-{turn}", 14), b"north")
        await send("telemetry", b"{", b"south")
        status: dict[str, Any] = {"status": "outage", "retryable": True, "retry_after_ms": 50, "retries_left": 2}
        status = status if turn % 2 else {"status": "up"}
        outage = {"format": "wirelessops.source-status/1", "source": "e2:gnb-1", "event_time_ms": unix_ms(), **status}
        await send("telemetry", orjson.dumps(outage), b"east")
        await send("telemetry", report(f"old-{turn}", 9, event_time_ms=unix_ms() - 29_000), b"west")
        await send("proposals", proposal(f"north-{turn}"), b"north")  # a repeat, of other content: a dead letter
        await send("proposals", proposal(f"odd-{turn}", plan=[]), b"north")
        await send(
            "proposals",
            proposal(f"nobody-{turn}", bindings={"cell": "9", "ue": "9"}, control_key="cell:9/ue:9/prb"),
            b"south",
        )
        await send("proposals", proposal(f"unknown-{turn}", contract_ref="no/such"), b"west")
        await send(
            "proposals",
            proposal(f"dark-{turn}", bindings={"cell": "9", "ue": "8"}, control_key="cell:9/ue:8/prb"),
            b"east",
        )
        asked += 4
        await send("proposals", b"[]", b"west")
        applied = [d for d in rig.decisions() if d["action"] == "APPLY" and d["region"] == "north"]
        for decision in applied[-1:]:
            kind = "refused" if turn == 3 else "applied"
            of = {"decision_id": decision["decision_id"], "proposal_id": decision["proposal_id"]}
            outcome = {**of, "outcome": kind, "at_ms": unix_ms()}
            await send("outcomes", orjson.dumps(outcome), b"north")
        await send("outcomes", b"{", b"north")
        answer = {"answer_id": f"a{turn}", "decision_id": "d", "verdict": "deny", "operator": "alice", "reason": "no"}
        denied = {**answer, "proposal_id": f"east-{turn}", "at_ms": unix_ms()}
        await send("answers", orjson.dumps(denied), b"east")
    return sent, asked


async def a_run(tmp_path: Path, **options: Any) -> Run:
    contracts_dir = tmp_path / "contracts"
    contracts_dir.mkdir()
    (contracts_dir / "test.json").write_bytes(orjson.dumps(DOCUMENT))
    out = tmp_path / "run.jsonl.gz"
    options = {"document": DOCUMENT, "signer": SIGNER, "hold_ms": 300, "escalation_ms": 300, **options}
    async with guarded(**options) as (rig, _), recorded(rig.bootstrap_servers, out) as recorder:
        sent, asked = await some_life(rig)
        await until(lambda: sum(decision["final"] for decision in rig.decisions()) == asked)
        await until(lambda: recorder.count >= sent + 2 * len(rig.written["control"]))
        control: dict[int, list[bytes]] = {}
        for message in rig.written["control"]:
            control.setdefault(message.partition, []).append(message.value)
    return Run(out, contracts_dir, control)


def rewritten(run: Run, to: Path, change: Callable[[RecordedMessage], RecordedMessage | None]) -> Path:
    with RecordingWriter(to) as writer:
        for message in read_recording(run.recording):
            changed = change(message)
            if changed is not None:
                writer.write(changed)
    return to


def replayed(paths: Sequence[Path], run: Run, capsys: pytest.CaptureFixture[str], **more: Any) -> tuple[int, Any]:
    capsys.readouterr()
    code = replay(paths, as_json=True, contracts_dir=run.contracts_dir, **more)
    said = capsys.readouterr().out
    return code, json.loads(said) if said else None


async def test_a_recording_of_a_live_run_gives_the_live_decisions_byte_for_byte(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = await a_run(tmp_path)
    total = sum(map(len, run.control.values()))
    assert len(run.control) > 1
    actions = {json.loads(value)["action"] for values in run.control.values() for value in values}
    assert {"APPLY", "RETRY", "HOLD", "ABSTAIN"} <= actions

    again = decide_again(read([run.recording], []), Comparison(), contracts(DOCUMENT), History())
    by_partition: dict[int, list[bytes]] = {}
    for outcome in again:
        partition = json.loads(outcome.control_value)["evidence"]["partition"]
        by_partition.setdefault(partition, []).append(sign_document(outcome.control_value, SIGNER))
    assert by_partition == run.control

    out = tmp_path / "decisions.jsonl"
    code, summary = replayed([run.recording], run, capsys, out=out)
    assert code == 0
    assert summary["live"]["matching"] == summary["live"]["decisions"] == total
    assert replayed([run.recording], run, capsys, shipped_contracts=False) == (0, summary)
    assert replay([run.recording], shipped_contracts=False) == 2
    assert "contracts: none" in capsys.readouterr().err
    assert (summary["live"]["differing"], summary["live"]["without_proposal"]) == (0, 0)
    assert summary["live"]["telemetry_refused"] > 0
    lines = out.read_bytes().splitlines()
    sealed = [m.value or b"" for m in read_recording(run.recording) if m.topic == PREFIX + "records"]
    records = [json.loads(open_envelope(value).payload) for value in sealed]
    released = {json.loads(value)["decision_id"] for values in run.control.values() for value in values}
    kept = [r for r in records if r["decision_id"] in released]  # no APPLY that came too late once its record stood
    assert sorted(lines) == sorted(orjson.dumps({k: v for k, v in r.items() if k != "chain"}) for r in kept)
    assert len(lines) == total
    assert [claims for line in lines if (claims := verify(json.loads(line)))] == []


async def test_a_recording_that_was_tampered_with_does_not_match(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = await a_run(tmp_path)
    total = sum(map(len, run.control.values()))

    def other_value(message: RecordedMessage) -> RecordedMessage:
        if message.topic != PREFIX + "telemetry" or b'"north-0"' not in (message.value or b""):
            return message
        return replace(message, value=(message.value or b"").replace(b'"value":1,', b'"value":3,'))

    def later_arrival(message: RecordedMessage) -> RecordedMessage:
        late = message.topic == PREFIX + "telemetry" and message.key == b"south"
        return replace(message, timestamp_ms=message.timestamp_ms + 60_000) if late else message

    def another_action(message: RecordedMessage) -> RecordedMessage:
        value = (message.value or b"").replace(b'"action":"HOLD"', b'"action":"APPLY"')
        return replace(message, value=value) if message.topic == PREFIX + "control" else message

    for change in (other_value, later_arrival, another_action):
        path = rewritten(run, tmp_path / f"{change.__name__}.gz", change)
        code, summary = replayed([path], run, capsys)
        assert code == 1, change.__name__
        assert 0 < summary["live"]["differing"] < total, change.__name__
        assert summary["live"]["matching"] + summary["live"]["differing"] == total
        assert summary["differing"]


async def test_a_decision_whose_proposal_was_not_recorded_is_not_taken_for_a_match(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = await a_run(tmp_path)
    path = rewritten(
        run, tmp_path / "cut.gz", lambda m: None if m.topic == PREFIX + "proposals" and m.key == b"east" else m
    )
    code, summary = replayed([path], run, capsys)
    east = sum(json.loads(value)["region"] == "east" for values in run.control.values() for value in values)
    assert summary["live"]["without_proposal"] == east >= 12
    assert summary["live"]["matching"] == summary["live"]["decisions"] - east
    assert code == 0

    nothing = rewritten(run, tmp_path / "nothing.gz", lambda m: m if m.topic == PREFIX + "telemetry" else None)
    code, summary = replayed([nothing], run, capsys)
    assert (code, summary) == (2, None)


async def test_the_same_recording_in_two_overlapping_files_is_one_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = await a_run(tmp_path)
    messages = list(read_recording(run.recording))
    parts = []
    for name, part in (("first", messages[: len(messages) * 2 // 3]), ("second", messages[len(messages) // 3 :])):
        with RecordingWriter(tmp_path / name) as writer:
            for message in part:
                writer.write(message)
        parts.append(tmp_path / name)
    whole = replayed([run.recording], run, capsys)
    joined = replayed(parts, run, capsys)
    assert joined[0] == whole[0] == 0
    assert joined[1]["live"] == whole[1]["live"]
