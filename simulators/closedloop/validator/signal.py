"""Signal: z and what is stable, computed again from the traces with the frozen cutoff."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from simulators.closedloop.validator import words
from simulators.closedloop.validator.check import Check, Fault
from simulators.closedloop.validator.design import ARMS, CUTOFFS, MIN_PARTITIONS, PARTITIONS, UNITS
from simulators.closedloop.validator.keys import cube
from simulators.closedloop.validator.reading import Saved, at, same
from simulators.closedloop.validator.support import (
    Compared,
    Flags,
    compared_cases,
    compared_null,
    reference_partitions,
    runtime_partitions,
    stable,
    states,
)

PROTOCOL: Final = "protocol.json"
ALLOWED: Final = 0.05
"""Expected stable units of a clean schedule, at the chosen cutoff."""
TOLERANCE: Final = 1e-9
_SHOWN: Final = ("stable", "worst", "expected")
"""Of a cutoff in development: stable units, most partitions of a unit that signal, expected stable units."""
FROZEN: Final = 1.5
"""Section 5.3; what is stable is counted at it where the protocol names no cutoff."""


def cutoff(saved: Saved) -> float | None:
    """The cutoff that the protocol says it chose; None where it says none."""
    chosen = at(saved.documents[PROTOCOL], "cutoff", "chosen")
    return float(chosen) if isinstance(chosen, int | float) and not isinstance(chosen, bool) else None


def detected(saved: Saved) -> tuple[Flags, Flags, list[str]]:
    """Of each arm: stable outward, stable inward, state. bool[720], bool[720], 720."""
    compared = compared_cases(saved)
    both = stable(compared, cutoff(saved) or FROZEN).reshape(ARMS, 2)
    unit = states(reference_partitions(saved), runtime_partitions(compared))
    arms = ARMS // UNITS
    found = [
        state
        if (state := unit[arm // arms]) != "SIGNAL_ELIGIBLE"
        else "DETECTED"
        if both[arm].all()
        else "NOT_DETECTED"
        for arm in range(ARMS)
    ]
    return both[:, 0], both[:, 1], found


def _cutoff(saved: Saved) -> Iterator[Fault]:
    document = saved.documents[PROTOCOL]
    if not same(grid := at(document, "cutoff", "grid"), list(CUTOFFS)):
        yield Fault(PROTOCOL, "cutoff grid", f"is {grid!r}, not {list(CUTOFFS)}")
    if (found := words.digest(at(document, "cutoff", "rule"))) != words.CUTOFF_RULE:
        yield Fault(PROTOCOL, "cutoff rule", f"is not worded as in the design: {found}")
    shown = at(document, "cutoff", "shown", "cutoffs")
    rows = [row for row in shown if isinstance(row, dict)] if isinstance(shown, list) else []
    if not same([row.get("cutoff") for row in rows], list(CUTOFFS)) or rows != shown:
        yield Fault(PROTOCOL, "cutoff shown", "does not say of each cutoff of the grid what development showed")
    good = [
        row.get("cutoff")
        for row in rows
        if row.get("stable") == 0 and isinstance(said := row.get("expected"), int | float) and said <= ALLOWED
    ]
    units = at(document, "cutoff", "shown", "units")
    most: list[Any] = [units if type(units) is int and units <= UNITS else 0, PARTITIONS, UNITS]
    for row in rows:
        shows: list[Any] = [row.get(name) for name in _SHOWN]
        if row.keys() != {"cutoff", *_SHOWN} or [type(one) for one in shows] != [int, int, float]:
            yield Fault(PROTOCOL, f"cutoff shown {row.get('cutoff')}", f"is {row!r}, not {', '.join(_SHOWN)}")
            continue
        if any(not 0 <= one <= before for one, before in zip(shows, most, strict=True)):
            told = f"{', '.join(_SHOWN)} are {shows}, of at most {most}: none rises with the cutoff"
            yield Fault(PROTOCOL, f"cutoff shown {row['cutoff']}", told)
        if (shows[0] > 0) != (shows[1] >= MIN_PARTITIONS):
            told = f"{shows[0]} units stable, {shows[1]} partitions at most: one of them is not so"
            yield Fault(PROTOCOL, f"cutoff shown {row['cutoff']}", told)
        most = shows
    smallest = good[0] if good else None
    if (chosen := cutoff(saved)) is None or chosen != smallest:
        yield Fault(PROTOCOL, "cutoff chosen", f"is {chosen!r}; by its rule and what development showed {smallest!r}")


def _z(saved: Saved) -> Iterator[Fault]:
    for name, compared in (("signals.csv", compared_cases(saved)), ("null_signals.csv", compared_null(saved))):
        yield from _z_of(saved, name, compared)


def _z_of(saved: Saved, name: str, compared: Compared) -> Iterator[Fault]:
    signals = cube(saved, name)
    said = signals.floats["z"]
    same = np.isclose(said, compared.z, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
    for place in np.flatnonzero(signals.there & compared.there & ~same)[:100].tolist():
        told = ["empty" if np.isnan(z) else repr(float(z)) for z in (said[place], compared.z[place])]
        yield Fault(name, f"line {signals.line[place]}", "z is {}; by the histograms {}".format(*told))


def _stable(saved: Saved) -> Iterator[Fault]:
    arms = cube(saved, "arms.csv")
    outward, inward, _ = detected(saved)
    for column, wanted in (("stable_outward", outward), ("stable_inward", inward)):
        said = arms.ints[column]
        for arm in np.flatnonzero(arms.there & (said != wanted))[:100].tolist():
            told = f"{column} is {int(said[arm])}; by the histograms and the cutoff {int(wanted[arm])}"
            yield Fault("arms.csv", f"line {arms.line[arm]}", told)


def _states(saved: Saved) -> Iterator[Fault]:
    arms = cube(saved, "arms.csv")
    _, _, wanted = detected(saved)
    for arm in np.flatnonzero(arms.there).tolist():
        if (said := arms.texts["state"][arm]) != wanted[arm]:
            yield Fault("arms.csv", f"line {arms.line[arm]}", f"is {said}; by the traces and the cutoff {wanted[arm]}")


_TRACES: Final = ("reference.csv", "current.csv")

CHECKS: Final = (
    Check("cutoff", "signal", "The cutoff is what its rule takes of its grid by what development showed.",
          (PROTOCOL,), _cutoff),
    Check("z", "signal", "z of every joint partition is that of its two histograms; elsewhere it is empty.",
          ("signals.csv", "null_signals.csv", "null.csv", *_TRACES), _z),
    Check("stable", "signal", "A direction is stable where z reaches the frozen cutoff in 14 of 15 partitions.",
          ("arms.csv", PROTOCOL, *_TRACES), _stable),
    Check("states", "signal", "The state of each arm is its unit's, or whether both directions are stable.",
          ("arms.csv", PROTOCOL, *_TRACES), _states),
)  # fmt: skip
