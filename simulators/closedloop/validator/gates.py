"""Gates: who is asked at all, counted again from the traces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from simulators.closedloop.validator.check import Check, Fault
from simulators.closedloop.validator.design import CASES_OF_UNIT, MIN_PARTITIONS, PARTITIONS, case_of
from simulators.closedloop.validator.keys import cube
from simulators.closedloop.validator.reading import EMPTY, Saved
from simulators.closedloop.validator.support import (
    Compared,
    compared_cases,
    compared_null,
    reference_partitions,
    runtime_partitions,
    states,
)

FILE: Final = "units.csv"


def _reference(saved: Saved) -> Iterator[Fault]:
    units = cube(saved, FILE)
    counted = reference_partitions(saved)
    for unit in np.flatnonzero(units.there).tolist():
        if (said := int(units.ints["reference_partitions"][unit])) != counted[unit]:
            told = f"reference_partitions is {said}; reference.csv has {int(counted[unit])}"
            yield Fault(FILE, f"line {units.line[unit]}", told)


def _runtime(saved: Saved) -> Iterator[Fault]:
    units = cube(saved, FILE)
    counted = runtime_partitions(compared_cases(saved))
    asked = reference_partitions(saved) >= MIN_PARTITIONS
    for unit in np.flatnonzero(units.there).tolist():
        said = int(units.ints["runtime_partitions"][unit])
        if said != (wanted := int(counted[unit]) if asked[unit] else EMPTY):
            told = ("empty" if one == EMPTY else str(one) for one in (said, wanted))
            yield Fault(FILE, f"line {units.line[unit]}", "runtime_partitions is {}; by the traces {}".format(*told))


def _states(saved: Saved) -> Iterator[Fault]:
    units = cube(saved, FILE)
    wanted = states(reference_partitions(saved), runtime_partitions(compared_cases(saved)))
    for unit in np.flatnonzero(units.there).tolist():
        if (said := units.texts["state"][unit]) != wanted[unit]:
            yield Fault(FILE, f"line {units.line[unit]}", f"is {said}; by the traces {wanted[unit]}")


def _joint(saved: Saved, name: str, compared: Compared) -> Iterator[Fault]:
    signals = cube(saved, name)
    said = signals.ints["joint"]
    for place in np.flatnonzero(signals.there & compared.there & (said != compared.joint))[:100].tolist():
        told = f"joint is {int(said[place])}; by the visits of both streams {int(compared.joint[place])}"
        yield Fault(name, f"line {signals.line[place]}", told)


def _joint_cases(saved: Saved) -> Iterator[Fault]:
    yield from _joint(saved, "signals.csv", compared_cases(saved))


def _joint_null(saved: Saved) -> Iterator[Fault]:
    yield from _joint(saved, "null_signals.csv", compared_null(saved))


def _stay_scheduled(saved: Saved) -> Iterator[Fault]:
    units = cube(saved, FILE)
    rows = cube(saved, "current.csv").there.reshape(-1, CASES_OF_UNIT * PARTITIONS).sum(axis=1)
    schedule = saved.tables["schedule.csv"]
    keys = zip(schedule.ints["regime"].tolist(), schedule.ints["component"].tolist(), strict=True)
    scheduled: dict[tuple[int, int], int] = {}
    for key in keys:
        scheduled[key] = scheduled.get(key, 0) + 1
    for unit in np.flatnonzero(units.there).tolist():
        if units.texts["state"][unit] != "REFERENCE_ABSTAIN":
            continue
        cases = scheduled.get(case_of(unit * CASES_OF_UNIT)[:2], 0)
        if (cases, int(rows[unit])) != (CASES_OF_UNIT, CASES_OF_UNIT * PARTITIONS):
            told = f"abstains at the reference, and has {cases} of {CASES_OF_UNIT} cases and {int(rows[unit])} rows"
            yield Fault(FILE, f"line {units.line[unit]}", f"{told} of current.csv, not {CASES_OF_UNIT * PARTITIONS}")


_TRACES: Final = ("reference.csv", "current.csv")

CHECKS: Final = (
    Check(
        "reference",
        "gates",
        "Partitions of the reference with 12 visits are as many as said.",
        (FILE, "reference.csv"),
        _reference,
    ),
    Check(
        "runtime",
        "gates",
        "Partitions with 12 visits in both streams are as many as said, empty where the reference abstains.",
        (FILE, *_TRACES),
        _runtime,
    ),
    Check(
        "states",
        "gates",
        "The state of each unit follows from 14 of 15 at either gate.",
        (FILE, *_TRACES),
        _states,
        besides=("ledger/claims",),
    ),
    Check(
        "joint",
        "gates",
        "A partition of a case is joint where both streams have 12 visits.",
        ("signals.csv", *_TRACES),
        _joint_cases,
    ),
    Check(
        "joint_null",
        "gates",
        "A partition of the clean stream is joint where both streams have 12 visits.",
        ("null_signals.csv", "reference.csv", "null.csv"),
        _joint_null,
    ),
    Check(
        "stay_scheduled",
        "gates",
        "A unit that fails the reference gate has all its 20 cases, in all partitions.",
        (FILE, "schedule.csv", "current.csv"),
        _stay_scheduled,
        besides=("schedule/grid", "schedule/partitions", "ledger/claims"),
    ),
)
