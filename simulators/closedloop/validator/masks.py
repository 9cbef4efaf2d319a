"""Masks: which cells a fault shifts, computed again from the order of the cells and the clean traffic."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from simulators.closedloop.validator.check import Check, Fault
from simulators.closedloop.validator.design import (
    ACTIONS,
    CHANNELS,
    COMPONENTS,
    CREDITS,
    FAMILIES,
    REGIMES,
    STEPS,
    TARGETS,
    component_of,
)
from simulators.closedloop.validator.keys import Cube, cube, numbers
from simulators.closedloop.validator.policy import policy
from simulators.closedloop.validator.reading import Ints, Saved, Table
from simulators.closedloop.validator.seeds import master_seed

FILE: Final = "masks.csv"
CELLS: Final = "cells.csv"
OCCUPANCY: Final = "occupancy.csv"
PER_REGIME: Final = STEPS * CREDITS * CHANNELS
TOLERANCE: Final = 1e-9
GROUPS: Final = len(REGIMES) * COMPONENTS * len(FAMILIES)

COMPONENT_OF: Final = np.array(
    [-1 if (component := component_of(cell)) is None else component for cell in range(PER_REGIME)], dtype=np.int64
)


@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """The cells of a unit and family in the order of their rows. `rows`: of cells.csv, from 0; `outward`, `inward`:
    clean visits in the first 1, 2, … cells that change in that direction; `total`: clean visits of the component;
    `nearest`: target → how many cells its mask selects: the shortest prefix, at least one cell, whose τ is nearest; 0
    where there are no cells.
    """

    rows: Ints
    cell: Ints
    outward: Ints
    inward: Ints
    total: int
    nearest: Mapping[float, int]


def occupancy(saved: Saved) -> Ints:
    """Clean visits of each cell in each regime: int64[3, 15984]. Foreign rows are left out."""
    return _occupancy(saved.tables[OCCUPANCY])


def _occupancy(table: Table) -> Ints:
    found = np.zeros((len(REGIMES), PER_REGIME), dtype=np.int64)
    regime, cell = numbers(table.ints["regime"].tolist(), REGIMES), table.ints["cell"]
    known = (regime >= 0) & (cell >= 0) & (cell < PER_REGIME)
    found[regime[known], cell[known]] = table.ints["visits"][known]
    return found


@lru_cache(maxsize=4)
def _groups(table: Table) -> Ints:
    """The unit and family of each row of cells.csv, 0…143; −1 for a foreign row."""
    components = table.ints["component"]
    regime, family = numbers(table.ints["regime"].tolist(), REGIMES), numbers(table.texts["family"], FAMILIES)
    known = (regime >= 0) & (family >= 0) & (components >= 0) & (components < COMPONENTS)
    known &= (table.ints["cell"] >= 0) & (table.ints["cell"] < PER_REGIME)
    return np.where(known, (regime * COMPONENTS + components) * len(FAMILIES) + family, -1)


def ordered(saved: Saved) -> list[Ordered]:
    """The cells of each unit and family: 144, regime by regime, component by component, family by family."""
    return _ordered(saved.tables[CELLS], saved.tables[OCCUPANCY])


@lru_cache(maxsize=4)  # most checks of masks ask for the same
def _ordered(table: Table, visited: Table) -> list[Ordered]:
    group, clean = _groups(table), _occupancy(visited)
    by_group = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[by_group], np.arange(GROUPS + 1))
    found = []
    for number in range(GROUPS):
        rows = by_group[starts[number] : starts[number + 1]]
        unit, _ = divmod(number, len(FAMILIES))
        regime, component = divmod(unit, COMPONENTS)
        cell = table.ints["cell"][rows]
        visits = clean[regime][cell]
        outward, inward = (np.cumsum(visits * (table.ints[name][rows] == 1)) for name in ("outward", "inward"))
        total = int(clean[regime][component == COMPONENT_OF].sum())
        nearest = {target: _nearest_prefix(outward + inward, total, target) for target in TARGETS}
        found.append(Ordered(rows, cell, outward, inward, total, nearest))
    return found


def _nearest_prefix(affected: Ints, total: int, target: float) -> int:
    if not len(affected):
        return 0
    # In whole numbers: τ = affected / 2·total, and every target is a whole number of hundredths.
    return int(np.abs(100 * affected - round(100 * target) * 2 * total).argmin()) + 1


@lru_cache(maxsize=4)
def _drawn(master: int, visited: Table) -> list[Ints]:
    """The cells of each unit and family in the order of their draw: 144."""
    clean = _occupancy(visited)
    found = []
    for number in range(GROUPS):
        regime, component = divmod(number // len(FAMILIES), COMPONENTS)
        found.append(_order_of(master, number, clean[regime], np.flatnonzero(component == COMPONENT_OF)))
    return found


def _order_of(master: int, number: int, visits: Ints, cells: Ints) -> Ints:
    """These cells, ascending: by uniform numbers, or by waiting times at rates of clean visits, those without last.

    The documented draw: Philox with the key (master seed, 2⁶³ + number); a number is a word's upper 53 bits / 2⁵³.
    """
    words = np.random.Philox(key=np.array([master, (1 << 63) + number], dtype=np.uint64)).random_raw(len(cells))
    uniform = (words >> np.uint64(11)) / float(1 << 53)
    if number % len(FAMILIES) == 0:
        return cells[np.argsort(uniform, kind="stable")]
    rates = visits[cells]
    visited, rest = np.flatnonzero(rates), np.flatnonzero(rates == 0)
    waits = -np.log1p(-uniform)
    first = visited[np.argsort(waits[visited] / rates[visited], kind="stable")]
    return cells[np.concatenate((first, rest[np.argsort(waits[rest], kind="stable")]))]


def _each(saved: Saved) -> Iterator[tuple[Cube, int, str, Ordered, float]]:
    """Each row of masks.csv whose unit has cells: cube, place, where it is, cells, target."""
    masks = cube(saved, FILE)
    cells = ordered(saved)
    for place in np.flatnonzero(masks.there).tolist():
        group, target = divmod(place, len(TARGETS))
        if len(cells[group].cell):
            yield masks, place, f"line {masks.line[place]}", cells[group], TARGETS[target]


def _order(saved: Saved) -> Iterator[Fault]:
    table = saved.tables[CELLS]
    group = _groups(table)
    for row in np.flatnonzero(group < 0)[:100].tolist():
        yield Fault(CELLS, f"line {row + 2}", "is of no regime, component, family or cell of the design")
    if (np.diff(group[group >= 0]) < 0).any():
        yield Fault(CELLS, "", "its units are not in the order of the grid")
    components = table.ints["component"]
    known = group >= 0
    foreign = known & (COMPONENT_OF[np.where(known, table.ints["cell"], 0)] != components)
    for row in np.flatnonzero(foreign)[:100].tolist():
        cell = int(table.ints["cell"][row])
        yield Fault(CELLS, f"line {row + 2}", f"cell {cell} does not lie in component {int(components[row])}")
    places = table.ints["place"]
    master = master_seed(saved)
    orders = None if master is None else _drawn(master, saved.tables[OCCUPANCY])
    for number, cells in enumerate(ordered(saved)):
        for row in cells.rows[places[cells.rows] != np.arange(len(cells.rows))].tolist():
            yield Fault(CELLS, f"line {row + 2}", f"place {int(places[row])} is not the next of its unit and family")
        once, first = np.unique(cells.cell, return_index=True)
        for row in np.delete(cells.rows, first).tolist():
            yield Fault(CELLS, f"line {row + 2}", "its cell is in the order twice")
        unit, family = divmod(number, len(FAMILIES))
        regime, component = divmod(unit, COMPONENTS)
        component_s = np.flatnonzero(component == COMPONENT_OF)
        if orders is not None and np.array_equal(np.sort(cells.cell), component_s):
            elsewhere = cells.rows[cells.cell != orders[number]]
            if len(elsewhere):
                yield Fault(CELLS, f"line {int(elsewhere[0]) + 2}", "its cell is not the one drawn for its place")
        # Of 8 actions every one has a neighbour, so every cell of a component may change.
        if len(missing := np.setdiff1d(component_s, once)):
            order = f"the {FAMILIES[family]} order of component {component} in regime {REGIMES[regime]}"
            yield Fault(CELLS, "", f"{order} lacks {len(missing)} cells, the first {int(missing[0])}")


def _flags(saved: Saved) -> Iterator[Fault]:
    table = saved.tables[CELLS]
    group, cells = _groups(table), table.ints["cell"]
    outward, inward = table.ints["outward"], table.ints["inward"]
    for place, regime in enumerate(REGIMES):
        action = policy(regime).ravel().astype(np.int64)
        (row,) = np.nonzero(group // (COMPONENTS * len(FAMILIES)) == place)
        wrong = (outward[row] != (action[cells[row]] < ACTIONS - 1)) | (inward[row] != (action[cells[row]] > 0))
        for at in row[wrong][:100].tolist():
            taken = int(action[cells[at]])
            told = f"cell {int(cells[at])} changes outward {int(outward[at])}, inward {int(inward[at])}"
            yield Fault(CELLS, f"line {at + 2}", f"{told}; the policy takes action {taken} of 0…{ACTIONS - 1} there")


def _changeable(saved: Saved) -> Iterator[Fault]:
    masks = cube(saved, FILE)
    cells = ordered(saved)
    for place in np.flatnonzero(masks.there).tolist():
        said, counted = int(masks.ints["changeable"][place]), len(cells[place // len(TARGETS)].cell)
        if said != counted:
            yield Fault(FILE, f"line {masks.line[place]}", f"changeable is {said}; {CELLS} has {counted} cells")


def _nested(saved: Saved) -> Iterator[Fault]:
    masks = cube(saved, FILE)
    selected, changeable = masks.ints["selected"], masks.ints["changeable"]
    for place in np.flatnonzero(masks.there).tolist():
        said = int(selected[place])
        if not 0 <= said <= int(changeable[place]):
            yield Fault(FILE, f"line {masks.line[place]}", f"selects {said} of {int(changeable[place])} cells")
        if place % len(TARGETS) and masks.there[place - 1] and said < int(selected[place - 1]):
            told = f"selects {said} cells, the mask of the target below it {int(selected[place - 1])}"
            yield Fault(FILE, f"line {masks.line[place]}", told)


def _nearest(saved: Saved) -> Iterator[Fault]:
    for masks, place, at, cells, target in _each(saved):
        if (said := int(masks.ints["selected"][place])) != (nearest := cells.nearest[target]):
            yield Fault(FILE, at, f"selects {said} cells; nearest to τ = {target} are {nearest}")


def _share(column: str) -> Callable[[Ordered, int], float]:
    def share(cells: Ordered, count: int) -> float:
        if not cells.total:
            return 0.0
        outward, inward = int(cells.outward[count - 1]), int(cells.inward[count - 1])
        visits = {"tau_outward": outward, "tau_inward": inward, "tau": (outward + inward) / 2}[column]
        return visits / cells.total

    return share


def _fraction(cells: Ordered, count: int) -> float:
    return count / len(cells.cell)


def _number(column: str, of: Callable[[Ordered, int], float]) -> Callable[[Saved], Iterator[Fault]]:
    def find(saved: Saved) -> Iterator[Fault]:
        for masks, place, at, cells, target in _each(saved):
            said, computed = float(masks.floats[column][place]), of(cells, cells.nearest[target])
            if not abs(said - computed) <= TOLERANCE:
                yield Fault(FILE, at, f"{column} is {said!r}; computed again it is {computed!r}")

    return find


def _directed(saved: Saved) -> Iterator[Fault]:
    for column in ("tau_outward", "tau_inward"):
        yield from _number(column, _share(column))(saved)


def _digests(saved: Saved) -> Iterator[Fault]:
    for masks, place, at, cells, target in _each(saved):
        selected = cells.cell[: cells.nearest[target]].tolist()
        digest = hashlib.sha256(" ".join(map(str, selected)).encode()).hexdigest()
        if masks.texts["digest"][place] != f"sha256:{digest}":
            yield Fault(FILE, at, f"its digest is not that of its first {len(selected)} cells in {CELLS}")


_CLEAN: Final = (CELLS, OCCUPANCY)
_ALL: Final = (FILE, *_CLEAN)


def _check(name: str, says: str, reads: tuple[str, ...], find: Callable[[Saved], Iterator[Fault]], *also: str) -> Check:
    return Check(name, "masks", says, reads, find, also)


CHECKS: Final = (
    _check(
        "order",
        "Each family of a unit orders all cells of its component, each once, as its seed draws them.",
        (*_CLEAN, "protocol.json"),
        _order,
    ),
    _check("flags", "The cells in an order, and how they may change, are those of the clean policy.", (CELLS,), _flags),
    _check("changeable", "The number of changeable cells is that of the cells in the order.", _ALL, _changeable),
    _check(
        "nested",
        "A higher target selects no fewer cells, and none more than there are.",
        (FILE,),
        _nested,
        "masks/nearest",
    ),
    _check("nearest", "The prefix selected is the one whose τ is nearest to the target.", _ALL, _nearest),
    _check("tau_by_direction", "τ outward and τ inward are shares of the clean visits.", _ALL, _directed),
    _check("tau", "τ is the mean of both directions.", _ALL, _number("tau", _share("tau"))),
    _check("fraction", "The fraction is selected of changeable cells.", _ALL, _number("fraction", _fraction)),
    _check("digests", "The digest is that of the selected cells in order.", _ALL, _digests),
)
