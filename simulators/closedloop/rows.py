"""The rows of a run: what was counted, before anything is concluded from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from simulators.closedloop.loop import ACTIONS, COMPONENTS, FAMILIES, QUARTERS, REGIMES, TARGETS, Direction, Family

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

Block = Literal["development", "pilot", "reference", "current", "null"]


@dataclass(frozen=True, slots=True)
class Case:
    """One case of the formal grid. `case`: its number, from 0; `regime`: λ0; `component`: 0…23."""

    case: int
    regime: int
    component: int
    family: Family
    target: float
    direction: Direction


@dataclass(frozen=True, slots=True)
class MaskRow:
    """What one arm (unit, family, target) changes; the same cells in both directions.

    `selected`, `changeable`: numbers of cells; `tau_…`: affected clean traffic, 0…1; `fraction`: selected / changeable,
    0 where nothing is changeable; `digest`: `sha256:…` of the selected cells in order.
    """

    regime: int
    component: int
    family: Family
    target: float
    selected: int
    changeable: int
    tau_outward: float
    tau_inward: float
    tau: float
    fraction: float
    digest: str


@dataclass(frozen=True, slots=True)
class Stream:
    """Features of clean partitions, for the drift alarm: float64[15, features], in the order of `FEATURES`.

    `regime`: what the policy was fitted to; `demand`: the λ0 that it met, another one where the world has drifted.
    """

    regime: int
    demand: int
    block: Block
    features: Floats


FEATURES: Final = (
    *(f"share_{component}" for component in range(COMPONENTS)),
    *(f"action_{action}" for action in range(ACTIONS)),
    *(f"credit_{quarter}" for quarter in range(QUARTERS)),
    "unmet",
)
"""Shares of visits by component, shares of actions, mean credit after each quarter, mean unmet demand a step."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Everything that a run counts.

    `cases`: the formal grid, 1,440. `reference`, `null`: int64[3, 24, 15, 8], how often each action was taken, by
    regime, component and partition, in clean episodes; their sum over actions is the visits. `current`:
    int64[1440, 15, 8], the same of each case's own component under its fault. `masks`: 720, by regime, component,
    family, target. `cells`: int64[cells, 3] for each regime, component and family (144): flat index of the cell, and 0
    or 1 whether it changes outward and inward, in the order of the mask. `occupancy`: int64[3, 15984], clean visits of
    each cell in the reference block. `streams`: for the drift alarm.
    """

    cases: tuple[Case, ...]
    reference: Ints
    null: Ints
    current: Ints
    masks: tuple[MaskRow, ...]
    cells: tuple[Ints, ...]
    occupancy: Ints
    streams: tuple[Stream, ...]


def arms() -> Iterator[tuple[int, int, Family, float]]:
    """Regime, component, family and target of each of the 720 arms, in the one order that all files keep."""
    return product(REGIMES, range(COMPONENTS), FAMILIES, TARGETS)
