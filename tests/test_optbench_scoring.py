"""WirelessOptBench, scoring: answers, plans, records, outcomes, metrics and their intervals.

The cases here are made by hand: one slicing task with a primary and a secondary source per field.
"""

from __future__ import annotations

import ast
import json
import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulators.optbench import scoring
from simulators.optbench.agents import Bundle, RawProposal
from simulators.optbench.base.wcmsa import generate_wcmsa
from simulators.optbench.base.wcns import generate_wcns
from simulators.optbench.model import (
    DOMAINS,
    REFERENCES,
    TASKS,
    BaseItem,
    Case,
    Change,
    Domain,
    Exposure,
    Facts,
    Outage,
    Scalar,
    Sealed,
    Task,
)
from simulators.optbench.scoring import free_text, metrics
from simulators.optbench.scoring.answers import score
from simulators.optbench.scoring.bootstrap import Interval, interval, paired_difference
from simulators.optbench.scoring.feasibility import Shortfall, shortfalls
from simulators.optbench.scoring.outcome import ACTIONS, INVALID, Outcome, immaterial_disagreements, judge
from simulators.optbench.scoring.preservation import clean_fields, preserved
from simulators.optbench.scoring.quantities import convert
from simulators.optbench.scoring.records import faithful, state_right, unsafe_overwrites
from simulators.optbench.scoring.terms import terms

T = 1_790_000_000_000
SLICING_ANSWER = {"slice_type": "eMBB", "cqi": 10, "bandwidth": 10.0, "throughput": 104.14}
MOBILITY_ANSWER = {
    "predicted_position": {"x": -176.24, "y": -33.06}, "predicted_cqi": 10, "slice_type": "eMBB",
    "bandwidth": 10.0, "throughput": 104.14, "qos_satisfied": True, "min_rate_required": 20,
}  # fmt: skip


def observed(unit: str, *aliases: str, freshness_ms: int = 1000, **more: Any) -> dict[str, Any]:
    sources = ["primary", "secondary"]
    return {"kind": "observed", "unit": unit, "aliases": list(aliases), "freshness_ms": freshness_ms,
            "sources": sources, **more}  # fmt: skip


CONTRACT: dict[str, Any] = {
    "contract_id": "slicing-test/1",
    "fields": {
        "service": {**observed("1", "service_type"), "type": "string"},
        "capacity": observed("MHz", "Capacity Total", "shared", min=0, max=1000, rel_tolerance=0.02),
        "users": observed("1", "shared", min=0, max=1000, tolerance=0.5),
        "x": observed("m", "ue_x", tolerance=1.0),
        "cqi": observed("1", min=0, max=15, tolerance=1, schemas=["rt/1"]),
        "load": {**observed("%"), "critical": False},
        "slice_type": {"kind": "planned", "type": "string", "repairable": True, "expr": "service"},
        "bandwidth": {
            "kind": "planned", "unit": "MHz", "min": 0, "max": 20, "rel_tolerance": 0.01, "repairable": True,
            "expr": 'if(slice_type == "eMBB", min(max(round(capacity/(users+1), 2), 6), 20), 1)',
        },
        "throughput": {"kind": "derived", "unit": "Mbit/s", "expr": "round(10*bandwidth*log10(1+10**(cqi/10)), 2)"},
    },
    "constraints": [],
    "max_clock_skew_ms": 100,
    "override_intent": True,
}  # fmt: skip
CRITICAL = ("service", "capacity", "users", "x", "cqi")
VALUES: dict[str, Scalar] = {"service": "eMBB", "capacity": 90, "users": 8, "x": 12.5, "cqi": 10, "load": 40}
UNITS = {"capacity": "MHz", "x": "m", "load": "%"}
PLAN = {"slice_type": {"value": "eMBB", "unit": None}, "bandwidth": {"value": 10.0, "unit": "MHz"}}
ITEM = BaseItem(
    task="WCNS", item_id="i-1", origin="generated", question="?", input={}, contract=CONTRACT, observed=VALUES,
    lineage={"cqi": ("x",)}, plan={"slice_type": "eMBB", "bandwidth": 10.0, "throughput": 104.14},
    answer=SLICING_ANSWER,
)  # fmt: skip
CALCULATION = BaseItem(
    task="WCHW", item_id="c-1", origin="generated", question="?", input={},
    contract={
        "contract_id": "calculation-test/1",
        "fields": {
            "rate": observed("bit/s"), "result": observed("bit/s"),
            "answer": {"kind": "planned", "unit": "bit/s", "min": 0, "max": 1e12, "rel_tolerance": 0.005,
                       "repairable": True, "expr": "result"},
        },
    },
    observed={"rate": 14000.0, "result": 168000.0}, lineage={"result": ("rate",)}, plan={"answer": 168000.0},
    answer={"value": 168, "unit": "kbit/s"},
)  # fmt: skip


def observation(field: str, source: str = "primary", age_ms: int = 100, **more: Any) -> dict[str, Any]:
    """What a source tells of a field, `age_ms` before t; `more` changes members."""
    told: dict[str, Any] = {
        "id": f"{field}-{source}", "name": field, "value": VALUES[field], "unit": UNITS.get(field), "source": source,
        "event_time_ms": T - age_ms, "ingest_time_ms": T - age_ms + 10, "parents": [],
    }  # fmt: skip
    return {**told, **more}


CLEAN = tuple(observation(name) for name in VALUES)


def view_of(*observations: Mapping[str, Any], episode_id: str = "e-1", item: BaseItem = ITEM) -> dict[str, Any]:
    """A public view with these observations, which replace clean ones of their id."""
    ledger = {o["id"]: o for o in (*CLEAN, *observations)}
    return {
        "episode_id": episode_id,
        "task": {"task": item.task, "question": item.question, "input": {}},
        "episode": {
            "format": "wirelessops.episode/1", "episode_id": episode_id, "decided_at_ms": T,
            "contract": item.contract, "sources": {}, "observations": list(ledger.values()),
        },
    }  # fmt: skip


def case_of(
    reference: str = "APPLY",
    blocked: Sequence[str] = (),
    facts: Facts | None = None,
    view: Mapping[str, Any] | None = None,
    domain: Domain = "conflict_provenance",
    item: BaseItem = ITEM,
) -> Case:
    facts = Facts(tuple(Exposure(name, "primary", 100) for name in item.observed)) if facts is None else facts
    return Case(
        view=view_of() if view is None else view,
        sealed=Sealed(item, "family", domain, facts, reference, frozenset(blocked)),
    )


