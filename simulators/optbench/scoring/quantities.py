"""Units as the evaluator reads them: a table of its own, so that an error of the guard's registry shows.

Dimensions follow the SI: what counts (bit per symbol, bit/s/Hz, rad) is a pure number, a symbol rate is 1/s. Bit rates,
decibels and PRBs are dimensions of their own, as in the rules (section 1).
"""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

_PREFIXES: Final[dict[str, int]] = {
    "": 0, "p": -12, "n": -9, "u": -6, "µ": -6, "μ": -6, "m": -3, "c": -2, "k": 3, "M": 6, "G": 9, "T": 12,
}  # fmt: skip
_BASES: Final[dict[str, str]] = {
    "Hz": "frequency", "Bd": "frequency", "sym/s": "frequency", "bit/s": "bit rate", "bps": "bit rate",
    "byte": "data volume", "B": "data volume", "s": "time", "W": "power", "m": "length", "K": "temperature",
    "V": "voltage", "A": "current", "Ω": "resistance", "J": "energy", "W/Hz": "spectral density",
}  # fmt: skip
_PLAIN: Final[dict[str, tuple[str, float]]] = {
    "1": ("ratio", 1.0), "%": ("ratio", 1e-2), "bit/s/Hz": ("ratio", 1.0), "bps/Hz": ("ratio", 1.0),
    "bit": ("ratio", 1.0), "bits": ("ratio", 1.0), "bits/symbol": ("ratio", 1.0), "rad": ("ratio", 1.0),
    "deg": ("angle", 1.0), "PRB": ("PRB", 1.0), "dB": ("dB", 1.0),
}  # fmt: skip
_TABLE: Final[dict[str, tuple[str, float]]] = {
    prefix + base: (dimension, float(f"1e{exponent}"))
    for base, dimension in _BASES.items()
    for prefix, exponent in _PREFIXES.items()
    if base != "bps" or exponent >= 0
} | _PLAIN
_LOGARITHMIC: Final[dict[str, float]] = {"dBm": 1e-3, "dBW": 1.0}
"""Power in decibels above so many watts."""

# As people write them, beside the table's own spellings; free text knows no case, and radio no millihertz.
_SPOKEN: Final[dict[str, str]] = {
    unit.lower(): unit
    for unit in (
        *("Hz", "kHz", "MHz", "GHz", "THz", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "bps", "kbps", "Mbps", "Gbps"),
        *("s", "ms", "us", "µs", "ns", "ps", "W", "mW", "uW", "µW", "nW", "kW", "m", "km", "cm", "mm", "dB", "dBm"),
        *("dBW", "V", "mV", "A", "mA", "J", "mJ", "uJ", "K", "W/Hz", "bit/s/Hz", "bps/Hz", "bits/symbol", "bit"),
        *("bits", "sym/s", "ksym/s", "Msym/s", "Bd", "kBd", "MBd", "rad", "deg", "PRB", "%", "Ω"),
    )
} | {
    "bits/s": "bit/s", "kbits/s": "kbit/s", "mbits/s": "Mbit/s", "gbits/s": "Gbit/s", "bits/s/hz": "bit/s/Hz",
    "bit/(s·hz)": "bit/s/Hz", "bit/(s hz)": "bit/s/Hz", "baud": "Bd", "kbaud": "kBd", "mbaud": "MBd",
    "symbols/s": "sym/s", "samples/s": "sym/s", "ohm": "Ω", "dbw": "dBW", "μs": "us", "μw": "uW",
}  # fmt: skip
SPELLINGS: Final = "|".join(re.escape(unit) for unit in sorted(_SPOKEN, key=len, reverse=True))
"""A regular expression of all spellings, longest first."""


class Quantity(NamedTuple):
    """A number and its unit; `unit` None where none was given."""

    value: float
    unit: str | None


def spelt(unit: str) -> str:
    """The table's spelling of a unit as people write it; `unit` itself where the table knows it, or neither does."""
    stripped = unit.strip()
    return stripped if stripped in _TABLE else _SPOKEN.get(stripped.lower(), stripped)


def base_unit(unit: str) -> str:
    """The unprefixed unit of the dimension of `unit`: what a bare number is taken to be in; else `unit` itself."""
    if unit not in _TABLE or _TABLE[unit][1] == 1.0:
        return unit
    dimension = _TABLE[unit][0]
    return next(known for known, (d, factor) in _TABLE.items() if d == dimension and factor == 1.0)


def number(value: object) -> float | None:
    """`value` as a finite float; None for anything else, booleans and strings included."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


def convert(value: float, unit: str, target: str) -> float | None:
    """`value` in `target`; None where a unit is unknown, the dimensions differ, or no finite value exists.

    Units are case-sensitive. Equal units convert even where the table knows neither.
    """
    if unit == target:
        return value
    watts = _watts(value, unit)
    if watts is not None and (target in _LOGARITHMIC or _dimension(target) == "power"):
        return _from_watts(watts, target)
    if _dimension(unit) is None or _dimension(unit) != _dimension(target):
        return None
    factor, other = _TABLE[unit][1], _TABLE[target][1]
    # one exact power of ten, so that 90 000 kHz is 90 MHz and nothing else
    result = value * round(factor / other) if factor >= other else value / round(other / factor)
    return result if math.isfinite(result) else None


def _dimension(unit: str) -> str | None:
    return _TABLE[unit][0] if unit in _TABLE else None


def _watts(value: float, unit: str) -> float | None:
    """Power in W, only where a logarithm is to be undone or taken: see `convert`."""
    if unit in _LOGARITHMIC:
        try:
            return float(_LOGARITHMIC[unit] * 10.0 ** (value / 10.0))
        except OverflowError:
            return None
    return value * _TABLE[unit][1] if _dimension(unit) == "power" else None


def _from_watts(watts: float, target: str) -> float | None:
    if target not in _LOGARITHMIC:
        return watts / _TABLE[target][1]
    return 10.0 * math.log10(watts / _LOGARITHMIC[target]) if watts > 0.0 else None
