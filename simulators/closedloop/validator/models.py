"""Logistic models of stable detection, fitted here by other means than the runner's: scipy's minimiser for the rows as
they are, and Newton's method for the draws of the bootstrap.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from simulators.closedloop.validator.reading import Floats, Ints

RIDGE: Final = 1e-6
"""On standardised coefficients: those of a separated draw would else go to infinity."""
_CHUNK: Final = 100
_ROUNDS: Final = 60


def design(columns: tuple[Floats, ...]) -> Floats:
    """float64[rows, 1 + columns]: ones, then the columns with mean 0 and deviation 1."""
    x = np.column_stack(columns)
    deviation = x.std(axis=0)
    return np.column_stack((np.ones(len(x)), (x - x.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)))


def fitted(columns: tuple[Floats, ...], y: Floats) -> tuple[float, Floats]:
    """The least mean negative log likelihood in nats a row, and the coefficients of `design` that have it."""
    from scipy.optimize import minimize

    x = design(columns)
    sign = 1.0 - 2.0 * y

    def cost(beta: Floats) -> tuple[float, Floats]:
        margin = sign * (x @ beta)
        slope = sign / (1.0 + np.exp(-np.clip(margin, -700, 700)))
        return float(np.logaddexp(0.0, margin).mean()), slope @ x / len(y)

    found = minimize(cost, np.zeros(x.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-8})
    return float(found.fun), found.x


def draws(components: Ints, count: int, seed: int) -> Floats:
    """float64[count, rows]: how often each row is in each draw of as many clusters as there are, with replacement.

    The documented draw: raw 64-bit words of Philox with the seed as its key, in order, modulo the number of clusters.
    """
    clusters = np.unique(components)
    words = np.random.Philox(key=seed).random_raw(count * len(clusters)).reshape(count, len(clusters))
    drawn = (words % np.uint64(len(clusters))).astype(np.int64)
    times = np.stack([(drawn == cluster).sum(axis=1) for cluster in range(len(clusters))], axis=1)
    weights: Floats = times[:, np.searchsorted(clusters, components)].astype(np.float64)
    return weights


def refitted(columns: tuple[Floats, ...], y: Floats, weights: Floats) -> Floats:
    """The mean NLL of each draw, fitted to it: float64[draws]."""
    x = design(columns)
    _, start = fitted(columns, y)
    parts = np.array_split(weights, max(1, len(weights) // _CHUNK))
    return np.concatenate([_newton(x, y, part, start) for part in parts])


def _newton(x: Floats, y: Floats, weights: Floats, start: Floats) -> Floats:
    shares = weights / weights.sum(axis=1, keepdims=True)
    squares = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    beta = np.tile(start, (len(weights), 1))
    for _ in range(_ROUNDS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(beta @ x.T, -700, 700)))
        slope = (shares * (chance - y)) @ x + RIDGE * beta
        if np.abs(slope).max() < 1e-6:
            break
        curve = ((shares * chance * (1.0 - chance)) @ squares).reshape(-1, x.shape[1], x.shape[1])
        step = np.linalg.solve(curve + RIDGE * np.eye(x.shape[1]), slope[:, :, None])[:, :, 0]
        beta -= step * np.minimum(1.0, 3.0 / np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-300))
    margin = beta @ x.T
    nll: Floats = (shares * (np.logaddexp(0.0, margin) - y * margin)).sum(axis=1)
    return nll