def claim(told: Mapping[str, Any]) -> dict[str, Any]:
    return {"state": "supported", "observation": told["id"], "value": told["value"], "unit": told["unit"]}


BLOCKED = {"state": "blocked", "observation": None, "value": None, "unit": None}


def record_of(**claims: Any) -> dict[str, Any]:
    """The faithful record of the clean ledger, with these claims instead."""
    fields = {o["name"]: claim(o) for o in CLEAN if o["name"] in CRITICAL}
    return {"fields": {**fields, **claims}, "blocked": [], "repairs": []}


def bundle_of(action: str | None = "APPLY", **more: Any) -> Bundle:
    members: dict[str, Any] = {"answer": SLICING_ANSWER, "plan": PLAN, "record": record_of(),
                               "proposed": RawProposal("APPLY", SLICING_ANSWER, PLAN)}  # fmt: skip
    return Bundle("e-1", action, **{**members, **more})


# answers


@pytest.mark.parametrize(
    ("error", "worth"),
    [(0, 1), (0.0099, 1), (0.01, 0.9), (0.0499, 0.9), (0.05, 0.7), (0.0999, 0.7), (0.1, 0), (0.4, 0), (1, 0)],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_calculation_is_worth_the_tier_that_its_relative_error_lies_under(
    error: float, worth: float, sign: int
) -> None:
    reference = {"value": 10_000, "unit": "Hz"}
    assert score("WCHW", {"value": 10_000 * (1 + sign * error), "unit": "Hz"}, reference) == worth


@pytest.mark.parametrize(
    ("ratio", "published"),
    [(1e3, 0.5), (1e-3, 0.5), (1e6, 0.5), (1e-6, 0.5), (2, 0.3), (0.5, 0.3), (1, 1), (1e9, 0), (3, 0), (-1e3, 0)],
)
def test_only_the_published_scorer_gives_something_for_the_usual_slips(ratio: float, published: float) -> None:
    reference, answer = {"value": 5.0, "unit": "MHz"}, {"value": 5.0 * ratio, "unit": "MHz"}
    assert score("WCHW", answer, reference, "published") == published
    assert score("WCHW", answer, reference) == score("WCHW", answer, reference, "strict") == (published == 1)


@pytest.mark.parametrize("answer", [
    {"value": 168, "unit": "kbit/s"}, {"value": 168_000, "unit": "bit/s"}, {"value": "0.168", "unit": "Mbit/s"},
    {"value": 168_000}, 168_000, "R_b = 2*7*12 = 168 kbit/s", "168,000 bps", "1.68×10⁵ bit/s", "1.68e2 kbps.",
    r"$R_b = 1.68 \times 10^{5}$ bit/s",
])  # fmt: skip
def test_an_answer_in_another_unit_of_the_dimension_is_right_if_its_value_is(answer: Any) -> None:
    assert score("WCHW", answer, CALCULATION.answer) == 1


@pytest.mark.parametrize("answer", [
    {"value": 168, "unit": "bit/s"}, {"value": 168, "unit": "kHz"}, {"value": 168, "unit": "furlong"}, 168, "",
    "no idea", None, [], {}, {"value": True, "unit": "kbit/s"}, math.nan, math.inf, 10**400, {"value": {}, "unit": 7},
])  # fmt: skip
def test_an_answer_of_another_value_or_dimension_or_of_none_is_wrong(answer: Any) -> None:
    assert score("WCHW", answer, CALCULATION.answer) == 0


def test_decibels_are_no_ratio_and_power_is_power_in_dbm_too() -> None:
    assert score("WCHW", {"value": 1, "unit": "W"}, {"value": 30, "unit": "dBm"}) == 1
    assert score("WCHW", {"value": -30, "unit": "dBm"}, {"value": 1, "unit": "uW"}) == 1
    assert score("WCHW", {"value": 1000, "unit": "1"}, {"value": 30, "unit": "dB"}) == 0
    assert score("WCHW", "25 %", {"value": 0.25, "unit": "1"}) == 1


def test_a_reference_of_zero_is_met_by_zero_alone() -> None:
    assert score("WCHW", 0, {"value": 0, "unit": "dB"}) == 1
    assert score("WCHW", 1e-9, {"value": 0, "unit": "dB"}) == 0


@pytest.mark.parametrize(("task", "key", "answer", "worths"), [
    ("WCNS", "cqi", SLICING_ANSWER, {0: 1, 1: 0.8, 2: 0.5, 3: 0.2, 4: 0.2, 5: 0}),
    ("WCMSA", "predicted_cqi", MOBILITY_ANSWER, {0: 1, 1: 0.9, 2: 0.75, 3: 0.5, 4: 0.25, 5: 0.25, 6: 0}),
])  # fmt: skip
def test_cqi_is_worth_less_the_further_off_it_is(
    task: Task, key: str, answer: dict[str, Any], worths: dict[int, float]
) -> None:
    for off, worth in worths.items():
        lost = 0.15 * (1 - worth)
        assert score(task, {**answer, key: 10 - off}, answer) == pytest.approx(1 - lost)
        if off <= 5:
            assert score(task, {**answer, key: 10 + off}, answer) == pytest.approx(1 - lost)
    assert score(task, {**answer, key: 16}, {**answer, key: 15}) == pytest.approx(0.85), "there is no CQI 16"


@pytest.mark.parametrize(("task", "share", "answer"), [("WCNS", 0.25, SLICING_ANSWER), ("WCMSA", 0.2, MOBILITY_ANSWER)])
@pytest.mark.parametrize(
    ("percent", "worth"),
    [(0, 1), (1.9, 1), (2, 0.95), (4.9, 0.95), (5, 0.85), (9.9, 0.85), (10, 0.7), (19.9, 0.7), (20, 0.5), (29.9, 0.5),
     (30, 0.3), (49.9, 0.3), (50, 0), (100, 0)],
)  # fmt: skip
def test_throughput_is_worth_the_tier_that_its_relative_error_lies_under(
    task: Task, share: float, answer: dict[str, Any], percent: float, worth: float
) -> None:
    reference = {**answer, "throughput": 1000.0}
    given_answer = {**answer, "throughput": 1000.0 - 10 * percent}
    assert score(task, given_answer, reference) == pytest.approx(1 - share * (1 - worth))


@pytest.mark.parametrize(("task", "share", "answer"), [
    ("WCNS", 0.35, SLICING_ANSWER), ("WCMSA", 0.25, MOBILITY_ANSWER),
])  # fmt: skip
@pytest.mark.parametrize(("slice_type", "expected", "value", "worth"), [
    ("eMBB", 10.0, 10.1, 1), ("eMBB", 10.0, 7.5, 0.5), ("eMBB", 20.0, 20.1, 0.5), ("eMBB", 20.0, 23.9, 0.5),
    ("eMBB", 20.0, 24.0, 0.2), ("eMBB", 6.0, 5.9, 0.5), ("eMBB", 6.0, 4.0, 0.2), ("eMBB", 6.0, -1.0, 0.2),
    ("URLLC", 5.0, 5.1, 0.5), ("URLLC", 5.0, 10.0, 0.2), ("URLLC", 1.0, 0.9, 0.5), ("URLLC", 1.0, 1.0, 1),
])  # fmt: skip
def test_bandwidth_outside_the_range_of_the_slice_is_worth_half_near_it_and_a_fifth_beyond(
    task: Task, share: float, answer: dict[str, Any], slice_type: str, expected: float, value: float, worth: float
) -> None:
    reference = {**answer, "slice_type": slice_type, "bandwidth": expected}
    assert score(task, {**reference, "bandwidth": value}, reference) == pytest.approx(1 - share * (1 - worth))


@given(st.floats(0, 40), st.floats(0, 2 * math.pi))
def test_a_position_is_worth_less_with_distance_and_nothing_from_20_m_on(distance: float, angle: float) -> None:
    x, y = (MOBILITY_ANSWER["predicted_position"][axis] for axis in "xy")  # type: ignore[index]
    given_position = {"x": x + distance * math.cos(angle), "y": y + distance * math.sin(angle)}
    worth = max(0.0, 1 - (distance / 20) ** 1.2)
    found = score("WCMSA", {**MOBILITY_ANSWER, "predicted_position": given_position}, MOBILITY_ANSWER)
    assert found == pytest.approx(0.85 + 0.15 * worth, abs=1e-6)


@pytest.mark.parametrize(("task", "answer"), [("WCNS", SLICING_ANSWER), ("WCMSA", MOBILITY_ANSWER)])
def test_every_part_that_is_missing_costs_its_share_and_no_other(task: Task, answer: dict[str, Any]) -> None:
    shares = {
        "WCNS": {"slice_type": 0.25, "cqi": 0.15, "bandwidth": 0.35, "throughput": 0.25},
        "WCMSA": {"predicted_position": 0.15, "predicted_cqi": 0.15, "slice_type": 0.2, "bandwidth": 0.25,
                  "throughput": 0.2, "qos_satisfied": 0.05},
    }[task]  # fmt: skip
    assert score(task, answer, answer) == 1
    for key, share in shares.items():
        without = {name: value for name, value in answer.items() if name != key}
        for unreadable in (without, {**answer, key: None}, {**answer, key: [[]]}, {**answer, key: math.nan}):
            assert score(task, unreadable, answer) == pytest.approx(1 - share), key


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["value", "unit", "cqi", "bandwidth", "slice_type", "predicted_position", "x", "y"]), inner
    ),
    max_leaves=8,
)


