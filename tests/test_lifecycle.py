"""Starting and ending: every part ends within a bound, on signals and on cancellation; bad starts say why."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from aiokafka.partitioner import DefaultPartitioner
from guard_rig import Rig, contracts, guarded, proposal, report

from streams.broker import EmbeddedBroker
from streams.guard import Guard
from streams.keys import write_new
from streams.recorder import Recorder
from streams.recording import read_recording
from streams.settings import GuardSettings, SettingsError, load_contracts
from streams.topics import partition_of, topics
from xapp.contracts import shipped

ROOT = Path(__file__).parent.parent
BOUND_S = 6.0
RUN = "import sys; from streams.commands.run import run; sys.exit(run({server}, unsigned=True, **{options}))"
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def get_json(port: int, path: str) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_service_with_its_embedded_broker_ends_within_a_bound_on_a_signal(number: signal.Signals) -> None:
    process = start(RUN.format(server=None, options={}))
    try:
        assert "127.0.0.1:" in wait_for_line(process, "ready")
        asked_at = time.monotonic()
        process.send_signal(number)
        assert process.wait(BOUND_S) == 0
        assert time.monotonic() - asked_at < BOUND_S
        assert process.stderr is not None
        logged = [json.loads(line) for line in process.stderr.read().splitlines() if line.startswith("{")]
        (stopped,) = [line for line in logged if line["event"] == "stopped"]
        assert (stopped["level"], stopped["why"]) == ("info", "asked by a signal")
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


def test_the_service_ends_within_a_bound_while_it_still_looks_for_kafka() -> None:
    process = start(RUN.format(server="'127.0.0.1:1'", options={"connect_timeout_s": 60}))
    try:
        assert process.stderr is not None
        assert any("Unable connect" in line for line in process.stderr)
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
        ("None", {"shipped_contracts": False}, "contracts: none"),
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


def test_the_shipped_contracts_can_be_left_out_and_their_names_are_free_then(tmp_path: Path) -> None:
    own = shipped()["slicing/1"].document
    (tmp_path / "slicing.json").write_bytes(own)
    assert set(load_contracts(tmp_path, with_shipped=False)) == {"slicing/1"}
    with pytest.raises(SettingsError, match=r"slicing\.json: \$\.contract_id: 'slicing/1' is taken"):
        load_contracts(tmp_path)
    (tmp_path / "slicing.json").unlink()
    with pytest.raises(SettingsError, match="contracts: none"):
        load_contracts(tmp_path, with_shipped=False)


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


def test_the_web_says_alive_ready_and_answers_questions() -> None:
    port = free_port()
    process = start(RUN.format(server=None, options={"web_port": port}))

    def get(path: str) -> tuple[int, dict[str, Any]]:
        return get_json(port, path)

    def served() -> bool:
        try:
            return get("/ric/v1/health/ready")[0] == 200
        except ConnectionError:
            return False

    try:
        wait_for_line(process, "ready")
        ends_at = time.monotonic() + 10
        while not served() and time.monotonic() < ends_at:
            time.sleep(0.05)
        assert get("/ric/v1/health/ready") == (200, {"status": "ready"})
        assert get("/ric/v1/health/alive")[0] == 200
        assert get("/v1/stats")[1]["decisions"] == {}
        status, answered = get("/v1/evidence?region=north&name=cqi&subject=cell:1/ue:7&event_time_ms=1790000000000")
        assert (status, answered["observations"], answered["region"]) == (200, [], "north")
        status, refused = get("/v1/evidence?region=north&name=cqi&event_time_ms=1790000000")
        assert status == 400
        assert "event_time_ms" in refused["error"]
        assert get("/v1/evidence?name=cqi")[0] == 400
        status, view = get("/v1/view?region=north&contract_ref=slicing/1&binding.cell=1&binding.slice=1&binding.ue=7")
        assert (status, view["error"]) == (200, None)
        assert get("/v1/view?region=north&contract_ref=none/1")[0] == 400
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=BOUND_S)
    assert process.returncode == 0


async def test_outcomes_are_counted_and_unreadable_ones_are_dead_letters() -> None:
    port = free_port()
    with EmbeddedBroker() as broker:
        process = start(RUN.format(server=repr(broker.bootstrap_servers), options={"web_port": port}))
        rig = Rig(broker.bootstrap_servers)
        try:
            await asyncio.to_thread(wait_for_line, process, "ready")
            await rig.open()
            outcome = {"decision_id": "d", "proposal_id": "p", "outcome": "applied", "at_ms": 1_790_000_000_000}
            await rig.send("outcomes", json.dumps(outcome).encode())
            sent = [await rig.send("outcomes", bad) for bad in (b"{", None, b'{"outcome":"maybe"}')]
            for each in sent:
                assert (await rig.dead_letter(each))["reason"]
            _, stats = await asyncio.to_thread(get_json, port, "/v1/stats")
            assert stats["outcomes"] == {"applied": 1}
            assert stats["dead_letters"] == len(rig.written["dead-letters"]) == len(sent)
        finally:
            await rig.close()
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(process.communicate, timeout=BOUND_S)


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


def test_a_guard_that_would_not_believe_its_own_decisions_does_not_start(tmp_path: Path) -> None:
    signer, public = write_new(tmp_path / "other")
    assert signer.keyid
    code = RUN.replace("unsigned=True, ", "").format(server=None, options={"trusted_keys": (str(public),)})
    process = start(code)
    _, error = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "trusted_keys" in error
