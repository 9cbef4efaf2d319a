"""Numbers of the study as a report prints them; a dash where something is not estimable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

UNDEFINED: Final = "–"


def number(value: float | None, places: int = 4) -> str:
    """A value with as many decimals as the paper prints."""
    if value is None:
        return UNDEFINED
    text = f"{value:.{places}f}"
    return ("−" if text.startswith("-") and float(text) != 0.0 else "") + text.lstrip("-")


def interval(ends: Sequence[float | None] | None, places: int = 4) -> str:
    """Both ends; an open end is told as a bound."""
    if ends is None:
        return UNDEFINED
    low, high = ends
    return f"at most {number(high, places)}" if low is None else f"[{number(low, places)}, {number(high, places)}]"


def share(numerator: Any, denominator: int | None) -> str:
    """`n of N`; of a list of counts, all of them."""
    if numerator is None:
        return UNDEFINED
    shown = ", ".join(map(str, numerator)) if isinstance(numerator, list | tuple) else str(numerator)
    return shown if denominator is None else f"{shown} of {denominator}"
