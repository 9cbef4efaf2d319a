"""Which case, arm or unit a row stands for, and a table as an array over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from simulators.closedloop.validator.design import (
    ARMS,
    CASES,
    COMPONENTS,
    FAMILIES,
    HISTOGRAM,
    PARTITIONS,
    REGIMES,
    TARGETS,
    UNITS,
)
from simulators.closedloop.validator.reading import Floats, Ints, Saved, Table

MILLION: Final = 10**6
NOWHERE: Final = -1
"""Of a row that stands for nothing in the design."""

SIZES: Final = {
    "masks.csv": ARMS,
    "arms.csv": ARMS,
    "units.csv": UNITS,
    "reference.csv": UNITS * PARTITIONS,
    "null.csv": UNITS * PARTITIONS,
    "null_signals.csv": UNITS * PARTITIONS,
    "current.csv": CASES * PARTITIONS,
    "signals.csv": CASES * PARTITIONS,
}
"""Tables with a row for each arm, unit, unit and partition, or case and partition: how many rows."""


def key_columns(table: Table) -> tuple[str, ...]:
    """The columns by which a row of the tables of SIZES is known."""
    known = ("case", "regime", "component", "family", "target", "partition")
    return tuple(name for name in known if name in table.ints or name in table.texts or name in table.floats)


def places(table: Table) -> Ints:
    """The place of each row among those of the design, by its key columns: int64[rows], NOWHERE for a foreign one."""
    if "case" in table.ints:
        place = _bounded(table.ints["case"], CASES)
    else:
        place = _join(numbers(table.ints["regime"].tolist(), REGIMES), table.ints["component"], COMPONENTS)
    if "family" in table.texts:
        place = _join(place, numbers(table.texts["family"], FAMILIES), len(FAMILIES))
    if "target" in table.floats:
        place = _join(place, numbers(table.floats["target"].tolist(), TARGETS), len(TARGETS))
    if "partition" in table.ints:
        place = _join(place, table.ints["partition"], PARTITIONS)
    return place


def numbers(values: Sequence[Any], known: Sequence[Any]) -> Ints:
    """The place of each value among those known, NOWHERE for another: int64[values]."""
    place = {value: number for number, value in enumerate(known)}
    return np.array([place.get(value, NOWHERE) for value in values], dtype=np.int64)


def _bounded(values: Ints, size: int) -> Ints:
    return np.where((values >= 0) & (values < size), values, NOWHERE)


def _join(outer: Ints, inner: Ints, size: int) -> Ints:
    inner = _bounded(inner, size)
    return np.where((outer >= 0) & (inner >= 0), outer * size + inner, NOWHERE)


@dataclass(frozen=True, slots=True, eq=False)
class Cube:
    """A table by place, not by line. `line`: the line of the row of each place (the first of several), 0 where there is
    none; the columns hold 0 there. So a row that is missing or foreign is a fault of the check of rows alone.
    """

    file: str
    line: Ints
    ints: dict[str, Ints]
    floats: dict[str, Floats]
    texts: dict[str, list[str]]

    @property
    def there(self) -> Any:
        """bool[places]: which have a row."""
        return self.line > 0


def cube(saved: Saved, name: str) -> Cube:
    """A table of SIZES by place."""
    return _cube(saved.tables[name])


@lru_cache(maxsize=32)  # most checks ask for the same tables; a table is known by being the same one
def _cube(table: Table) -> Cube:
    name = table.name
    place = places(table)[::-1]
    rows = np.arange(table.rows)[::-1]
    known = place >= 0
    row = np.full(SIZES[name], NOWHERE, dtype=np.int64)
    row[place[known]] = rows[known]
    there = row >= 0
    taken = np.maximum(row, 0)
    if table.rows == 0:
        return Cube(
            name,
            np.zeros_like(row),
            {column: np.zeros_like(row) for column in table.ints},
            {column: np.zeros(len(row)) for column in table.floats},
            {column: [""] * len(row) for column in table.texts},
        )
    return Cube(
        name,
        np.where(there, row + 2, 0),
        {column: np.where(there, values[taken], 0) for column, values in table.ints.items()},
        {column: np.where(there, values[taken], 0.0) for column, values in table.floats.items()},
        {column: [values[at] if at >= 0 else "" for at in row.tolist()] for column, values in table.texts.items()},
    )


def histograms(traces: Cube) -> Ints:
    """The action histograms of a cube of traces: int64[places, 8], no count beyond a million, so that no product of
    two overflows; traces/bounded tells of such counts.
    """
    return np.stack([traces.ints[action] for action in HISTOGRAM], axis=1).clip(-MILLION, MILLION)
