"""The certificate checker's own table of units (rules, 1): SI prefixes over a closed list, and logarithmic units."""

from __future__ import annotations

import math
from typing import Final

_BASES: Final[dict[str, str]] = {
    "Hz": "frequency", "bit/s": "rate", "bps": "rate", "byte": "volume", "B": "volume", "s": "time", "W": "power",
    "m": "length", "K": "temperature",
}  # fmt: skip
# SI brochure, table 7
_PREFIXES: Final[dict[str, int]] = {
    "y": -24, "z": -21, "a": -18, "f": -15, "p": -12, "n": -9, "u": -6, "µ": -6, "μ": -6, "m": -3, "c": -2, "d": -1,
    "": 0, "da": 1, "h": 2, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18, "Z": 21, "Y": 24,
}  # fmt: skip
# symbol → (dimension, power of ten); a dBm is power on a logarithmic scale, over a milliwatt
_UNITS: Final[dict[str, tuple[str, int]]] = {
    **{
        prefix + base: (dimension, power)
        for base, dimension in _BASES.items()
        for prefix, power in _PREFIXES.items()
        if base != "bps" or power >= 0  # nobody means a millibit per second
    },
    "1": ("ratio", 0), "%": ("ratio", -2), "dB": ("level", 0), "PRB": ("resource block", 0), "deg": ("angle", 0),
    "dBm": ("power", -3),
}  # fmt: skip


def dimension(unit: str) -> str | None:
    """What `unit` measures; None for a unit that the table does not know. Units are case-sensitive."""
    return _UNITS[unit][0] if unit in _UNITS else None


def convert(value: float, unit: str, target: str) -> float:
    """`value` in `target`, another unit of the same dimension. 0 W and less are −∞ dBm."""
    if unit == target:
        return value
    shift = _UNITS[unit][1] - _UNITS[target][1]
    if unit == "dBm":
        return _scaled(10 ** (value / 10), shift)
    if target == "dBm":
        return 10 * math.log10(_scaled(value, shift)) if value > 0 else -math.inf
    return _scaled(value, shift)


def _scaled(value: float, power: int) -> float:
    """`value` · 10^`power`, by one exact power: 90 000 kHz are 90 MHz and nothing else."""
    return value * 10.0**power if power >= 0 else value / 10.0**-power