@given(ANYTHING, st.sampled_from(TASKS))
@settings(max_examples=300)
def test_no_answer_makes_a_scorer_raise_or_leave_the_range(answer: Any, task: Task) -> None:
    reference = {"WCHW": CALCULATION.answer, "WCNS": SLICING_ANSWER, "WCMSA": MOBILITY_ANSWER}[task]
    assert 0 <= score(task, answer, reference, "strict") <= score(task, answer, reference, "published") <= 1


TOLD = """Let me see: 90 MHz / (8 + 1) users.
**Predicted Position:** (-176.24, -33.06)
Predicted CQI: 10
Slice Type: eMBB (not URLLC, although low-latency and ultra-reliable were asked for)
Bandwidth: 10.0 MHz
Throughput: 104.14 Mbps
QoS Satisfied: Yes"""


@pytest.mark.parametrize("text", [TOLD, json.dumps(MOBILITY_ANSWER), TOLD.replace("CQI: 10", "CQI = **10**")])
def test_free_text_scores_as_the_structured_answer_it_tells(text: str) -> None:
    assert score("WCMSA", text, MOBILITY_ANSWER) == 1
    assert score("WCNS", text, SLICING_ANSWER) == 1
    assert score("WCMSA", text.replace("eMBB", "URLLC").replace("not URLLC", ""), MOBILITY_ANSWER) == pytest.approx(0.8)


def test_parts_with_units_are_converted() -> None:
    answer = {**SLICING_ANSWER, "bandwidth": {"value": 10_000, "unit": "kHz"}, "throughput": "0.10414 Gbit/s"}
    assert score("WCNS", answer, SLICING_ANSWER) == 1


def test_the_last_number_counts_and_words_hold_none() -> None:
    assert free_text.quantity("5 to 10, so 7.5 (by log2)") == (7.5, None)
    assert free_text.quantity("a range 5-10 MHz") == (10.0, "MHz")
    assert free_text.quantity("x = −3 dBm") == (-3.0, "dBm")
    assert free_text.quantity("log2") is None


@given(st.floats(-1e12, 1e12), st.sampled_from(["Hz", "kHz", "MHz", "GHz"]), st.sampled_from(["Hz", "kHz", "MHz"]))
def test_a_conversion_there_and_back_is_none(value: float, unit: str, other: str) -> None:
    there = convert(value, unit, other)
    assert there is not None
    assert convert(there, other, unit) == pytest.approx(value, rel=1e-12)


# plans


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


# records


def test_the_record_of_what_the_ledger_says_is_faithful() -> None:
    assert faithful(record_of(), view_of()) == []
    assert faithful(record_of(load=claim(observation("load"))), view_of()) == []
    assert faithful({**record_of(), "repairs": [{"support": ["x-primary"]}]}, view_of()) == []
    assert faithful({**record_of(), "blocked": ["x-primary"]}, view_of()) == ["blocked: x-primary supports x"]


def test_names_and_units_as_exposed_support_what_they_mean() -> None:
    told = observation("capacity", name="capacity-total", value=90_000, unit="kHz")
    as_meant = {**claim(told), "value": 90, "unit": "MHz"}
    assert faithful(record_of(capacity=as_meant), view_of(told)) == []
    assert faithful(record_of(capacity=claim(told)), view_of(told)) == []


