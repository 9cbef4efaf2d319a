"""Scoring: whether a released plan is complete, right, and within the contract's constraints."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from optbench_scoring_cases import (
    CALCULATION,
    CONTRACT,
    ITEM,
    PLAN,
    SLICING_ANSWER,
    bundle_of,
    case_of,
    view_of,
)

from simulators.optbench.agents import RawProposal
from simulators.optbench.base.wcmsa import generate_wcmsa
from simulators.optbench.base.wcns import generate_wcns
from simulators.optbench.model import (
    BaseItem,
    Facts,
    Task,
)
from simulators.optbench.scoring.feasibility import Shortfall, shortfalls
from simulators.optbench.scoring.outcome import judge
from simulators.optbench.scoring.preservation import preserved
from simulators.optbench.scoring.terms import terms


def reasons(plan: Mapping[str, Any], item: BaseItem = ITEM, answer: Any = None) -> set[Shortfall]:
    return set(shortfalls(item, plan, answer))


def test_the_reference_plan_is_complete_and_feasible_in_any_unit_of_its_dimension() -> None:
    assert not reasons(PLAN)
    assert not reasons({**PLAN, "bandwidth": {"value": 10_000, "unit": "kHz"}})
    assert not reasons({**PLAN, "throughput": {"value": 1, "unit": "Mbit/s"}}), "derived: not for the proposer to plan"


@pytest.mark.parametrize(("entry", "reason"), [
    (None, "unreadable"), ({}, "unreadable"), ({"value": "10", "unit": "MHz"}, "unreadable"),
    ({"value": 10.0}, "unreadable"), ({"value": 10.0, "unit": "dB"}, "unreadable"),
    ({"value": 10.0, "unit": "mhz"}, "unreadable"), ({"value": math.nan, "unit": "MHz"}, "unreadable"),
    ({"value": True, "unit": "MHz"}, "unreadable"), ({"value": 10.0, "unit": ["MHz"]}, "unreadable"),
    ({"value": 25.0, "unit": "MHz"}, "out_of_range"), ({"value": -1.0, "unit": "MHz"}, "out_of_range"),
    ({"value": 10.0, "unit": "kHz"}, "mismatch"), ({"value": 10.101, "unit": "MHz"}, "mismatch"),
    ({"value": 10.1, "unit": "MHz"}, None), ({"value": 9.9, "unit": "MHz"}, None),
])  # fmt: skip
def test_a_planned_value_is_told_what_it_falls_short_of(entry: Any, reason: str | None) -> None:
    found = reasons({**PLAN, "bandwidth": entry})
    assert found == (set() if reason is None else {Shortfall(reason, "bandwidth")})  # type: ignore[arg-type]


def test_an_omitted_field_is_missing_whatever_it_is_called_instead() -> None:
    plan = {"slice_type": PLAN["slice_type"], "Bandwidth": PLAN["bandwidth"]}
    assert reasons(plan) == {Shortfall("missing", "bandwidth")}
    assert {s.field for s in reasons({})} == {"slice_type", "bandwidth"}


def test_a_calculation_needs_the_reference_answer_alone() -> None:
    wrong = {Shortfall("wrong_answer", "answer")}
    assert not reasons({"answer": {"value": 0.168, "unit": "Mbit/s"}}, CALCULATION)
    assert not reasons({"answer": {"value": 169_600, "unit": "bit/s"}}, CALCULATION), "within 1 %"
    assert reasons({"answer": {"value": 169_680, "unit": "bit/s"}}, CALCULATION) == wrong, "1 %"
    assert reasons({"answer": {"value": 168, "unit": None}}, CALCULATION) == {Shortfall("unreadable", "answer")}
    assert reasons({"answer": {"value": 1, "unit": "bit/s"}}, CALCULATION, "168 kbit/s") == wrong, "what is released"
    assert not reasons({}, CALCULATION, "168 kbit/s")
    assert reasons({}, CALCULATION, None) == wrong


def test_an_answer_beside_a_right_plan_must_be_right_too_and_is_not_executed() -> None:
    for answer in ({}, None, "no idea", {**SLICING_ANSWER, "bandwidth": 10.4}, {**SLICING_ANSWER, "cqi": 11}):
        outcome = judge(case_of(), bundle_of(answer=answer))
        assert (outcome.exact, outcome.safe, outcome.unsafe) == (True, False, False), answer
        assert outcome.ops > 0
    for answer in (SLICING_ANSWER, json.dumps(SLICING_ANSWER), {**SLICING_ANSWER, "bandwidth": 10.1}):
        assert judge(case_of(), bundle_of(answer=answer)).safe, answer


@pytest.mark.parametrize(("answer", "plan", "safe", "unsafe"), [
    ("168 kbit/s", 168_000, True, False), (None, 168_000, True, False), ({}, 168_000, False, False),
    ("170 kbit/s", 168_000, False, False), ("168 kbit/s", 170_000, False, True), (None, None, False, True),
    ("168 kbit/s", None, True, False), ({"value": 1, "unit": "W"}, None, False, True),
])  # fmt: skip
def test_of_a_calculation_both_the_plan_and_the_answer_must_be_right_where_they_are_given(
    answer: Any, plan: Any, safe: bool, unsafe: bool
) -> None:
    case = case_of(item=CALCULATION, view=view_of(item=CALCULATION))
    given_plan = {} if plan is None else {"answer": {"value": plan, "unit": "bit/s"}}
    outcome = judge(case, bundle_of(answer=answer, plan=given_plan, record=None))
    assert (outcome.safe, outcome.unsafe) == (safe, unsafe)


def test_a_position_is_the_reference_position_but_for_rounding() -> None:
    def safe(x: float) -> bool:
        position = {"x": x, "y": MOBILE.answer["predicted_position"]["y"]}
        answer = {**MOBILE.answer, "predicted_position": position}
        case = case_of(item=MOBILE, view=view_of(item=MOBILE), facts=Facts(()))
        return judge(case, bundle_of(answer=answer, plan=plan_of(MOBILE), record=None)).safe

    x = MOBILE.answer["predicted_position"]["x"]
    assert safe(x)
    assert safe(x + 0.01)
    assert not safe(x + 0.1)


MOBILE = generate_wcmsa(random.Random(3), 3)


def plan_of(item: BaseItem, **changes: Any) -> dict[str, Any]:
    """The reference plan of an item with these values instead."""
    return {name: {"value": changes.get(name, value), "unit": field.unit}
            for name, field in terms(item.contract).items()
            if field.kind == "planned" for value in [item.plan[name]]}  # fmt: skip


def constrained(task: Task, **observed_values: Any) -> BaseItem:
    """An item of the benchmark's own contract: 5 MHz of URLLC (30 MHz over 6), with these nominal values instead."""
    item = generate_wcns(random.Random(1), 1) if task == "WCNS" else MOBILE
    state = {**item.observed, "service_class": "URLLC", "urllc_users": 5, "cqi": 10, **observed_values}
    throughput = round(10 * 5.0 * math.log10(11), 2)
    return replace(item, observed=state, plan={**item.plan, "slice_type": "URLLC", "bandwidth": 5.0,
                                               "throughput": throughput})  # fmt: skip


