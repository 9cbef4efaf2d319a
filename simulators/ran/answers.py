"""Answers to requests: a source is asked again, once, when its back-off is over and it is there again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from simulators.ran.emission import Emission
from simulators.ran.reports import Reporter


@dataclass(frozen=True, slots=True)
class _Request:
    source: str
    not_before_ms: int
    until_ms: int


class Answering:
    """Pending requests (`wirelessops.request/1`) of one network."""

    def __init__(self, reporter: Reporter, is_out: Callable[[str], bool]) -> None:
        self._reporter = reporter
        self._is_out = is_out
        self._pending: list[_Request] = []

    def receive(self, request: Mapping[str, Any], patience_ms: int) -> None:
        """Take a request; one without a deadline is kept `patience_ms` beyond its back-off.

        Raises KeyError, TypeError or ValueError for one that cannot be read.
        """
        not_before = int(request["issued_at_ms"]) + int(request["after_ms"])
        deadline = request["deadline_ms"]
        until = not_before + patience_ms if deadline is None else int(deadline)
        self._pending.append(_Request(str(request["source"]), not_before, until))

    def due(self, now_ms: int) -> list[Emission]:
        """Fresh reports for the requests whose back-off is over and whose source is up; each source reports once."""
        self._pending = [r for r in self._pending if r.until_ms >= now_ms]
        ready = [r for r in self._pending if r.not_before_ms <= now_ms and not self._is_out(r.source)]
        self._pending = [r for r in self._pending if r not in ready]
        return [emission for name in sorted({r.source for r in ready}) for emission in self._reporter.of_source(name)]
