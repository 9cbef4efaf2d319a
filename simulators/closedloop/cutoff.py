"""The cutoff of the signal, chosen on development episodes and then frozen; the formal null is never looked at.

The development schedule is clean: the pilot block stands for the reference, the development block for the current
stream. A cutoff is good enough where none of its units was stable, and where, at the rates at which units signalled
there, the expected number of stable ones in another such schedule is at most `ALLOWED`. The smallest good one is
chosen: a larger one only loses power.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, fsum
from typing import Final

from simulators.closedloop.gates import RULE, compare
from simulators.closedloop.rows import Ints

GRID: Final = (1.0, 1.25, 1.5, 1.75, 2.0)
ALLOWED: Final = 0.05
"""Expected stable false admissions of a clean schedule, all units together."""
CUTOFF_RULE: Final = (
    "the smallest cutoff of the grid with no stable unit in the clean development schedule (pilot block against"
    f" development block) and with an expected number of stable units of at most {ALLOWED}, each of its units taken to"
    " signal independently in each joint partition at the rate at which it did"
)


@dataclass(frozen=True, slots=True)
class Shown:
    """What the development schedule showed at one cutoff.

    `worst`: the most partitions in which one unit signalled; `stable`: stable units; `expected`: see the module.
    """

    cutoff: float
    worst: int
    stable: int
    expected: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen cutoff, the units that were asked, and what each cutoff of the grid showed."""

    cutoff: float
    units: int
    shown: tuple[Shown, ...]


def choose(reference: Ints, current: Ints, grid: Sequence[float] = GRID) -> Choice:
    """From two clean blocks, int64[regimes, components, 15, actions] each; asked are units past both gates.

    Raises ValueError where no unit was asked, or no cutoff of the grid is good enough.
    """
    found = compare(reference, current)
    asked = found.supported()
    joint = found.joint.sum(axis=-1)[asked].tolist()
    if not joint:
        raise ValueError("no unit of the development schedule has enough support to choose a cutoff by")
    shown = []
    for cutoff in sorted(grid):
        signalling = found.signalling(cutoff)[asked].tolist()
        expected = fsum(_stable_by_chance(k, n) for k, n in zip(signalling, joint, strict=True))
        stable = sum(k >= RULE.min_partitions for k in signalling)
        shown.append(Shown(cutoff, max(signalling), stable, round(expected, 9)))
    good = [one.cutoff for one in shown if one.stable == 0 and one.expected <= ALLOWED]
    if not good:
        raise ValueError(f"no cutoff of {', '.join(map(str, sorted(grid)))} keeps the rule on the development schedule")
    return Choice(good[0], len(joint), tuple(shown))


def _stable_by_chance(signalled: int, joint: int) -> float:
    """The chance that `joint` partitions, each signalling with chance signalled/joint, are enough to be stable."""
    rate = signalled / joint
    return fsum(comb(joint, k) * rate**k * (1 - rate) ** (joint - k) for k in range(RULE.min_partitions, joint + 1))