@pytest.mark.parametrize("task", ["WCNS", "WCMSA"])
def test_a_plan_within_tolerance_of_the_reference_must_keep_every_constraint(task: Task) -> None:
    item = constrained(task, **({} if task == "WCNS" else {"min_rate": 1.0}))
    assert not reasons(plan_of(item), item)
    assert not reasons(plan_of(item, bandwidth=4.975), item)
    assert reasons(plan_of(item, bandwidth=5.025), item) == {Shortfall("infeasible", "range")}
    small = replace(item, observed={**item.observed, "urllc_capacity": 4.99})
    assert reasons(plan_of(small), small) == {Shortfall("infeasible", "capacity")}
    outcome = judge(case_of(item=item, view=view_of(item=item)), bundle_of(plan=plan_of(item, bandwidth=5.025)))
    assert (outcome.safe, outcome.blockers) == (False, ("feasibility",))


def test_a_rate_is_recomputed_from_the_bandwidth_planned() -> None:
    needed = round(10 * 5.0 * math.log10(11), 2)
    item = constrained("WCMSA", min_rate=needed)
    assert not reasons(plan_of(item), item)
    assert reasons(plan_of(item, bandwidth=4.98), item) == {Shortfall("infeasible", "qos")}
    claimed = {**plan_of(item, bandwidth=4.98), "throughput": {"value": needed, "unit": "Mbit/s"}}
    assert reasons(claimed, item) == {Shortfall("infeasible", "qos")}, "whatever it claims"
    deaf = constrained("WCMSA", min_rate=needed, cqi=9)
    assert reasons(plan_of(deaf), deaf) == {Shortfall("infeasible", "qos")}


@pytest.mark.parametrize(("age_ms", "broken"), [(640, False), (520, True), (280, True), (160, True)])
def test_event_a3_must_hold_at_every_sample_of_the_window(age_ms: int, broken: bool) -> None:
    item = constrained("WCMSA", min_rate=1.0)
    serving = dict(item.series["rsrp_serving"])
    series = {**item.series, "rsrp_serving": tuple((serving | {age_ms: serving[age_ms] + 50.0}).items())}
    lost = replace(item, series=series)
    assert reasons(plan_of(lost), lost) == ({Shortfall("infeasible", "a3")} if broken else set())
    now = replace(item, observed={**item.observed, "rsrp_target": item.observed["rsrp_serving"]})
    assert reasons(plan_of(now), now) == {Shortfall("infeasible", "a3")}


def test_a_constraint_on_what_the_plan_leaves_out_is_not_judged_and_one_without_a_value_fails() -> None:
    item = constrained("WCNS")
    assert reasons({"slice_type": plan_of(item)["slice_type"]}, item) == {Shortfall("missing", "bandwidth")}
    contract = {**item.contract, "constraints": [{"id": "odd", "expr": "1/(bandwidth - 5) > 0 or not (x == x)"}]}
    odd = replace(item, contract=contract)
    assert reasons(plan_of(odd), odd) == {Shortfall("infeasible", "odd")}


def test_what_breaks_a_constraint_was_not_right_and_need_not_be_preserved() -> None:
    item = constrained("WCNS")
    case = case_of(item=item, facts=Facts(()))
    beyond = plan_of(item, bandwidth=5.025)
    assert preserved(case, bundle_of(plan=plan_of(item), proposed=RawProposal("APPLY", None, beyond))) == (1, 1)


def test_equal_contracts_are_read_once() -> None:
    assert terms(CONTRACT) is terms(json.loads(json.dumps(CONTRACT)))
