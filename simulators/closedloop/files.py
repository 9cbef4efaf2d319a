"""Rows as the files of a run, and back: bytes in and out, nothing is opened here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np

from simulators.closedloop.loop import ACTIONS, COMPONENTS, FAMILIES, PARTITIONS, REGIMES, STATES
from simulators.closedloop.rows import Ints, MaskRow, Rows, Stream, arms
from simulators.closedloop.schedule import Seeds, cases, partitions, streams
from simulators.closedloop.tables import FileFault, read, write

CELLS: Final = prod(STATES)
ROWS: Final = (
    "schedule.csv", "masks.csv", "reference.csv", "null.csv", "drift_features.csv", "occupancy.csv", "current.csv",
    "cells.csv",
)  # fmt: skip
"""The files that `of_rows` writes and `rows_of` reads."""


def of_rows(rows: Rows) -> dict[str, bytes]:
    """The files `ROWS` of these rows."""
    clean = tuple(product(REGIMES, range(COMPONENTS), range(PARTITIONS)))
    return {
        "schedule.csv": write("schedule.csv", map(_values, rows.cases)),
        "occupancy.csv": write("occupancy.csv", _occupancy(rows.occupancy)),
        "cells.csv": write("cells.csv", _cells(rows.cells)),
        "masks.csv": write("masks.csv", map(_values, rows.masks)),
        "reference.csv": write("reference.csv", _traces(clean, rows.reference)),
        "null.csv": write("null.csv", _traces(clean, rows.null)),
        "current.csv": write("current.csv", _traces(product(range(len(rows.cases)), range(PARTITIONS)), rows.current)),
        "drift_features.csv": write("drift_features.csv", _streams(rows.streams)),
    }


def of_seeds(seeds: Mapping[Any, Seeds]) -> bytes:
    """`seeds.csv`: the episode seeds of each partition of each block."""
    return write("seeds.csv", map(_values, partitions(dict(seeds))))


def rows_of(files: Mapping[str, bytes]) -> Rows:
    """The rows of the files `ROWS`, by name.

    Raises FileFault, with file, line and column, for a file that is missing, that `of_rows` would not write so, whose
    rows stand for others than the grid's, and whose visits are not the sum of its actions.
    """
    for name in ROWS:
        if name not in files:
            raise FileFault(f"{name}: missing")
    found = {name: read(name, files[name]) for name in ROWS}
    clean = list(product(REGIMES, range(COMPONENTS), range(PARTITIONS)))
    _keyed("masks.csv", found["masks.csv"], list(arms()))
    schedule = cases()
    _keyed("schedule.csv", found["schedule.csv"], [tuple(_values(case)) for case in schedule])
    return Rows(
        schedule,
        _counts("reference.csv", found["reference.csv"], clean).reshape(len(REGIMES), COMPONENTS, PARTITIONS, ACTIONS),
        _counts("null.csv", found["null.csv"], clean).reshape(len(REGIMES), COMPONENTS, PARTITIONS, ACTIONS),
        _counts(
            "current.csv", found["current.csv"], list(product(range(len(schedule)), range(PARTITIONS)))
        ).reshape(len(schedule), PARTITIONS, ACTIONS),
        tuple(MaskRow(*row) for row in found["masks.csv"]),
        _read_cells(found["cells.csv"]),
        _read_occupancy(found["occupancy.csv"]),
        _read_streams(found["drift_features.csv"]),
    )


def _values(row: Any) -> Sequence[Any]:
    return [getattr(row, name) for name in row.__slots__]


def _traces(keys: Iterable[tuple[int, ...]], counts: Ints) -> Iterator[Sequence[int]]:
    for key, histogram in zip(keys, counts.reshape(-1, ACTIONS).tolist(), strict=True):
        yield (*key, sum(histogram), *histogram)


def _occupancy(occupancy: Ints) -> Iterator[Sequence[int]]:
    for regime, visits in zip(REGIMES, occupancy, strict=True):
        (visited,) = visits.nonzero()
        yield from zip([regime] * len(visited), visited.tolist(), visits[visited].tolist(), strict=True)


def _cells(cells: Sequence[Ints]) -> Iterator[Sequence[int | str]]:
    for unit, of_unit in zip(product(REGIMES, range(COMPONENTS), FAMILIES), cells, strict=True):
        for place, cell in enumerate(of_unit.tolist()):
            yield (*unit, place, *cell)


def _streams(streams: Sequence[Stream]) -> Iterator[Sequence[int | str | float]]:
    for stream in streams:
        for partition, features in enumerate(stream.features.tolist()):
            yield (stream.regime, stream.demand, stream.block, partition, *features)


def _keyed(name: str, rows: Sequence[tuple[Any, ...]], keys: Sequence[tuple[Any, ...]]) -> None:
    """Raises FileFault unless the first columns of the rows are these keys, in this order."""
    for line, (row, key) in enumerate(zip(rows, keys, strict=False), 2):
        if row[: len(key)] != key:
            raise FileFault(f"{name}: line {line}: row of {_named(row[: len(key)])} where {_named(key)} belongs")
    if len(rows) != len(keys):
        raise FileFault(f"{name}: line {min(len(rows), len(keys)) + 2}: {len(rows)} rows, and the grid has {len(keys)}")


def _named(key: tuple[Any, ...]) -> str:
    return " ".join(map(str, key))


def _counts(name: str, rows: Sequence[tuple[Any, ...]], keys: Sequence[tuple[int, ...]]) -> Ints:
    """int64[rows, 8]: the histograms of the rows of these keys."""
    _keyed(name, rows, keys)
    found = np.array([row[-ACTIONS - 1 :] for row in rows], np.int64).reshape(-1, ACTIONS + 1)
    (wrong,) = (found[:, 0] != found[:, 1:].sum(axis=1)).nonzero()
    if len(wrong):
        raise FileFault(f"{name}: line {wrong[0] + 2}, column visits: not the sum of the actions")
    return found[:, 1:]


def _read_cells(rows: Sequence[tuple[Any, ...]]) -> tuple[Ints, ...]:
    units = {unit: place for place, unit in enumerate(product(REGIMES, range(COMPONENTS), FAMILIES))}
    found: list[list[tuple[int, ...]]] = [[] for _ in units]
    last = 0
    for line, (*unit, place, cell, outward, inward) in enumerate(rows, 2):
        at = units.get(tuple(unit))
        if at is None or at < last or place != len(found[at]) or cell >= CELLS:
            raise FileFault(f"cells.csv: line {line}: place {place} of {_named(tuple(unit))} is out of order")
        found[at].append((cell, outward, inward))
        last = at
    return tuple(np.array(of_unit, np.int64).reshape(-1, 3) for of_unit in found)


def _read_occupancy(rows: Sequence[tuple[int, int, int]]) -> Ints:
    found = np.zeros((len(REGIMES), CELLS), np.int64)
    last = (-1, -1)
    for line, (regime, cell, visits) in enumerate(rows, 2):
        if regime not in REGIMES or cell >= CELLS or visits == 0 or (regime, cell) <= last:
            raise FileFault(f"occupancy.csv: line {line}: cell {cell} of regime {regime} is out of order, or unvisited")
        found[REGIMES.index(regime), cell] = visits
        last = (regime, cell)
    return found


def _read_streams(rows: Sequence[tuple[Any, ...]]) -> tuple[Stream, ...]:
    _keyed(
        "drift_features.csv", rows, [(*stream, partition) for stream in streams() for partition in range(PARTITIONS)]
    )
    features = np.array([row[4:] for row in rows])
    return tuple(
        Stream(*stream, features[place * PARTITIONS : (place + 1) * PARTITIONS])
        for place, stream in enumerate(streams())
    )
