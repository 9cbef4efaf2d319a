"""Sources that fall silent, say so, and come back."""

from __future__ import annotations

from collections.abc import Sequence

from simulators.faults.base import Fault, Kind, Scope
from simulators.ran.emission import Emission, SourceNote
from xapp.model import SourceState


class Brownout(Fault):
    """The sources announce an outage with its retry terms, send nothing, and announce that they are up again."""

    kind: Kind = "brownout"

    def __init__(self, scope: Scope, *, harmful: bool, sources: Sequence[str], state: SourceState) -> None:
        super().__init__(scope, harmful=harmful)
        self._sources = tuple(sources)
        self._state = state

    def begin(self) -> list[Emission]:
        return self._notes(self._state, self.scope.start_ms)

    def take(self, emission: Emission, now_ms: int) -> list[Emission]:
        return []

    def silences(self, source: str) -> bool:
        return source in self._sources

    def end(self) -> list[Emission]:
        return self._notes(SourceState("up"), self.scope.end_ms)

    def _notes(self, state: SourceState, at_ms: int) -> list[Emission]:
        return [Emission(self.scope.cell, "kpm", SourceNote(source, state, at_ms)) for source in self._sources]
