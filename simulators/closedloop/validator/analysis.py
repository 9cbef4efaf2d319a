"""Analysis: counts of detections and the models of what predicts them, from the saved rows (section 7.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from simulators.closedloop.validator.check import Check, Fault
from simulators.closedloop.validator.design import ARMS, COMPONENTS, FAMILIES, REGIMES, TARGETS, UNITS
from simulators.closedloop.validator.masks import ordered
from simulators.closedloop.validator.models import draws, fitted, refitted
from simulators.closedloop.validator.reading import Floats, Ints, Saved, at
from simulators.closedloop.validator.signal import detected

FILE: Final = "analysis.json"
DRAWS: Final = 2000
SEED: Final = 73
PERCENTILES: Final = (2.5, 97.5)
FAMILY_RULE: Final = 0.01
"""Nats a row."""
LEAST: Final = 1e-3
"""What a share of 0 counts as under the logarithm."""
NLL_TOLERANCE: Final = 1e-5
DRAW_TOLERANCE: Final = 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The arms of units past both gates: component, family's place, log τ, log fraction, whether detected (0, 1)."""

    component: Ints
    family: Ints
    traffic: Floats
    fraction: Floats
    detected: Floats

    def of(self, family: int) -> Rows:
        """The rows of one family."""
        kept = self.family == family
        return Rows(*(getattr(self, name)[kept] for name in Rows.__slots__))

    @property
    def estimable(self) -> bool:
        """Whether there are both outcomes, and at least two clusters."""
        return len(np.unique(self.detected)) == 2 and len(np.unique(self.component)) >= 2

    @property
    def with_family(self) -> tuple[Floats, ...]:
        """The columns of the model that knows the family too."""
        named = self.family.astype(np.float64)
        return self.traffic, named, named * self.traffic


