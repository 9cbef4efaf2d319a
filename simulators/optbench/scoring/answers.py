"""Task scores by WirelessBench's rules: the quality of an answer, whatever became of the action.

Parts of an answer that are missing or cannot be read score 0 for their share. Nothing here raises for what an answer
holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from simulators.optbench.model import Task
from simulators.optbench.scoring import free_text
from simulators.optbench.scoring.quantities import Quantity, base_unit, convert, number, spelt

Scorer = Literal["strict", "published"]
"""`strict`: the published text's rule for WCHW; `published`: its code's, which gives .5 or .3 for the usual slips."""

Tiers = tuple[tuple[float, float], ...]
_RELATIVE: Final[Tiers] = ((0.02, 1.0), (0.05, 0.95), (0.10, 0.85), (0.20, 0.7), (0.30, 0.5), (0.50, 0.3))
_CALCULATION: Final[Tiers] = ((0.01, 1.0), (0.05, 0.9), (0.10, 0.7))
_CQI_SLICING: Final[Tiers] = ((0, 1.0), (1, 0.8), (2, 0.5), (4, 0.2))
_CQI_MOBILITY: Final[Tiers] = ((0, 1.0), (1, 0.9), (2, 0.75), (3, 0.5), (5, 0.25))
_BANDWIDTHS: Final[dict[str, tuple[float, float]]] = {"embb": (6.0, 20.0), "urllc": (1.0, 5.0)}  # MHz
# (low, high, score) of answer / reference: a prefix forgotten or doubled, a factor of 2 (WirelessBench's code)
_SLIPS: Final = (
    (0.9e-3, 1.1e-3, 0.5), (0.9e3, 1.1e3, 0.5), (0.9e-6, 1.1e-6, 0.5), (0.9e6, 1.1e6, 0.5),
    (0.45, 0.55, 0.3), (1.9, 2.1, 0.3),
)  # fmt: skip
_POSITION_SCALE_M: Final = 20.0
_WHOLE: Final = 1.0 - math.pow(0.02 / _POSITION_SCALE_M, 1.2)
"""What a part of the reference answer scores at least: a position is rounded to 0.01 m along each axis."""


def score(task: Task, answer: Any, reference: Mapping[str, Any], scorer: Scorer = "strict") -> float:
    """The task score of `answer`, 0 to 1.

    `answer`: structured as the reference, its numbers bare (then in the task's unit; of WCHW in the base unit), as
    `{"value", "unit"}`, or as text; or all of it free text; or a bare number for WCHW. Units are converted.
    """
    if task == "WCHW":
        return _calculation(answer, reference, scorer)
    shares = _SHARES[task]
    return min(1.0, math.fsum(share * part(answer, reference) for share, part in shares))


def same_answer(task: Task, answer: Any, reference: Mapping[str, Any]) -> bool:
    """Whether `answer` is the reference answer: no part of it lies below its first tier.

    WCHW: less than 1 % off. Others: slice, CQI and QoS as they are, bandwidth and throughput less than 2 % off, a
    position but for rounding.
    """
    if task == "WCHW":
        return _calculation(answer, reference, "strict") == 1.0
    return all(part(answer, reference) >= _WHOLE for _, part in _SHARES[task])


def _calculation(answer: Any, reference: Mapping[str, Any], scorer: Scorer) -> float:
    expected = _quantity(reference)
    given = _quantity(answer)
    if expected is None or given is None:
        return 0.0
    unit = spelt(expected.unit or "1")
    value = convert(given.value, spelt(given.unit) if given.unit else base_unit(unit), unit)
    if value is None:
        return 0.0
    if expected.value == 0.0:
        return float(value == 0.0)
    tier = _below(_CALCULATION, _relative_error(value, expected.value))
    if tier or scorer == "strict":
        return tier
    ratio = value / expected.value
    return next((worth for low, high, worth in _SLIPS if low < ratio < high), 0.0)


def _quantity(answer: Any) -> Quantity | None:
    """A number with its unit, from any of the forms an answer's number takes."""
    if isinstance(answer, str):
        return free_text.quantity(answer)
    if isinstance(answer, Mapping):
        unit = answer.get("unit")
        inner = _quantity(answer.get("value"))
        if inner is None or not (unit is None or isinstance(unit, str)):
            return None
        return Quantity(inner.value, unit.strip() or inner.unit) if unit else inner
    value = number(answer)
    return None if value is None else Quantity(value, None)


def _measure(answer: Any, key: str, unit: str, reader: Callable[[str], float | None]) -> float | None:
    """The number under `key` in `unit`, a bare one being in it already; of free text, what `reader` finds."""
    if isinstance(answer, str):
        return reader(answer)
    found = _quantity(_member(answer, key))
    return None if found is None else convert(found.value, spelt(found.unit or unit), unit)


def _member(answer: Any, key: str) -> Any:
    return answer.get(key) if isinstance(answer, Mapping) else None


def _relative_error(value: float, expected: float) -> float:
    if expected == 0.0:
        return 0.0 if value == 0.0 else math.inf
    return abs(value - expected) / abs(expected)


def _below(tiers: Tiers, amount: float) -> float:
    """The score of the first tier whose bound lies above `amount`."""
    return next((worth for bound, worth in tiers if amount < bound), 0.0)


def _slice_name(value: Any) -> str | None:
    if isinstance(value, Mapping):  # a plan value: `{"value", "unit"}`
        value = value.get("value")
    found = free_text.slice_type(value) if isinstance(value, str) else None
    return found.lower() if found else None


def _slice(answer: Any, reference: Mapping[str, Any]) -> float:
    given = answer if isinstance(answer, str) else _member(answer, "slice_type")
    expected = _slice_name(reference.get("slice_type"))
    return float(expected is not None and _slice_name(given) == expected)


def _cqi(key: str, tiers: Tiers) -> Callable[[Any, Mapping[str, Any]], float]:
    def part(answer: Any, reference: Mapping[str, Any]) -> float:
        given, expected = _measure(answer, key, "1", free_text.cqi), number(reference.get(key))
        if given is None or expected is None or not 1.0 <= given <= 15.0:
            return 0.0
        return next((worth for off, worth in tiers if abs(given - expected) <= off), 0.0)

    return part


def _bandwidth(answer: Any, reference: Mapping[str, Any]) -> float:
    given = _measure(answer, "bandwidth", "MHz", free_text.bandwidth)
    expected = number(reference.get("bandwidth"))
    if given is None or expected is None:
        return 0.0
    low, high = _BANDWIDTHS[_slice_name(reference.get("slice_type")) or "embb"]
    if not low <= given <= high:
        outside = (low - given) / low if given < low else (given - high) / high
        return 0.5 if outside < 0.2 else 0.2
    return _below(_RELATIVE, _relative_error(given, expected))


def _throughput(answer: Any, reference: Mapping[str, Any]) -> float:
    given = _measure(answer, "throughput", "Mbit/s", free_text.throughput)
    expected = number(reference.get("throughput"))
    return 0.0 if given is None or expected is None else _below(_RELATIVE, _relative_error(given, expected))


def _point(value: Any) -> tuple[float, float] | None:
    if isinstance(value, str):
        return free_text.position(value) or free_text.position(f"predicted position: {value}")
    if isinstance(value, Mapping):
        value = (value.get("x"), value.get("y"))
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    found = [_quantity(part) for part in value]
    metres = [None if part is None else convert(part.value, spelt(part.unit or "m"), "m") for part in found]
    x, y = metres
    return None if x is None or y is None else (x, y)


def _position(answer: Any, reference: Mapping[str, Any]) -> float:
    given = free_text.position(answer) if isinstance(answer, str) else _point(_member(answer, "predicted_position"))
    expected = _point(reference.get("predicted_position"))
    if given is None or expected is None:
        return 0.0
    return 1.0 - math.pow(min(1.0, math.dist(given, expected) / _POSITION_SCALE_M), 1.2)


def _verdict(value: Any) -> bool | None:
    if isinstance(value, str):
        return free_text.satisfied(f"QoS satisfied: {value}")
    return value if isinstance(value, bool) else None


def _quality_of_service(answer: Any, reference: Mapping[str, Any]) -> float:
    given = free_text.satisfied(answer) if isinstance(answer, str) else _verdict(_member(answer, "qos_satisfied"))
    expected = _verdict(reference.get("qos_satisfied"))
    return float(given is not None and given == expected)


_SHARES: Final[dict[str, tuple[tuple[float, Callable[[Any, Mapping[str, Any]], float]], ...]]] = {
    "WCNS": ((0.25, _slice), (0.15, _cqi("cqi", _CQI_SLICING)), (0.35, _bandwidth), (0.25, _throughput)),
    "WCMSA": (
        (0.15, _position), (0.15, _cqi("predicted_cqi", _CQI_MOBILITY)), (0.20, _slice), (0.25, _bandwidth),
        (0.20, _throughput), (0.05, _quality_of_service),
    ),
}  # fmt: skip
