"""Whole suites, built once for all test modules that read them, and what methods make of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from simulators.optbench.agents import Bundle
from simulators.optbench.methods import build as build_method
from simulators.optbench.model import Split
from simulators.optbench.running import run
from simulators.optbench.scoring.outcome import Evaluator, Outcome, judge
from simulators.optbench.suite import Suite, build
from simulators.optbench.synthetic import proposer

WIRELESSBENCH = Path(__file__).parents[2] / "shared" / "data" / "wirelessbench"
SEED = 0
PROPOSERS = ("synthetic-a", "synthetic-b", "synthetic-c")


@cache
def suite(split: Split = "final", seed: int = SEED, base: Path | None = None) -> Suite:
    """The suite of a split and a seed."""
    return build(split, seed, base)


@cache
def bundles(method: str, backbone: str, split: Split, seed: int, base: Path | None) -> tuple[Bundle, ...]:
    """What a method with a synthetic proposer makes of a suite."""
    cases = suite(split, seed, base).cases
    return tuple(run(cases, build_method(method, proposer(backbone, cases, SEED)), {}, lambda _: None))


@cache
def outcomes(
    method: str,
    backbone: str,
    split: Split = "final",
    seed: int = SEED,
    base: Path | None = None,
    evaluator: Evaluator = "corrected",
) -> tuple[Outcome, ...]:
    """How that is judged."""
    made = bundles(method, backbone, split, seed, base)
    cases = suite(split, seed, base).cases
    return tuple(judge(case, bundle, evaluator) for case, bundle in zip(cases, made, strict=True))


def exact_by_cell(found: tuple[Outcome, ...]) -> Mapping[tuple[str, str], int]:
    """(task, domain) → how many actions were exact."""
    counts: dict[tuple[str, str], int] = {}
    for outcome in found:
        counts[outcome.task, outcome.domain] = counts.get((outcome.task, outcome.domain), 0) + outcome.exact
    return counts
