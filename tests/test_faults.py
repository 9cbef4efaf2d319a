"""Faults: what they do to reports, where and when, and that they leave everything else alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from simulators.faults.base import KINDS, TAIL_MS, Fault, FaultLine, Scope
from simulators.faults.brownout import Brownout
from simulators.faults.conflict import Disagree
from simulators.faults.freshness import Delay, Freeze, Reorder
from simulators.faults.schedule import DECK, draw_schedule
from simulators.faults.schema import Rewrite, recounted, renamed
from simulators.ran.emission import Emission, Service, SourceNote
from simulators.ran.layout import draw_layout
from simulators.ran.losses import MAX_SLOPE_DB_S
from xapp.model import Measurement, Report, SourceState

T0 = 1_790_000_000_000
START, END = T0 + 1000, T0 + 2000


def scope(**change: object) -> Scope:
    services: frozenset[Service] = frozenset({"kpm"})
    return Scope("1", services, START, END, **change)  # type: ignore[arg-type]


def emission(
    at_ms: int, *, cell: str = "1", service: Service = "kpm", name: str = "SINR", source: str = "e2"
) -> Emission:
    sinr = Measurement(name, 10.0 + (at_ms - T0) / 1000, "dB", subject=f"cell:{cell}/ue:7")
    report = Report(f"{source}/{at_ms}", source, at_ms, (sinr, Measurement("load", 5, "%")), version=at_ms)
    return Emission(cell, service, report)


def reports(emissions: Sequence[Emission]) -> list[Report]:
    return [e.message for e in emissions if isinstance(e.message, Report)]


def play(fault: Fault, *, step_ms: int = 100, until_ms: int = 5000) -> list[tuple[int, Emission]]:
    """(arrival, message) of one source that reports each 100 ms, through one fault."""
    line = FaultLine([fault])
    return [(at, e) for at in range(T0, T0 + until_ms, step_ms) for e in line.carry([emission(at)], at)]


def age_at_arrival(arrived: list[tuple[int, Emission]]) -> dict[int, int]:
    return {at - T0: at - e.message.event_time_ms for at, e in arrived if isinstance(e.message, Report)}


ALL = [
    Freeze(scope(), harmful=True),
    Delay(scope(), harmful=True, delay_ms=700),
    Delay(scope(), harmful=True, ahead_ms=5000),
    Reorder(scope(), harmful=True, delays_ms=(0, 300, 900), seed=1),
    Brownout(scope(), harmful=True, sources=["e2"], state=SourceState("outage", True, 200, 2)),
    Disagree(scope(), harmful=True, names=["SINR"], offset=8.0),
    Rewrite(scope(), harmful=True, changes={"SINR": renamed("X")}),
]


@pytest.mark.parametrize("fault", ALL, ids=lambda f: type(f).__name__)
def test_outside_its_window_its_cell_and_its_service_a_fault_changes_nothing(fault: Fault) -> None:
    line = FaultLine([fault])
    for at in range(T0, START, 100):
        assert line.carry([emission(at)], at) == [emission(at)]
    for at in range(START, END, 100):
        others = [emission(at, cell="2"), emission(at, service="policy")]
        passed = line.carry(others, at)
        assert [e for e in passed if isinstance(e.message, Report)] == others
    line.carry([], END)
    assert line.carry([emission(END + 100)], END + 100) == [emission(END + 100)]


def test_a_frozen_source_repeats_its_report_under_its_own_time_and_new_ids() -> None:
    frozen = [e.message for at, e in play(Freeze(scope(), harmful=True)) if START <= at < END]
    assert len({report.report_id for report in frozen if isinstance(report, Report)}) == 10
    assert {report.event_time_ms for report in frozen} == {START}
    (first,) = reports([emission(START)])
    assert {report.measurements for report in frozen if isinstance(report, Report)} == {first.measurements}


def test_what_is_delayed_comes_late_and_nothing_is_lost() -> None:
    arrived = play(Delay(scope(), harmful=True, delay_ms=700))
    ages = age_at_arrival(arrived)
    assert {ages[at] for at in range(1700, 2000, 100)} == {700}
    assert all(at not in ages for at in range(1000, 1700, 100))
    assert sorted(e.message.event_time_ms for _, e in arrived) == list(range(T0, T0 + 5000, 100))


def test_a_fast_clock_stamps_the_future_and_delays_nothing() -> None:
    ages = age_at_arrival(play(Delay(scope(), harmful=True, ahead_ms=5000)))
    assert {ages[at] for at in range(1000, 2000, 100)} == {-5000}


def test_reordered_reports_arrive_after_newer_ones_and_nothing_is_lost() -> None:
    arrived = play(Reorder(scope(), harmful=True, delays_ms=(0, 300, 900), seed=1))
    times = [e.message.event_time_ms for _, e in arrived]
    assert sorted(times) == list(range(T0, T0 + 5000, 100))
    assert times != sorted(times)


def test_reordering_is_the_seeds_own() -> None:
    def order(seed: int) -> list[int]:
        fault = Reorder(scope(), harmful=True, delays_ms=(0, 300, 900), seed=seed)
        return [e.message.event_time_ms for _, e in play(fault)]

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_a_source_in_a_brownout_says_so_is_silent_and_says_that_it_is_back() -> None:
    state = SourceState("outage", retryable=True, retry_after_ms=200, retries_left=2)
    fault = Brownout(scope(), harmful=True, sources=["e2"], state=state)
    arrived = play(fault)
    notes = [(at - T0, e.message) for at, e in arrived if isinstance(e.message, SourceNote)]
    assert notes == [(1000, SourceNote("e2", state, START)), (2000, SourceNote("e2", SourceState("up"), END))]
    assert not any(START <= at < END for at, e in arrived if isinstance(e.message, Report))


def test_only_sources_in_a_brownout_are_out_and_only_while_it_lasts() -> None:
    line = FaultLine([Brownout(scope(), harmful=True, sources=["e2"], state=SourceState("outage"))])
    answers = []
    for at in (T0, START, END):
        line.carry([], at)
        answers.append((line.is_out("e2"), line.is_out("o1")))
    assert answers == [(False, False), (True, False), (False, False)]


def test_a_dissenter_changes_only_the_named_metric_of_its_users() -> None:
    fault = Disagree(scope(users=frozenset({"7"})), harmful=True, names=["SINR"], offset=8.0)
    (report,) = reports(fault.take(emission(START), START))
    (same,) = reports([emission(START)])
    assert report.measurements[0].value == same.measurements[0].value + 8.0  # type: ignore[operator]
    assert report.measurements[1] == same.measurements[1]
    stranger = Disagree(scope(users=frozenset({"8"})), harmful=True, names=["SINR"], offset=8.0)
    assert stranger.take(emission(START), START) == [emission(START)]


@pytest.mark.parametrize("declared", [True, False])
def test_a_recounted_metric_is_the_same_quantity_and_says_its_unit_or_not(declared: bool) -> None:
    rate = recounted("Gbit/s", declared=declared)(Measurement("min_rate", 2.0, "Mbit/s"))
    power = recounted("W", declared=declared)(Measurement("rsrp", -60.0, "dBm"))
    assert rate.value == pytest.approx(0.002)
    assert power.value == pytest.approx(1e-9)  # -60 dBm is a nanowatt
    assert (rate.unit, power.unit) == (("Gbit/s", "W") if declared else (None, None))


def test_a_proposal_belongs_to_the_fault_that_acts_on_its_evidence_or_has_just_ended() -> None:
    line = FaultLine([Freeze(scope(users=frozenset({"7"})), harmful=True)])
    kpm: frozenset[Service] = frozenset({"kpm"})

    def kind(at_ms: int, cell: str = "1", service: frozenset[Service] = kpm, user: str = "7") -> str:
        return line.kind_at(at_ms, cell, service, frozenset({user}))

    assert kind(START) == kind(END - 1) == kind(END + TAIL_MS - 1) == "freshness"
    assert kind(START - 1) == kind(END + TAIL_MS) == "none"
    assert kind(START, cell="2") == kind(START, service=frozenset({"mobility"})) == kind(START, user="8") == "none"


@pytest.mark.parametrize("first", range(len(DECK)))
def test_any_four_groups_in_a_row_hold_each_kind_harmful_too(first: int) -> None:
    struck = [entry.make("1", T0, 1) for i in range(4) for entry in DECK[(first + i) % len(DECK)]]
    assert {fault.kind for fault in struck} == set(KINDS) - {"none"}
    assert {fault.kind for fault in struck if fault.harmful} == set(KINDS) - {"none"}


@pytest.mark.parametrize("seed", range(6))
def test_what_makes_reports_stale_comes_with_a_change_of_the_network(seed: int) -> None:
    schedule = draw_schedule(draw_layout(seed, 7), T0, 20, seed)
    blocked = {(str(b.cell + 1), b.start_ms) for b in schedule.blockages}
    for fault in schedule.faults:
        if fault.harmful and isinstance(fault, Freeze | Delay | Reorder | Brownout):
            assert (fault.scope.cell, fault.scope.start_ms) in blocked


@pytest.mark.parametrize("seed", range(6))
def test_no_two_faults_strike_the_same_reports_and_no_blockages_overlap(seed: int) -> None:
    schedule = draw_schedule(draw_layout(seed, 7), T0, 30, seed)
    for i, one in enumerate(schedule.faults):
        for other in schedule.faults[i + 1 :]:
            a, b = one.scope, other.scope
            if a.cell == b.cell and a.services & b.services:
                assert a.end_ms <= b.start_ms or b.end_ms <= a.start_ms
    for cell in range(7):
        mine = [b for b in schedule.blockages if b.cell == cell]
        losses = np.array([sum(b.loss_db(at) for b in mine) for at in range(T0, T0 + 30_000, 50)])
        assert np.abs(np.diff(losses)).max() <= MAX_SLOPE_DB_S * 0.05 + 1e-9


def test_the_schedule_is_the_seeds_own() -> None:
    def windows(seed: int) -> list[tuple[str, str, int]]:
        schedule = draw_schedule(draw_layout(1, 7), T0, 20, seed)
        return [(type(f).__name__, f.scope.cell, f.scope.start_ms) for f in schedule.faults]

    assert windows(1) == windows(1)
    assert windows(1) != windows(2)
