"""The drift alarm: standardised max-|z| with a split-conformal limit, for live control and for the study.

An alarm asks for a refresh of the reference; it is never a fault.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Standard:
    """Mean and standard deviation of each feature over the fitted partitions; none is below the `floor` of the fit."""

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def score(self, features: Sequence[float]) -> float:
        """The largest |z| of the features of one partition. Raises ValueError for another number of features."""
        if len(features) != len(self.mean):
            raise ValueError(f"{len(features)} features: the standard has {len(self.mean)}")
        return max(abs(x - m) / d for x, m, d in zip(features, self.mean, self.deviation, strict=True))


def fit(features: Floats, floor: float) -> Standard:
    """Standardise by these partitions: float64[partitions ≥ 2, features ≥ 1]; `floor` > 0: the least deviation."""
    if features.ndim != 2 or features.shape[0] < 2 or features.shape[1] < 1 or not floor > 0:
        raise ValueError("at least 2 partitions of at least 1 feature, and a floor above 0")
    import numpy as np  # only to fit: a live gate scores without it, and starts quickly

    deviation = np.maximum(features.std(axis=0, ddof=1), floor)
    return Standard(tuple(features.mean(axis=0).tolist()), tuple(deviation.tolist()))


def conformal_limit(scores: Sequence[float], alpha: float) -> float | None:
    """The ⌈(n+1)(1−α)⌉-th smallest of n calibration scores that the fit has not seen; None where n is too small.

    A new exchangeable score exceeds it with probability at most α.
    """
    if not 0 < alpha < 1:
        raise ValueError("alpha must lie between 0 and 1")
    rank = math.ceil(round((len(scores) + 1) * (1 - alpha), 9))
    return None if rank > len(scores) else sorted(scores)[rank - 1]
