"""The simulated RAN without an end: its faults in simulated time, then the command against a guard that runs."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from simulators.endless import AGENT, AGENT_CELLS, CHAPTER_MS, DISPUTE_MS, EndlessRun, chapter
from simulators.faults.base import Fault
from simulators.ran.layout import draw_layout
from simulators.ran.losses import MAX_SLOPE_DB_S
from simulators.scenario import CELLS, UNSIGNED, loops_of
from simulators.tally import REMEMBERED, Tally
from streams.keys import write_new

pytestmark = pytest.mark.live  # guards in processes of their own

ROOT = Path(__file__).parent.parent
T0 = 1_790_000_000_000
HOUR_MS = 3_600_000
KPM = frozenset({"kpm"})


@pytest.mark.parametrize("seed", range(4))
def test_no_sinr_moves_faster_across_the_chapters_than_within_one(seed: int) -> None:
    layout = draw_layout(seed, CELLS)
    blockages = [b for i in range(4) for b in chapter(layout, T0 + i * CHAPTER_MS, seed + i).blockages]
    for cell in range(CELLS):
        mine = [b for b in blockages if b.cell == cell]
        losses = np.array([sum(b.loss_db(at) for b in mine) for at in range(T0, T0 + 5 * CHAPTER_MS, 50)])
        assert np.abs(np.diff(losses)).max() <= MAX_SLOPE_DB_S * 0.05 + 1e-9


def test_faults_go_on_for_ever_and_what_is_over_is_forgotten() -> None:
    gc.collect()
    before = sum(isinstance(one, Fault) for one in gc.get_objects())
    run = EndlessRun(7, T0, UNSIGNED)
    line, world = run.scenario.line, run.scenario.network.world
    struck: set[int] = set()
    for now in range(T0, T0 + HOUR_MS, 1_000):
        run.advance_to(now)
        world.now_ms = now
        line.carry([], now)
        if any(line.kind_at(now, str(cell), KPM, frozenset({"1"})) != "none" for cell in range(1, 6)):
            struck.add((now - T0) // CHAPTER_MS)
    assert struck == set(range(HOUR_MS // CHAPTER_MS))
    gc.collect()
    held = sum(isinstance(one, Fault) for one in gc.get_objects()) - before
    assert held < 3 * len(chapter(draw_layout(7, CELLS), T0, 7).faults)
    assert len(world.blockages) < 3 * CELLS * CHAPTER_MS // 4_200


def test_the_agents_users_see_disputes_in_turn_and_nothing_else() -> None:
    run = EndlessRun(7, T0, UNSIGNED)
    users = {loop.users[0]: loop.cell for loop in loops_of(draw_layout(7, CELLS)) if loop.single}
    agents = {user: cell for user, cell in users.items() if cell in AGENT_CELLS}
    disputed: dict[int, set[str]] = {}
    for now in range(T0 + 500, T0 + 2 * DISPUTE_MS, 1_000):
        run.advance_to(now)
        run.scenario.line.carry([], now)
        kinds = {u: run.scenario.line.kind_at(now, cell, KPM, frozenset({u})) for u, cell in agents.items()}
        assert set(kinds.values()) == {"conflict", "none"}
        disputed.setdefault((now - T0) // DISPUTE_MS, set()).update(u for u, k in kinds.items() if k == "conflict")
    assert disputed[0] | disputed[1] == set(agents)
    assert disputed[0] != disputed[1]


def test_reports_of_a_node_that_was_restarted_are_no_repeats() -> None:
    def reports(start_ms: int) -> set[str]:
        network = EndlessRun(7, start_ms, UNSIGNED).scenario.network
        ticks = [network.tick(at) for at in range(start_ms, start_ms + 1_000, 100)]
        return {one.message.report_id for tick in ticks for one in tick if hasattr(one.message, "report_id")}

    assert reports(T0)
    assert not reports(T0) & reports(T0 + 2_000)


def test_a_tally_of_more_proposals_than_it_remembers_still_adds_up() -> None:
    tally = Tally()
    for number in range(REMEMBERED + 50):
        tally.proposed(str(number), "none", safe=True)
        tally.decided(str(number), "APPLY")
    tally.decided("0", "HOLD")  # too late: its word stands
    totals = tally.document()["totals"]
    assert totals["proposals"] == totals["actions"]["APPLY"] == REMEMBERED + 50
    assert totals["actions"]["HOLD"] == 0


@contextmanager
def command(*words: str, stderr: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", "from streams.cli import main; main()", *words],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=stderr, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@contextmanager
def guard(key: Path) -> Iterator[str]:
    """A guard on the embedded broker that signs with this key; the broker's address."""
    # Its log has a line a decision: a pipe that nobody empties would stop it
    with command("run", "--signing-key", str(key), stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("ready: Kafka at "), line
        yield line.removeprefix("ready: Kafka at ").partition(",")[0]


@asynccontextmanager
async def messages(address: str, *names: str) -> AsyncIterator[AsyncIterator[tuple[str, str, dict[str, Any]]]]:
    """Of these topics, from their beginning: topic, region, document."""
    consumer = AIOKafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest", fetch_max_wait_ms=20)
    await consumer.start()
    consumer.assign([TopicPartition(f"wirelessops.{name}", p) for name in names for p in range(4)])

    async def each() -> AsyncIterator[tuple[str, str, dict[str, Any]]]:
        async for message in consumer:
            yield message.topic.removeprefix("wirelessops."), message.key.decode(), json.loads(message.value)

    try:
        yield each()
    finally:
        await consumer.stop()


def ended(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> tuple[int, list[dict[str, Any]]]:
    """Exit code after a signal, and the log."""
    process.send_signal(number)
    _, err = process.communicate(timeout=10)
    return process.returncode, [json.loads(line) for line in err.splitlines() if line.startswith("{")]


async def test_a_guard_decides_for_the_simulated_ran_which_carries_out_only_what_that_guard_signed(
    tmp_path: Path,
) -> None:
    _, ours = write_new(tmp_path / "guard.pem")
    _, strangers = write_new(tmp_path / "stranger.pem")
    heartbeat = tmp_path / "alive"
    with guard(tmp_path / "guard.pem") as address:
        at = ("--bootstrap-servers", address)
        with (
            command("simulate", *at, "--trusted-keys", str(ours), "--heartbeat", str(heartbeat)) as trusting,
            command("simulate", *at, "--trusted-keys", str(strangers), "--region", "stranger") as mistrusting,
        ):
            applied, asked, untrusted = 0, 0, 0
            acted: set[str] = set()  # regions whose RAN carried something out; other outcomes are the guard's
            async with asyncio.timeout(60), messages(address, "control", "outcomes") as stream:
                async for topic, region, document in stream:
                    if topic == "outcomes":
                        if document["outcome"] == "applied":
                            acted.add(region)
                            applied += region == "demo"
                    elif region == "stranger":
                        untrusted += document["action"] == "APPLY"
                    else:
                        asked += document["action"] == "ESCALATE" and document["proposer"] == AGENT
                    if applied >= 5 and untrusted >= 5 and asked:
                        break
            assert acted == {"demo"}
            assert heartbeat.exists()
            code, log = ended(trusting)
            assert code == 0
            counts = log[-1]
            assert counts["event"] == "counts"
            assert counts["unsafe_with_guard"] == 0
            assert counts["safe_kept"] > 0
            code, log = ended(mistrusting)
            assert code == 0
            assert log[-1]["safe_kept"] == 0


def test_without_kafka_it_waits_and_says_so_until_it_is_told_to_stop() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with command("simulate", "--bootstrap-servers", address) as process:
            assert process.stderr is not None
            said = [json.loads(next(line for line in process.stderr if line.startswith("{"))) for _ in range(2)]
            assert "whoever signed them" in said[0]["event"]
            while "waiting for Kafka" not in said[-1]["event"]:
                said.append(json.loads(next(line for line in process.stderr if line.startswith('{"'))))
            code, _ = ended(process)
            assert code == 0


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("--trusted-keys", "/nowhere/guard.pub.pem"), "/nowhere/guard.pub.pem"),
        (("--prefix", "no topic/"), "prefix"),
        (("--kafka-config", "/nowhere/kafka.conf"), "/nowhere/kafka.conf"),
    ],
)
def test_a_bad_option_is_named_and_nothing_starts(options: tuple[str, str], fault: str) -> None:
    with command("simulate", "--bootstrap-servers", "127.0.0.1:1", *options) as process:
        _, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert fault in err
    assert "Traceback" not in err


async def test_the_demo_serves_the_page_meanwhile_and_ends_as_without_it() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with command("demo", "--seconds", "10", "--seed", "7", "--json", "--web-port", str(port)) as process:
        page, seen = "", 0
        async with asyncio.timeout(12):
            while not seen:
                await asyncio.sleep(0.1)
                with suppress(OSError):
                    page = await asyncio.to_thread(fetched, f"http://127.0.0.1:{port}/")
                    seen = len(json.loads(await asyncio.to_thread(fetched, f"http://127.0.0.1:{port}/v1/board"))["decisions"])
        out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert "<script" in page
    totals = json.loads(out)["totals"]
    assert totals["proposals"] > 250
    assert totals["unsafe_with_guard"] == 0


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=3) as reply:
        return reply.read().decode()
