"""The demo: what it must show, first in simulated time over many seeds, then for real over the embedded broker."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from simulators.faults.base import KINDS
from simulators.proposers.base import DEADLINE_MS, Draft, drive
from simulators.proposers.handover import HandoverXapp
from simulators.proposers.slicing import Loop, SliceXapp
from simulators.rehearsal import Lag, Rehearsal
from simulators.scenario import build_scenario
from simulators.tally import COUNTS, Tally
from streams.demo_view import LiveShow, PlainShow, print_result, show_for, summary
from xapp.contracts import shipped
from xapp.model import Measurement, Report

pytestmark = pytest.mark.live  # guards in processes of their own

ROOT = Path(__file__).parent.parent
T0 = 1_790_000_000_000
PROMPT = Lag()
FAULTS = [kind for kind in KINDS if kind != "none"]


def rehearse(seed: int, lag: Lag = PROMPT, seconds: float = 20) -> tuple[dict[str, Any], Rehearsal]:
    rehearsal = Rehearsal(build_scenario(seed, seconds, T0), shipped(), T0, lag)
    rehearsal.run(seconds)
    return rehearsal.document(), rehearsal


@pytest.mark.parametrize("seed", [7, 11, 12, 2026])
def test_no_unsafe_order_is_carried_out_and_nearly_all_safe_ones_are(seed: int) -> None:
    document, _ = rehearse(seed)
    totals = document["totals"]
    assert totals["unsafe_with_guard"] == 0
    assert totals["safe_kept"] >= 0.97 * totals["safe"]
    for kind in FAULTS:
        row = document["kinds"][kind]
        assert row["proposals"] >= 20
        assert row["unsafe_without_guard"] >= 5
        assert row["safe_kept"] > 0
    assert document["kinds"]["none"]["unsafe_without_guard"] == 0


@pytest.mark.parametrize("lag", [Lag(200, 200), Lag(50, 500)])
def test_a_slow_machine_keeps_less_and_stays_safe(lag: Lag) -> None:
    document, _ = rehearse(7, lag)
    assert document["totals"]["unsafe_with_guard"] == 0
    assert document["totals"]["safe_kept"] < rehearse(7)[0]["totals"]["safe_kept"]


def test_refusals_and_repairs_of_every_sort_happen() -> None:
    _, rehearsal = rehearse(7)
    actions = {decision.action for decision in rehearsal.decisions}
    operators = {repair.operator for decision in rehearsal.decisions for repair in decision.repairs}
    codes = {violation.code for decision in rehearsal.decisions for violation in decision.violations}
    assert actions == {"APPLY", "HOLD", "RETRY", "ESCALATE", "ABSTAIN"}
    assert {"rename", "convert_unit", "substitute_source", "recompute"} <= operators
    assert {"stale", "outage", "conflict", "ambiguous_unit", "constraint"} <= codes


def test_a_rehearsal_is_the_seeds_own() -> None:
    one, first = rehearse(3, seconds=5)
    two, second = rehearse(3, seconds=5)
    assert one == two
    assert [d.decision_id for d in first.decisions] == [d.decision_id for d in second.decisions]
    assert one != rehearse(4, seconds=5)[0]


def test_without_the_guard_the_same_proposals_do_harm() -> None:
    document, _ = rehearse(7)
    assert sum(document["kinds"][kind]["unsafe_without_guard"] for kind in FAULTS) > 100


def test_a_tally_adds_up() -> None:
    tally = Tally()
    tally.proposed("a", "schema", safe=True)
    tally.proposed("b", "schema", safe=False)
    tally.proposed("c", "none", safe=True)
    tally.decided("a", "RETRY")
    tally.decided("a", "APPLY")
    tally.decided("b", "ABSTAIN")
    tally.applied("a", safe=True)
    tally.applied("c", safe=False)
    document = tally.document()
    assert [document["kinds"]["schema"][count] for count in COUNTS] == [2, 1, 0, 1, 1]
    assert [document["kinds"]["none"][count] for count in COUNTS] == [1, 0, 1, 1, 0]
    assert [document["totals"][count] for count in COUNTS] == [3, 1, 1, 2, 1]
    assert document["totals"]["actions"]["APPLY"] == document["totals"]["actions"]["ABSTAIN"] == 1
    assert document["totals"]["actions"]["unanswered"] == 1


def test_an_unsafe_order_that_nobody_proposed_is_counted_all_the_same() -> None:
    tally = Tally()
    tally.applied("unknown", safe=False)
    assert tally.document()["totals"]["unsafe_with_guard"] == 1


def report(*measurements: Measurement) -> Report:
    return Report("r", "e2", T0, measurements)


def test_the_slice_xapp_plans_on_the_last_number_it_saw_whatever_its_unit_or_age() -> None:
    xapp = SliceXapp([Loop("1", "2", ("5",), single=True)], T0)
    place = "cell:1/slice:2"
    capacity = Measurement("capacity", 4.0, "MHz", subject=place)
    xapp.see(report(capacity, Measurement("min_rate", 1.0, "Mbit/s", subject=place)), T0)
    assert xapp.due(T0) == []  # no SINR yet
    xapp.see(report(Measurement("SINR", 3.9, "dB", subject="cell:1/ue:5")), T0)
    (draft,) = xapp.due(T0 + 500)
    assert draft.plan == {"bandwidth": {"value": 1.0, "unit": "MHz"}}  # 0 dB after its headroom: 1 bit/s/Hz
    assert xapp.due(T0 + 600) == []
    xapp.see(report(Measurement("min_rate", 0.5, "Gbit/s", subject=place)), T0 + 900)
    (later,) = xapp.due(T0 + 60_000)
    assert later.plan["bandwidth"]["value"] == 0.5


def test_the_handover_xapp_counts_time_by_its_own_clock() -> None:
    xapp = HandoverXapp()
    xapp.see(report(Measurement("L1M.SS-RSRP", -95.0, "dBm", subject="ue:7/cell:1"),
                    Measurement("L1M.SS-RSRPNrNbr", -90.0, "dBm", subject="ue:7/cell:2")), T0)  # fmt: skip
    assert xapp.due(T0) == []
    assert xapp.due(T0 + 639) == []
    (draft,) = xapp.due(T0 + 640)  # nothing new has arrived
    assert draft.bindings == {"ue": "7", "serving": "1", "target": "2"}
    assert xapp.due(T0 + 1100) == []
    assert len(xapp.due(T0 + 1140)) == 1


async def test_a_proposer_is_driven_until_stopped_and_its_answers_are_awaited() -> None:
    asked: list[int] = []
    all_asked, release, stop = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Once:
        name = "once"
        deadline_ms = DEADLINE_MS

        def see(self, report: Report, now_ms: int) -> None: ...

        def due(self, now_ms: int) -> list[Draft]:
            stop.set()
            return [Draft("slicing/1", {}, "k", {}), Draft("slicing/1", {}, "late", {})]

    class SlowGuard:
        answered = 0

        async def propose(self, *, control_key: str, deadline_ms: int, **others: Any) -> dict[str, Any]:
            asked.append(deadline_ms)
            if len(asked) == 2:
                all_asked.set()
            if control_key == "late":
                raise TimeoutError
            await release.wait()
            SlowGuard.answered += 1
            return {"action": "APPLY"}

    driving = asyncio.create_task(drive(Once(), SlowGuard(), lambda: T0, 0.01, stop))
    async with asyncio.timeout(5):
        await all_asked.wait()
        assert not driving.done()
        release.set()
        await driving
    assert asked == [T0 + DEADLINE_MS] * 2
    assert SlowGuard.answered == 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_the_live_view_and_a_pipe_plain_lines() -> None:
    assert isinstance(show_for(Terminal(), 20, 7, as_json=False), LiveShow)
    assert isinstance(show_for(io.StringIO(), 20, 7, as_json=False), PlainShow)


def test_the_live_view_tells_of_refusals_and_repairs() -> None:
    out = Terminal()
    decision = {"action": "HOLD", "repairs": [], "control_key": "cell:1/slice:1/prb", "explanation": "sinr is stale"}
    with show_for(out, 20, 7, as_json=False) as show:
        show.said(1.5, decision)
        show.said(1.6, {**decision, "action": "APPLY", "control_key": "untold", "repairs": [{"operator": "rename"}]})
        show.said(1.7, {**decision, "action": "APPLY", "repairs": [{"operator": "recompute"}]})
        show.update(1.7, Tally().document())
    assert "sinr is stale" in out.getvalue()
    assert "repaired: recompute" in out.getvalue()
    assert "untold" not in out.getvalue()


def test_the_table_has_a_row_for_each_kind_and_the_sum() -> None:
    document, _ = rehearse(3, seconds=5)
    out = io.StringIO()
    print_result(out, document)
    rows = [line for line in out.getvalue().splitlines() if "│" in line]
    assert len(rows) == len(KINDS) + 1
    assert f" {document['totals']['proposals']} " in rows[-1]
    assert summary(document) in " ".join(out.getvalue().split())


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def start(*options: str) -> subprocess.Popen[str]:
    code = "from streams.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "demo", *options],
        cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_the_demo_runs_over_the_broker_and_ends_by_itself() -> None:
    began = time.monotonic()
    process = start("--seconds", "8", "--seed", "7", "--json")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert time.monotonic() - began < 8 + 10
    document = json.loads(out)
    assert document["seed"] == 7
    assert document["seconds"] == pytest.approx(8, abs=1)
    totals = document["totals"]
    assert totals["proposals"] > 200
    assert totals["unsafe_with_guard"] == 0
    assert totals["unsafe_without_guard"] > 10
    assert totals["safe_kept"] >= 0.9 * totals["safe"]
    assert totals["actions"]["unanswered"] == 0
    assert set(document["kinds"]) == set(KINDS)


def test_an_interrupt_ends_the_demo_cleanly_with_the_counts_so_far() -> None:
    process = start("--seconds", "60", "--seed", "7")
    assert process.stdout is not None
    for line in process.stdout:
        if "proposals" in line and "proposals 0" not in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=15)
    assert process.returncode == 130
    assert "total" in out
    assert "Traceback" not in err
