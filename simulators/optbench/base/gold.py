"""What a WCHW gold says, as text: its number in a formula's unit, and whether its own worked steps agree with it."""

from __future__ import annotations

import math
import re
from typing import Final

from simulators.optbench.base.formula import Formula
from simulators.optbench.base.lookup import NUMBER, in_unit, tidied

AGREEMENT: Final = 0.005
"""Largest relative difference between a gold and what it is checked against: golds have three digits."""

_ANSWER: Final = re.compile(rf"(?:[^\W\d]\w* ?= ?)?(?P<number>{NUMBER})\s*(?P<unit>(?:[^\d]|\^2)*)")
_FREE_NUMBER: Final = re.compile(rf"(?<![A-Za-z\d.]){NUMBER}")
"""No part of a name: neither the 10 of log10, nor the hyphen of rate-1."""
_STEP: Final = re.compile(r"\bStep \d+:")


def agrees(value: float, reference: float) -> bool:
    """True where `value` is `reference` within AGREEMENT."""
    return math.isclose(value, reference, rel_tol=AGREEMENT)


def gold_number(answer: str) -> float | None:
    """The number that the gold gives, in whatever unit it is written; None where it is not one number."""
    match = _ANSWER.fullmatch(tidied(answer))
    return None if match is None else float(match["number"])


def gold_in_unit(answer: str, formula: Formula) -> float | None:
    """The gold in the formula's unit; a word that is no such unit (users, a bare number) is taken to mean it."""
    match = _ANSWER.fullmatch(tidied(answer))
    if match is None:
        return None
    try:
        return in_unit(float(match["number"]), match["unit"].strip(), formula.unit, formula.spoken)
    except ValueError:
        return float(match["number"])


def contradicted_by(steps: str, gold: float) -> float | None:
    """What the last of the gold's worked steps ends on, where no number in it is the gold's; else None.

    A power of ten between them is a unit's, and no contradiction.
    """
    numbers = [float(n) for n in _FREE_NUMBER.findall(tidied(_STEP.split(steps)[-1]))]
    if not numbers or gold == 0.0 or any(_same_digits(n, gold) for n in numbers):
        return None
    return numbers[-1]


def _same_digits(value: float, gold: float) -> bool:
    if value * gold <= 0.0:
        return False
    ratio = value / gold
    return agrees(ratio, 10.0 ** round(math.log10(ratio)))
