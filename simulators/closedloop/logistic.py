"""Logistic models by Newton's method, many weightings of the same rows at a time.

What is minimised is the mean negative log likelihood (NLL) of the weighted rows + RIDGE/2·|β|², over columns that
`design` has standardised. Separated rows have no minimum without the ridge; with it they have one, whose NLL is below
0.01. Where rows are not separated it moves the NLL by less than 10⁻⁶ nat. NLL is always told without the ridge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RIDGE: Final = 1e-6
STEPS: Final = 100
STEP_SIZE: Final = 4.0
"""The furthest that a coefficient moves in one step: from far out, a full Newton step of separated rows overshoots."""
TOLERANCE: Final = 1e-9
"""Of the largest component of the gradient."""


def design(*columns: Floats) -> Floats:
    """float64[rows, 1 + columns]: a constant, then each column with mean 0 and deviation 1; 0 where constant."""
    shown = [np.ones(len(columns[0]))]
    for column in columns:
        centred = column - column.mean()
        deviation = centred.std()
        shown.append(centred / deviation if deviation > 0.0 else np.zeros_like(centred))
    return np.stack(shown, axis=1)


def unstandardised(columns: Sequence[Floats], beta: Floats) -> tuple[float, ...]:
    """β of `design(*columns)` as a constant and slopes of the columns themselves; 0 for a constant column."""
    deviations = [column.std() for column in columns]
    slopes = [b / d if d > 0.0 else 0.0 for b, d in zip(beta[1:], deviations, strict=True)]
    constant = beta[0] - sum(slope * column.mean() for slope, column in zip(slopes, columns, strict=True))
    return (float(constant), *map(float, slopes))


def nll(x: Floats, y: Floats, weights: Floats, beta: Floats) -> Floats:
    """Mean NLL of the weighted rows in nats, float64[draws]. Shapes as in `fit`."""
    margin = _margins(x, beta)
    each = np.logaddexp(0.0, margin) - y * margin
    found: Floats = (weights * each).sum(axis=1) / weights.sum(axis=1)
    return found


def gradient(x: Floats, y: Floats, weights: Floats, beta: Floats) -> Floats:
    """Of what is minimised, float64[draws, p]."""
    residual = weights * (_probability(_margins(x, beta)) - y)
    slopes: Floats = np.stack([(residual * column).sum(axis=1) for column in x.T], axis=1)
    slopes = slopes / weights.sum(axis=1, keepdims=True) + RIDGE * beta
    return slopes


def fit(x: Floats, y: Floats, weights: Floats, start: Floats | None = None) -> Floats:
    """β of each weighting of the rows, float64[draws, p].

    `x`: float64[rows, p]; `y`: 0 or 1, float64[rows]; `weights` ≥ 0: float64[draws, rows], each draw with a sum above
    0; `start`: β to begin from, float64[p]. Raises ArithmeticError where the gradient of a draw does not vanish.
    """
    beta = np.zeros((len(weights), x.shape[1])) if start is None else np.tile(start, (len(weights), 1))
    total = weights.sum(axis=1)
    size = x.shape[1]
    products = [[x[:, i] * x[:, j] for j in range(size)] for i in range(size)]
    open_draws = np.arange(len(weights))
    for _ in range(STEPS):
        slope = gradient(x, y, weights[open_draws], beta[open_draws])
        unfinished = np.abs(slope).max(axis=1) > TOLERANCE
        open_draws, slope = open_draws[unfinished], slope[unfinished]
        if not len(open_draws):
            return beta
        chance = _probability(_margins(x, beta[open_draws]))
        spread = weights[open_draws] * chance * (1.0 - chance)
        hessian = np.empty((len(open_draws), size, size))
        for i in range(size):
            for j in range(i + 1):
                hessian[:, i, j] = hessian[:, j, i] = (spread * products[i][j]).sum(axis=1) / total[open_draws]
        hessian += RIDGE * np.eye(size)
        step = np.linalg.solve(hessian, slope[..., None])[..., 0]
        longest = np.abs(step).max(axis=1, keepdims=True)
        beta[open_draws] -= step * np.minimum(1.0, STEP_SIZE / np.maximum(longest, STEP_SIZE))
    raise ArithmeticError(f"{len(open_draws)} logistic models did not settle within {STEPS} steps")


def _margins(x: Floats, beta: Floats) -> Floats:
    # Summed column by column, not by a matrix product: a BLAS adds in an order that hangs on the number of threads.
    found = np.zeros((len(beta), len(x)))
    for place, column in enumerate(x.T):
        found += beta[:, place, None] * column
    return found


def _probability(margin: Floats) -> Floats:
    found: Floats = 0.5 * (1.0 + np.tanh(0.5 * margin))
    return found
