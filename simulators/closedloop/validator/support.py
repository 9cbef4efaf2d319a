"""Support and signal, computed again from the traces (sections 5.1 to 5.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from simulators.closedloop.validator.design import (
    ACTIONS,
    CASES_OF_UNIT,
    DISTANCE_SCALE,
    GAP_SCALE,
    MIN_PARTITIONS,
    MIN_VISITS,
    PARTITIONS,
    UNITS,
)
from simulators.closedloop.validator.keys import Cube, cube, histograms
from simulators.closedloop.validator.reading import Floats, Ints, Saved

Flags = Any
"""bool arrays."""


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """A stream against the reference, by partition. `there`: both traces are saved; `joint`: both have enough visits;
    `z`: NaN where not joint.
    """

    there: Flags
    joint: Flags
    z: Floats


def adequate(visits: Ints) -> Flags:
    """Whether a partition has enough visits."""
    return visits >= MIN_VISITS


def _compared(reference: Cube, current: Cube, unit: Ints) -> Compared:
    """`unit`: of each place of current, its place in the reference."""
    there = (reference.line[unit] > 0) & (current.line > 0)
    visits = reference.ints["visits"][unit], current.ints["visits"]
    joint = there & adequate(visits[0]) & adequate(visits[1])
    ours, theirs = histograms(reference)[unit], histograms(current)
    n, m = np.maximum(ours.sum(axis=1), 1)[:, None], np.maximum(theirs.sum(axis=1), 1)[:, None]
    apart = ours * m - theirs * n
    pairs = (n * m)[:, 0]
    distance = np.abs(apart).sum(axis=1) / pairs
    gap = np.abs(apart @ np.arange(ACTIONS)) / pairs
    z = np.maximum(distance / DISTANCE_SCALE, gap / GAP_SCALE)
    return Compared(there, joint, np.where(joint, z, np.nan))


def compared_cases(saved: Saved) -> Compared:
    """Of the cases: arrays over case · 15 + partition."""
    return _compared_cases(cube(saved, "reference.csv"), cube(saved, "current.csv"))


@lru_cache(maxsize=4)  # gates, signal, safety and analysis ask for the same
def _compared_cases(reference: Cube, current: Cube) -> Compared:
    case, partition = np.divmod(np.arange(len(current.line)), PARTITIONS)
    return _compared(reference, current, case // CASES_OF_UNIT * PARTITIONS + partition)


def compared_null(saved: Saved) -> Compared:
    """Of the clean stream: arrays over unit · 15 + partition."""
    null = cube(saved, "null.csv")
    return _compared(cube(saved, "reference.csv"), null, np.arange(len(null.line)))


def reference_partitions(saved: Saved) -> Ints:
    """Partitions of the reference with enough visits: int64[72]."""
    reference = cube(saved, "reference.csv")
    found = reference.there & adequate(reference.ints["visits"])
    counted: Ints = found.reshape(UNITS, PARTITIONS).sum(axis=1)
    return counted


def runtime_partitions(compared: Compared) -> Ints:
    """The least number of joint partitions over the cases of a unit: int64[72]."""
    counted: Ints = compared.joint.reshape(UNITS, CASES_OF_UNIT, PARTITIONS).sum(axis=2).min(axis=1)
    return counted


def states(reference: Ints, runtime: Ints) -> list[str]:
    """The state of each unit by its two counts."""
    return [
        "REFERENCE_ABSTAIN"
        if ours < MIN_PARTITIONS
        else "RUNTIME_ABSTAIN"
        if both < MIN_PARTITIONS
        else "SIGNAL_ELIGIBLE"
        for ours, both in zip(reference.tolist(), runtime.tolist(), strict=True)
    ]


def reaches(compared: Compared, cutoff: float) -> Flags:
    """Whether z is at or above the cutoff, but for the last digits of its computation."""
    return compared.joint & (np.nan_to_num(compared.z, nan=-1.0) >= cutoff - 1e-9)


def stable(compared: Compared, cutoff: float) -> Flags:
    """Whether enough partitions reach the cutoff, for each 15 of them."""
    return reaches(compared, cutoff).reshape(-1, PARTITIONS).sum(axis=1) >= MIN_PARTITIONS
