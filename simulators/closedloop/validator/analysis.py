"""Analysis: counts of detections and the models of what predicts them, from the saved rows (section 7.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np

from simulators.closedloop.validator.check import Check, Fault
from simulators.closedloop.validator.design import ARMS, COMPONENTS, FAMILIES, REGIMES, TARGETS, UNITS
from simulators.closedloop.validator.masks import ordered
from simulators.closedloop.validator.models import draws, fitted, refitted
from simulators.closedloop.validator.reading import Floats, Saved, at, foreign, same
from simulators.closedloop.validator.signal import detected

FILE: Final = "analysis.json"
Path = tuple[str, ...]
"""Members of analysis.json, one within the other."""
DRAWS: Final = 2000
SEED: Final = 73
PERCENTILES: Final = (2.5, 97.5)
FAMILY_RULE: Final = 0.01
"""Nats a row."""
LEAST: Final = 1e-3
"""What a share of 0 counts as under the logarithm."""
NLL_TOLERANCE: Final = 1e-5
COEFFICIENT_TOLERANCE: Final = 1e-2
DRAW_TOLERANCE: Final = 1e-4
_MODEL: Final = dict.fromkeys(("nll", "coefficients"))
_COMPARED: Final = {"traffic": _MODEL, "fraction": _MODEL, "difference": None, "interval": None}
MEMBERS: Final = {
    "admitted": None,
    "rows": None,
    "detections": dict.fromkeys(FAMILIES),
    "nondecreasing": dict.fromkeys(FAMILIES),
    "models": _COMPARED,
    "family": dict.fromkeys(("nll", "gain", "bound", "rule")),
    "within_family": dict.fromkeys(FAMILIES, _COMPARED),
    "bootstrap": dict.fromkeys(("draws", "seed", "clusters")),
}
"""Of analysis.json: member → those within it, None where it is a value."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The arms of units past both gates: component, family's place, log τ, log fraction, whether detected (0, 1)."""

    component: tuple[int, ...]
    family: tuple[int, ...]
    traffic: tuple[float, ...]
    fraction: tuple[float, ...]
    detected: tuple[float, ...]

    def of(self, family: int) -> Rows:
        """The rows of one family."""
        kept = [row for row, its_family in enumerate(self.family) if its_family == family]
        return Rows(*(tuple(getattr(self, name)[row] for row in kept) for name in Rows.__slots__))


@dataclass(frozen=True, slots=True)
class Model:
    """A model of one column: NLL a row, constant, slope."""

    nll: float
    constant: float
    slope: float


@dataclass(frozen=True, slots=True)
class Fits:
    """The models of traffic and of fraction, and the interval of what the second has more of NLL a row."""

    traffic: Model
    fraction: Model
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class FamilyFit:
    """The model that knows the family too: NLL a row, gain over traffic alone, upper end of the gain's interval."""

    nll: float
    gain: float
    bound: float


