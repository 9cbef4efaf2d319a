"""A second source that reads something else."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from simulators.faults.base import Fault, Kind, Scope, rewritten
from simulators.ran.emission import Emission
from xapp.model import Report


class Disagree(Fault):
    """The scope's sources read `offset` more than there is, in the named metrics."""

    kind: Kind = "conflict"

    def __init__(self, scope: Scope, *, harmful: bool, names: Collection[str], offset: float) -> None:
        super().__init__(scope, harmful=harmful)
        self._names = frozenset(names)
        self._offset = offset

    def take(self, emission: Emission, now_ms: int) -> list[Emission]:
        if not isinstance(emission.message, Report):
            return [emission]
        return [
            rewritten(
                emission,
                [
                    replace(m, value=round(float(m.value) + self._offset, 1))
                    if m.name in self._names and isinstance(m.value, int | float) and self.scope.touches(m)
                    else m
                    for m in emission.message.measurements
                ],
            )
        ]
