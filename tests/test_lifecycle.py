"""Starting and ending: every part ends within a bound, on signals and on cancellation; bad starts say why."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from aiokafka.partitioner import DefaultPartitioner
from guard_rig import contracts, guarded, proposal, report

from streams.broker import EmbeddedBroker
from streams.guard import Guard
from streams.recorder import Recorder
from streams.recording import read_recording
from streams.settings import GuardSettings
from streams.topics import partition_of, topics

ROOT = Path(__file__).parent.parent
BOUND_S = 6.0
RUN = "import sys; from streams.commands.run import run; sys.exit(run({server}, **{options}))"
RECORD = "import sys; from pathlib import Path; from streams.commands.record import record; " + (
    "sys.exit(record({server}, Path({out}), from_beginning=True))"
)


def start(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def wait_for_line(process: subprocess.Popen[str], start_of_line: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(start_of_line):
            return line
    raise AssertionError(f"ended without {start_of_line!r}: {process.stderr.read() if process.stderr else ''}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_service_with_its_embedded_broker_ends_within_a_bound_on_a_signal(number: signal.Signals) -> None:
    process = start(RUN.format(server=None, options={}))
    try:
        assert "127.0.0.1:" in wait_for_line(process, "ready")
        asked_at = time.monotonic()
        process.send_signal(number)
        assert process.wait(BOUND_S) == 0
        assert time.monotonic() - asked_at < BOUND_S
    finally:
        process.kill()
        process.communicate()


def test_the_service_serves_a_broker_of_another_process_and_ends_while_the_app_still_joins() -> None:
    with EmbeddedBroker() as broker:
        process = start(RUN.format(server=repr(broker.bootstrap_servers), options={}))
        try:
            wait_for_line(process, "ready")
            process.send_signal(signal.SIGTERM)
            assert process.wait(BOUND_S) == 0
        finally:
            process.kill()
            process.communicate()


@pytest.mark.parametrize(
    ("server", "options", "said"),
    [
        ("'127.0.0.1:1'", {"connect_timeout_s": 1}, "127.0.0.1:1 not ready within 1 s"),
        ("None", {"history_ms": "soon"}, "history_ms"),
        ("None", {"prefix": "a b"}, "prefix"),
        ("None", {"unknown": 1}, "unknown"),
        ("None", {"contracts_dir": "/nowhere/at/all"}, "/nowhere/at/all"),
    ],
)
def test_a_bad_start_exits_2_and_says_why(server: str, options: dict[str, object], said: str) -> None:
    process = start(RUN.format(server=server, options=options))
    out, error = process.communicate(timeout=20)
    assert process.returncode == 2
    assert out == ""
    assert said in error
    assert "Traceback" not in error


def test_a_bad_contract_file_is_named_with_the_place_of_each_error(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"contract_id": "x/1", "fields": {"a": {"kind": "observed"}}}')
    (tmp_path / "b.yaml").write_text("contract_id: [")
    process = start(RUN.format(server=None, options={"contracts_dir": str(tmp_path)}))
    _, error = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "a.json: $.fields.a.freshness_ms" in error
    assert "a.json: $.fields.a.sources" in error
    assert "b.yaml: $" in error


async def test_the_guard_ends_within_its_bound_when_it_is_cancelled() -> None:
    with EmbeddedBroker() as broker:
        guard = Guard(GuardSettings.embedded(broker.bootstrap_servers), contracts())
        await guard.start()
        task = asyncio.create_task(guard.run())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 2)
        assert not guard.ready
        await asyncio.wait_for(guard.stop(), 5)


async def test_the_guard_ends_within_its_bound_when_the_broker_is_gone() -> None:
    broker = EmbeddedBroker().start()
    guard = Guard(GuardSettings.embedded(broker.bootstrap_servers, stop_timeout_s=2), contracts())
    await guard.start()
    task = asyncio.create_task(guard.run())
    broker.stop()
    await asyncio.wait_for(guard.stop(), 3)
    await asyncio.wait_for(asyncio.gather(task, return_exceptions=True), 2)


async def test_a_stopped_guard_has_answered_what_it_read_and_can_be_stopped_again() -> None:
    async with guarded() as (rig, guard):
        await rig.send("proposals", proposal("p1"))
        await rig.decision("p1")
        await guard.stop()
        await guard.stop()
        assert not guard.ready


async def test_a_recorder_keeps_every_message_of_its_topics(tmp_path: Path) -> None:
    async with guarded() as (rig, _):
        names = topics()
        out = tmp_path / "run.jsonl.gz"
        recorder = Recorder(
            rig.bootstrap_servers, [names.telemetry, names.proposals, names.control, names.records], out
        )
        await recorder.start()
        task = asyncio.create_task(recorder.run())
        sent = [report(f"r{n}", n) for n in range(5)]
        for value in sent:
            await rig.send("telemetry", value)
        await rig.send("proposals", proposal("p1"))
        await rig.decision("p1")
        recorder.stop()
        await asyncio.wait_for(task, 5)
        found = list(read_recording(out))
        assert [m.value for m in found if m.topic == names.telemetry] == sent
        for topic, kept in ((names.control, "control"), (names.records, "records")):
            assert [m.value for m in found if m.topic == topic] == [m.value for m in rig.written[kept]]
        control = next(m for m in found if m.topic == names.control)
        assert dict(control.headers) == dict(rig.written["control"][0].headers)


async def test_a_killed_recorder_leaves_a_readable_file(tmp_path: Path) -> None:
    async with guarded() as (rig, _):
        await rig.send("telemetry", report("r1", 9))
        out = tmp_path / "run.jsonl.gz"
        process = start(RECORD.format(server=repr(rig.bootstrap_servers), out=repr(str(out))))
        try:
            await asyncio.to_thread(wait_for_line, process, "recording")
            async with asyncio.timeout(10):
                while not list(read_recording(out)):  # noqa: ASYNC110 - a file of another process has no event
                    await asyncio.sleep(0.05)
            process.kill()
            await asyncio.to_thread(process.wait, 5)
            assert [m.topic for m in read_recording(out)] == [topics().telemetry]
        finally:
            process.kill()
            process.communicate()


def test_a_region_goes_to_the_partition_that_the_default_partitioner_of_kafka_clients_chooses() -> None:
    choose = DefaultPartitioner()
    for count in (1, 3, 4, 12):
        ids = list(range(count))
        for region in ("north", "south", "a", "", "région-7", "x" * 249):
            assert partition_of(region, ids) == choose(region.encode(), ids, ids)