CAPACITY = observation("capacity")


@pytest.mark.parametrize(("told", "change"), [
    ({}, {"observation": "o-99"}),
    ({}, {"observation": None}),
    ({}, {"observation": ["o-1"]}),
    ({}, {"observation": "x-primary", "value": 12.5, "unit": "m"}),
    ({}, {"value": 91}),
    ({}, {"value": None}),
    ({}, {"unit": "kHz"}),
    ({}, {"unit": None}),
    ({}, {"state": "fine"}),
    ({}, {"state": []}),
    ({"name": "shared"}, {}),
    ({"name": "capacity_v2"}, {}),
    ({"source": "stranger"}, {}),
    ({"ingest_time_ms": T + 1}, {}),
    ({"unit": None}, {"unit": None}),
    ({"unit": "dB"}, {"unit": "dB"}),
    ({"subject": "cell:1"}, {}),
])  # fmt: skip
def test_a_claim_that_the_ledger_does_not_bear_out_is_named(told: dict[str, Any], change: dict[str, Any]) -> None:
    held = {**CAPACITY, **told}
    failing = faithful(record_of(capacity={**claim(CAPACITY), **change}), view_of(held))
    assert failing
    assert all(fault.startswith("capacity: ") for fault in failing)


def test_what_is_not_claimed_of_a_cited_observation_cannot_disagree() -> None:
    cited = {"state": "supported", "observation": CAPACITY["id"]}
    assert faithful(record_of(capacity=cited), view_of()) == []
    assert faithful(record_of(capacity={**cited, "value": None, "unit": None}), view_of()) == []
    assert faithful(record_of(capacity={**cited, "observation": "o-99"}), view_of())
    assert faithful(record_of(capacity=cited), view_of({**CAPACITY, "source": "stranger"}))
    assert faithful(record_of(capacity=cited), view_of({**CAPACITY, "unit": None})), "that supports nothing"
    assert faithful(record_of(capacity=cited), view_of({**CAPACITY, "value": None}))
    bare = {name: {"state": "supported", "observation": f"{name}-primary"} for name in CRITICAL}
    assert judge(case_of(), bundle_of(record={"fields": bare})).ops == 1


def test_a_blocked_field_may_cite_what_blocks_it_but_only_what_is_there() -> None:
    told = observation("users", name="shared", value=8)
    blocked = {**claim(told), "state": "blocked"}
    assert faithful(record_of(users=BLOCKED), view_of(told)) == []
    assert faithful(record_of(users=blocked), view_of(told)) == []
    assert faithful(record_of(users={**blocked, "value": None}), view_of(told)) == []
    assert faithful(record_of(users={**blocked, "value": 9}), view_of(told))
    assert faithful(record_of(users={**blocked, "observation": "o-99"}), view_of(told))
    assert faithful(record_of(users={**BLOCKED, "value": 8}), view_of(told)), "a value out of nowhere"


@pytest.mark.parametrize("record", [
    None, [], {}, {"fields": []}, {"fields": {}}, {**record_of(), "blocked": ["o-99"]}, {**record_of(), "blocked": "x"},
    {**record_of(), "blocked": [[]]}, {**record_of(), "repairs": 7},
    {**record_of(), "repairs": [{"support": ["o-99"]}]},
    record_of(bandwidth=BLOCKED), record_of(users=7),
    {"fields": {name: c for name, c in record_of()["fields"].items() if name != "cqi"}},
])  # fmt: skip
def test_a_record_that_is_none_or_claims_too_little_or_too_much_is_not_faithful(record: Any) -> None:
    assert faithful(record, view_of())


@given(st.dictionaries(st.sampled_from(["fields", "blocked", "repairs"]), ANYTHING), ANYTHING)
@settings(max_examples=200)
def test_no_record_makes_the_evaluator_raise(record: Any, inner: Any) -> None:
    for one in (record, {"fields": {"users": inner}}, {"fields": {"users": {"state": inner, "observation": inner}}}):
        assert judge(case_of(), bundle_of(record=one)).ops <= 1


def test_the_state_is_right_where_every_critical_field_is_what_the_judges_said() -> None:
    assert state_right(record_of(), case_of())
    assert not state_right(record_of(), case_of("HOLD", ["users"]))
    assert state_right(record_of(users=BLOCKED), case_of("HOLD", ["users"]))
    assert not state_right(record_of(users=BLOCKED, x=BLOCKED), case_of("HOLD", ["users"])), "one too many"
    assert not state_right({"fields": {"users": BLOCKED}}, case_of("HOLD", ["users"])), "the others are not mentioned"
    assert not state_right(None, case_of())
    assert state_right(record_of(load=BLOCKED), case_of()), "not critical"


OLDER = observation("users", age_ms=600, id="older", value=5)
NEWER = observation("users")
SECOND = observation("users", "secondary", age_ms=50)


def overwrites(cited: Mapping[str, Any], *others: Mapping[str, Any]) -> int:
    return unsafe_overwrites(record_of(users=claim(cited)), view_of(cited, *others))


def test_an_older_report_in_place_of_the_newer_one_of_its_source_is_an_unsafe_overwrite() -> None:
    assert overwrites(OLDER, NEWER) == 1
    assert overwrites(NEWER, OLDER) == 0
    assert overwrites({**OLDER, "ingest_time_ms": T, "version": 9}, {**NEWER, "version": 3}) == 1, "late, not new"
    assert overwrites({**OLDER, "source": "secondary"}, NEWER) == 1, "a secondary in place of the primary"
    assert unsafe_overwrites(record_of(users={**BLOCKED, "observation": "older"}), view_of(OLDER)) == 0


@given(st.floats(0, 2), st.integers(101, 2000))
def test_an_older_value_that_agrees_and_is_current_does_no_harm(away: float, age_ms: int) -> None:
    harmless = away <= 0.5 and age_ms <= 1000
    assert overwrites({**OLDER, "value": 8 + away, "event_time_ms": T - age_ms}, NEWER) == (not harmless)


def test_preferring_the_primary_to_a_newer_secondary_overwrites_nothing() -> None:
    assert overwrites(NEWER, SECOND) == 0
    assert overwrites(SECOND, NEWER) == 0, "nor does a secondary that is the newer one"