def rows(saved: Saved) -> Rows:
    """From the traces, the cells and their clean traffic."""
    _, _, states = detected(saved)
    tau, fraction = np.zeros(ARMS), np.zeros(ARMS)
    cells = ordered(saved)
    for arm in range(ARMS):
        of_arm = cells[arm // len(TARGETS)]
        if not len(of_arm.cell):
            continue
        count = of_arm.nearest[TARGETS[arm % len(TARGETS)]]
        fraction[arm] = count / len(of_arm.cell)
        if of_arm.total:
            tau[arm] = int(of_arm.outward[count - 1] + of_arm.inward[count - 1]) / 2 / of_arm.total
    kept = [arm for arm, state in enumerate(states) if state in ("DETECTED", "NOT_DETECTED")]
    return Rows(
        tuple(arm // (ARMS // UNITS) % COMPONENTS for arm in kept),
        tuple(arm // len(TARGETS) % len(FAMILIES) for arm in kept),
        tuple(np.log(np.maximum(tau, LEAST))[kept].tolist()),
        tuple(np.log(np.maximum(fraction, LEAST))[kept].tolist()),
        tuple(float(states[arm] == "DETECTED") for arm in kept),
    )


@lru_cache(maxsize=8)  # three checks ask for the same fits
def compared(data: Rows) -> Fits | None:
    """Traffic against fraction; None without both outcomes and at least two clusters."""
    if not _estimable(data):
        return None
    y = np.array(data.detected)
    weights = draws(np.array(data.component), DRAWS, SEED)
    columns = [(np.array(share),) for share in (data.traffic, data.fraction)]
    traffic, fraction = (_model(column, y) for column in columns)
    drawn = [refitted(column, y, weights) for column in columns]
    low, high = np.percentile(drawn[1] - drawn[0], PERCENTILES).tolist()
    return Fits(traffic, fraction, (low, high))


@lru_cache(maxsize=8)
def with_family(data: Rows) -> FamilyFit | None:
    """The model that knows the family too; None as above."""
    if not _estimable(data):
        return None
    y, share, family = np.array(data.detected), np.array(data.traffic), np.array(data.family, dtype=np.float64)
    weights = draws(np.array(data.component), DRAWS, SEED)
    plain, knowing = (share,), (share, family, family * share)
    nll = fitted(knowing, y)[0]
    gains = refitted(plain, y, weights) - refitted(knowing, y, weights)
    return FamilyFit(nll, fitted(plain, y)[0] - nll, float(np.percentile(gains, PERCENTILES[1])))


def _model(columns: tuple[Floats], y: Floats) -> Model:
    nll, (constant, slope) = fitted(columns, y)
    slope /= columns[0].std() or 1.0
    return Model(nll, float(constant - slope * columns[0].mean()), float(slope))


def _estimable(data: Rows) -> bool:
    return len(set(data.detected)) == 2 and len(set(data.component)) >= 2


def counts(states: list[str]) -> dict[str, list[int]]:
    """Family → units detected at each target."""
    found = np.array([state == "DETECTED" for state in states])
    by_target = found.reshape(len(REGIMES) * COMPONENTS, len(FAMILIES), len(TARGETS)).sum(axis=0)
    return dict(zip(FAMILIES, by_target.tolist(), strict=True))


def _differs(said: Any, computed: float | None, tolerance: float) -> bool:
    return not same(said, computed, tolerance)


def _told(path: Path, said: Any, computed: Any) -> Fault:
    return Fault(FILE, " ".join(path), f"is {said!r}; computed again it is {computed!r}")


def _numbers(saved: Saved, wanted: dict[Path, float | None], tolerance: float) -> Iterator[Fault]:
    for path, computed in wanted.items():
        if _differs(said := at(saved.documents[FILE], *path), computed, tolerance):
            yield _told(path, said, computed)


def _exactly(saved: Saved, wanted: dict[Path, Any]) -> Iterator[Fault]:
    for path, computed in wanted.items():
        if not same(said := at(saved.documents[FILE], *path), computed):
            yield _told(path, said, computed)


def _detections(saved: Saved) -> Iterator[Fault]:
    _, _, states = detected(saved)
    found = counts(states)
    eligible = sum(state in ("DETECTED", "NOT_DETECTED") for state in states)
    wanted: dict[Path, Any] = {
        ("admitted",): eligible // (ARMS // UNITS),
        ("rows",): eligible,
    }
    for family, of_family in found.items():
        wanted["detections", family] = of_family
        wanted["nondecreasing", family] = all(a <= b for a, b in pairwise(of_family)) if eligible else None
    yield from _exactly(saved, wanted)
    for path in foreign(saved.documents[FILE], MEMBERS):
        yield Fault(FILE, " ".join(path), "is no member of an analysis")


def _pairs(saved: Saved) -> Iterator[tuple[Path, Fits | None]]:
    """Where analysis.json compares traffic with fraction, and what that must be."""
    data = rows(saved)
    yield ("models",), compared(data)
    for place, family in enumerate(FAMILIES):
        yield ("within_family", family), compared(data.of(place))


def _models(saved: Saved) -> Iterator[Fault]:
    for path, fits in _pairs(saved):
        wanted: dict[Path, float | None] = {
            (*path, "traffic", "nll"): None if fits is None else fits.traffic.nll,
            (*path, "fraction", "nll"): None if fits is None else fits.fraction.nll,
            (*path, "difference"): None if fits is None else fits.fraction.nll - fits.traffic.nll,
        }
        yield from _numbers(saved, wanted, NLL_TOLERANCE)
        for name in ("traffic", "fraction"):
            model: Model | None = None if fits is None else getattr(fits, name)
            line = None if model is None else [model.constant, model.slope]
            yield from _ends(saved, (*path, name, "coefficients"), line, COEFFICIENT_TOLERANCE)


def _family(saved: Saved) -> Iterator[Fault]:
    fit = with_family(rows(saved))
    wanted: dict[Path, float | None] = {
        ("family", "nll"): None if fit is None else fit.nll,
        ("family", "gain"): None if fit is None else fit.gain,
    }
    yield from _numbers(saved, wanted, NLL_TOLERANCE)
    yield from _exactly(saved, {("family", "rule"): FAMILY_RULE})


def _intervals(saved: Saved) -> Iterator[Fault]:
    data = rows(saved)
    wanted = {"draws": DRAWS, "seed": SEED, "clusters": len(set(data.component))}
    yield from _exactly(saved, {("bootstrap", name): value for name, value in wanted.items()})
    for path, fits in _pairs(saved):
        yield from _ends(saved, (*path, "interval"), None if fits is None else list(fits.interval), DRAW_TOLERANCE)
    fit = with_family(data)
    yield from _numbers(saved, {("family", "bound"): None if fit is None else fit.bound}, DRAW_TOLERANCE)


def _ends(saved: Saved, path: Path, computed: list[float] | None, tolerance: float) -> Iterator[Fault]:
    said = at(saved.documents[FILE], *path)
    if computed is None:
        if said is not None:
            yield _told(path, said, computed)
    elif (
        not isinstance(said, list)
        or len(said) != len(computed)
        or any(_differs(a, b, tolerance) for a, b in zip(said, computed, strict=True))
    ):
        yield _told(path, said, computed)


_TRACES: Final = ("protocol.json", "reference.csv", "current.csv")
_LEDGER: Final = ("ledger/claims",)
_ROWS: Final = (*_TRACES, "cells.csv", "occupancy.csv", FILE)

CHECKS: Final = (
    Check(
        "detections",
        "analysis",
        "Detections at each target, whether they decrease, and the rows behind them are as counted.",
        (*_TRACES, FILE),
        _detections,
        _LEDGER,
    ),
    Check("models", "analysis", "The models' NLL are those of a fit by other means.", _ROWS, _models, _LEDGER),
    Check("family", "analysis", "The gain from knowing the family is that of such a fit.", _ROWS, _family, _LEDGER),
    Check(
        "intervals",
        "analysis",
        "The bootstrap's intervals and bound are those of draws made and fitted again.",
        _ROWS,
        _intervals,
        _LEDGER,
    ),
)
