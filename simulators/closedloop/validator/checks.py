"""The 56 checks, in their groups, and what a study does under them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from simulators.closedloop.validator import (
    analysis,
    freeze,
    gates,
    ledger,
    masks,
    safety,
    schedule,
    seeds,
    signal,
    traces,
)
from simulators.closedloop.validator.check import Check, Fault
from simulators.closedloop.validator.reading import Saved

CHECKS: Final[tuple[Check, ...]] = (
    *schedule.CHECKS,
    *freeze.CHECKS,
    *seeds.CHECKS,
    *masks.CHECKS,
    *traces.CHECKS,
    *gates.CHECKS,
    *signal.CHECKS,
    *safety.CHECKS,
    *analysis.CHECKS,
    *ledger.CHECKS,
)
GROUPS: Final = {
    "schedule": 10,
    "freeze": 8,
    "seeds": 5,
    "masks": 9,
    "traces": 6,
    "gates": 6,
    "signal": 4,
    "safety": 3,
    "analysis": 4,
    "ledger": 1,
}
"""How many checks each group has: 56."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A check and what it found; it passes where that is nothing."""

    check: Check
    faults: tuple[Fault, ...]


def validate(saved: Saved, checks: Iterable[Check] = CHECKS) -> tuple[Outcome, ...]:
    """The outcome of each check, in order. All passing means that the study was executed as frozen, and no more."""
    return tuple(Outcome(check, check.faults(saved)) for check in checks)
