"""What a recording holds, whatever its format: reports and when they arrived, and a tally of what was found on the way.

A reader turns rows into `Arrival`s on the recording's own clocks. It never improves on a row: what cannot be read is
counted with its place and the reason, and what is no measurement says so in its quality.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from xapp.model import Report
from xapp.times import time_fault

_INTEGER: Final = re.compile(r"[+-]?[0-9]+\Z")
_EXACT: Final = 2**53  # above it a JSON number is not exact



class UnreadableRecording(ValueError):
    """Nothing in a file can be read: the message names the file and the reason."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One report and when it arrived, Unix ms on the recorded clock."""

    report: Report
    ingest_time_ms: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """One place that could not be read. `line` counts from 1."""

    file: str
    line: int
    reason: str


@dataclass(slots=True)
class Tally:
    """What reading found. `findings`: named faults of the recording itself → how often."""

    rows: int = 0
    reports: int = 0
    observations: int = 0
    unreadable: list[Unreadable] = field(default_factory=list)
    findings: Counter[str] = field(default_factory=Counter)

    def count(self, report: Report) -> None:
        """Note one report that was read."""
        self.reports += 1
        self.observations += len(report.measurements)


class ArrivalClock:
    """The clock of arrivals where a recording has none: the latest time seen so far.

    It never runs backwards, so a row with an earlier time than its predecessor is one that arrives late.
    """

    __slots__ = ("_now_ms",)

    def __init__(self) -> None:
        self._now_ms = 0

    def arrival(self, time_ms: int) -> int:
        """When a row arrives that says `time_ms`, Unix ms."""
        self._now_ms = max(self._now_ms, time_ms)
        return self._now_ms


def number(text: str) -> int | float | None:
    """The finite number a cell holds; None for a blank one and for anything that is no finite number."""
    text = text.strip()
    try:
        value = float(text)
        if _INTEGER.match(text) and abs(value) < _EXACT:
            return int(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def unix_ms(text: str, what: str) -> int:
    """A time in Unix ms. Raises ValueError, with the likely unit, for one that cannot be."""
    value = number(text)
    if not isinstance(value, int):
        raise ValueError(f"{what}: {text.strip()[:40]!r} is no integer")
    fault = time_fault(value)
    if fault is None:
        return value
    raise ValueError(f"{what}: {fault}")
