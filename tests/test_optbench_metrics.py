"""Scoring: the metrics over many episodes, and their intervals."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optbench_scoring_cases import (
    bundle_of,
    case_of,
)

from simulators.optbench.model import (
    REFERENCES,
    TASKS,
    Task,
)
from simulators.optbench.scoring import metrics
from simulators.optbench.scoring.bootstrap import Interval, interval, paired_difference
from simulators.optbench.scoring.outcome import ACTIONS, INVALID, Outcome, judge


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
