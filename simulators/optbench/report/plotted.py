"""What the figures plot, as numbers: survival, routing, confusion, gains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from simulators.optbench.model import DOMAINS, REFERENCES, TASKS, Domain, Task
from simulators.optbench.report.measured import BASELINES, FULL, Measured
from simulators.optbench.scoring import metrics
from simulators.optbench.scoring.metrics import COLUMNS, Floats
from simulators.optbench.scoring.outcome import Outcome

THRESHOLDS: Final = tuple(step / 100 for step in range(101))
"""The readiness scores at which survival is plotted, 0 to 1."""


class Routing(NamedTuple):
    """Where the proposals that were APPLY went. `shares`: final action (`COLUMNS`) → share; empty where `n` is 0."""

    n: int
    shares: Mapping[str, float]


def survival_curve(outcomes: Sequence[Outcome]) -> tuple[float, ...]:
    """Figure 4: the share of outputs whose readiness score is at least each of `THRESHOLDS`."""
    return tuple(metrics.survival(outcomes, tau) for tau in THRESHOLDS)


def routing(outcomes: Sequence[Outcome]) -> dict[Domain, Routing]:
    """Figure 5: final actions of the proposals that were APPLY, by stress domain."""
    found: dict[Domain, Routing] = {}
    for domain in DOMAINS:
        final = [o.predicted for o in outcomes if o.domain == domain and o.proposed == "APPLY"]
        shares = {action: final.count(action) / len(final) for action in COLUMNS} if final else {}
        found[domain] = Routing(len(final), shares)
    return found


def mean_confusion(runs: Sequence[Sequence[Outcome]]) -> Floats:
    """Figure 6: the row-normalised confusion matrix, averaged over runs; shape (4 references, 6 columns).

    Rows sum to 1, the last column being invalid outputs; a row without episodes is NaN.
    """
    matrices = []
    for outcomes in runs:
        counts = metrics.confusion(outcomes)
        matrix = np.array([[counts[reference][column] for column in COLUMNS] for reference in REFERENCES], float)
        totals = matrix.sum(axis=1, keepdims=True)
        matrices.append(np.divide(matrix, totals, out=np.full_like(matrix, math.nan), where=totals > 0.0))
    return np.asarray(np.mean(matrices, axis=0))


def gains(measured: Measured, backbone: str) -> dict[Task, dict[Domain, float]]:
    """Figure 7: exact accuracy less that of the cell's strongest baseline, in percentage points; NaN if empty."""
    return {task: {domain: _gain(measured, backbone, task, domain) for domain in DOMAINS} for task in TASKS}


def _gain(measured: Measured, backbone: str, task: Task, domain: Domain) -> float:
    def accuracy(method: str) -> float:
        return metrics.exact(cell(measured.of(method, backbone), task, domain))

    return 100.0 * (accuracy(FULL) - max(map(accuracy, BASELINES)))


def cell(outcomes: Sequence[Outcome], task: Task, domain: Domain) -> list[Outcome]:
    """The outcomes of one task and stress domain."""
    return [o for o in outcomes if o.task == task and o.domain == domain]
