"""Scoring: answers, structured or told, against the published rules."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optbench_scoring_cases import (
    ANYTHING,
    CALCULATION,
    MOBILITY_ANSWER,
    SLICING_ANSWER,
)

from simulators.optbench.model import (
    TASKS,
    Task,
)
from simulators.optbench.scoring import free_text
from simulators.optbench.scoring.answers import score
from simulators.optbench.scoring.quantities import convert


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