def rows(saved: Saved) -> Rows:
    """From the traces, the cells and their clean traffic."""
    _, _, states = detected(saved)
    tau, fraction = np.zeros(ARMS), np.zeros(ARMS)
    cells = ordered(saved)
    for arm in range(ARMS):
        of_arm = cells[arm // len(TARGETS)]
        if not len(of_arm.cell):
            continue
        count = of_arm.nearest(TARGETS[arm % len(TARGETS)])
        fraction[arm] = count / len(of_arm.cell)
        if of_arm.total:
            tau[arm] = int(of_arm.outward[count - 1] + of_arm.inward[count - 1]) / 2 / of_arm.total
    kept = np.array([state in ("DETECTED", "NOT_DETECTED") for state in states])
    number = np.arange(ARMS)
    return Rows(
        (number // (ARMS // UNITS) % COMPONENTS)[kept],
        (number // len(TARGETS) % len(FAMILIES))[kept],
        np.log(np.maximum(tau, LEAST))[kept],
        np.log(np.maximum(fraction, LEAST))[kept],
        np.array([float(state == "DETECTED") for state in states])[kept],
    )


def counts(states: list[str]) -> dict[str, list[int]]:
    """Family → units detected at each target."""
    found = np.array([state == "DETECTED" for state in states])
    by_target = found.reshape(len(REGIMES) * COMPONENTS, len(FAMILIES), len(TARGETS)).sum(axis=0)
    return dict(zip(FAMILIES, by_target.tolist(), strict=True))


def _differs(said: Any, computed: float | None, tolerance: float) -> bool:
    if computed is None or said is None:
        return said is not computed
    return isinstance(said, bool) or not isinstance(said, int | float) or abs(said - computed) > tolerance


def _told(path: tuple[str, ...], said: Any, computed: Any) -> Fault:
    return Fault(FILE, " ".join(path), f"is {said!r}; computed again it is {computed!r}")


def _numbers(saved: Saved, wanted: dict[tuple[str, ...], float | None], tolerance: float) -> Iterator[Fault]:
    for path, computed in wanted.items():
        if _differs(said := at(saved.documents[FILE], *path), computed, tolerance):
            yield _told(path, said, computed)


def _exactly(saved: Saved, wanted: dict[tuple[str, ...], Any]) -> Iterator[Fault]:
    for path, computed in wanted.items():
        said = at(saved.documents[FILE], *path)
        if said != computed or isinstance(said, bool) != isinstance(computed, bool):
            yield _told(path, said, computed)


def _detections(saved: Saved) -> Iterator[Fault]:
    _, _, states = detected(saved)
    found = counts(states)
    eligible = sum(state in ("DETECTED", "NOT_DETECTED") for state in states)
    wanted: dict[tuple[str, ...], Any] = {
        ("admitted",): eligible // (ARMS // UNITS),
        ("rows",): eligible,
    }
    for family, of_family in found.items():
        wanted["detections", family] = of_family
        wanted["nondecreasing", family] = all(a <= b for a, b in pairwise(of_family))
    yield from _exactly(saved, wanted)


def _of_pair(data: Rows) -> dict[tuple[str, ...], float | None]:
    if not data.estimable:
        return {("traffic", "nll"): None, ("fraction", "nll"): None, ("difference",): None}
    traffic, fraction = (fitted((column,), data.detected)[0] for column in (data.traffic, data.fraction))
    return {("traffic", "nll"): traffic, ("fraction", "nll"): fraction, ("difference",): fraction - traffic}


def _models(saved: Saved) -> Iterator[Fault]:
    data = rows(saved)
    yield from _numbers(saved, {("models", *path): value for path, value in _of_pair(data).items()}, NLL_TOLERANCE)
    for place, family in enumerate(FAMILIES):
        wanted = _of_pair(data.of(place)).items()
        yield from _numbers(saved, {("within_family", family, *path): v for path, v in wanted}, NLL_TOLERANCE)


def _family(saved: Saved) -> Iterator[Fault]:
    data = rows(saved)
    nll = fitted(data.with_family, data.detected)[0] if data.estimable else None
    gain = None if nll is None else fitted((data.traffic,), data.detected)[0] - nll
    yield from _numbers(saved, {("family", "nll"): nll, ("family", "gain"): gain}, NLL_TOLERANCE)
    yield from _exactly(saved, {("family", "rule"): FAMILY_RULE})


def _refitted(data: Rows, *models: tuple[Floats, ...]) -> list[Floats]:
    """The NLL of each draw under each model."""
    weights = draws(data.component, DRAWS, SEED)
    return [refitted(columns, data.detected, weights) for columns in models]


def _intervals(saved: Saved) -> Iterator[Fault]:
    data = rows(saved)
    wanted = {"draws": DRAWS, "seed": SEED, "clusters": len(np.unique(data.component))}
    yield from _exactly(saved, {("bootstrap", name): value for name, value in wanted.items()})
    pooled = family = None
    if data.estimable:
        traffic, fraction, knowing = _refitted(data, (data.traffic,), (data.fraction,), data.with_family)
        pooled = np.percentile(fraction - traffic, PERCENTILES).tolist()
        family = float(np.percentile(traffic - knowing, PERCENTILES[1]))
    yield from _ends(saved, ("models", "interval"), pooled)
    yield from _numbers(saved, {("family", "bound"): family}, DRAW_TOLERANCE)
    for place, name in enumerate(FAMILIES):
        within, ends = data.of(place), None
        if within.estimable:
            traffic, fraction = _refitted(within, (within.traffic,), (within.fraction,))
            ends = np.percentile(fraction - traffic, PERCENTILES).tolist()
        yield from _ends(saved, ("within_family", name, "interval"), ends)


def _ends(saved: Saved, path: tuple[str, ...], computed: list[float] | None) -> Iterator[Fault]:
    said = at(saved.documents[FILE], *path)
    if computed is None:
        if said is not None:
            yield _told(path, said, computed)
    elif (
        not isinstance(said, list)
        or len(said) != len(computed)
        or any(_differs(a, b, DRAW_TOLERANCE) for a, b in zip(said, computed, strict=True))
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
