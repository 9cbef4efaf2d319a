"""The unit registry (rules, section 1): SI prefixes over a closed list of base units, and logarithmic units.

Conversions are exact powers of ten where they can be, so that 90 000 kHz is 90 MHz and nothing else. Units are
case-sensitive: `mHz` is a millihertz.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

# SI prefixes and their powers of ten (BIPM, SI brochure, table 7)
_PREFIXES: Final[dict[str, int]] = {
    "": 0, "y": -24, "z": -21, "a": -18, "f": -15, "p": -12, "n": -9, "u": -6, "µ": -6, "μ": -6, "m": -3, "c": -2,
    "d": -1, "da": 1, "h": 2, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18, "Z": 21, "Y": 24,
}  # fmt: skip
# spelling of the base unit → dimension
_PREFIXED: Final[dict[str, str]] = {
    "Hz": "frequency", "bit/s": "bit rate", "bps": "bit rate", "byte": "data volume", "B": "data volume",
    "s": "time", "W": "power", "m": "length", "K": "temperature",
}  # fmt: skip
# units without prefixes, each a dimension of its own but for % ↔ 1 and dBm ↔ W
_PLAIN: Final[dict[str, tuple[str, int]]] = {
    "1": ("ratio", 0), "%": ("ratio", -2), "dB": ("dB", 0), "PRB": ("PRB", 0), "deg": ("angle", 0),
}  # fmt: skip

DIMENSIONLESS: Final = "1"
_TABLE: Final[dict[str, tuple[str, int]]] = {
    prefix + base: (dimension, exponent)
    for base, dimension in _PREFIXED.items()
    for prefix, exponent in _PREFIXES.items()
    if base != "bps" or exponent >= 0  # whoever writes mbps means no millibit: better unknown than nine powers off
} | _PLAIN

Conversion = Callable[[float], float]


def known(unit: str) -> bool:
    """True where the registry knows `unit`."""
    return unit == "dBm" or unit in _TABLE


def _scaled(shift: int) -> Conversion:
    factor = 10.0 ** abs(shift)
    return (lambda value: value * factor) if shift >= 0 else (lambda value: value / factor)


@lru_cache(maxsize=1024)
def converter(unit: str, target: str) -> Conversion | None:
    """The function that turns a value in `unit` into one in `target`; None where the dimensions differ.

    Raises KeyError for a unit that the registry does not know. The function itself raises ValueError
    where no finite value exists (0 W has none in dBm).
    """
    if unit == target and known(unit):
        return float
    if unit == "dBm":
        dimension, exponent = _TABLE[target] if target != "dBm" else ("power", 0)
        if dimension != "power":
            return None
        # 0 dBm is 1 mW
        return lambda value: 10.0 ** ((value - 30.0 - 10.0 * exponent) / 10.0)
    dimension, exponent = _TABLE[unit]
    if target == "dBm":
        if dimension != "power":
            return None
        return lambda value: 10.0 * math.log10(value) + 10.0 * exponent + 30.0
    target_dimension, target_exponent = _TABLE[target]
    return _scaled(exponent - target_exponent) if dimension == target_dimension else None
