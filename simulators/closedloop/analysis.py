"""What predicts a stable detection: the clean traffic that a fault touches, or the share of cells that it edits (7.3).

Rows are the arms of units past both gates. Clusters of the bootstrap are physical components, whose units share much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simulators.closedloop import logistic
from simulators.closedloop.gates import Verdicts
from simulators.closedloop.loop import COMPONENTS, FAMILIES, REGIMES, TARGETS
from simulators.closedloop.rows import Floats, MaskRow

DRAWS: Final = 2000
SEED: Final = 73
PERCENTILES: Final = (2.5, 97.5)
FAMILY_RULE: Final = 0.01
"""Nats a row: a gain from knowing the mask's family that is, by its bound, at most this is of no practical use."""
LEAST: Final = 1e-3
"""What a share of 0 counts as under the logarithm: a fault that touches no traffic is a row all the same."""
PLACES: Final = 9
"""Decimals of what is told: beyond them platforms may differ."""
_CHUNK: Final = 50
"""Draws that are fitted at a time, so that they fit into a cache."""


@dataclass(frozen=True, slots=True)
class Arms:
    """Unit-arm rows of eligible units, arrays over rows. `family`: its place; τ, fraction: 0…1; detected: 0 or 1."""

    component: NDArray[np.int64]
    family: NDArray[np.int64]
    tau: Floats
    fraction: Floats
    detected: Floats

    def __len__(self) -> int:
        return len(self.detected)

    def of_family(self, family: int) -> Arms:
        """The rows of one family."""
        kept = self.family == family
        return Arms(
            self.component[kept], self.family[kept], self.tau[kept], self.fraction[kept], self.detected[kept]
        )  # fmt: skip

    def estimable(self) -> bool:
        """Whether there are both outcomes and at least two clusters to learn from."""
        return len(np.unique(self.detected)) == 2 and len(np.unique(self.component)) >= 2


def unit_arms(verdicts: Verdicts, masks: Sequence[MaskRow]) -> Arms:
    """`masks`: 720, in the order of `rows.arms`."""
    shape = (len(REGIMES), COMPONENTS, len(FAMILIES), len(TARGETS))
    kept = np.broadcast_to(verdicts.eligible[:, :, None, None], shape)
    places = np.indices(shape)
    tau = np.array([mask.tau for mask in masks]).reshape(shape)
    fraction = np.array([mask.fraction for mask in masks]).reshape(shape)
    return Arms(
        places[1][kept], places[2][kept], tau[kept], fraction[kept], verdicts.detected[kept].astype(float)
    )  # fmt: skip


def detections(verdicts: Verdicts) -> dict[str, list[int]]:
    """Family → eligible units detected at each target."""
    counts = verdicts.detected.sum(axis=(0, 1))
    return {family: counts[place].tolist() for place, family in enumerate(FAMILIES)}


def nondecreasing(counts: Sequence[int]) -> bool:
    """Whether no count is below the one before it."""
    return all(a <= b for a, b in pairwise(counts))


def cluster_weights(component: NDArray[np.int64], draws: int, seed: int) -> Floats:
    """float64[draws, rows]: how often each row is in each draw of as many clusters as there are, with replacement.

    All rows of a component have its count. Raw words of Philox, whose stream NumPy keeps: the same on every platform.
    """
    clusters, of_row = np.unique(component, return_inverse=True)
    size = len(clusters)
    drawn = (np.random.Philox(key=seed).random_raw(draws * size) % np.uint64(size)).reshape(draws, size).astype(int)
    flat = drawn + np.arange(draws)[:, None] * size
    counts = np.bincount(flat.ravel(), minlength=draws * size).reshape(draws, size)
    return counts[:, of_row].astype(float)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model of the rows: its NLL a row, that of each bootstrap draw refitted, and β in units of the columns."""

    nll: float
    draws: Floats
    coefficients: tuple[float, ...]


def fitted(columns: Sequence[Floats], detected: Floats, weights: Floats) -> Fitted:
    """Fits the rows as they are, then each draw from there. `weights`: float64[draws, rows]."""
    x = logistic.design(*columns)
    once = np.ones((1, len(detected)))
    beta = logistic.fit(x, detected, once)
    found = []
    for first in range(0, len(weights), _CHUNK):
        some = weights[first : first + _CHUNK]
        found.append(logistic.nll(x, detected, some, logistic.fit(x, detected, some, beta[0])))
    return Fitted(
        float(logistic.nll(x, detected, once, beta)[0]),
        np.concatenate(found),
        logistic.unstandardised(columns, beta[0]),
    )


def analyse(verdicts: Verdicts, masks: Sequence[MaskRow], draws: int = DRAWS, seed: int = SEED) -> dict[str, Any]:
    """The document `analysis.json`. What cannot be estimated is null."""
    counts = detections(verdicts)
    arms = unit_arms(verdicts, masks)
    pooled, family = _pooled(arms, draws, seed)
    return {
        "admitted": int(verdicts.eligible.sum()),
        "rows": len(arms),
        "detections": counts,
        "nondecreasing": {name: nondecreasing(found) if len(arms) else None for name, found in counts.items()},
        "models": pooled,
        "family": family,
        "within_family": {name: _compared(arms.of_family(place), draws, seed) for place, name in enumerate(FAMILIES)},
        "bootstrap": {"draws": draws, "seed": seed, "clusters": len(np.unique(arms.component))},
    }


def _pooled(arms: Arms, draws: int, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    if not arms.estimable():
        return _compared(arms, draws, seed), {"nll": None, "gain": None, "bound": None, "rule": FAMILY_RULE}
    weights = cluster_weights(arms.component, draws, seed)
    traffic = fitted([_log(arms.tau)], arms.detected, weights)
    fraction = fitted([_log(arms.fraction)], arms.detected, weights)
    named = arms.family.astype(float)
    with_family = fitted([_log(arms.tau), named, named * _log(arms.tau)], arms.detected, weights)
    gain = traffic.draws - with_family.draws
    return _told(traffic, fraction), {
        "nll": _round(with_family.nll),
        "gain": _round(traffic.nll - with_family.nll),
        "bound": _round(float(np.percentile(gain, PERCENTILES[1]))),
        "rule": FAMILY_RULE,
    }


def _compared(arms: Arms, draws: int, seed: int) -> dict[str, Any]:
    """Traffic against fraction on some rows."""
    if not arms.estimable():
        nothing = {"nll": None, "coefficients": None}
        return {"traffic": nothing, "fraction": nothing, "difference": None, "interval": None}
    weights = cluster_weights(arms.component, draws, seed)
    return _told(*(fitted([_log(share)], arms.detected, weights) for share in (arms.tau, arms.fraction)))


def _told(traffic: Fitted, fraction: Fitted) -> dict[str, Any]:
    return {
        "traffic": _model(traffic),
        "fraction": _model(fraction),
        "difference": _round(fraction.nll - traffic.nll),
        "interval": [_round(end) for end in np.percentile(fraction.draws - traffic.draws, PERCENTILES).tolist()],
    }


def _model(found: Fitted) -> Mapping[str, Any]:
    return {"nll": _round(found.nll), "coefficients": [_round(value) for value in found.coefficients]}


def _log(share: Floats) -> Floats:
    found: Floats = np.log(np.maximum(share, LEAST))
    return found


def _round(value: float) -> float:
    return round(value, PLACES)
