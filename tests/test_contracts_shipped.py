"""The shipped contracts: they load, say where their thresholds come from, and keep what their margins promise."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from xapp.contract import Contract
from xapp.contracts import NAMES, shipped, text
from xapp.engine import assure
from xapp.model import Decision, Episode, Observation, Proposal
from xapp.radio.rate import rate_mbps

T = 1_790_000_000_000


def observed(name: str, value: float, unit: str, source: str, subject: str, age_ms: int = 100) -> Observation:
    event, identity = T - age_ms, f"{source}|{subject}|{name}|{age_ms}"
    arrival = event + min(2, age_ms)
    return Observation(identity, name, value, unit, source, event, arrival, version=event, subject=subject)


def decide(contract_id: str, bindings: dict[str, Any], plan: dict[str, Any], seen: list[Observation]) -> Decision:
    contract = shipped()[contract_id]
    key = contract.resolve(bindings).control_key
    assert key is not None
    raw = {"proposal_id": "p", "proposer": "x", "created_at_ms": T - 10, "control_key": key, "plan": plan}
    proposal = Proposal("p", "x", T - 10, key, plan, bindings=bindings)
    return assure(Episode("e", T, contract, tuple(seen), proposal, raw))


def mhz(value: Any) -> dict[str, Any]:
    return {"bandwidth": {"value": value, "unit": "MHz"}}


def single_user(sinr_db: float, age_ms: int = 100, min_rate: float = 1.0) -> list[Observation]:
    du = "e2:gnb-du-1"
    return [
        observed("SINR", sinr_db, "dB", du, "cell:1/ue:5", age_ms),
        observed("capacity", 4.0, "MHz", du, "cell:1/slice:2"),
        observed("users", 2, "1", du, "cell:1/slice:2"),
        observed("min_rate", min_rate, "Mbit/s", "a1:policy", "cell:1/slice:2"),
    ]


ONE = {"cell": "1", "slice": "2", "ue": "5"}


def test_all_four_are_shipped_under_their_ids() -> None:
    assert set(shipped()) == {"wireless-calculation/1", "slicing/1", "slicing-multi/1", "handover/1"}


@pytest.mark.parametrize("name", NAMES)
def test_each_states_its_limits_with_an_origin(name: str) -> None:
    written = text(name)
    contract: Contract = shipped()[yaml.safe_load(written)["contract_id"]]
    assert all(f.freshness_ms > 0 and f.sources for f in contract.fields.values() if f.kind == "observed")
    assert written.startswith("#")
    assert "3GPP" in written


@pytest.mark.parametrize("contract_id", ["slicing/1", "slicing-multi/1", "handover/1"])
def test_radio_fields_are_fresh_for_less_than_a_second(contract_id: str) -> None:
    fields = shipped()[contract_id].fields
    radio = [fields[name] for name in ("sinr", "rsrp_serving", "rsrp_target") if name in fields]
    assert radio
    assert all(300 <= f.freshness_ms <= 1000 for f in radio)


def test_a_right_answer_is_released_and_a_wrong_one_recomputed() -> None:
    seen = [observed("bandwidth", 10.0, "MHz", "e2:gnb-du-1", "cell:1/ue:5"),
            observed("sinr", 0.0, "dB", "e2:gnb-du-1", "cell:1/ue:5")]  # fmt: skip
    bindings = {"cell": "1", "ue": "5"}
    right = decide("wireless-calculation/1", bindings, {"answer": {"value": 10.05, "unit": "Mbit/s"}}, seen)
    wrong = decide("wireless-calculation/1", bindings, {"answer": {"value": 33.2, "unit": "Mbit/s"}}, seen)
    assert right.action == wrong.action == "APPLY"
    assert right.released is not None
    assert wrong.released is not None
    assert right.released["answer"]["value"] == 10.05  # within 1 % of 10·log2(1 + 1)
    assert wrong.released["answer"]["value"] == pytest.approx(10.0)
    assert [repair.operator for repair in wrong.repairs] == ["recompute"]


@settings(max_examples=40, deadline=None)
@given(sinr=st.floats(-3, 40), proposed=st.floats(0.01, 1.9), age=st.integers(0, 800))
def test_a_released_share_carries_the_rate_after_all_that_its_evidence_may_have_lost(
    sinr: float, proposed: float, age: int
) -> None:
    decision = decide("slicing/1", ONE, mhz(proposed), single_user(sinr, age))
    if decision.action == "APPLY":
        assert decision.released is not None
        share = decision.released["bandwidth"]["value"]
        worst_db = sinr - 4.0 * 0.8  # 4 dB/s over the whole freshness limit
        assert float(rate_mbps(share, worst_db)) >= 1.0
        assert 2 * share <= 4.0
    assert decision.action in ("APPLY", "ABSTAIN")


def test_a_share_planned_on_a_better_channel_is_recomputed_from_the_present_one() -> None:
    optimistic = float(1.0 / rate_mbps(1.0, 20.0 - 3.9))
    decision = decide("slicing/1", ONE, mhz(round(optimistic, 3)), single_user(10.0))
    assert decision.action == "APPLY"
    assert [r.operator for r in decision.repairs if r.field == "bandwidth"] == ["recompute"]
    assert decision.released is not None
    assert decision.released["bandwidth"]["value"] > optimistic


def test_stale_sinr_holds() -> None:
    assert decide("slicing/1", ONE, mhz(0.5), single_user(10.0, 800)).action == "APPLY"
    assert decide("slicing/1", ONE, mhz(0.5), single_user(10.0, 801)).action == "HOLD"


def many_users(sinrs: dict[str, float]) -> list[Observation]:
    du = "e2:gnb-du-1"
    return [
        *(observed("SINR", value, "dB", du, f"cell:1/ue:{user}") for user, value in sinrs.items()),
        observed("capacity", 9.0, "MHz", du, "cell:1/slice:1"),
        observed("min_rate", 2.0, "Mbit/s", "a1:policy", "cell:1/slice:1"),
    ]


@pytest.mark.parametrize(
    ("shares", "action"),
    [
        ({"1": 2.0, "2": 4.0}, "APPLY"),
        ({"1": 2.0, "2": 7.1}, "ABSTAIN"),  # 9.1 MHz of 9
        ({"1": 0.5, "2": 4.0}, "ABSTAIN"),  # user 1: 0.5·log2(1 + 10^0.65) = 1.23 Mbit/s of 2
    ],
)
def test_a_plan_for_many_fits_the_slice_and_serves_each(shares: dict[str, float], action: str) -> None:
    bindings = {"cell": "1", "slice": "1", "ue": ("1", "2")}
    decision = decide("slicing-multi/1", bindings, mhz(shares), many_users({"1": 10.0, "2": 3.0}))
    assert decision.action == action


def test_a_plan_for_many_needs_fresh_evidence_of_each() -> None:
    bindings = {"cell": "1", "slice": "1", "ue": ("1", "2")}
    assert decide("slicing-multi/1", bindings, mhz({"1": 2.0, "2": 4.0}), many_users({"1": 10.0})).action == "HOLD"


def rsrp(margins: dict[int, float]) -> list[Observation]:
    """Samples of both cells; age in ms → margin in dB."""
    cu = "e2:gnb-cu-1"
    return [
        sample
        for age, margin in margins.items()
        for sample in (
            observed("L1M.SS-RSRP", -95.0, "dBm", cu, "ue:7/cell:1", age),
            observed("L1M.SS-RSRPNrNbr", -95.0 + margin, "dBm", cu, "ue:7/cell:2", age),
        )
    ]


@pytest.mark.parametrize(
    ("margins", "action"),
    [
        (dict.fromkeys(range(50, 700, 100), 3.0), "APPLY"),
        (dict.fromkeys(range(50, 700, 100), 2.9), "ABSTAIN"),
        ({age: 3.0 if age != 350 else 2.9 for age in range(50, 700, 100)}, "HOLD"),
        (dict.fromkeys((50, 600, 700), 3.0), "HOLD"),
    ],
    ids=["sustained", "too little", "a dip", "a gap"],
)
def test_a_handover_needs_its_margin_for_the_whole_trigger_time(margins: dict[int, float], action: str) -> None:
    assert decide("handover/1", {"ue": "7", "serving": "1", "target": "2"}, {}, rsrp(margins)).action == action