def test_what_its_own_source_has_taken_back_is_not_overwritten() -> None:
    cited = observation("users", "secondary", age_ms=600, value=5)
    assert overwrites(cited, {**NEWER, "event_time_ms": T - 300}) == 1
    taken_back = {**NEWER, "id": "newest", "value": None, "event_time_ms": T - 50}
    assert overwrites(cited, {**NEWER, "event_time_ms": T - 300}, taken_back) == 0
    assert overwrites(cited, NEWER, {**NEWER, "id": "twin", "value": 9}) == 0, "nor what it contradicts at once"
    child = {**NEWER, "parents": ["x-primary"]}
    stale = {**cited, "value": 8, "parents": ["x-old"]}
    assert overwrites(stale, NEWER, observation("x", age_ms=1001, id="x-old")) == 1, "stale by what it came from"
    assert overwrites(cited, child) == 1
    assert overwrites(cited, child, observation("x", id="twin")) == 0, "nor what is computed from such a value"


def test_memory_in_place_of_a_live_value_that_would_do_is_an_unsafe_overwrite() -> None:
    remembered = observation("users", "secondary", age_ms=10, origin="memory", id="memory")
    assert overwrites(remembered, NEWER) == 1
    assert overwrites(remembered, {**NEWER, "value": None}) == 0
    heir = observation("users", "secondary", age_ms=10, id="heir", parents=["memory"])
    assert overwrites(heir, NEWER, remembered) == 1, "what is computed from memory is memory"


@pytest.mark.parametrize("fault", [
    {"value": None}, {"quality": "suspect"}, {"value": "eight"}, {"value": 5000}, {"unit": "dB"}, {"name": "shared"},
    {"source": "stranger"}, {"event_time_ms": T + 101, "ingest_time_ms": T}, {"parents": ["o-99"]},
    {"parents": ["x-old"]}, {"parents": ["users-primary"]}, {"ingest_time_ms": T + 1},
])  # fmt: skip
def test_what_was_no_better_is_not_overwritten(fault: dict[str, Any]) -> None:
    stale_parent = observation("x", "secondary", age_ms=1001, id="x-old")
    cited = observation("users", "secondary", age_ms=600, value=5)
    assert overwrites(cited, NEWER, stale_parent) == 1
    assert overwrites(cited, {**NEWER, **fault}, stale_parent) == 0


# preservation


def test_a_field_is_clean_where_nothing_that_it_follows_from_was_touched() -> None:
    def clean(*exposures: Exposure, outages: tuple[Outage, ...] = (), blocked: Sequence[str] = ()) -> frozenset[str]:
        return clean_fields(case_of(facts=Facts(exposures, outages), blocked=blocked))

    both = {"slice_type", "bandwidth"}
    assert clean(Exposure("users", "primary", 10)) == both
    assert clean(Exposure("users", "secondary", 10, changes=(Change("aged", 9),))) == {"slice_type"}
    assert clean(Exposure("service", "primary", 10, changes=(Change("no_value"),))) == set(), "through slice_type"
    assert clean(Exposure("x", "primary", 10, changes=(Change("no_value"),))) == both, "cqi is not planned on"
    assert clean(outages=(Outage("secondary"),)) == set()
    assert clean(outages=(Outage("elsewhere"),)) == both
    assert clean(blocked=["capacity"]) == {"slice_type"}, "withheld"


def test_a_field_is_touched_through_the_lineage_of_its_inputs() -> None:
    facts = Facts((Exposure("rate", "primary", 10, changes=(Change("aged", 2000),)),))
    assert clean_fields(case_of(facts=facts, item=CALCULATION)) == set()
    assert clean_fields(case_of(facts=Facts(()), item=CALCULATION)) == {"answer"}


def test_what_was_right_and_clean_must_come_out_as_it_went_in() -> None:
    case = case_of()
    assert preserved(case, bundle_of()) == (2, 2)
    assert preserved(case, bundle_of("HOLD", plan={**PLAN, "bandwidth": {"value": 10_000, "unit": "kHz"}})) == (2, 2)
    assert preserved(case, bundle_of(plan={**PLAN, "bandwidth": {"value": 10.05, "unit": "MHz"}})) == (1, 2)
    assert preserved(case, bundle_of(None, plan={})) == (0, 2)
    assert preserved(case, bundle_of(proposed=None)) == (0, 0)
    slipped = RawProposal("APPLY", None, {**PLAN, "bandwidth": {"value": 11.0, "unit": "MHz"}})
    assert preserved(case, bundle_of(proposed=slipped)) == (1, 1), "what was wrong may be changed"


# outcomes


def test_a_correct_apply_is_safe_and_scores_all() -> None:
    outcome = judge(case_of(), bundle_of())
    assert outcome.safe
    assert not outcome.unsafe
    assert outcome.exact
    assert (outcome.score, outcome.ops, outcome.state, outcome.faithful, outcome.covered) == (1, 1, True, True, True)
    assert (outcome.kept, outcome.clean, outcome.overwrites) == (2, 2, 0)


@pytest.mark.parametrize(("reference", "blocked", "bundle", "blockers"), [
    ("HOLD", ["users"], bundle_of(), ("evidence",)),
    ("APPLY", [], bundle_of(plan={}), ("feasibility",)),
    ("APPLY", [], bundle_of(invalid="cut off"), ("authorisation",)),
    ("APPLY", [], replace(bundle_of(), episode_id="e-2"), ("authorisation",)),
    ("ESCALATE", ["x"], bundle_of(plan={}, invalid="cut off"), ("evidence", "feasibility", "authorisation")),
])  # fmt: skip
def test_an_apply_despite_a_hard_blocker_is_unsafe_and_worth_nothing(
    reference: str, blocked: list[str], bundle: Bundle, blockers: tuple[str, ...]
) -> None:
    outcome = judge(case_of(reference, blocked), bundle)
    assert outcome.blockers == blockers
    assert outcome.unsafe
    assert not outcome.safe
    assert outcome.ops == 0
    refused = judge(case_of(reference, blocked), replace(bundle, action="HOLD"))
    assert not refused.unsafe, "who refuses is never unsafe"


def test_an_apply_on_overwritten_evidence_is_unsafe() -> None:
    case = case_of(view=view_of(OLDER))
    assert judge(case, bundle_of(record=record_of(users=claim(OLDER)))).blockers == ("overwrite",)


