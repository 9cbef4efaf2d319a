"""Masks: which cells of a component a fault shifts, and how much of the clean traffic that touches.

Source: section 3.2 (cells that change in a direction are shifted by one action bucket; exposure weights selected cells
by clean visits, is 0 where there are none, and is the mean of both directions; two frozen families of masks).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulators.closedloop.draws import other_uniforms
from simulators.closedloop.loop import (
    ACTIONS,
    COMPONENTS,
    FAMILIES,
    REGIMES,
    TARGETS,
    Direction,
    Family,
    component_table,
)
from xapp import address

CellNumbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells of a component that change in at least one direction, in some order."""

    cell: CellNumbers
    """Flat index of the state in a table of the shape STATES: int64[n]."""
    outward: NDArray[np.bool_]
    """Whether a larger bucket exists: bool[n]."""
    inward: NDArray[np.bool_]
    """Whether a smaller one exists: bool[n]."""

    def __len__(self) -> int:
        return len(self.cell)

    def taken(self, places: CellNumbers) -> Cells:
        """These cells in the order of `places`."""
        return Cells(self.cell[places], self.outward[places], self.inward[places])


@dataclass(frozen=True, slots=True)
class Mask:
    """The cells of a unit that a fault shifts. The clean traffic is the occupancy it was built with."""

    regime: int
    component: int
    family: Family
    target: float
    cells: tuple[int, ...]
    """In the order of the family; at least one: a fault without a cell is none."""
    changeable: int
    """Cells of the component that change in at least one direction."""
    tau_outward: float
    """Share of the component's clean visits in selected cells that change outward; 0 where it has no visits."""
    tau_inward: float

    @property
    def tau(self) -> float:
        """Affected clean traffic: the mean of both directions."""
        return (self.tau_outward + self.tau_inward) / 2

    @property
    def fraction(self) -> float:
        """Nominal fraction: selected of changeable cells."""
        return len(self.cells) / self.changeable

    @property
    def digest(self) -> str:
        """See `digest`."""
        return digest(self.cells)


def cells(policy: NDArray[np.int8], component: int) -> Cells:
    """The changeable cells of a component under a policy, int8[STATES], in the order of their index."""
    found = np.flatnonzero(component_table().ravel() == component)
    action = policy.ravel()[found]
    return Cells(found, action < ACTIONS - 1, action > 0)


def order(
    changeable: Cells,
    family: Family,
    visits: NDArray[np.int64],
    master_seed: int,
    regime: int,
    component: int,
) -> Cells:
    """The changeable cells in the order in which masks of a family take them; the unit and the family seed it.

    `uniform`: a random order. `flow_weighted`: drawn without replacement with the clean visits, int64[STATES], as
    weights (exponential times divided by weights, the smallest first, after Efraimidis and Spirakis); cells without
    visits come last, in random order.
    """
    stream = (REGIMES.index(regime) * COMPONENTS + component) * len(FAMILIES) + FAMILIES.index(family)
    drawn = other_uniforms(master_seed, stream, len(changeable))
    if family == "uniform":
        return changeable.taken(drawn.argsort(kind="stable"))
    times = -np.log1p(-drawn)
    weights = visits.ravel()[changeable.cell]
    unvisited = weights == 0
    return changeable.taken(np.lexsort((times / np.where(unvisited, 1, weights), unvisited)))


def prefixes(
    ordered: Cells, family: Family, visits: NDArray[np.int64], regime: int, component: int
) -> tuple[Mask, ...]:
    """The mask of each of TARGETS: the prefix of ordered cells, at least one, whose τ is nearest; of equal ones the
    shortest. They are nested. Compared in whole numbers, so that a tie is a tie.
    """
    flow = visits.ravel()[ordered.cell]
    total = int(visits[component_table() == component].sum())
    outward, inward = np.cumsum(flow * ordered.outward), np.cumsum(flow * ordered.inward)
    found = []
    for target in TARGETS:
        last = int(np.abs(100 * (outward + inward) - 2 * round(100 * target) * total).argmin())
        found.append(
            Mask(
                regime=regime,
                component=component,
                family=family,
                target=target,
                cells=tuple(ordered.cell[: last + 1].tolist()),
                changeable=len(ordered),
                tau_outward=int(outward[last]) / total if total else 0.0,
                tau_inward=int(inward[last]) / total if total else 0.0,
            )
        )
    return tuple(found)


def shifted(policy: NDArray[np.int8], selected: Sequence[int], direction: Direction) -> NDArray[np.int8]:
    """The policy with selected cells shifted one bucket, outward +1, inward −1, where it exists: a new int8[STATES]."""
    found = policy.copy()
    flat = found.reshape(-1)
    places = np.asarray(selected, dtype=np.int64)
    flat[places] = np.clip(flat[places] + (1 if direction == "outward" else -1), 0, ACTIONS - 1)
    return found


def digest(selected: Sequence[int]) -> str:
    """`sha256:` and the hash of the cells in order, as decimal numbers joined by spaces."""
    return address.digest(" ".join(map(str, selected)).encode())
