"""How often a clean stream is taken for a fault: exact one-sided bound over physical components (section 5.3).

The unit of sampling is the physical component, since its units in three regimes share demand and policy design.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

Status = Literal["PASS", "FAIL", "NOT_ESTIMABLE"]

CONFIDENCE: Final = 0.95
THRESHOLD: Final = 0.20
"""The frozen rule: the bound may be at most this."""


def upper_bound(events: int, trials: int, confidence: float = CONFIDENCE) -> float | None:
    """The one-sided exact (Clopper-Pearson) upper bound of a rate; None without trials.

    It is the rate at which at most `events` of `trials` have probability 1 − confidence. Raises ValueError otherwise
    than 0 ≤ events ≤ trials and 0 < confidence < 1.
    """
    from scipy.special import betaincinv

    if not (0 <= events <= trials and 0.0 < confidence < 1.0):
        raise ValueError("events must be from 0 to trials, and the confidence between 0 and 1")
    if trials == 0:
        return None
    return 1.0 if events == trials else float(betaincinv(events + 1, trials - events, confidence))


def status(bound: float | None, threshold: float = THRESHOLD) -> Status:
    """Whether the bound keeps to the frozen rule; NOT_ESTIMABLE where nothing was represented."""
    if bound is None:
        return "NOT_ESTIMABLE"
    return "PASS" if bound <= threshold else "FAIL"


@dataclass(frozen=True, slots=True)
class Calibration:
    """False admissions among the components asked: a component counts once, whichever of its units was stable."""

    represented: int
    false_admissions: int
    bound: float | None
    status: Status


def calibrate(represented: Sequence[bool], stable: Sequence[bool]) -> Calibration:
    """Of the components that are represented, those with a stable signal in a clean stream; both one a component."""
    asked = [found for here, found in zip(represented, stable, strict=True) if here]
    bound = upper_bound(sum(asked), len(asked))
    return Calibration(len(asked), sum(asked), bound, status(bound))