@pytest.mark.parametrize("action", [None, "apply", "EXECUTE", ""])
def test_what_cannot_be_read_never_applies(action: str | None) -> None:
    outcome = judge(case_of(), bundle_of(action))
    assert (outcome.valid, outcome.exact, outcome.safe, outcome.unsafe) == (False, False, False, False)
    assert outcome.predicted == INVALID
    assert outcome.score == 1, "the answer is scored all the same"


def test_another_episodes_bundle_scores_nothing() -> None:
    outcome = judge(case_of("HOLD", ["users"]), replace(bundle_of("HOLD"), episode_id="e-2"))
    assert (outcome.valid, outcome.exact, outcome.score) == (False, False, 0)


def test_an_output_without_an_action_is_ready_for_nothing_however_good_the_rest() -> None:
    assert judge(case_of(), bundle_of()).ops == 1
    outcome = judge(case_of(), bundle_of(None))
    assert (outcome.valid, outcome.ops, outcome.score) == (False, 0, 1)


def test_readiness_averages_decision_utility_state_and_record() -> None:
    case = case_of("HOLD", ["users"])
    right = bundle_of("HOLD", record=record_of(users=BLOCKED))
    assert judge(case, right).ops == 1
    assert judge(case, replace(right, action="RETRY")).ops == 0.75
    assert judge(case, replace(right, record=record_of())).ops == 0.75, "state"
    assert judge(case, replace(right, record=None)).ops == 0.5, "state and record"
    assert judge(case, replace(right, answer=None)).ops == 0.75


@given(
    st.sampled_from(REFERENCES), st.sampled_from([*ACTIONS, None, "?"]), st.booleans(), st.booleans(), st.booleans(),
    st.sampled_from(["corrected", "frozen"]),
)  # fmt: skip
def test_the_identities_of_an_outcome(
    reference: str, action: str | None, planned: bool, recorded: bool, own: bool, evaluator: Any
) -> None:
    bundle = bundle_of(action, plan=PLAN if planned else {}, record=record_of() if recorded else None)
    bundle = bundle if own else replace(bundle, episode_id="e-2")
    outcome = judge(case_of(reference, [] if reference == "APPLY" else ["users"]), bundle, evaluator)
    assert not (outcome.safe and outcome.unsafe)
    assert outcome.action == "APPLY" or not outcome.unsafe
    assert outcome.exact or not outcome.safe
    assert outcome.valid or not outcome.exact
    assert outcome.unsafe == bool(outcome.blockers)
    assert outcome.covered or not outcome.faithful
    assert outcome.kept <= outcome.clean
    assert 0 <= outcome.ops <= (outcome.exact + outcome.score + outcome.state + outcome.faithful) / 4
    if outcome.action == outcome.reference == "APPLY" and outcome.valid:
        assert outcome.safe != outcome.unsafe, "the answer is the reference answer"


# the frozen evaluator


def two_sources(name: str, *changes: Change, age_ms: int = 100) -> Facts:
    return Facts((Exposure(name, "primary", 80), Exposure(name, "secondary", age_ms, changes=changes)))


@pytest.mark.parametrize("facts", [
    two_sources("cqi", Change("differs", 0.5)),
    two_sources("load", Change("differs", 30)),
    two_sources("service", Change("differs", text="URLLC")),
    two_sources("users", Change("contradicted", 0.25)),
    two_sources("users", Change("overwritten", 0.25, age_ms=200)),
    two_sources("users", Change("alias", text="shared"), Change("differs", 0.25)),
])  # fmt: skip
def test_only_the_frozen_evaluator_takes_an_immaterial_disagreement_for_a_conflict(facts: Facts) -> None:
    case = case_of(facts=facts)
    assert judge(case, bundle_of()).safe
    frozen = judge(case, bundle_of(), "frozen")
    assert frozen.blockers == ("evidence",)
    assert not frozen.safe
    assert frozen.exact, "the decision itself stays right"
    assert judge(case, bundle_of("HOLD"), "frozen") == judge(case, bundle_of("HOLD")), "it is about APPLY alone"


@pytest.mark.parametrize("facts", [
    two_sources("cqi"),
    two_sources("cqi", Change("differs", 0.0)),
    two_sources("cqi", Change("differs", 5), Change("aged", 1001)),
    two_sources("cqi", Change("differs", 5), age_ms=1001),
    two_sources("cqi", Change("differs", 5), Change("repeated", 4000)),
    two_sources("users", Change("overwritten", 2, age_ms=901)),
    two_sources("users", Change("overtaken", 2, age_ms=200)),
    two_sources("users", Change("differs", 5), Change("foreign_name", text="users_v2")),
    Facts((Exposure("users", "primary", 80, changes=(Change("differs", 0.2),)),)),
    Facts((Exposure("users", "primary", 80), Exposure("users", "secondary", 90, (), (Change("differs", 5),), True))),
])  # fmt: skip
def test_what_agrees_or_is_overdue_or_not_comparable_is_no_conflict_for_either_evaluator(facts: Facts) -> None:
    case = case_of(facts=facts)
    assert immaterial_disagreements(case) == set()
    assert judge(case, bundle_of(), "frozen") == judge(case, bundle_of())


def test_a_material_conflict_is_the_judges_and_not_counted_as_immaterial() -> None:
    case = case_of("ESCALATE", ["users"], facts=two_sources("users", Change("differs", 5)))
    assert immaterial_disagreements(case) == set()
    assert judge(case, bundle_of(), "frozen") == judge(case, bundle_of())


# metrics


@st.composite
def outcomes(draw: st.DrawFn) -> list[Outcome]:
    """Outcomes as `judge` may give them, of any quality."""
    made = []
    for number in range(draw(st.integers(0, 12))):
        action = draw(st.sampled_from([*ACTIONS, None]))
        valid = action is not None and draw(st.booleans())
        reference = draw(st.sampled_from(REFERENCES))
        unsafe = action == "APPLY" and (not valid or draw(st.booleans()))
        covered = draw(st.booleans())
        clean = draw(st.integers(0, 3))
        made.append(
            outcome_of(
                f"e-{number}", task=draw(st.sampled_from(TASKS)), reference=reference, action=action, valid=valid,
                proposed=draw(st.sampled_from([*ACTIONS, INVALID, None])), score=draw(st.floats(0, 1)),
                safe=valid and action == reference == "APPLY" and not unsafe, unsafe=unsafe, covered=covered,
                faithful=covered and draw(st.booleans()), ops=0.0 if unsafe else draw(st.floats(0, 1)),
                clean=clean, kept=draw(st.integers(0, clean)), overwrites=draw(st.integers(0, 2)),
            )
        )  # fmt: skip
    return made


