"""Whole suites, built once for all test modules that read them, and what methods make of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from simulators.optbench.methods import build as build_method
from simulators.optbench.model import Split
from simulators.optbench.running import run
from simulators.optbench.scoring.outcome import Evaluator, Outcome, judge
from simulators.optbench.suite import Suite, build
from simulators.optbench.synthetic import proposer

WIRELESSBENCH = Path(__file__).parents[2] / "shared" / "data" / "wirelessbench"
SEED = 7
PROPOSERS = ("synthetic-a", "synthetic-b", "synthetic-c")


@cache
def suite(split: Split = "final", seed: int = SEED, base: Path | None = None) -> Suite:
    """The suite of a split and a seed."""
    return build(split, seed, base)


@cache
def outcomes(
    method: str, backbone: str, of: Suite | None = None, evaluator: Evaluator = "corrected"
) -> tuple[Outcome, ...]:
    """What a method with a synthetic proposer does on a suite, by default the final one."""
    whole = suite() if of is None else of
    agent = build_method(method, proposer(backbone, whole.cases, SEED))
    bundles = run(whole.cases, agent, {}, lambda _: None)
    return tuple(judge(case, bundle, evaluator) for case, bundle in zip(whole.cases, bundles, strict=True))


def exact_by_cell(found: tuple[Outcome, ...]) -> Mapping[tuple[str, str], int]:
    """(task, domain) → how many actions were exact."""
    counts: dict[tuple[str, str], int] = {}
    for outcome in found:
        counts[outcome.task, outcome.domain] = counts.get((outcome.task, outcome.domain), 0) + outcome.exact
    return counts
