"""Schedule: the formal grid as it was designed, whatever the gates said later."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

import numpy as np

from simulators.closedloop.validator.check import Check, Fault
from simulators.closedloop.validator.design import (
    CASES,
    COMPONENTS,
    DIRECTIONS,
    FAMILIES,
    REGIMES,
    TARGETS,
    case_of,
)
from simulators.closedloop.validator.keys import SIZES, key_columns, places
from simulators.closedloop.validator.reading import Saved, Table

FILE: Final = "schedule.csv"
_COLUMNS: Final = ("regime", "component", "family", "target", "direction")
_KNOWN: Final[dict[str, Collection[Any]]] = {
    "regime": REGIMES,
    "component": range(COMPONENTS),
    "family": FAMILIES,
    "target": TARGETS,
    "direction": DIRECTIONS,
}


def _values(saved: Saved, column: str) -> Sequence[Any]:
    table = saved.tables[FILE]
    if column in table.texts:
        return table.texts[column]
    values: list[Any] = (table.ints[column] if column in table.ints else table.floats[column]).tolist()
    return values


def _count(saved: Saved) -> Iterator[Fault]:
    rows = saved.tables[FILE].rows
    if rows != CASES:
        yield Fault(FILE, "", f"has {rows} cases; the grid has {CASES}")


def _numbers(saved: Saved) -> Iterator[Fault]:
    for row, number in enumerate(_values(saved, "case")):
        if number != row:
            yield Fault(FILE, f"line {row + 2}", f"is case {number}; its place is that of case {row}")


def _known(column: str) -> Callable[[Saved], Iterator[Fault]]:
    def find(saved: Saved) -> Iterator[Fault]:
        for line, value in enumerate(_values(saved, column), 2):
            if value not in _KNOWN[column]:
                yield Fault(FILE, f"line {line}", f"{column} {value} is not of the grid")

    return find


def _grid(saved: Saved) -> Iterator[Fault]:
    for row, case in enumerate(zip(*(_values(saved, column) for column in _COLUMNS), strict=True)):
        known = all(value in _KNOWN[column] for column, value in zip(_COLUMNS, case, strict=True))
        if known and row < CASES and case != case_of(row):
            yield Fault(FILE, f"line {row + 2}", f"is {_told(case)}; the grid has {_told(case_of(row))} there")


def _told(case: Sequence[Any]) -> str:
    return " ".join(map(str, case))


def rows_in_place(table: Table) -> Iterator[Fault]:
    """Faults of a table of SIZES that has not exactly the rows of the design, in their order."""
    at = places(table)
    size = SIZES[table.name]
    for row in np.flatnonzero(at != np.arange(table.rows))[:100].tolist():
        keys = ", ".join(key_columns(table))
        if row < size:
            yield Fault(table.name, f"line {row + 2}", f"its {keys} are not those of its place")
    if table.rows != size:
        yield Fault(table.name, "", f"has {table.rows} rows; the grid has {size}")


def _current(saved: Saved) -> Iterator[Fault]:
    yield from rows_in_place(saved.tables["current.csv"])


_DERIVED: Final = ("masks.csv", "units.csv", "signals.csv", "arms.csv", "null_signals.csv")


def _derived(saved: Saved) -> Iterator[Fault]:
    for name in _DERIVED:
        yield from rows_in_place(saved.tables[name])


def _check(name: str, says: str, find: Callable[[Saved], Iterator[Fault]], *reads: str) -> Check:
    return Check(name, "schedule", says, reads or (FILE,), find)


CHECKS: Final = (
    _check("cases", "The schedule has 1,440 cases.", _count),
    _check("numbers", "Cases are numbered from 0 in their order.", _numbers),
    _check("regimes", "Every case is of regime 5, 7 or 9.", _known("regime")),
    _check("components", "Every case is of one of the components 0…23.", _known("component")),
    _check("families", "Every case has one of the two families of masks.", _known("family")),
    _check("targets", "Every case has one of the five targets of affected traffic.", _known("target")),
    _check("directions", "Every case is outward or inward.", _known("direction")),
    _check("grid", "Every unit is crossed with every family, target and direction, each case at its place.", _grid),
    _check("partitions", "Every case was run in all 15 partitions: 21,600 rows, in order.", _current, "current.csv"),
    _check(
        "derived_rows",
        "Masks, units, signals, arms and clean signals have the rows of the grid, in order.",
        _derived,
        *_DERIVED,
    ),
)