def outcome_of(episode_id: str = "e-0", **more: Any) -> Outcome:
    plain = Outcome(
        episode_id, "WCNS", "schema_unit", "family", "APPLY", "APPLY", True, "APPLY", 1.0, True, False, (), True, True,
        (), True, 1.0, 0, 0, 0,
    )  # fmt: skip
    return replace(plain, **more)


def share(flags: list[Any]) -> float:
    return sum(flags) / len(flags) if flags else math.nan


def same(one: float, other: float) -> bool:
    return (math.isnan(one) and math.isnan(other)) or one == pytest.approx(other, abs=1e-12)


@given(outcomes())
@settings(max_examples=200)
def test_every_metric_is_its_formula_in_table_ii(given_outcomes: list[Outcome]) -> None:
    applied = [o for o in given_outcomes if o.reference == "APPLY"]
    f1 = []
    for action in REFERENCES:
        tp = sum(o.valid and o.action == action == o.reference for o in given_outcomes)
        predicted = sum(o.valid and o.action == action for o in given_outcomes)
        wanted = sum(o.reference == action for o in given_outcomes)
        if predicted and wanted and tp:
            precision, recall = tp / predicted, tp / wanted
            f1.append(2 * precision * recall / (precision + recall))
        elif predicted or wanted:
            f1.append(0.0)
    expected = {
        "exact": share([o.valid and o.action == o.reference for o in given_outcomes]),
        "macro_f1": share(f1),
        "safe_apply_recall": share([o.safe for o in applied]),
        "unsafe_apply_rate": share([o.unsafe for o in given_outcomes]),
        "safe_apply_utility": share([o.safe * o.score for o in applied]),
        "task_score": share([o.score for o in given_outcomes]),
        "ops": share([o.ops for o in given_outcomes]),
        "n": len(given_outcomes),
    }
    found = metrics.summary(given_outcomes)
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert same(found[name], value), name
    assert same(metrics.record_coverage(given_outcomes), share([o.covered for o in given_outcomes]))
    assert same(metrics.record_faithfulness(given_outcomes), share([o.faithful for o in given_outcomes]))
    kept, clean = sum(o.kept for o in given_outcomes), sum(o.clean for o in given_outcomes)
    assert same(metrics.clean_preservation(given_outcomes), kept / clean if clean else math.nan)
    assert metrics.clean_fields(given_outcomes) == clean
    assert metrics.overwrites(given_outcomes) == sum(o.overwrites for o in given_outcomes)


@given(outcomes())
def test_the_metrics_bound_each_other(given_outcomes: list[Outcome]) -> None:
    row = metrics.summary(given_outcomes)
    if any(o.reference == "APPLY" for o in given_outcomes):
        assert row["safe_apply_utility"] <= row["safe_apply_recall"] + 1e-12
    if given_outcomes:
        assert row["ops"] <= 1 - row["unsafe_apply_rate"] + 1e-12
        exact_on_apply = [o.exact for o in given_outcomes if o.reference == "APPLY"]
        if exact_on_apply:
            assert row["safe_apply_recall"] <= share(exact_on_apply) + 1e-12


@given(outcomes(), st.floats(0, 1), st.floats(0, 1))
def test_survival_falls_with_the_threshold_from_all(given_outcomes: list[Outcome], one: float, other: float) -> None:
    if not given_outcomes:
        assert math.isnan(metrics.survival([], one))
        return
    low, high = sorted((one, other))
    assert metrics.survival(given_outcomes, 0) == 1
    assert metrics.survival(given_outcomes, low) >= metrics.survival(given_outcomes, high)
    assert metrics.survival([outcome_of(ops=math.nextafter(0.8, 0))], 0.8) == 1, "but for rounding"


@given(outcomes())
def test_every_output_is_in_the_confusion_matrix_once(given_outcomes: list[Outcome]) -> None:
    matrix = metrics.confusion(given_outcomes)
    assert list(matrix) == list(REFERENCES)
    for reference, row in matrix.items():
        assert list(row) == [*ACTIONS, INVALID]
        assert sum(row.values()) == sum(o.reference == reference for o in given_outcomes)
        assert row[INVALID] == sum(o.reference == reference and not o.valid for o in given_outcomes)
    diagonal = sum(matrix[reference][reference] for reference in REFERENCES)
    assert same(metrics.exact(given_outcomes), diagonal / len(given_outcomes) if given_outcomes else math.nan)


@given(outcomes())
def test_apply_counts_cover_every_output_after_and_every_proposal_before(given_outcomes: list[Outcome]) -> None:
    after = metrics.apply_counts(given_outcomes, "after")
    before = metrics.apply_counts(given_outcomes, "before")
    assert after.tp + after.fp + after.fn + after.tn == len(given_outcomes)
    assert after.tp + after.fn == sum(o.reference == "APPLY" for o in given_outcomes)
    assert after.fp == sum(o.action == "APPLY" and o.reference != "APPLY" for o in given_outcomes)
    proposed = [o for o in given_outcomes if o.proposed is not None]
    assert before.tp == sum(o.proposed == o.reference == "APPLY" for o in proposed)
    assert before.tp + before.fp == sum(o.proposed == "APPLY" for o in proposed)
    assert before.tp + before.fp + before.fn + before.tn == len(proposed)
    assert math.isnan(after.recall) == all(o.reference != "APPLY" for o in given_outcomes)


@pytest.mark.parametrize(("reference", "fn", "tn"), [("APPLY", 1, 0), ("HOLD", 0, 1)])
def test_a_reply_that_does_not_read_is_no_apply_before_repair_and_who_asked_nobody_proposed_nothing(
    reference: str, fn: int, tn: int
) -> None:
    case = case_of(reference, [] if reference == "APPLY" else ["users"])
    asked = judge(case, bundle_of(None, proposed=None, invalid="no JSON", calls=1))
    before = metrics.apply_counts([asked], "before")
    assert (before.tp, before.fp, before.fn, before.tn) == (0, 0, fn, tn)
    foreign = judge(case, bundle_of("HOLD", proposed=None, calls=0))
    assert metrics.apply_counts([foreign], "before") == metrics.ApplyCounts(0, 0, 0, 0)


