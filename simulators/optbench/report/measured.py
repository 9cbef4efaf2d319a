"""What a report is made of: outcomes of methods over backbones on one suite, by both evaluators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from simulators.optbench import published
from simulators.optbench.agents import Bundle
from simulators.optbench.report.unaided import without_nominal
from simulators.optbench.scoring.answers import Scorer
from simulators.optbench.scoring.outcome import Evaluator, Outcome, judge
from simulators.optbench.suite import Suite
from simulators.optbench.synthetic import PROFILES

BASELINES: Final = ("direct", "wirelessagent-contract", "critic")
FULL: Final = "wirelessopsagent"
METHODS: Final = (*BASELINES, FULL)
SANITY: Final = ("always-apply", "always-block")
EVALUATORS: Final[tuple[Evaluator, ...]] = ("corrected", "frozen")

CALIBRATED_BY: Final = dict(zip(PROFILES, published.BACKBONES, strict=True))
"""Synthetic proposer → the published backbone whose row of table IV gave its rates."""

Row = tuple[str, str]
"""(method or ablation, backbone)."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Outcomes on `suite`, one an episode, in its order, for each row by each evaluator that judged it.

    `evaluator` and `scorer`: those of every table that does not say otherwise. `synthetic`: the backbones that are no
    model. `version`: of this software. `unaided`: backbone → the outcomes of the agent without nominal answers.
    """

    suite: Suite
    version: str
    evaluator: Evaluator
    scorer: Scorer
    backbones: tuple[str, ...]
    synthetic: frozenset[str]
    outcomes: Mapping[Evaluator, Mapping[Row, tuple[Outcome, ...]]]
    unaided: Mapping[str, tuple[Outcome, ...]]

    def of(self, method: str, backbone: str, evaluator: Evaluator | None = None) -> tuple[Outcome, ...]:
        """The outcomes of a row. Raises KeyError where it was not run, or not judged by that evaluator."""
        return self.outcomes[evaluator or self.evaluator][method, backbone]

    def methods(self, backbone: str) -> tuple[str, ...]:
        """The methods and ablations that were run over a backbone, in the order in which they were."""
        return tuple(method for method, other in self.outcomes[self.evaluator] if other == backbone)

    def published_beside(self, backbone: str) -> str | None:
        """The published backbone to show beside: its namesake, or the one that calibrated it; None: neither.

        Namesakes may differ in case and punctuation.
        """
        if backbone in self.synthetic:
            return CALIBRATED_BY.get(backbone)
        return next((name for name in published.BACKBONES if _letters(name) == _letters(backbone)), None)

    def published_shown(self) -> tuple[str, ...]:
        """The published backbones to show: those beside one that was run; all where one of these has none beside."""
        beside = {self.published_beside(backbone) for backbone in self.backbones}
        return tuple(name for name in published.BACKBONES if name in beside or None in beside)

    def published_apart(self) -> tuple[str, ...]:
        """Those of `published_shown` that stand beside no backbone that was run."""
        beside = {self.published_beside(backbone) for backbone in self.backbones}
        return tuple(name for name in self.published_shown() if name not in beside)


def _letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def measure(
    suite: Suite,
    rows: Iterable[tuple[Row, Sequence[Bundle]]],
    synthetic: frozenset[str],
    evaluator: Evaluator,
    scorer: Scorer,
    version: str,
) -> Measured:
    """Judges the bundles of each row, one an episode of `suite` and in its order, as they come.

    Rows of `METHODS` are judged by both evaluators, others by `evaluator` alone.
    """
    outcomes: dict[Evaluator, dict[Row, tuple[Outcome, ...]]] = {kind: {} for kind in EVALUATORS}
    unaided: dict[str, tuple[Outcome, ...]] = {}
    for (method, backbone), bundles in rows:
        decided = list(zip(suite.cases, bundles, strict=True))
        for kind in EVALUATORS if method in METHODS else (evaluator,):
            outcomes[kind][method, backbone] = tuple(judge(case, bundle, kind, scorer) for case, bundle in decided)
        if method == FULL:
            own = (judge(case, without_nominal(case, bundle), evaluator, scorer) for case, bundle in decided)
            unaided[backbone] = tuple(own)
    backbones = tuple(dict.fromkeys(backbone for _, backbone in outcomes[evaluator]))
    return Measured(suite, version, evaluator, scorer, backbones, synthetic, outcomes, unaided)
