"""Formula lookup: from a question's text to the formula tool that answers it, its parameters, and the result.

A question that no wording fits, or that fits two formulas, is not looked up: a wrong formula is worse than none. A
wording fits only where it accounts for the whole question: beside it stand words that change no question, what its
formula lets stand there, and a unit that the result can be given in; no other word, number, or formula.
"""

from __future__ import annotations

import itertools
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
    "bit": "bits?", "baud": r"(?:baud|sym(?:bol)?s?/s|sps)", "bit/s/Hz": r"(?:bps/Hz|bit/s/Hz|bit/\(s·Hz\))",
}  # fmt: skip
_PREFIX: Final[Mapping[str, float]] = {
    "": 1.0, "G": 1e9, "M": 1e6, "k": 1e3, "m": 1e-3, "µ": 1e-6, "μ": 1e-6, "u": 1e-6, "n": 1e-9,
}  # fmt: skip
_BARE: Final = "1"
_PREFIXES: Final = "[GMkmµμun]?"
_MARKS: Final[Mapping[str, str]] = {"−": "-", "√": "sqrt", "\\times": "×", "\\approx": "≈", "\\,": " "}
_PLAIN: Final = frozenset((
    "a", "an", "and", "answer", "approximate", "approximately", "are", "assume", "at", "by", "calculate", "compute",
    "confirm", "convert", "determine", "does", "estimate", "find", "for", "from", "give", "given", "has", "have",
    "how", "if", "in", "is", "it", "its", "link", "many", "need", "needed", "numeric", "of", "on", "output",
    "required", "system", "target", "that", "the", "there", "this", "to", "use", "uses", "using", "value", "what",
    "with",
))  # fmt: skip
"""Words that change no question."""
_LINEAR: Final = "linear"
_EVERYWHERE: Final = (r"output numeric value", r"\(extra\)", r"over AWGN")
_IMPLIED: Final = re.compile(r"\{=([a-z]+)\}")
_IMPLIES: Final = "implied_"
_IMPLIED_TO: Final = 5e-4
"""Relative: what rounding may have done to an implied number."""
_PASSED: Final = "passed_"
_GAP: Final = re.compile(r"(?<!\\)\.\*\??")
_BETWEEN_WORDS: Final = re.compile(r"[\s,.:;?()]+")
_POSITIVE: Final = frozenset({"Hz", "bit/s", "s", "W", "m"})
"""Dimensions whose quantities are positive in every question."""
_PLACE: Final = re.compile(r"\{([a-z][a-z0-9_]*)(?::([a-z0-9_]*))?\}")
_POWER_OF_TEN: Final = re.compile(r"(?:(\d+(?:\.\d+)?)\s*[×x·]\s*)?\b10\^\{?\(?(-?\d+)\)?\}?")
_THOUSANDS: Final = re.compile(r"(?<![(\d.,])\d{1,3}(?:,\d{3})+(?![\d.])")


class UnitError(ValueError):
    """What is written behind a number is no unit of what it should be."""
_SAME_EVERYWHERE: Final = 12  # significant digits


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
    for formula, wordings, beside in _wordings():
        for wording in wordings:
            match = wording.pattern.search(text)
            read = None if match is None or not _whole(formula, beside, match) else _read(formula, wording, match)
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
    """What the tool says, in as many digits as every platform's logarithms agree on.

    None where it has no finite result, or 0, of which no relative error can be told.
    """
    try:
        result = float(formula.compute(*(parameters[p.name] for p in formula.parameters)))
    except (ArithmeticError, ValueError):
        return None
    if not math.isfinite(result) or result == 0.0:
        return None
    return float(f"{result:.{_SAME_EVERYWHERE}g}")


@dataclass(frozen=True, slots=True)
class _Wording:
    """A compiled wording. `shares`: parameters that take the unit written behind another."""

    pattern: re.Pattern[str]
    reading: Reading
    shares: Mapping[str, str]


@cache
def _wordings() -> tuple[tuple[Formula, tuple[_Wording, ...], re.Pattern[str]], ...]:
    """Of each formula: its wordings, and what may stand beside them."""
    return tuple((f, (_own(f), *(_foreign(f, r) for r in f.readings)), _beside(f)) for f in FORMULAS.values())


def _own(formula: Formula) -> _Wording:
    """Our own wording, whole: the text around the parameters tidied as the question is."""
    parts = _PLACE.split(formula.question)
    texts = tidied("\0".join(parts[::3])).split("\0")
    places = [_place(formula, name, None) for name in parts[1::3]]
    pattern = re.escape(texts[0]) + "".join(a + re.escape(b) for a, b in zip(places, texts[1:], strict=True))
    return _Wording(re.compile(rf"\A{pattern}\Z"), Reading(formula.question), {})


