"""One row of results: what a method with a backbone reaches on a suite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from simulators.optbench.agents import Bundle
from simulators.optbench.scoring import metrics
from simulators.optbench.scoring.answers import Scorer
from simulators.optbench.scoring.outcome import Evaluator, judge
from simulators.optbench.suite import Suite

SURVIVAL_AT: Final = 0.8
"""The threshold of the readiness score that a row shows; figure 4 shows all."""


def row(
    suite: Suite,
    method: str,
    backbone: str,
    bundles: Sequence[Bundle],
    evaluator: Evaluator = "corrected",
    scorer: Scorer = "strict",
) -> dict[str, Any]:
    """The metrics of `bundles`, one a case of `suite` and in their order, how they were judged, and what they took.

    `unsafe_overwrites`, `applied_on_blocking` (APPLYs where the reference is another action), `invalid`, `calls` and
    tokens are counts. `cost_usd` is None where that of one call is not known; a metric that is undefined, not-a-number.
    """
    outcomes = [judge(case, bundle, evaluator, scorer) for case, bundle in zip(suite.cases, bundles, strict=True)]
    costs = [bundle.cost_usd for bundle in bundles if bundle.calls]
    known = [cost for cost in costs if cost is not None]
    return {
        "method": method,
        "backbone": backbone,
        "suite": suite.digest,
        "evaluator": evaluator,
        "scorer": scorer,
        **metrics.summary(outcomes),
        "ops_survival": metrics.survival(outcomes, SURVIVAL_AT),
        "record_coverage": metrics.record_coverage(outcomes),
        "record_faithfulness": metrics.record_faithfulness(outcomes),
        "clean_preservation": metrics.clean_preservation(outcomes),
        "unsafe_overwrites": metrics.overwrites(outcomes),
        "applied_on_blocking": metrics.apply_counts(outcomes, "after").fp,
        "invalid": sum(not outcome.valid for outcome in outcomes),
        "calls": sum(bundle.calls for bundle in bundles),
        "tokens_in": sum(bundle.tokens_in for bundle in bundles),
        "tokens_out": sum(bundle.tokens_out for bundle in bundles),
        "cost_usd": sum(known) if known and len(known) == len(costs) else None,
    }
