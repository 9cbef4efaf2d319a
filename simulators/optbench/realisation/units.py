"""How the same quantity is told in another unit, and which units are of another dimension.

A small table of its own: the benchmark tells values in other units, the engine under test reads them back.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final

# base unit → the prefixes under which telemetry tells it (BIPM, SI brochure, table 7)
_PREFIXES: Final[dict[str, tuple[str, ...]]] = {
    "Hz": ("", "k", "M", "G"), "bit/s": ("", "k", "M", "G"), "bps": ("k", "M", "G"), "B": ("", "k", "M", "G"),
    "byte": ("", "k", "M", "G"), "s": ("n", "u", "µ", "m", ""), "W": ("u", "m", "", "k"), "m": ("m", "c", "", "k"),
    "K": ("m", ""),
}  # fmt: skip
_EXPONENTS: Final[dict[str, int]] = {"n": -9, "u": -6, "µ": -6, "m": -3, "c": -2, "": 0, "k": 3, "M": 6, "G": 9}
_DIMENSIONS: Final[dict[str, str]] = {
    "Hz": "frequency", "bit/s": "bit rate", "bps": "bit rate", "B": "data volume", "byte": "data volume", "s": "time",
    "W": "power", "m": "length", "K": "temperature",
}  # fmt: skip
_SCALES: Final[dict[str, tuple[str, int]]] = {
    prefix + base: (_DIMENSIONS[base], _EXPONENTS[prefix])
    for base, prefixes in _PREFIXES.items()
    for prefix in prefixes
} | {"1": ("ratio", 0), "%": ("ratio", -2), "dB": ("dB", 0), "PRB": ("PRB", 0), "deg": ("angle", 0)}
_LOGARITHMIC: Final = "dBm"
_SIGNIFICANT: Final = 12  # digits of a value that went through a logarithm: the same on every platform

UNHEARD: Final[tuple[str, ...]] = ("count", "0.1ms", "Mb", "a.u.")
"""Units that real producers write and no registry knows: 0.1 ms (srsRAN's RLC delay), Mb (NIST's PDCP volume)."""

_FOREIGN: Final[tuple[str, ...]] = ("dB", "PRB", "MHz", "ms", "Mbit/s", "m")


def dimension(unit: str) -> str | None:
    """The dimension of `unit`; None where the table does not hold it."""
    return "power" if unit == _LOGARITHMIC else _SCALES.get(unit, (None, 0))[0]


def compatible(unit: str, value: float) -> tuple[str, ...]:
    """Other units of the dimension of `unit` in which `value` can be told."""
    of = dimension(unit)
    if of is None:
        return ()
    linear = tuple(u for u, (d, _) in _SCALES.items() if d == of and u != unit)
    if of != "power":
        return linear
    if unit == _LOGARITHMIC:
        return ("W", "mW")
    return (*linear, _LOGARITHMIC) if value > 0 else linear


def foreign(unit: str) -> tuple[str, ...]:
    """Units of another dimension than `unit`; none where its own is not known."""
    return tuple(u for u in _FOREIGN if dimension(u) != dimension(unit)) if dimension(unit) else ()


def told_in(value: float, unit: str, other: str) -> float:
    """`value`, in `unit`, told in `other`, one of `compatible(unit, value)`: exact but for the logarithm."""
    if unit == _LOGARITHMIC:
        return _significant(10.0 ** (value / 10.0) * 10.0 ** (-3 - _SCALES[other][1]))
    if other == _LOGARITHMIC:
        return _significant(10.0 * math.log10(value) + 10.0 * _SCALES[unit][1] + 30.0)
    scaled = Decimal(repr(value)).scaleb(_SCALES[unit][1] - _SCALES[other][1])
    return int(scaled) if isinstance(value, int) and scaled == int(scaled) else float(scaled)


def moved(value: float, amount: float) -> float:
    """`value` + `amount` in decimals, so that 0.1 and 0.2 are 0.3; an integer moved by a whole number stays one."""
    total = Decimal(repr(value)) + Decimal(repr(amount))
    return int(total) if isinstance(value, int) and total == int(total) else float(total)


def _significant(value: float) -> float:
    return float(f"{value:.{_SIGNIFICANT}g}")
