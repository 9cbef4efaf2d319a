"""The support gate in front of a real guard: a simulated RAN, a map made from its recording, a restart, a new map.

Partitions are short, so that a window is two seconds and a half; nothing waits but for what it waits for.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from guard_rig import Rig, recorded, running
from typer.testing import CliRunner

from simulators.faults.base import FaultLine
from simulators.proposers.handover import HandoverXapp
from simulators.proposers.slicing import SliceXapp
from simulators.ran.layout import draw_layout
from simulators.ran.network import Network
from simulators.ran.world import World
from simulators.scenario import Scenario, loops_of
from simulators.tally import Tally
from streams import support_watch
from streams.broker import EmbeddedBroker
from streams.cli import app
from streams.guard import Guard, unix_ms
from streams.keys import ephemeral_key
from streams.recording import RecordingWriter, read_recording
from streams.replay import replay
from streams.settings import GuardSettings
from streams.simulation import SimulatedRan, Simulation, Wire
from xapp.actuation import ActuatorCheck
from xapp.contracts import shipped
from xapp.signing import KnownKeys
from xapp.support.component import QUARTER_MS

pytestmark = pytest.mark.live

P = 500
REPORTED_MS = 250
PARTITIONS = 5
REGION = "demo"
GATED = ("slicing/1", "slicing-multi/1")
WAIT_S = 30.0
"""A bound for a machine that has other things to do."""
SIGNER = ephemeral_key()


def terms(contract_id: str) -> dict[str, Any]:
    """Terms under which it is mid-quarter now, whatever the time of day."""
    offset_ms = QUARTER_MS // 2 - unix_ms() % QUARTER_MS
    return {
        "format": "wirelessops.support-terms/1",
        "contract_id": contract_id,
        "partition_ms": P,
        "rule": {"min_visits": 1, "min_partitions": PARTITIONS - 1, "partitions": PARTITIONS},
        "utc_offset_min": offset_ms // 60_000,
        "expires_after_ms": 3_600_000,
    }


def ran_command(*words: Any) -> str:
    ran = CliRunner().invoke(app, [str(word) for word in words])
    assert ran.exit_code == 0, ran.stderr
    return ran.stdout


def small_network(start_ms: int) -> Scenario:
    """Three cells that nothing is wrong with, seldom reported and seldom planned: light enough for a busy machine."""
    layout = draw_layout(7, 3)
    network = Network(
        World(layout, start_ms), FaultLine(), ActuatorCheck(KnownKeys([SIGNER.public_key])), REPORTED_MS, start_ms
    )
    xapps = (SliceXapp(loops_of(layout), start_ms, period_ms=1_000), HandoverXapp())
    return Scenario(network=network, line=FaultLine(), proposers=xapps, tally=Tally())


@asynccontextmanager
async def simulated(broker: EmbeddedBroker) -> AsyncIterator[None]:
    """The simulated RAN and its xApps, until the end; raises what made them fail."""
    scenario = small_network(unix_ms())
    stop = asyncio.Event()
    wire = Wire(broker.bootstrap_servers, REGION)
    async with Simulation(scenario, SimulatedRan(scenario), wire, unix_ms, 0.2) as simulation:
        playing = asyncio.create_task(simulation.run(stop))
        try:
            yield
        finally:
            stop.set()
            async with asyncio.timeout(WAIT_S):
                await playing


def guard_of(broker: EmbeddedBroker, **options: Any) -> Guard:
    settings = GuardSettings.embedded(broker.bootstrap_servers, fetch_wait_ms=5, **options)
    return Guard(settings, shipped(), unix_ms, SIGNER)


@asynccontextmanager
async def watched(broker: EmbeddedBroker) -> AsyncIterator[Rig]:
    rig = Rig(broker.bootstrap_servers)
    await rig.open()
    try:
        yield rig
    finally:
        await rig.close()


async def decision(rig: Rig, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first decision on `control` that is as wanted."""
    return await rig.wait_for("control", wanted, WAIT_S)


def gate_said(state: str, **wanted: Any) -> Callable[[dict[str, Any]], bool]:
    """Decisions in which the gate was in a state, with these members."""

    def holds(decision: dict[str, Any]) -> bool:
        support = decision.get("support")
        return support is not None and support["state"] == state and wanted.items() <= decision.items()

    return holds


async def a_recording(out: Path) -> None:
    """The simulated network for a little more than a window, before a guard without a gate."""
    with EmbeddedBroker() as broker:
        async with (
            running(guard_of(broker)),
            watched(broker) as rig,
            recorded(broker.bootstrap_servers, out),
            simulated(broker),
        ):
            began_ms = unix_ms()
            until_ms = began_ms + (PARTITIONS + 4) * P
            await decision(rig, lambda d: d["action"] == "APPLY" and d["decided_at_ms"] > until_ms)
        assert all("support" not in decision for decision in rig.decisions())


