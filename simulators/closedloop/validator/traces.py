"""Traces: visits and actions of a component in a partition, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from simulators.closedloop.validator.check import Check, Fault
from simulators.closedloop.validator.design import (
    CASES_OF_UNIT,
    CHANNELS,
    COMPONENTS,
    CREDITS,
    EPISODES,
    HISTOGRAM,
    PARTITIONS,
    REGIMES,
    STEPS,
    VISITS_AT_MOST,
)
from simulators.closedloop.validator.keys import cube
from simulators.closedloop.validator.layout import TABLES
from simulators.closedloop.validator.masks import COMPONENT_OF, OCCUPANCY, PER_REGIME, occupancy
from simulators.closedloop.validator.reading import Saved
from simulators.closedloop.validator.schedule import rows_in_place

FILES: Final = ("reference.csv", "null.csv", "current.csv")
CLEAN: Final = FILES[:2]
FEATURES: Final = "drift_features.csv"


def _columns(saved: Saved) -> Iterator[Fault]:
    for name in FILES:
        header, known = saved.tables[name].header, tuple(column for column, _ in TABLES[name])
        if further := [column for column in header if column not in known]:
            yield Fault(name, "line 1", f"has the column {further[0]}: a trace is visits and actions")
        elif header != known:
            yield Fault(name, "line 1", f"its columns are not in the order {','.join(known)}")


def _clean_rows(saved: Saved) -> Iterator[Fault]:
    for name in CLEAN:
        yield from rows_in_place(saved.tables[name])


def _negative(saved: Saved) -> Iterator[Fault]:
    for name in FILES:
        for column in ("visits", *HISTOGRAM):
            values = saved.tables[name].ints[column]
            for row in np.flatnonzero(values < 0)[:100].tolist():
                yield Fault(name, f"line {row + 2}", f"{column} is {int(values[row])}")


def _sums(saved: Saved) -> Iterator[Fault]:
    for name in FILES:
        table = saved.tables[name]
        visits, actions = table.ints["visits"], sum(table.ints[column] for column in HISTOGRAM)
        for row in np.flatnonzero(visits != actions)[:100].tolist():
            told = f"visits is {int(visits[row])}, the actions are {int(np.asarray(actions)[row])}"
            yield Fault(name, f"line {row + 2}", told)


def _bounded(saved: Saved) -> Iterator[Fault]:
    for name in FILES:
        visits = saved.tables[name].ints["visits"]
        for row in np.flatnonzero(visits > VISITS_AT_MOST)[:100].tolist():
            told = f"{int(visits[row])} visits; {EPISODES} episodes of 6 steps are {VISITS_AT_MOST}"
            yield Fault(name, f"line {row + 2}", told)


def _totals(saved: Saved) -> Iterator[Fault]:
    yield from _occupied(saved)
    yield from _first_quarter(saved)
    yield from _under_faults(saved)


def _occupied(saved: Saved) -> Iterator[Fault]:
    table = saved.tables[OCCUPANCY]
    keys = list(zip(table.ints["regime"].tolist(), table.ints["cell"].tolist(), strict=True))
    for line, (key, before) in enumerate(zip(keys[1:], keys, strict=False), 3):
        if key <= before:
            yield Fault(OCCUPANCY, f"line {line}", "is not after the line before it")
    for line, (regime, cell) in enumerate(keys, 2):
        if regime not in REGIMES or not 0 <= cell < PER_REGIME:
            yield Fault(OCCUPANCY, f"line {line}", f"cell {cell} of regime {regime} is not of the design")
    for row in np.flatnonzero(table.ints["visits"] < 1)[:100].tolist():
        yield Fault(OCCUPANCY, f"line {row + 2}", "is a cell without visits")
    visits, episodes = occupancy(saved), PARTITIONS * EPISODES
    for regime, step in np.argwhere(visits.reshape(-1, STEPS, CREDITS * CHANNELS).sum(axis=2) != episodes).tolist():
        yield Fault(OCCUPANCY, "", f"step {step} of regime {REGIMES[regime]} is not passed by {episodes} episodes")
    reference = cube(saved, "reference.csv")
    counted = reference.ints["visits"].reshape(len(REGIMES), COMPONENTS, PARTITIONS).sum(axis=2)
    whole = reference.there.reshape(len(REGIMES), COMPONENTS, PARTITIONS).all(axis=2)
    for regime, component in np.argwhere(whole).tolist():
        said = int(visits[regime][component == COMPONENT_OF].sum())
        if said != counted[regime, component]:
            told = f"{said} visits of component {component} in regime {REGIMES[regime]}; reference.csv has"
            yield Fault(OCCUPANCY, "", f"{told} {int(counted[regime, component])}")


def _first_quarter(saved: Saved) -> Iterator[Fault]:
    """In the first quarter no credit runs out (6 steps of at most 12 PRB of 110), and regimes share their channels."""
    for name in CLEAN:
        traces = cube(saved, name)
        shape = (len(REGIMES), 4, 2, 3, PARTITIONS)
        visits = traces.ints["visits"].reshape(shape)[:, 0].sum(axis=1)
        whole = traces.there.reshape(shape)[:, 0].all(axis=(1, 2))
        for regime, partition in np.argwhere(whole & (visits.sum(axis=1) != VISITS_AT_MOST)).tolist():
            told = f"regime {REGIMES[regime]} has {int(visits[regime, :, partition].sum())} visits in the first quarter"
            yield Fault(name, f"partition {partition}", f"{told}, not {VISITS_AT_MOST}")
        for regime, partition in np.argwhere(whole & whole[0] & (visits != visits[:1]).any(axis=1)).tolist():
            told = f"regimes {REGIMES[0]} and {REGIMES[regime]} saw other channels in the first quarter"
            yield Fault(name, f"partition {partition}", told)


def _under_faults(saved: Saved) -> Iterator[Fault]:
    """Under a fault the channels are those of the clean episodes with the same seeds, so that in the first quarter a
    component has at most the visits of both halves of its third; of the current block drift_features.csv has them.
    """
    features, current = saved.tables[FEATURES], cube(saved, "current.csv")
    clean = [place for place, block in enumerate(features.texts["block"]) if block == "current"]
    partition = features.ints["partition"][clean]
    case, of = np.divmod(np.arange(len(current.line)), PARTITIONS)
    component = case // CASES_OF_UNIT % COMPONENTS
    for third in range(CHANNELS // 2):
        shares = features.floats[f"share_{third}"][clean] + features.floats[f"share_{third + 3}"][clean]
        most = np.full(PARTITIONS, VISITS_AT_MOST)
        for place, visits in zip(partition.tolist(), (shares * EPISODES * STEPS).round().tolist(), strict=True):
            if 0 <= place < PARTITIONS:
                most[place] = min(most[place], visits)
        wrong = current.there & np.isin(component, (third, third + 3)) & (current.ints["visits"] > most[of])
        for place in np.flatnonzero(wrong)[:100].tolist():
            told = f"{int(current.ints['visits'][place])} visits; {FEATURES} has {int(most[of[place]])} of its channels"
            yield Fault("current.csv", f"line {current.line[place]}", told)


CHECKS: Final = (
    Check(
        "columns",
        "traces",
        "A trace holds its key, visits and actions: no step, policy or fault.",
        FILES,
        _columns,
        besides=("freeze/schema",),
    ),
    Check("clean_rows", "traces", "Reference and clean traces have 1,080 rows each, in order.", CLEAN, _clean_rows),
    Check("no_negative", "traces", "No count is negative.", FILES, _negative),
    Check("sums", "traces", "Visits are the sum of the actions.", FILES, _sums),
    Check("bounded", "traces", "No component has more visits than its quarter of 160 episodes: 960.", FILES, _bounded),
    Check(
        "totals",
        "traces",
        "Clean visits account for every step, by cell, component and channel; under faults the channels are the same.",
        (*FILES, OCCUPANCY, FEATURES),
        _totals,
        besides=("ledger/claims",),
    ),
)
