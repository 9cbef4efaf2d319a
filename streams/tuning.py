"""What may change of a running guard: one frozen value, read anew whenever it matters, and replaced as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final, Self

from streams.settings import GuardSettings, LogLevel


@dataclass(frozen=True, slots=True)
class Tuning:
    """The settings of the same names (`streams.settings.GuardSettings`) that a change reaches without a restart.

    `hold_ms` and `escalation_ms` count for proposals that are read from now on.
    """

    hold_ms: int
    escalation_ms: int
    queue_limit: int
    log_level: LogLevel

    @classmethod
    def of(cls, settings: GuardSettings) -> Self:
        """As the settings say."""
        return cls(**{name: getattr(settings, name) for name in LIVE})


LIVE: Final = tuple(field.name for field in fields(Tuning))
"""Names of the settings that may change while the guard runs."""


class LiveTuning:
    """The tuning in force. Whoever is given it reads `now` each time, and keeps no copy."""

    def __init__(self, tuning: Tuning) -> None:
        self._now = tuning
        self._told: list[Callable[[Tuning], None]] = []

    @property
    def now(self) -> Tuning:
        """The tuning in force."""
        return self._now

    def tell(self, listener: Callable[[Tuning], None]) -> None:
        """Call it with each new tuning."""
        self._told.append(listener)

    def change(self, tuning: Tuning) -> None:
        """From now on this one is in force."""
        self._now = tuning
        for listener in self._told:
            listener(tuning)
