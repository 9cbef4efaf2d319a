"""What leaves a node: a report or a note about a source, with the cell and the service it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from xapp.model import Report, SourceState

Service = Literal["kpm", "mobility", "policy"]
"""Subscriptions of a node: performance of its users (E2SM-KPM), their RSRP (E2SM-RC style), announced policies (A1)."""


@dataclass(frozen=True, slots=True)
class SourceNote:
    """What a source says of itself."""

    source: str
    state: SourceState
    event_time_ms: int


@dataclass(frozen=True, slots=True)
class Emission:
    """One message on its way from a node. `cell` is the cell's id on the wire."""

    cell: str
    service: Service
    message: Report | SourceNote

    @property
    def source(self) -> str:
        return self.message.source
