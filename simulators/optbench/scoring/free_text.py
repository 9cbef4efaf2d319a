"""Answers in free text, read as WirelessBench reads them: the last number, the last "N MHz", the last labelled value.

Each reader returns None where the text holds nothing of the kind, and never raises.
"""

from __future__ import annotations

import re
from typing import Final

from simulators.optbench.scoring.quantities import SPELLINGS, Quantity, number, spelt

_SUPERSCRIPT: Final = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+")
_RAISED: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_MINUS: Final = str.maketrans("−–", "--")
# neither inside a word (`log2`, `R_1`) nor an exponent; a hyphen behind a word or a number is no sign
_NUMBER: Final = r"(?<![\w.^])[-+]?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)"
_POWER: Final = r"(?:[eE][-+]?\d+|\s*(?:[×x*·]|\\times|\\cdot)\s*10\s*\^\s*[{(]?\s*[-+]?\d+\s*[)}]?)?"
_QUANTITY: Final = re.compile(rf"({_NUMBER})({_POWER})(?:[\s$\\~]*({SPELLINGS})(?![\w/]))?", re.IGNORECASE)
_GAP: Final = r"[\s\"'`*:=(]*"  # what stands between a label and its value, JSON and Markdown included
_PLAIN: Final = r"([-+]?\d+(?:\.\d+)?)"


def quantity(text: str) -> Quantity | None:
    """The last number of `text`, and the unit right behind it where there is one.

    Powers of ten (`2.2e-8`, `2.2×10^-8`, `2.2×10⁻⁸`) and thousands' commas are read.
    """
    found = list(_QUANTITY.finditer(_plain(text)))
    if not found:
        return None
    mantissa, power, unit = found[-1].groups()
    exponent = re.findall(r"[-+]?\d+", power)
    value = number(_float(f"{mantissa.replace(',', '')}e{exponent[-1] if exponent else 0}"))
    return None if value is None else Quantity(value, spelt(unit) if unit else None)


def bandwidth(text: str) -> float | None:
    """MHz: of the last "N MHz", else the last number labelled bandwidth; only 0.1 to 100 are taken for one."""
    return _last(text, (rf"{_PLAIN}\s*MHz\b", rf"bandwidth{_GAP}{_PLAIN}"), 0.1, 100.0)


def throughput(text: str) -> float | None:
    """Mbit/s: the last number labelled throughput, else of the last "N Mbps" (or Mbit/s); 0.1 to 1000."""
    return _last(text, (rf"throughput{_GAP}{_PLAIN}", rf"{_PLAIN}\s*(?:Mbps|Mbits?/s)"), 0.1, 1000.0)


def cqi(text: str) -> float | None:
    """The last number labelled CQI; 1 to 15."""
    return _last(text, (rf"(?:cqi|channel quality indicator){_GAP}\)?{_GAP}(\d+)",), 1.0, 15.0)


def slice_type(text: str) -> str | None:
    """`eMBB` or `URLLC`: the last one labelled slice; else the one with more of its names in the text.

    On a tie eMBB where it is named, as the published parser has it.
    """
    labelled = re.findall(rf"slice(?:[\s_]*type)?{_GAP}(embb|urllc)", text, re.IGNORECASE)
    if labelled:
        return "eMBB" if labelled[-1].lower() == "embb" else "URLLC"
    counts = {
        name: sum(bool(re.search(pattern, text, re.IGNORECASE)) for pattern in patterns)
        for name, patterns in _SLICE_NAMES.items()
    }
    if counts["eMBB"] == counts["URLLC"]:
        return next((name for name in counts if name.lower() in text.lower()), None)
    return max(counts, key=lambda name: counts[name])


_SLICE_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "eMBB": (r"\be-?mbb\b", r"enhanced mobile broadband", r"high[\s-]bandwidth"),
    "URLLC": (r"\bu-?rllc\b", r"ultra[\s-]?reliable", r"low[\s-]?latency", r"mission[\s-]?critical"),
}


def position(text: str) -> tuple[float, float] | None:
    """(x, y) in m: the last pair labelled predicted or next position; each within ±500."""
    pair = rf"{_GAP}{_PLAIN}\s*,\s*{_PLAIN}"
    named = rf"{_GAP}\{{[^}}]*?\bx{_GAP}{_PLAIN}[^}}]*?\by{_GAP}{_PLAIN}"
    for pattern in (pair, named):
        found = re.findall(
            rf"(?:predicted|next)[\s_]+position{pattern}", _plain(text), re.IGNORECASE | re.DOTALL
        )
        if found:
            x, y = (float(part) for part in found[-1])
            return (x, y) if max(abs(x), abs(y)) <= 500.0 else None
    return None


def satisfied(text: str) -> bool | None:
    """Whether the quality of service is said to be met: what follows the last "QoS satisfied", or "QoS"."""
    for pattern in (rf"qos[\s_]+satisfied{_GAP}(yes|no|true|false)\b", rf"qos{_GAP}((?:not\s+)?(?:satisfied|met))\b"):
        found = re.findall(pattern, text, re.IGNORECASE)
        if found:
            return found[-1].lower() in ("yes", "true", "satisfied", "met")
    return None


def _plain(text: str) -> str:
    """`text` with raised exponents written `^n`, and typographic minus signs as hyphens."""
    return _SUPERSCRIPT.sub(lambda found: "^" + found[0].translate(_RAISED), text.translate(_MINUS))


def _last(text: str, patterns: tuple[str, ...], low: float, high: float) -> float | None:
    for pattern in patterns:
        found = re.findall(pattern, text, re.IGNORECASE)
        value = _float(found[-1]) if found else None
        if value is not None and low <= value <= high:
            return value
    return None


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
