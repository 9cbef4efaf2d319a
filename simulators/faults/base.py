"""What every fault has in common: where and when it acts, and the line of reports that it acts on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from simulators.ran.emission import Emission, Service
from xapp.model import Measurement, Report

Kind = Literal["freshness", "brownout", "conflict", "schema", "none"]
KINDS: Final[tuple[Kind, ...]] = ("freshness", "brownout", "conflict", "schema", "none")

TAIL_MS: Final = 250
"""What was planned on a fault's last reports arrives within this after its end: a policy period and a little."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where and when a fault acts: one cell, in [start_ms, end_ms) of Unix time.

    `services`: the subscriptions it touches. `sources`: None means all of these. `users`: ids of the users whose
    measurements it touches, None means all.
    """

    cell: str
    services: frozenset[Service]
    start_ms: int
    end_ms: int
    sources: frozenset[str] | None = None
    users: frozenset[str] | None = None

    def covers(self, emission: Emission) -> bool:
        """Whether a message comes from where this fault acts; time aside."""
        return (
            emission.cell == self.cell
            and emission.service in self.services
            and (self.sources is None or emission.source in self.sources)
        )

    def touches(self, measurement: Measurement) -> bool:
        """Whether a measurement is about one of the fault's users."""
        if self.users is None:
            return True
        parts = (measurement.subject or "").split("/")
        return any(part.startswith("ue:") and part[3:] in self.users for part in parts)


class Fault:
    """A fault that passes everything unchanged: the base of the real ones. Holds what it has yet to deliver.

    `harmful`: whether a proposer that trusts the faulty reports is meant to be misled; the truth decides in the end.
    """

    kind: Kind = "none"

    def __init__(self, scope: Scope, *, harmful: bool) -> None:
        self.scope = scope
        self.harmful = harmful
        self._held: list[tuple[int, Emission]] = []

    def begin(self) -> list[Emission]:
        """What the source says when the fault sets in."""
        return []

    def take(self, emission: Emission, now_ms: int) -> list[Emission]:
        """What of a message goes through now."""
        return [emission]

    def silences(self, source: str) -> bool:
        """Whether this source cannot report while the fault lasts."""
        return False

    def ripe(self, now_ms: int) -> list[Emission]:
        """What was held back and is let go now, oldest promise first."""
        ready = sorted((held for held in self._held if held[0] <= now_ms), key=lambda held: held[0])
        self._held = [held for held in self._held if held[0] > now_ms]
        return [emission for _, emission in ready]

    def end(self) -> list[Emission]:
        """What goes out when the fault is over: the queue, in the order of measurement."""
        held, self._held = self._held, []
        return [emission for _, emission in sorted(held, key=lambda h: _event_time(h[1]))]


class FaultLine:
    """The way of all reports from the world to the wire. Feed it with `carry`, in order of time.

    `add` lets a run go on for ever: what is over is forgotten then.
    """

    def __init__(self, faults: Sequence[Fault] = ()) -> None:
        self._waiting = sorted(faults, key=lambda fault: fault.scope.start_ms)
        self._all = tuple(self._waiting)
        self._active: list[Fault] = []

    def add(self, faults: Sequence[Fault], now_ms: int) -> None:
        """Let more faults strike, from now on."""
        self._waiting = sorted([*self._waiting, *faults], key=lambda fault: fault.scope.start_ms)
        self._all = (*(fault for fault in self._all if now_ms < fault.scope.end_ms + TAIL_MS), *faults)

    def carry(self, emissions: Sequence[Emission], now_ms: int) -> list[Emission]:
        """What arrives now of what was sent now and before."""
        out: list[Emission] = []
        for fault in [f for f in self._active if f.scope.end_ms <= now_ms]:
            self._active.remove(fault)
            out += fault.end()
        while self._waiting and self._waiting[0].scope.start_ms <= now_ms:
            fault = self._waiting.pop(0)
            self._active.append(fault)
            out += fault.begin()
        for fault in self._active:
            out += fault.ripe(now_ms)
        for emission in emissions:
            passing = [emission]
            for fault in self._active:
                passing = [
                    after
                    for before in passing
                    for after in (fault.take(before, now_ms) if fault.scope.covers(before) else [before])
                ]
            out += passing
        return out

    def kind_at(self, now_ms: int, cell: str, services: frozenset[Service], users: frozenset[str]) -> Kind:
        """The kind of fault that acts, or has just ended, on the evidence about these users of a cell; `none`."""
        for fault in self._all:
            scope = fault.scope
            if (
                scope.cell == cell
                and scope.services & services
                and scope.start_ms <= now_ms < scope.end_ms + TAIL_MS
                and (scope.users is None or scope.users & users)
            ):
                return fault.kind
        return "none"

    def is_out(self, source: str) -> bool:
        """Whether a source cannot report now."""
        return any(fault.silences(source) for fault in self._active)


def rewritten(emission: Emission, measurements: Sequence[Measurement]) -> Emission:
    """The same report with other measurements."""
    assert isinstance(emission.message, Report)
    return replace(emission, message=replace(emission.message, measurements=tuple(measurements)))


def _event_time(emission: Emission) -> int:
    return emission.message.event_time_ms