async def test_a_guard_applies_where_it_was_before_abstains_until_its_window_is_full_and_outlives_a_restart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(support_watch, "LOOK_S", 0.1)
    gate = tmp_path / "gate"
    gate.mkdir()
    before, run = tmp_path / "before.jsonl.gz", tmp_path / "run.jsonl.gz"
    await a_recording(before)
    for contract_id in GATED:
        name = contract_id.replace("/", "-")
        (gate / f"{name}.json").write_bytes(orjson.dumps(terms(contract_id)))
        map_file = gate / f"{name}-map-1.json"
        ran_command("support", "build", "--terms", gate / f"{name}.json", "--recording", before, "--out", map_file)

    with EmbeddedBroker() as broker:
        async with (
            watched(broker) as rig,
            recorded(broker.bootstrap_servers, run) as recorder,
            AsyncExitStack() as network,
        ):
            first = guard_of(broker, support_dir=gate)
            async with running(first):
                await network.enter_async_context(simulated(broker))
                begun = await decision(rig, gate_said("RUNTIME_ABSTAIN", action="ABSTAIN", final=True))
                assert begun["support"]["short"]
                assert begun["support"]["earliest_ms"] > begun["decided_at_ms"]
                assert {v["code"] for v in begun["violations"] if v["blocking"]} == {"support"}
                assert begun["released"] is None
                full = await decision(rig, gate_said("SUPPORTED", action="APPLY"))
                assert full["decided_at_ms"] > begun["decided_at_ms"]
                assert full["support"]["map"]["version"] == 1
                assert full["released"]
                await decision(rig, lambda d: d["contract_ref"] == "handover/1" and "support" not in d)

            restarted_ms = unix_ms()
            async with running(guard_of(broker, support_dir=gate)):  # the network went on meanwhile
                kept = await decision(rig, lambda d: "support" in d and d["decided_at_ms"] >= restarted_ms)
                assert all(one["partitions"] < PARTITIONS - 1 for one in kept["support"]["short"])
                for contract_id in GATED:
                    stem = gate / contract_id.replace("/", "-")
                    ran_command(
                        "support", "refresh", f"{stem}-map-1.json", "--recording", before, "--out", f"{stem}-map-2.json"
                    )
                refreshed = await decision(rig, lambda d: "support" in d and d["support"]["map"]["version"] == 2)
                assert refreshed["sequence"] > kept["sequence"]
            assert told_of(first) == Counter(
                (d["contract_ref"], d["support"]["state"])
                for d in rig.decisions()
                if "support" in d and d["decided_at_ms"] < restarted_ms
            )
            decided = len(rig.written["control"])
            async with asyncio.timeout(WAIT_S):
                while recorder.count < decided:  # noqa: ASYNC110 - the recorder counts, and tells nobody
                    await asyncio.sleep(0.01)

    assert replayed(run, gate, capsys)[0] == 0
    code, summary = replayed(run, None, capsys)
    assert code == 1
    assert any("name their folder with --support-dir" in place for place in summary["differing"])
    code, summary = replayed(begun_late(run), gate, capsys)
    assert code == 1
    assert any("of its window there may be some in 20 messages before the rec" in at for at in summary["differing"])
    for old in sorted(gate.glob("*-map-1.json")):
        old.unlink()
    code, summary = replayed(run, gate, capsys)
    assert code == 1
    assert any("does not hold its reference map, sha256:" in place for place in summary["differing"])
    code, summary = replayed(before, gate, capsys)
    assert code == 0
    assert summary["live"]["differing"] == 0
    assert summary["support"]["would_apply"] >= summary["support"]["vetoed"] > 0


def told_of(guard: Guard) -> Counter[tuple[str, str]]:
    """The verdicts that a guard's metrics count, by contract and state."""
    (family,) = (one for one in guard.metrics.collect() if one.name.endswith("support_verdicts"))
    told = {(s.labels["contract"], s.labels["state"]): int(s.value) for s in family.samples}
    return +Counter(told)


def begun_late(run: Path) -> Path:
    """A recording without the first 20 messages of telemetry."""
    late = run.with_name("late.jsonl.gz")
    with RecordingWriter(late) as writer:
        for message in read_recording(run):
            if message.offset >= 20 or not message.topic.endswith("telemetry"):
                writer.write(message)
    return late


def replayed(file: Path, gate: Path | None, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = replay([file], as_json=True, support_dir=gate)
    summary: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert summary["live"]["decisions"] > 0
    return code, summary
