"""A new software version that calls things otherwise, or counts them otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from simulators.faults.base import Fault, Kind, Scope, rewritten
from simulators.ran.emission import Emission
from xapp.model import Measurement, Report

Change = Callable[[Measurement], Measurement]

UNITS: Final[Mapping[tuple[str, str], Callable[[float], float]]] = {
    ("Mbit/s", "Gbit/s"): lambda value: value / 1000.0,
    ("dBm", "W"): lambda value: 10.0 ** ((value - 30.0) / 10.0),
}
"""How a value reads in the new unit: (old, new) → conversion."""


class Rewrite(Fault):
    """Changes every named metric of the scope's reports."""

    kind: Kind = "schema"

    def __init__(self, scope: Scope, *, harmful: bool, changes: Mapping[str, Change]) -> None:
        super().__init__(scope, harmful=harmful)
        self._changes = dict(changes)

    def take(self, emission: Emission, now_ms: int) -> list[Emission]:
        if not isinstance(emission.message, Report):
            return [emission]
        return [
            rewritten(
                emission,
                [
                    self._changes[m.name](m) if m.name in self._changes and self.scope.touches(m) else m
                    for m in emission.message.measurements
                ],
            )
        ]


def renamed(to: str) -> Change:
    """The metric goes by another name."""
    return lambda m: replace(m, name=to)


def recounted(unit: str, *, declared: bool) -> Change:
    """The metric is in another unit (see `UNITS`), and says so or not."""

    def change(m: Measurement) -> Measurement:
        if not isinstance(m.value, int | float) or m.unit is None:
            return m
        value = UNITS[m.unit, unit](float(m.value))
        return replace(m, value=value, unit=unit if declared else None)

    return change
