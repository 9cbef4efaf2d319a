"""What a formula tool is: a named formula, its parameters with their units, and how questions about it read.

A quantity whose unit the contracts' registry does not know (V, W/Hz, J, baud) is carried as `1`, in that unit without a
prefix; `spoken` names it, and questions say it. A count (levels, bits, channels) is carried as `1`, too, and is whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Final

LIGHT_M_S: Final = 3e8
"""As the field's exercises take it."""
COUNT: Final = "count"
"""The unit of a count, in the tables."""

_NORMAL: Final = NormalDist()


def tail(x: float) -> float:
    """Q(x): the probability that a standard normal variable exceeds x."""
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def tail_inverse(probability: float) -> float:
    """x with Q(x) = probability, in (0, 1); else ValueError."""
    return -_NORMAL.inv_cdf(probability)


def linear(value_db: float) -> float:
    """A ratio that is given in dB."""
    return float(10.0 ** (value_db / 10.0))


def decibel(ratio: float) -> float:
    """A ratio (> 0) in dB."""
    return 10.0 * math.log10(ratio)


@dataclass(frozen=True, slots=True)
class Parameter:
    """`name`: an expression name. `unit`: of the contracts' registry. `draws`: what generated questions give it.

    `whole`: a count, of at least one.
    """

    name: str
    unit: str
    draws: tuple[float, ...]
    spoken: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """A wording of others: a regular expression over the tidied question, with `{name}` where a parameter stands.

    `{name:other}` is a number that shares the unit written behind `other`, `{name:1}` one that needs none, `{=name}`
    one that the parameters imply: it must be what `implied` makes of them. `given`: parameters that the wording
    implies, as a value or as the name of an earlier parameter that they equal. What `.*` passes over is no part of the
    wording.
    """

    pattern: str
    given: Mapping[str, float | str] = field(default_factory=dict)
    implied: Mapping[str, Callable[[Mapping[str, float]], float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula tool. `unit` is the result's; `compute` takes the parameters in order, in their units.

    `compute` raises ArithmeticError or ValueError where there is no result. `question`: our own wording, with `{name}`
    for each parameter. `readings`: wordings of others. `beside`: what may stand beside these, as regular expressions
    over the tidied question: the formula as others state it, with its constants, what is asked, and what changes
    nothing. `whole`: the result is a count, of at least one.
    """

    name: str
    parameters: tuple[Parameter, ...]
    unit: str
    compute: Callable[..., float]
    question: str
    readings: tuple[Reading, ...] = ()
    beside: tuple[str, ...] = ()
    spoken: str = ""
    whole: bool = False


def formula(
    name: str,
    parameters: Mapping[str, tuple[str, tuple[float, ...]]],
    result: str,
    compute: Callable[..., float],
    question: str,
    *readings: str | Reading,
    beside: tuple[str, ...] = (),
) -> Formula:
    """A row of the tables. A unit after a blank is `1` with the spoken unit: `"1 V"`; that of a count is `count`."""

    def split(unit: str) -> tuple[str, str, bool]:
        plain, _, spoken = unit.partition(" ")
        return ("1", "", True) if unit == COUNT else (plain, spoken, False)

    made = []
    for key, (unit, draws) in parameters.items():
        plain, spoken, whole = split(unit)
        made.append(Parameter(key, plain, draws, spoken, whole))
    plain, spoken, whole = split(result)
    read = tuple(Reading(r) if isinstance(r, str) else r for r in readings)
    return Formula(name, tuple(made), plain, compute, question, read, beside, spoken, whole)
