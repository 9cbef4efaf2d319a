"""What the guard counts. Totals since the start of the service."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(slots=True)
class Counters:
    """Totals. `repeated_reports` and `repeated_proposals`: same id, same content, dropped; `unknown_keys`: ignored;
    `redecided`: decided again because an APPLY came too late; `interim`: decisions that were not final; `fenced`,
    `reopened`: partitions lost to another worker, and taken up again after a failure. `dead_letters` by the topic of
    the message that could not be used; `observer_failures` by the class of the observer.
    """

    telemetry_messages: int = 0
    observations: int = 0
    repeated_reports: int = 0
    unknown_keys: int = 0
    proposals: int = 0
    repeated_proposals: int = 0
    queries: int = 0
    requests: int = 0
    redecided: int = 0
    interim: int = 0
    fenced: int = 0
    reopened: int = 0
    decisions: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    dead_letters: Counter[str] = field(default_factory=Counter)
    observer_failures: Counter[str] = field(default_factory=Counter)

    def observer_failed(self, observer: str) -> None:
        """An observer raised."""
        self.observer_failures[observer] += 1

    def document(self) -> dict[str, Any]:
        """As a JSON document; dead letters are one number."""
        counts = {f.name: getattr(self, f.name) for f in fields(self)}
        named = {name: dict(count) if isinstance(count, Counter) else count for name, count in counts.items()}
        return named | {"dead_letters": self.dead_letters.total()}
