"""Formula lookup: from a question's text to the formula tool that answers it, its parameters, and the result.

A question that no wording fits, or that fits two formulas, is not looked up: a wrong formula is worse than none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from simulators.optbench.base.formula import Formula, Parameter, Reading
from simulators.optbench.base.formulas import FORMULAS
from xapp import units

NUMBER: Final = r"[+-]?(?>\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
# what may be written behind a number, by a unit of the dimension; powers come in watts or dBm
_WRITTEN: Final[Mapping[str, str]] = {
    "Hz": r"[GMk]?Hz", "bit/s": r"[GMk]?(?:bit/s|bps)(?!/)", "s": r"[mµμnu]?s\b", "W": r"dBm(?!/)|[mµμnk]?W\b(?!/)",
    "m": r"k?m\b(?![/^])", "dB": r"dB\b(?!/)", "deg": r"deg|°",
}  # fmt: skip
_SIGNS: Final[Mapping[str, str]] = {"°": "deg", "": units.DIMENSIONLESS}
# other spellings of what is carried as 1
_SPOKEN: Final[Mapping[str, str]] = {
    "baud": r"(?:baud|sym(?:bol)?s?/s|sps)", "bit/s/Hz": r"(?:bps/Hz|bit/s/Hz|bit/\(s·Hz\))",
}  # fmt: skip
_PREFIX: Final[Mapping[str, float]] = {
    "": 1.0, "G": 1e9, "M": 1e6, "k": 1e3, "m": 1e-3, "µ": 1e-6, "μ": 1e-6, "u": 1e-6, "n": 1e-9,
}  # fmt: skip
_BARE: Final = "1"
_PREFIXES: Final = "[GMkmµμun]?"
_MARKS: Final[Mapping[str, str]] = {"−": "-", "√": "sqrt", "\\times": "×", "\\approx": "≈", "\\,": " "}
_PLACE: Final = re.compile(r"\{([a-z][a-z0-9_]*)(?::([a-z0-9_]*))?\}")
_POWER_OF_TEN: Final = re.compile(r"(?:(\d+(?:\.\d+)?)\s*[×x·]\s*)?\b10\^\{?\(?(-?\d+)\)?\}?")
_THOUSANDS: Final = re.compile(r"(?<![(\d.,])\d{1,3}(?:,\d{3})+(?![\d.])")


@dataclass(frozen=True, slots=True)
class Lookup:
    """What was found. `parameters`: in the formula's order and units; `result`: the tool's value in its unit."""

    formula: Formula
    parameters: Mapping[str, float]
    result: float


def look_up(question: str) -> Lookup | None:
    """The tool that answers `question`, and what it says; None where no tool does, or more than one might."""
    text = tidied(question)
    found: dict[str, Lookup] = {}
    for formula, wordings in _wordings():
        for wording in wordings:
            match = wording.pattern.search(text)
            read = None if match is None else _read(formula, wording, match)
            if read is not None:
                found[formula.name] = read
                break
    return next(iter(found.values())) if len(found) == 1 else None


def coverage(questions: Iterable[str]) -> int:
    """How many of the questions a tool answers."""
    return sum(look_up(question) is not None for question in questions)


def tidied(text: str) -> str:
    """`text` with powers of ten as exponents, TeX taken off, and single blanks."""
    for mark, sign in _MARKS.items():
        text = text.replace(mark, sign)
    text = _POWER_OF_TEN.sub(lambda m: f"{m[1] or '1'}e{m[2]}", text)
    text = _THOUSANDS.sub(lambda m: m[0].replace(",", ""), text)
    return " ".join(re.sub(r"[\\_{}$]", "", text).split())


def compute(formula: Formula, parameters: Mapping[str, float]) -> float | None:
    """What the tool says; None where it has no finite result, or 0, of which no relative error can be told."""
    try:
        result = float(formula.compute(*(parameters[p.name] for p in formula.parameters)))
    except (ArithmeticError, ValueError):
        return None
    return result if math.isfinite(result) and result != 0.0 else None


@dataclass(frozen=True, slots=True)
class _Wording:
    """A compiled wording. `shares`: parameters that take the unit written behind another."""

    pattern: re.Pattern[str]
    given: Mapping[str, float | str]
    shares: Mapping[str, str]


@cache
def _wordings() -> tuple[tuple[Formula, tuple[_Wording, ...]], ...]:
    return tuple((f, (_own(f), *(_foreign(f, r) for r in f.readings))) for f in FORMULAS.values())


def _own(formula: Formula) -> _Wording:
    """Our own wording, whole: the text around the parameters tidied as the question is."""
    parts = _PLACE.split(formula.question)
    texts = tidied("\0".join(parts[::3])).split("\0")
    places = [_place(formula, name, None) for name in parts[1::3]]
    pattern = re.escape(texts[0]) + "".join(a + re.escape(b) for a, b in zip(places, texts[1:], strict=True))
    return _Wording(re.compile(rf"\A{pattern}\Z"), {}, {})


def _foreign(formula: Formula, reading: Reading) -> _Wording:
    pattern = _PLACE.sub(lambda m: _place(formula, m[1], m[2]), reading.pattern)
    shares = {name: other for name, other in _PLACE.findall(reading.pattern) if other}
    return _Wording(re.compile(pattern, re.IGNORECASE), reading.given, shares)


def _place(formula: Formula, name: str, shared: str | None) -> str:
    """The pattern of one parameter: a number, and its unit unless that stands elsewhere. Units are case-sensitive."""
    parameter = next(p for p in formula.parameters if p.name == name)
    number = rf"(?P<{name}>{NUMBER})"
    return number if shared else rf"{number}(?-i:\s*(?P<{name}__unit>{_written(parameter)}))"


def _written(parameter: Parameter) -> str:
    if parameter.spoken:
        return rf"{_PREFIXES}{_SPOKEN.get(parameter.spoken, re.escape(parameter.spoken))}"
    if parameter.unit == units.DIMENSIONLESS:
        return r"%|(?!\s*(?:dB|deg|[GMkm]?Hz|[GMk]?bit/s|[mk]?W\b))"
    return next(written for dimension, written in _WRITTEN.items() if units.converter(dimension, parameter.unit))


def _read(formula: Formula, wording: _Wording, match: re.Match[str]) -> Lookup | None:
    groups = match.groupdict()
    parameters: dict[str, float] = {}
    for p in formula.parameters:
        implied = wording.given.get(p.name)
        if isinstance(implied, str):
            parameters[p.name] = parameters[implied]
        elif implied is not None:
            parameters[p.name] = implied
        else:
            value, behind = float(groups[p.name]), wording.shares.get(p.name, p.name)
            bare = behind == _BARE
            parameters[p.name] = value if bare else in_unit(value, groups[behind + "__unit"], p.unit, p.spoken)
    result = compute(formula, parameters)
    return None if result is None else Lookup(formula, parameters, result)


def in_unit(value: float, written: str, unit: str, spoken: str = "") -> float:
    """`value`, written in `written`, in `unit`, or in `spoken` where that is carried as 1.

    Raises ValueError where `written` is no spelling of such a unit.
    """
    if spoken:
        found = re.match(rf"({_PREFIXES})(?:{_SPOKEN.get(spoken, re.escape(spoken))})\Z", written)
        if found is None:
            raise ValueError(f"'{written}' is no {spoken}")
        return value * _PREFIX[found[1]]
    known = _SIGNS.get(written, written)
    convert = units.converter(known, unit) if units.known(known) else None
    if convert is None:
        raise ValueError(f"'{written}' is no {unit}")
    return convert(value)
