"""The simulated network: honest physics, within the bounds that the shipped contracts are written for."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulators.ran.actuator import Actuator, read_order
from simulators.ran.answers import Answering
from simulators.ran.layout import MOBILE, SLICES, USERS_PER_CELL, draw_layout
from simulators.ran.losses import MAX_SLOPE_DB_S, Blockage, Corner
from simulators.ran.reports import POLICY_SOURCE, Reporter, cell_id, index_of, source, user_id
from simulators.ran.scheduler import allocate_mhz
from simulators.ran.world import World
from simulators.scenario import UNSIGNED
from simulators.truth import is_safe
from xapp.model import Report
from xapp.radio.rate import rate_mbps

T0 = 1_790_000_000_000


def world(seed: int = 1, cells: int = 3, blockages: tuple[Blockage, ...] = ()) -> World:
    return World(draw_layout(seed, cells), T0, blockages)


def decision(bindings: dict[str, Any], released: dict[str, Any], **other: Any) -> dict[str, Any]:
    return {
        "format": "wirelessops.decision/1",
        "decision_id": "d-1",
        "proposal_id": "p-1",
        "attempt": 1,
        "final": True,
        "sequence": 1,
        "region": "r",
        "evidence": {"topic": "t", "partition": 0, "offset": 0},
        "action": "APPLY",
        "bindings": bindings,
        "released": released,
        "valid_until_ms": T0 + 500,
        **other,
    }


def quota(user: int, mhz: float) -> dict[str, Any]:
    bindings = {"cell": "1", "slice": "2", "ue": user_id(user)}
    return decision(bindings, {"bandwidth": {"value": mhz, "unit": "MHz"}})


SINGLE_USER = SLICES[0].users  # the first user of the second slice of the first cell


def test_every_cell_has_ten_users_in_three_slices() -> None:
    layout = draw_layout(1, 3)
    assert layout.users == 30
    assert USERS_PER_CELL == 10
    assert sorted(set(layout.slice_of.tolist())) == [0, 1, 2]


@pytest.mark.parametrize("cells", [2, 8])
def test_other_numbers_of_cells_are_refused(cells: int) -> None:
    with pytest.raises(ValueError, match="3 to 7"):
        draw_layout(1, cells)


def test_the_same_seed_and_steps_give_the_same_world_and_another_seed_another() -> None:
    first, second, other = world(3), world(3), world(4)
    for each in (first, second, other):
        for _ in range(20):
            each.step(50)
    assert np.array_equal(first.sinr_db, second.sinr_db)
    assert not np.array_equal(first.sinr_db, other.sinr_db)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_sinr_of_a_stationary_user_moves_faster_than_the_contracts_assume(seed: int) -> None:
    assert MAX_SLOPE_DB_S <= 4.0 + 1e-9  # the bound in slicing/1
    moving = world(seed, 7, (Blockage(0, T0 + 500, T0 + 3000), Blockage(4, T0 + 1000, T0 + 3500)))
    stationary = moving.layout.slice_of != MOBILE
    history = []
    for _ in range(160):
        moving.step(50)
        history.append(moving.sinr_db[stationary])
    slopes = np.abs(np.diff(np.array(history), axis=0)) / 0.05
    assert slopes.max() <= MAX_SLOPE_DB_S + 1e-6
    assert slopes.max() > 3.0  # the blockages are really there


@pytest.mark.parametrize("seed", [1, 2])
def test_no_difference_of_two_rsrps_moves_faster_than_the_contracts_assume(seed: int) -> None:
    moving = world(seed, 7)
    mobile = np.flatnonzero(moving.layout.slice_of == MOBILE)
    history = []
    for _ in range(300):
        moving.step(50)
        history.append([moving.rsrp_dbm[u, c.far] - moving.rsrp_dbm[u, c.near] for u in mobile
                        for c in [moving.layout.corner_of[int(u)]]])  # fmt: skip
    margins = np.array(history)
    assert (np.abs(np.diff(margins, axis=0)) / 0.05).max() <= MAX_SLOPE_DB_S + 1e-6
    assert ((margins.max(axis=0) > 3) & (margins.min(axis=0) < -3)).all()  # each user has somewhere to go, and back


def test_a_blocked_cell_loses_signal_and_gets_it_back() -> None:
    blocked, free = world(1, 3, (Blockage(0, T0 + 100, T0 + 2100),)), world(1, 3)
    user = SINGLE_USER
    lost = []
    for _ in range(100):
        blocked.step(50)
        free.step(50)
        lost.append(free.sinr_db[user] - blocked.sinr_db[user])
    assert max(lost) > 6.0
    assert lost[-1] == pytest.approx(0.0, abs=0.3)


def test_a_walk_round_a_corner_is_periodic_and_opens_either_cell() -> None:
    corner = Corner(near=0, far=1, phase_ms=0)
    tilts = [corner.tilt_db(at) for at in range(0, 60_000, 50)]
    assert max(tilts) == pytest.approx(8.0, abs=0.01)
    assert min(tilts) == pytest.approx(-8.0, abs=0.01)
    assert max(abs(b - a) for a, b in pairwise(tilts)) <= 3.6 * 0.05 + 1e-9


@settings(max_examples=50, deadline=None)
@given(quotas=st.lists(st.floats(0, 5), min_size=4, max_size=4), sinr=st.floats(-5, 30))
def test_a_slice_never_gives_more_than_it_has_and_keeps_quotas_that_fit(quotas: list[float], sinr: float) -> None:
    given_mhz = allocate_mhz(
        np.array(quotas), np.full(4, 100.0), np.full(4, sinr), np.zeros(4, dtype=np.int64), np.array([9.0])
    )
    assert given_mhz.sum() <= 9.0 + 1e-9
    if sum(quotas) <= 9.0:
        assert (given_mhz >= np.minimum(quotas, 100.0 / rate_mbps(1.0, sinr)) - 1e-9).all()


def test_reports_come_at_their_period_and_say_what_the_world_is() -> None:
    net = world()
    reporter = Reporter(net, 200)
    times = []
    for _ in range(21):
        for emission in reporter.due():
            if emission.source == source("e2", "kpm", "1"):
                assert isinstance(emission.message, Report)
                times.append(emission.message.event_time_ms - T0)
                said = {m.subject: m.value for m in emission.message.measurements if m.name == "SINR"}
                for user in np.flatnonzero(net.serving == 0):
                    assert said[f"cell:1/ue:{user_id(int(user))}"] == pytest.approx(
                        min(float(net.sinr_db[user]), 40.0), abs=0.051
                    )
        net.step(50)
    assert times == [0, 200, 400, 600, 800, 1000]


@pytest.mark.parametrize("period_ms", [50, 1500])
def test_other_reporting_periods_are_refused(period_ms: int) -> None:
    with pytest.raises(ValueError, match="100 to 1000"):
        Reporter(world(), period_ms)


def test_a_report_that_was_missed_is_not_made_up_for() -> None:
    net = world()
    reporter = Reporter(net)
    reporter.due()
    net.step(1000)
    sources = [emission.source for emission in reporter.due() if emission.source != POLICY_SOURCE]
    assert len(sources) == len(set(sources))


def test_an_order_is_carried_out_once_and_shows_its_effect() -> None:
    net = world()
    actuator = Actuator(net, UNSIGNED)
    first = actuator.receive(quota(SINGLE_USER, 1.5))
    assert first is not None
    assert first.kind == "applied"
    assert net.quota_mhz[SINGLE_USER] == 1.5
    again = actuator.receive(quota(SINGLE_USER, 1.5))
    assert again is not None
    assert (again.kind, again.reason) == ("refused", "carried out before")
    assert actuator.effects() == []
    net.step(200)
    assert [effect.kind for effect in actuator.effects()] == ["effect"]
    assert actuator.effects() == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"valid_until_ms": T0 - 1}, "expired 1 ms ago"),
        ({"valid_until_ms": None}, "no end of validity"),
        ({"released": None}, "releases nothing"),
        ({"released": {}}, "cannot be read"),
        ({"released": {"bandwidth": {"value": 3, "unit": "kHz"}}}, "MHz is needed"),
        ({"bindings": {"cell": "1", "slice": "2", "ue": "999"}}, "no such user"),
    ],
)
def test_what_may_not_be_carried_out_is_refused_and_changes_nothing(change: dict[str, Any], reason: str) -> None:
    net = world()
    before = net.quota_mhz.copy()
    outcome = Actuator(net, UNSIGNED).receive(quota(SINGLE_USER, 1.5) | change)
    assert outcome is not None
    assert outcome.kind == "refused"
    assert reason in outcome.reason
    assert np.array_equal(net.quota_mhz, before)


def test_authority_holds_to_the_last_millisecond() -> None:
    outcome = Actuator(world(), UNSIGNED).receive(quota(SINGLE_USER, 1.5) | {"valid_until_ms": T0})
    assert outcome is not None
    assert outcome.kind == "applied"


@pytest.mark.parametrize("action", ["HOLD", "RETRY", "ESCALATE", "ABSTAIN"])
def test_a_refusal_orders_nothing(action: str) -> None:
    assert Actuator(world(), UNSIGNED).receive(quota(SINGLE_USER, 1.5) | {"action": action, "released": None}) is None


def test_a_user_is_handed_over_only_by_the_cell_that_serves_it() -> None:
    net = world()
    user = int(np.flatnonzero((net.layout.slice_of == MOBILE) & (net.serving == 0))[0])
    bindings = {"ue": user_id(user), "serving": "1", "target": "2"}
    actuator = Actuator(net, UNSIGNED)
    moved = actuator.receive(decision(bindings, {}))
    late = actuator.receive(decision(bindings, {}, decision_id="d-2", proposal_id="p-2", sequence=2))
    assert moved is not None
    assert late is not None
    assert (moved.kind, late.kind) == ("applied", "refused")
    assert net.serving[user] == 1


def test_the_truth_of_a_quota_is_the_rate_it_carries_and_the_room_there_is() -> None:
    net = world()
    need = float(net.min_rate_mbps[SINGLE_USER]) / float(rate_mbps(1.0, net.sinr_db[SINGLE_USER]))
    share = SLICES[1].capacity_mhz - float(net.quota_mhz[SINGLE_USER + 1])
    bindings = {"cell": "1", "ue": user_id(SINGLE_USER)}

    def safe(mhz: float) -> bool:
        return is_safe(net, read_order(bindings, {"bandwidth": {"value": mhz, "unit": "MHz"}}))

    assert safe(need * 1.001)
    assert not safe(need * 0.999)
    assert safe(share)
    assert not safe(share * 1.001)


def test_the_truth_of_a_handover_is_whether_the_target_is_better() -> None:
    net = world()
    for user in np.flatnonzero(net.layout.slice_of == MOBILE):
        serving = int(net.serving[user])
        for target in range(net.layout.cells):
            bindings = {"ue": user_id(int(user)), "serving": cell_id(serving), "target": cell_id(target)}
            better = target != serving and net.rsrp_dbm[user, target] >= net.rsrp_dbm[user, serving]
            assert is_safe(net, read_order(bindings, {})) == better


def test_a_handover_of_a_user_that_has_left_is_unsafe_and_a_quota_for_it_idle() -> None:
    net = world()
    user = int(np.flatnonzero(net.layout.slice_of == MOBILE)[0])
    home = cell_id(int(net.serving[user]))
    target = (int(net.serving[user]) + 1) % 3
    order = read_order({"ue": user_id(user), "serving": home, "target": cell_id(target)}, {})
    idle = read_order({"cell": home, "ue": user_id(user)}, {"bandwidth": {"value": 0.01, "unit": "MHz"}})
    assert not is_safe(net, idle)  # far too little while it is there
    net.hand_over(user, target)
    assert not is_safe(net, order)
    assert is_safe(net, idle)


def test_a_request_is_answered_once_after_its_back_off_and_only_by_a_source_that_is_up() -> None:
    out = {"e2:gnb-du-1"}
    answering = Answering(Reporter(world()), out.__contains__)
    request = {"source": "e2:gnb-du-1", "issued_at_ms": T0, "after_ms": 300, "deadline_ms": T0 + 1000}
    answering.receive(request, 500)
    assert answering.due(T0 + 299) == []
    assert answering.due(T0 + 400) == []
    out.clear()
    assert [emission.source for emission in answering.due(T0 + 500)] == ["e2:gnb-du-1"]
    assert answering.due(T0 + 600) == []


def test_a_request_is_forgotten_after_its_deadline() -> None:
    answering = Answering(Reporter(world()), lambda name: False)
    answering.receive({"source": "e2:gnb-du-1", "issued_at_ms": T0, "after_ms": 300, "deadline_ms": T0 + 400}, 500)
    assert answering.due(T0 + 401) == []


@pytest.mark.parametrize("bad", ["x", "", "1.5"])
def test_ids_that_are_no_numbers_are_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        index_of(bad)
