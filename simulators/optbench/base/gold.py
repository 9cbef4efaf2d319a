"""What a WCHW gold says, as text: its number in a formula's unit, and whether its own worked steps agree with it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from simulators.optbench.base.formula import Formula
from simulators.optbench.base.lookup import NUMBER, UnitError, in_unit, tidied

AGREEMENT: Final = 0.005
"""Largest relative difference between a gold and what it is checked against: the tolerance of the contracts."""

_ANSWER: Final = re.compile(rf"(?:[^\W\d]\w* ?= ?)?(?P<number>{NUMBER})\s*(?P<unit>(?:[^\d]|\^2)*)")
_FREE_NUMBER: Final = re.compile(rf"(?<![A-Za-z\d.]){NUMBER}")
"""No part of a name: neither the 10 of log10, nor the hyphen of rate-1."""
_STEP: Final = re.compile(r"\bStep \d+:")
_ROUNDING: Final = 1e-9
"""Relative: what binary fractions may be off."""


@dataclass(frozen=True, slots=True)
class Gold:
    """One number, the weight of its last digit, and what is written behind it."""

    number: float
    digit: float
    unit: str

    def in_unit_of(self, formula: Formula, number: float | None = None) -> float | None:
        """The gold, or another number beside its unit, in the formula's unit; None where it has no value in that.

        A word that is no such unit (users, a bare number) is taken to mean it.
        """
        value = self.number if number is None else number
        try:
            return in_unit(value, self.unit, formula.unit, formula.spoken)
        except UnitError:
            return value
        except (ArithmeticError, ValueError):
            return None

    def span(self) -> tuple[float, float]:
        """From where to where a number is the gold in the digits that it has: rounded to them, or cut after them."""
        toward, away = (-0.5, 1.0) if self.number >= 0.0 else (-1.0, 0.5)
        return self.number + toward * self.digit, self.number + away * self.digit


def agrees(value: float, reference: float) -> bool:
    """True where `value` is `reference` within AGREEMENT."""
    return math.isclose(value, reference, rel_tol=AGREEMENT)


def gold_of(answer: str) -> Gold | None:
    """The gold of an answer, in whatever unit it is written; None where it is not one finite number."""
    match = _ANSWER.fullmatch(tidied(answer))
    if match is None or not math.isfinite(float(match["number"])):
        return None
    mantissa, e, exponent = match["number"].lstrip("+-").partition("e")
    last = re.sub(r"\d", "0", mantissa)[:-1] + "1"
    return Gold(float(match["number"]), float(last + e + exponent), match["unit"].strip())


def is_in_its_digits(gold: Gold, value: float, formula: Formula) -> bool:
    """True where `value`, in the formula's unit, is the gold in the digits that the gold has. A count has all."""
    if formula.whole:
        return value == gold.number
    ends = [gold.in_unit_of(formula, end) for end in gold.span()]
    known = [end for end in ends if end is not None]
    return len(known) == 2 and _between(known[0], value, known[1])


def contradicted_by(steps: str, gold: Gold) -> float | None:
    """What the last of the gold's worked steps ends on, where no number in it is the gold's; else None.

    A power of ten between them is a unit's, and no contradiction; nor are digits of the last number beyond the gold's.
    """
    found = [float(n) for n in _FREE_NUMBER.findall(tidied(_STEP.split(steps)[-1]))]
    numbers = [n for n in found if math.isfinite(n)]
    if not numbers or gold.number == 0.0 or any(agrees(_shifted(n, gold), gold.number) for n in numbers):
        return None
    low, high = gold.span()
    return None if _between(low, _shifted(numbers[-1], gold), high) else numbers[-1]


def _shifted(value: float, gold: Gold) -> float:
    """`value` with its point where the gold's is."""
    if value == 0.0:
        return value
    return value / 10.0 ** round(math.log10(abs(value)) - math.log10(abs(gold.number)))


def _between(low: float, value: float, high: float) -> bool:
    """Both ends are within: a half is rounded up or down as one likes; but for what binary fractions are off."""
    room = _ROUNDING * max(abs(low), abs(high))
    return low - room <= value <= high + room
