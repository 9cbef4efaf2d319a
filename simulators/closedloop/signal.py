"""The signal of one partition: how far two action histograms lie apart (section 5.3).

z = max(L1 distance of the histograms as shares / 0.20, |gap of the mean action index| / 0.35). With counts a, b of n
and m visits both terms are quotients of integers, 5·Σ|aᵢm − bᵢn| / nm and 20·|Σ i(aᵢm − bᵢn)| / 7nm: each is rounded
once, so that a z on the cutoff does not hang on the order in which floats were added.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

DISTANCE_UNIT: Final = Fraction(1, 5)
"""The L1 distance of two histograms, 0 to 2, that counts as z = 1."""
GAP_UNIT: Final = Fraction(7, 20)
"""The gap of the mean action index, in buckets, that counts as z = 1."""


def z(reference: Counts, current: Counts) -> NDArray[np.float64]:
    """z of each pair of histograms, int64[..., actions] of any shapes that broadcast; not-a-number where one is empty.

    Counts up to 10⁶ visits are computed without error but the last rounding.
    """
    n, m = reference.sum(axis=-1), current.sum(axis=-1)
    apart = reference * m[..., None] - current * n[..., None]
    distance = np.abs(apart).sum(axis=-1)
    gap = np.abs((apart * np.arange(apart.shape[-1])).sum(axis=-1))
    pairs = n * m
    found = np.full(pairs.shape, np.nan)
    for term, unit in ((distance, DISTANCE_UNIT), (gap, GAP_UNIT)):
        quotient = np.divide(
            term * unit.denominator, pairs * unit.numerator, out=np.full(pairs.shape, np.nan), where=pairs > 0
        )
        found = np.fmax(found, quotient)
    return found
