"""Reports that are older than they look, come late, or come in the wrong order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from simulators.faults.base import Fault, Kind, Scope
from simulators.ran.emission import Emission
from xapp.model import Report


class Freeze(Fault):
    """Each source repeats its first report of the window, under its own event time and a new id."""

    kind: Kind = "freshness"

    def __init__(self, scope: Scope, *, harmful: bool) -> None:
        super().__init__(scope, harmful=harmful)
        self._frozen: dict[tuple[str, str], Report] = {}

    def take(self, emission: Emission, now_ms: int) -> list[Emission]:
        if not isinstance(emission.message, Report):
            return [emission]
        report = emission.message
        first = self._frozen.setdefault((emission.source, emission.service), report)
        return [replace(emission, message=replace(first, report_id=report.report_id))]


class Delay(Fault):
    """Every message comes `delay_ms` late; a clock that is `ahead_ms` fast (or slow) stamps it."""

    kind: Kind = "freshness"

    def __init__(self, scope: Scope, *, harmful: bool, delay_ms: int = 0, ahead_ms: int = 0) -> None:
        super().__init__(scope, harmful=harmful)
        self._delay_ms = delay_ms
        self._ahead_ms = ahead_ms

    def take(self, emission: Emission, now_ms: int) -> list[Emission]:
        stamped = replace(
            emission, message=replace(emission.message, event_time_ms=emission.message.event_time_ms + self._ahead_ms)
        )
        if self._delay_ms == 0:
            return [stamped]
        self._held.append((now_ms + self._delay_ms, stamped))
        return []


class Reorder(Fault):
    """Each report takes its own way: one of `delays_ms`, drawn from the seed, so that new ones overtake old ones."""

    kind: Kind = "freshness"

    def __init__(self, scope: Scope, *, harmful: bool, delays_ms: Sequence[int], seed: int) -> None:
        super().__init__(scope, harmful=harmful)
        self._delays_ms = tuple(delays_ms)
        self._rng = np.random.default_rng([seed, 2])

    def take(self, emission: Emission, now_ms: int) -> list[Emission]:
        delay = self._delays_ms[int(self._rng.integers(len(self._delays_ms)))]
        if delay == 0:
            return [emission]
        self._held.append((now_ms + delay, emission))
        return []
