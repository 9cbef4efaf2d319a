"""Logs: one JSON object a line, and every line about a decision names it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import orjson
import pytest
import structlog
from guard_rig import Rig, contracts, proposal, report, running

from streams import logs
from streams.broker import EmbeddedBroker
from streams.decision_log import LONGEST_NAME, DecisionLog
from streams.guard import Guard
from streams.logs import MOST_BYTES, Lines, dropped, log_to, log_to_stderr
from streams.settings import GuardSettings, LogLevel

SECRET = "hunter2-is-the-password"


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Logging is of the whole process: as it was before."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def read_back(capsys: Any) -> list[dict[str, Any]]:
    logs.flush()
    return [orjson.loads(line) for line in capsys.readouterr().err.splitlines()]


async def logged(level: LogLevel, capsys: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The lines that a guard logs of a HOLD that becomes APPLY and of a dead letter, and its decisions."""
    log_to_stderr(level)
    with EmbeddedBroker() as broker:
        settings = GuardSettings.embedded(broker.bootstrap_servers, hold_ms=60_000)
        guard, rig = Guard(settings, contracts(), observers=[DecisionLog()]), Rig(broker.bootstrap_servers)
        async with running(guard):
            await rig.open()
            headers = [("authorization", SECRET.encode())]
            await rig.send("proposals", proposal("p1", evidence=[SECRET]), headers=headers)
            await rig.wait_for("control", lambda d: d["action"] == "HOLD")
            await rig.send("telemetry", report("r1", 9))
            await rig.wait_for("control", lambda d: d["final"])
            await rig.send("proposals", SECRET.encode())
            await rig.wait_for("dead-letters")
        await rig.close()
    return read_back(capsys), [rig.opened(message) or {} for message in rig.written["control"]]


async def test_a_final_decision_is_a_line_that_names_it(capsys: Any) -> None:
    lines, decisions = await logged("info", capsys)
    (line,) = [line for line in lines if line["event"] == "decision"]
    (final,) = [decision for decision in decisions if decision["final"]]
    same = ("decision_id", "proposal_id", "region", "action", "attempt", "final")
    assert {name: line[name] for name in same} == {name: final[name] for name in same}
    assert (line["level"], line["codes"], line["contract"], line["proposer"]) == ("info", [], "test/1", "xapp:test")
    assert all({"event", "level", "timestamp"} <= line.keys() for line in lines)


async def test_interim_decisions_are_lines_at_level_debug(capsys: Any) -> None:
    lines, decisions = await logged("debug", capsys)
    told = [line for line in lines if line["event"] == "decision"]
    assert [(line["decision_id"], line["attempt"]) for line in told] == [
        (decision["decision_id"], decision["attempt"]) for decision in decisions
    ]
    assert [(line["level"], line["action"], line["codes"]) for line in told] == [
        ("debug", "HOLD", ["missing"]),
        ("info", "APPLY", []),
    ]


async def test_a_warning_is_heard_and_no_decision_at_level_warning(capsys: Any) -> None:
    lines, _ = await logged("warning", capsys)
    assert {line["level"] for line in lines} == {"warning"}
    assert any(line["event"] == "dead letter" and line["topic"].endswith("proposals") for line in lines)


async def test_what_a_proposer_sends_is_not_logged(capsys: Any) -> None:
    lines, _ = await logged("debug", capsys)
    assert lines
    assert not any(SECRET in orjson.dumps(line).decode() for line in lines)


@pytest.mark.parametrize("proposer", ["x" * 1_000_000, {"token": SECRET}, [SECRET], 7])
async def test_what_stands_for_a_name_makes_no_endless_line_and_tells_no_secret(proposer: Any, capsys: Any) -> None:
    log_to_stderr()
    with EmbeddedBroker() as broker:
        guard = Guard(GuardSettings.embedded(broker.bootstrap_servers), contracts(), observers=[DecisionLog()])
        rig = Rig(broker.bootstrap_servers)
        async with running(guard):
            await rig.open()
            await rig.send("proposals", proposal("p1", proposer=proposer))
            await rig.wait_for("control", lambda d: d["final"])
        await rig.close()
    (line,) = [line for line in read_back(capsys) if line["event"] == "decision"]
    assert line["proposer"] in ("x" * LONGEST_NAME, None)


def test_a_line_is_not_lost_for_a_value_that_json_has_no_form_for(capsys: Any) -> None:
    log_to_stderr()
    structlog.get_logger("test").info("odd", value={1: object()}, text="ü\ud800")
    logging.getLogger("aiokafka").warning("below %s", "us")
    odd, below = read_back(capsys)
    assert (odd["event"], below["event"], below["logger"]) == ("odd", "below us", "aiokafka")


def test_a_failure_is_logged_with_its_traceback_in_one_line(capsys: Any) -> None:
    log_to_stderr()
    try:
        raise RuntimeError("why")
    except RuntimeError:
        structlog.get_logger("test").exception("failed")
    (line,) = read_back(capsys)
    assert "RuntimeError: why" in line["exception"]


@contextmanager
def unread() -> Iterator[tuple[Lines, BinaryIO]]:
    """Lines for a pipe that nobody reads yet, and its other end."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "wb") as writer:
        yield Lines(writer), reader


def test_who_logs_never_waits_for_who_reads_and_what_was_dropped_is_told() -> None:
    count, line = 50_000, b"x" * 200
    with unread() as (lines, reader):
        for number in range(count):
            lines.put(orjson.dumps({"number": number, "filled": line.decode()}))
        assert not lines.flush(within_s=0.01)
        assert 0 < lines.dropped < count
        assert lines.dropped * len(line) > count * len(line) - MOST_BYTES - 1_000_000, "bounded"
        *read, told = (orjson.loads(reader.readline()) for _ in range(count - lines.dropped + 1))
        assert [one["number"] for one in read] == [*range(count - lines.dropped)]
        assert (told["lines"], told["level"]) == (lines.dropped, "warning")
        lines.put(b"{}")
        assert reader.readline() == b"{}\n"


@pytest.mark.parametrize("blocking", [True, False])
def test_lines_are_whole_and_in_order_however_slowly_they_are_read(*, blocking: bool) -> None:
    with unread() as (lines, reader):
        os.set_blocking(lines.file.fileno(), blocking)
        for number in range(2_000):
            lines.put(str(number).encode() * 50)
        assert [reader.readline() for _ in range(2_000)] == [str(n).encode() * 50 + b"\n" for n in range(2_000)]
        assert lines.dropped == 0


def test_a_log_whose_reader_is_gone_raises_nothing() -> None:
    with unread() as (lines, reader):
        reader.close()
        for _ in range(3):
            lines.put(b"{}")
            assert lines.flush()
        assert lines.dropped == 3


async def test_a_guard_decides_on_while_nobody_reads_its_log() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"), os.fdopen(writing, "wb") as log, EmbeddedBroker() as broker:
        os.set_blocking(writing, False)
        while log.raw.write(b"x" * 65_536):  # type: ignore[attr-defined]
            pass  # until the pipe is full
        os.set_blocking(writing, True)
        log_to(log)
        settings = GuardSettings.embedded(broker.bootstrap_servers)
        rig = Rig(broker.bootstrap_servers)
        async with running(Guard(settings, contracts(), observers=[DecisionLog()])):
            await rig.open()
            await rig.send("telemetry", report("r1", 9))
            await rig.send("proposals", proposal("p1"))
            assert (await rig.decision("p1"))["action"] == "APPLY"
        await rig.close()
        assert dropped() == 0
