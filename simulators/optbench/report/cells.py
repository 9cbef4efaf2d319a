"""Numbers as the paper prints them: three decimals, or a percentage with one; a dash where undefined."""

from __future__ import annotations

import math
from typing import Final

from simulators.optbench.scoring.bootstrap import Interval

UNDEFINED: Final = "–"


def decimal(value: float | None) -> str:
    """A value with three decimals."""
    return _printed(value, 3)


def percent(share: float | None) -> str:
    """A share, 0 to 1, as a percentage."""
    return UNDEFINED if _undefined(share) else f"{_printed(100.0 * (share or 0.0), 1)} %"


def difference(value: float | None) -> str:
    """A difference with its sign."""
    printed = _printed(value, 3)
    return f"+{printed}" if not _undefined(value) and float(printed.replace("−", "-")) > 0.0 else printed


def points(value: float) -> str:
    """A gain in percentage points, with its sign; a decimal where it is not whole."""
    printed = _printed(value, 1).removesuffix(".0")
    return printed if _undefined(value) or printed.startswith("−") else f"+{printed}"


def with_interval(found: Interval, as_percent: bool = False) -> str:
    """A metric and its 95 % interval."""
    if _undefined(found.mean):
        return UNDEFINED
    if as_percent:
        return f"{percent(found.mean)} [{_printed(100.0 * found.low, 1)}, {_printed(100.0 * found.high, 1)}]"
    return f"{decimal(found.mean)} [{decimal(found.low)}, {decimal(found.high)}]"


def interval(found: Interval) -> str:
    """The ends of the interval of a difference."""
    return UNDEFINED if _undefined(found.low) else f"[{difference(found.low)}, {difference(found.high)}]"


def _undefined(value: float | None) -> bool:
    return value is None or math.isnan(value)


def _printed(value: float | None, places: int) -> str:
    if value is None or math.isnan(value):
        return UNDEFINED
    text = f"{value:.{places}f}"
    negative = text.startswith("-") and float(text) != 0.0
    return ("−" if negative else "") + text.lstrip("-")