def _foreign(formula: Formula, reading: Reading) -> _Wording:
    gaps = itertools.count()
    pattern = _GAP.sub(lambda m: f"(?P<{_PASSED}{next(gaps)}>{m[0]})", reading.pattern)
    pattern = _IMPLIED.sub(lambda m: f"(?P<{_IMPLIES}{m[1]}>{NUMBER})", pattern)
    pattern = _PLACE.sub(lambda m: _place(formula, m[1], m[2]), pattern)
    shares = {name: other for name, other in _PLACE.findall(reading.pattern) if other}
    return _Wording(re.compile(rf"(?<![\w^/*·-])(?:{pattern})", re.IGNORECASE), reading, shares)


def _beside(formula: Formula) -> re.Pattern[str]:
    """What may stand beside the wordings of a formula, each whole: what is glued to more is something else."""
    longest_first = sorted((*formula.beside, *_EVERYWHERE), key=len, reverse=True)
    either = "|".join(one if one.startswith("=") else rf"(?<![\w.^/*·+-]){one}" for one in longest_first)
    return re.compile(rf"(?:{either})(?![\w^/*·+=-]|\.\d)", re.IGNORECASE)


def _whole(formula: Formula, beside: re.Pattern[str], match: re.Match[str]) -> bool:
    """True where nothing in the question but the match could change what is asked."""
    passed = [text for name, text in match.groupdict().items() if name.startswith(_PASSED)]
    texts = (match.string[: match.start()], *passed, match.string[match.end() :])
    words = [word for text in texts for word in _BETWEEN_WORDS.split(beside.sub(" ", text)) if word]
    return all(word.lower() in _PLAIN or _says(word, formula) for word in words)


def _says(word: str, formula: Formula) -> bool:
    """True where `word` is a unit or form that the result can be given in."""
    if word == _LINEAR:
        return formula.unit == units.DIMENSIONLESS and not formula.spoken
    try:
        in_unit(1.0, word, formula.unit, formula.spoken)
    except UnitError:
        return False
    return True


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
    """What the tool says to a match; None where a value cannot be, or there is no result."""
    try:
        return _taken(formula, wording, match)
    except (ArithmeticError, ValueError):
        return None


def _taken(formula: Formula, wording: _Wording, match: re.Match[str]) -> Lookup | None:
    groups = match.groupdict()
    parameters: dict[str, float] = {}
    for p in formula.parameters:
        given = wording.reading.given.get(p.name)
        if isinstance(given, str):
            parameters[p.name] = parameters[given]
        elif given is not None:
            parameters[p.name] = given
        else:
            value, behind = float(groups[p.name]), wording.shares.get(p.name, p.name)
            bare = behind == _BARE
            parameters[p.name] = value if bare else in_unit(value, groups[behind + "__unit"], p.unit, p.spoken)
    if not all(_possible(p, parameters[p.name]) for p in formula.parameters):
        return None
    result = compute(formula, parameters)
    if result is None or (formula.whole and not _counts(result)) or not _implied(wording, parameters, groups):
        return None
    return Lookup(formula, parameters, result)


def _possible(parameter: Parameter, value: float) -> bool:
    if parameter.whole:
        return _counts(value)
    measured = any(units.converter(dimension, parameter.unit) for dimension in _POSITIVE)
    return math.isfinite(value) and (value > 0.0 or parameter.unit == "dBm" or not measured)


def _counts(value: float) -> bool:
    """True where `value` is whole, but for rounding, and at least 1."""
    return 0.5 < value < math.inf and math.isclose(value, round(value), rel_tol=1e-9)


def _implied(wording: _Wording, parameters: Mapping[str, float], groups: Mapping[str, str | None]) -> bool:
    """True where every number that the parameters imply, and the question says, is what they imply."""
    for name, makes in wording.reading.implied.items():
        said = groups[_IMPLIES + name]
        if said is not None and not math.isclose(float(said), makes(parameters), rel_tol=_IMPLIED_TO):
            return False
    return True


def in_unit(value: float, written: str, unit: str, spoken: str = "") -> float:
    """`value`, written in `written`, in `unit`, or in `spoken` where that is carried as 1.

    Raises UnitError where `written` is no spelling of such a unit, another ValueError or an ArithmeticError where the
    value is none in it (0 W in dBm).
    """
    if spoken:
        found = re.match(rf"({_PREFIXES})(?:{_SPOKEN.get(spoken, re.escape(spoken))})\Z", written)
        if found is None:
            raise UnitError(f"'{written}' is no {spoken}")
        return value * _PREFIX[found[1]]
    known = _SIGNS.get(written, written)
    convert = units.converter(known, unit) if units.known(known) else None
    if convert is None:
        raise UnitError(f"'{written}' is no {unit}")
    return convert(value)
