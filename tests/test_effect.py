"""Section 7: whether a control had its effect; and what a contract's `control` may say."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from episodes import CONTRACT, T
from hypothesis import given, settings
from hypothesis import strategies as st

from xapp.contract import Contract, ContractError
from xapp.contract_loading import load_contract
from xapp.effect import judge_effect
from xapp.model import AppliedControl, Observation, SourceState

APPLIED = T - 1000
CONTROL = AppliedControl(
    "cell:1/slice:1/prb", "d", "p", {"bandwidth": {"value": 10.0, "unit": "MHz"}}, T - 1100,
    contract_id="test-slicing/1", applied_at_ms=APPLIED, outcome="applied", effect_within_ms=3000,
)  # fmt: skip


def contract(expr: str = "rate >= min_rate", moved: tuple[str, ...] = (), **control: Any) -> Contract:
    document = copy.deepcopy(CONTRACT)
    document["control"] = {"effect": {"expr": expr, "within_ms": 3000}, **control}
    for name in moved:
        document["fields"][name]["moved_by_control"] = True
    return load_contract(document)


def seen(name: str, value: Any, at: int, source: str = "rt", unit: str | None = None, **more: Any) -> Observation:
    return Observation(f"{name}@{at}", name, value, unit, source, at, at, **more)


def cqi(value: Any = 10, at: int = T, **more: Any) -> Observation:
    return seen("cqi", value, at, **more)


def min_rate(value: float = 20, at: int = T) -> Observation:
    return seen("min_rate", value, at, "a1", "Mbit/s")


def judged(*observations: Observation, t: int = T, control: AppliedControl = CONTROL, **more: Any) -> bool | None:
    return judge_effect(contract(**more), control, observations, {}, t)


def test_the_effect_is_judged_on_what_was_measured_after_the_acknowledgement() -> None:
    assert judged(cqi(), min_rate()) is True
    assert judged(cqi(), min_rate(60)) is False  # rate is 34.6 Mbit/s
    assert judged(cqi(at=APPLIED), min_rate()) is None
    assert judged(cqi(at=APPLIED + 1), min_rate(at=APPLIED + 1)) is True
    assert judged(cqi(), min_rate(at=APPLIED)) is None


def test_where_the_contract_says_what_the_control_moves_only_that_must_be_newer() -> None:
    assert judged(cqi(), min_rate(at=APPLIED - 5000), moved=("cqi",)) is True
    assert judged(cqi(at=APPLIED), min_rate(), moved=("cqi",)) is None
    assert judged(min_rate(at=T), expr="min_rate >= 10", moved=("cqi",)) is True
    assert judged(min_rate(at=APPLIED), expr="min_rate >= 10", moved=("cqi",)) is None


def test_the_planned_values_are_those_that_were_released() -> None:
    more = replace(CONTROL, values={"bandwidth": {"value": 20_000, "unit": "kHz"}})
    assert judged(cqi(), min_rate(60), control=more) is True
    for values in ({}, {"bandwidth": {"value": 1, "unit": "W"}}, {"width": {"value": 1, "unit": "1"}}):
        assert judged(cqi(), min_rate(), control=replace(CONTROL, values=values)) is None


@pytest.mark.parametrize(
    "observations",
    [
        (), (cqi(),), (min_rate(),), (cqi(quality="suspect"), min_rate()), (cqi(unit="W"), min_rate()),
        (cqi(99), min_rate()), (cqi(at=T + 200), min_rate()), (cqi(source="x"), min_rate()),
        (cqi(1), cqi(10, source="e2", subject=None), min_rate()), (cqi(parents=("gone",)), min_rate()),
        (cqi(origin="operator"), min_rate()),
    ],
)  # fmt: skip
def test_what_is_not_supported_leaves_the_effect_unknown(observations: tuple[Observation, ...]) -> None:
    distinct = tuple(replace(o, id=f"{i}") for i, o in enumerate(observations))
    assert judged(*distinct) is None


def test_a_value_computed_from_before_the_control_is_not_newer() -> None:
    raw = seen("wb_cqi", 10, APPLIED, "e2")
    assert judged(raw, cqi(parents=(raw.id,)), min_rate()) is None


def test_it_is_unknown_before_an_acknowledgement_after_a_refusal_and_without_an_effect() -> None:
    waiting = replace(CONTROL, applied_at_ms=None, outcome="granted")
    assert judged(cqi(), min_rate(), control=waiting) is None
    assert judged(cqi(), min_rate(), control=replace(CONTROL, outcome="refused")) is None
    assert judge_effect(load_contract(CONTRACT), CONTROL, (cqi(), min_rate()), {}, T) is None


def test_what_is_measured_after_the_watch_does_not_count() -> None:
    late, end = T + 2001, T + 2000
    assert judged(cqi(at=late), min_rate(at=late), t=late) is None
    assert judged(cqi(at=end), min_rate(at=end), t=late) is True


def test_an_effect_over_many_users_must_show_for_each() -> None:
    document = copy.deepcopy(CONTRACT)
    document["fields"]["cqi"]["subject"] = "ue:{ue}"
    document["fields"]["rate"]["subject"] = "ue:{ue}"
    document["control"] = {"effect": {"expr": "cqi >= 5", "within_ms": 3000}}
    control = replace(CONTROL, bindings={"ue": ("1", "2")})
    one, two = cqi(subject="ue:1"), replace(cqi(subject="ue:2"), id="two")
    for second, expected in ((two, True), (replace(two, value=4), False), (replace(two, value=None), None)):
        assert judge_effect(load_contract(document), control, (one, second), {}, T) is expected
    assert judge_effect(load_contract(document), replace(control, bindings={}), (one, two), {}, T) is None


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 15)), max_size=4), st.integers(-60, 60))
def test_evidence_from_before_the_acknowledgement_never_decides(rows: list[tuple[int, int]], at: int) -> None:
    items = tuple(replace(cqi(v, APPLIED + dt), id=str(i)) for i, (dt, v) in enumerate(rows))
    t = APPLIED + at
    newer = [o for o in items if o.event_time_ms > APPLIED]
    found = judge_effect(contract("cqi >= 5"), CONTROL, items, {"e2": SourceState("outage")}, t)
    if not [o for o in newer if o.ingest_time_ms <= t]:
        assert found is None
    elif found is not None:
        newest = max(o.event_time_ms for o in newer if o.ingest_time_ms <= t)
        assert found in {o.value >= 5 for o in newer if o.event_time_ms == newest}  # type: ignore[operator]


# What a contract's `control` may say.


@pytest.mark.parametrize(
    ("control", "path", "reason"),
    [
        ({"budget": {"changes": 4}}, "$.control.budget.per_ms", "is required beside changes"),
        ({"budget": {"changes": 1001, "per_ms": 1}}, "$.control.budget.changes", ""),
        ({"budget": {"changes": -1, "per_ms": 1}}, "$.control.budget.changes", ""),
        ({"budget": {"changes": 1, "per_ms": 0}}, "$.control.budget.per_ms", ""),
        ({"budget": {"max_step": {"bandwith": 1}}}, "$.control.budget.max_step.bandwith", "unknown field 'bandwith'"),
        ({"budget": {"max_step": {"cqi": 1}}}, "$.control.budget.max_step.cqi", "'cqi' is no planned number"),
        ({"budget": {"max_step": {"rate": 1}}}, "$.control.budget.max_step.rate", "'rate' is no planned number"),
        ({"budget": {"max_step": {"bandwidth": -1}}}, "$.control.budget.max_step.bandwidth", ""),
        ({"lease_ms": -1}, "$.control.lease_ms", ""),
        ({"lease_ms": True}, "$.control.lease_ms", ""),
        ({"on_conflict": "APPLY"}, "$.control.on_conflict", ""),
        ({"coupled": ["a:{b"]}, "$.control.coupled[0]", "a binding is written"),
        ({"coupled": ["a", "a"]}, "$.control.coupled[1]", "listed twice"),
        ({"key": "a", "coupled": ["a"]}, "$.control.coupled[0]", "own key"),
        ({"key": ""}, "$.control.key", ""),
        ({"ack": 5}, "$.control.ack", "unknown key"),
        ({"effect": {"expr": "rate >="}}, "$.control.effect.within_ms", "is required"),
        ({"effect": {"expr": "rate >=", "within_ms": 1}}, "$.control.effect.expr", "bad expression"),
        ({"effect": {"expr": "rate", "within_ms": 1}}, "$.control.effect.expr", "boolean is needed"),
        ({"effect": {"expr": "note > 1", "within_ms": 1}}, "$.control.effect.expr", "non-critical field 'note'"),
        ({"effect": {"expr": "nothing > 1", "within_ms": 1}}, "$.control.effect.expr", "unknown"),
        ({"effect": {"expr": "1 > 0", "within_ms": 1}}, "$.control.effect.expr", "reads no observed field"),
        ({"effect": {"expr": "bandwidth > 0", "within_ms": 1}}, "$.control.effect.expr", "reads no observed field"),
    ],
)
def test_a_control_clause_at_fault_is_refused_with_the_place(control: Any, path: str, reason: str) -> None:
    with pytest.raises(ContractError) as error:
        load_contract({**copy.deepcopy(CONTRACT), "control": control})
    assert [p for p, _ in error.value.errors] == [path]
    assert reason in error.value.errors[0][1]


def test_a_control_clause_as_the_rules_give_it_is_taken() -> None:
    document = copy.deepcopy(CONTRACT) | {
        "control": {
            "key": "cell:{cell}/slice:{slice}/prb", "lease_ms": 2000, "on_conflict": "HOLD",
            "coupled": ["cell:{cell}/power"], "ack_ms": 500,
            "budget": {"changes": 4, "per_ms": 60000, "max_step": {"bandwidth": 5}},
            "effect": {"expr": "rate >= min_rate", "within_ms": 3000},
        }
    }  # fmt: skip
    loaded = load_contract(document)
    assert loaded.inputs["control:effect"] == ("cqi", "min_rate")
    resolution = loaded.resolve({"cell": "1", "slice": "2"})
    assert (resolution.coupled, resolution.budget_ms) == (("cell:1/power",), 60_000)