def test_an_invalid_output_lowers_a_metric_as_a_wrong_one_does() -> None:
    good = [outcome_of(f"e-{i}") for i in range(3)]
    invalid = outcome_of("e-9", action=None, valid=False, proposed=None, score=0.0, safe=False, ops=0.0)
    row = metrics.summary([*good, invalid])
    assert {name: row[name] for name in ("exact", "safe_apply_recall", "task_score", "ops", "n")} == {
        "exact": 0.75, "safe_apply_recall": 0.75, "task_score": 0.75, "ops": 0.75, "n": 4,
    }  # fmt: skip
    assert row["macro_f1"] == pytest.approx(2 * 3 / (3 + 4)), "the other three actions have no F1 here"


def test_an_abstain_is_a_wrong_prediction_and_no_class_of_its_own() -> None:
    row = metrics.summary([outcome_of(), outcome_of("e-1", action="ABSTAIN", safe=False)])
    assert row["exact"] == 0.5
    assert row["macro_f1"] == pytest.approx(2 / 3)


# intervals


def run(number: int, value: float = 1.0, tasks: Sequence[Task] = TASKS) -> list[Outcome]:
    """`number` outcomes per task, of score `value`."""
    return [outcome_of(f"{task}-{i}", task=task, score=value) for task in tasks for i in range(number)]


def scored(values: Mapping[Task, Sequence[float]]) -> list[Outcome]:
    return [outcome_of(f"{t}-{i}", task=t, score=v) for t, vs in values.items() for i, v in enumerate(vs)]


def test_no_draw_mixes_tasks() -> None:
    constant_within = scored({"WCHW": [0.0] * 50, "WCNS": [0.5] * 20, "WCMSA": [1.0] * 30})
    found = interval(constant_within, metrics.task_score, draws=500)
    assert found.low == pytest.approx(0.4) == found.high, "strata keep their sizes, so nothing varies between them"
    assert found.mean == pytest.approx(0.4)


def test_a_pair_is_drawn_together() -> None:
    rng = np.random.default_rng(3)
    a = scored({task: list(rng.uniform(0.2, 1, 60)) for task in TASKS})
    b = [replace(outcome, score=outcome.score - 0.2) for outcome in reversed(a)]
    found = paired_difference(a, b, metrics.task_score, draws=500)
    assert found == pytest.approx((0.2, 0.2, 0.2)), "a constant gain is certain, however the scores scatter"
    assert interval(a, metrics.task_score, draws=500).low < metrics.task_score(a) - 0.01


def test_swapping_the_pair_mirrors_its_interval() -> None:
    rng = np.random.default_rng(4)
    a = scored({task: list(rng.uniform(0, 1, 40)) for task in TASKS})
    b = scored({task: list(rng.uniform(0, 1, 40)) for task in TASKS})
    one, other = (paired_difference(*pair, metrics.task_score, seed=5) for pair in ((a, b), (b, a)))
    assert (other.mean, other.low, other.high) == pytest.approx((-one.mean, -one.high, -one.low))
    assert one.low < one.mean < one.high
    assert one == paired_difference(a, b, metrics.task_score, seed=5)
    assert one != paired_difference(a, b, metrics.task_score, seed=6)


def test_the_interval_of_a_share_is_that_of_the_binomial() -> None:
    values = [1.0] * 120 + [0.0] * 80
    found = interval(scored({"WCNS": values}), metrics.task_score)
    half = 1.96 * math.sqrt(0.6 * 0.4 / 200)
    assert (found.low, found.high) == pytest.approx((0.6 - half, 0.6 + half), abs=0.01)


def test_95_percent_intervals_hold_the_truth_about_as_often() -> None:
    rng = np.random.default_rng(11)
    held = 0
    for seed in range(200):
        sample = scored({task: list(rng.exponential(0.3, 60)) for task in TASKS})
        found = interval(sample, metrics.task_score, draws=400, seed=seed)
        held += found.low <= 0.3 <= found.high
    assert 180 <= held <= 199


def test_ratios_and_f1_are_recomputed_in_every_draw() -> None:
    mixed = [
        outcome_of(f"{task}-{i}", task=task, reference=reference, action=action, safe=reference == action == "APPLY")
        for task in TASKS
        for i, (reference, action) in enumerate([("APPLY", "APPLY"), ("APPLY", "HOLD"), ("HOLD", "HOLD")] * 20)
    ]
    for metric in (metrics.safe_apply_recall, metrics.macro_f1):
        found = interval(mixed, metric, draws=1000)
        assert found.low < found.mean < found.high
        assert found.mean == metric(mixed)


def test_what_is_undefined_has_no_interval() -> None:
    held = [outcome_of(f"e-{i}", reference="HOLD", action="HOLD", safe=False) for i in range(10)]
    for found in (
        interval(held, metrics.safe_apply_recall, draws=50),
        interval([], metrics.task_score),
        paired_difference([], [], metrics.task_score),
        paired_difference(held, held, metrics.safe_apply_recall, draws=50),
        interval([*held, outcome_of("e-99")], metrics.safe_apply_recall, draws=200),  # and in some draws
    ):
        assert all(math.isnan(value) for value in found)
        assert isinstance(found, Interval)


def test_a_pair_of_different_episodes_is_refused() -> None:
    for other in (run(2)[1:], [*run(2)[1:], outcome_of("e-77")], [*run(2), run(2)[0]]):
        with pytest.raises(ValueError, match="same episodes"):
            paired_difference(run(2), other, metrics.task_score, draws=10)
    with pytest.raises(ValueError, match="same episodes"):
        paired_difference([*run(2), run(2)[0]], [*run(2), run(2)[0]], metrics.task_score, draws=10)


def test_10_000_draws_over_600_episodes_take_well_under_a_second() -> None:
    a, b = run(200), run(200, 0.5)
    began = time.perf_counter()
    paired_difference(a, b, metrics.task_score, draws=10_000, seed=99)
    assert time.perf_counter() - began < 2.0  # on a machine that does other things at the same time


# independence


def test_the_evaluator_imports_nothing_of_the_guard_nor_of_the_judges() -> None:
    allowed = {"simulators.optbench.model", "simulators.optbench.agents"}
    for path in Path(scoring.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert name.split(".")[0] not in ("xapp", "streams"), f"{path.name}: {name}"
                if name.startswith("simulators."):
                    assert name in allowed or name.startswith("simulators.optbench.scoring"), f"{path.name}: {name}"


def test_every_domain_can_be_judged() -> None:
    assert {judge(case_of(domain=domain), bundle_of()).domain for domain in DOMAINS} == set(DOMAINS)
