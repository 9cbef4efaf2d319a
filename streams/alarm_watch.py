"""What of a guard is an alarm, looked at once a second, and at once where a decision makes one or ends one.

Everything is read anew from what the guard knows, so a new owner of a partition raises and clears what its predecessor
would have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from streams.alarms import Alarms, Problem, conditions, escalations
from streams.configuration import Configuration
from streams.guard import Guard
from streams.guard_books import Books, key_of
from streams.observing import Published

SETTLED_MS: Final = 1_000
"""A partition counts from so long after its books were rebuilt: until then what waits in it is still being read."""
QUIET_MS: Final = 600_000
"""The alarm of dead letters ends when there was no new one for so long."""


class AlarmWatch:
    """Looks at a guard for `alarms`.

    `compare` is called when a partition begins to count; `clock` gives Unix ms.
    """

    def __init__(
        self,
        alarms: Alarms,
        guard: Guard,
        configuration: Configuration,
        clock: Callable[[], int],
        compare: Callable[[], None],
    ) -> None:
        self._alarms = alarms
        self._guard = guard
        self._configuration = configuration
        self._clock = clock
        self._compare = compare
        self._seen: dict[int, tuple[Books, int]] = {}
        self._counting: set[int] = set()
        self._letters = 0
        self._letters_until_ms = 0

    def look(self) -> None:
        """Bring what stands now."""
        now_ms = self._clock()
        self._look_at_partitions(now_ms)
        self._look_at_letters(now_ms)
        configuration = self._configuration
        self._alarms.say(Problem.DESCRIPTOR_REFUSED, configuration.refused)
        self._alarms.say(Problem.RESTART_NEEDED, ", ".join(configuration.restart_for) or None)
        self._alarms.say(Problem.MAP_REFUSED, self._guard.maps.refused)
        due = [f"{one.contract_id}: {why}" for one in self._guard.support_health.look() for why in one.due.values()]
        self._alarms.say(Problem.REFRESH_DUE, "; ".join(due) or None)

    def _look_at_partitions(self, now_ms: int) -> None:
        owned = self._guard.rebuilt() if self._guard.why_cut_off() is None else {}  # others may own them by now
        for partition in [p for p, (books, _) in self._seen.items() if owned.get(p) is not books]:
            del self._seen[partition]
            self._counting.discard(partition)
            self._alarms.give_up(partition)
        statuses = self._guard.statuses
        for partition, books in owned.items():
            _, since_ms = self._seen.setdefault(partition, (books, now_ms))
            status = statuses.get(partition)
            if status is None or now_ms - since_ms < SETTLED_MS:
                continue
            waiting = ((key_of(one), one.said[1]) for one in books.open.escalated() if one.said is not None)
            application = self._alarms.application
            found = {**escalations(waiting, partition, application), **conditions(status, application)}
            for problem, standing in found.items():
                self._alarms.hold(problem, partition, standing)
            if partition not in self._counting:
                self._counting.add(partition)
                self._compare()

    def _look_at_letters(self, now_ms: int) -> None:
        letters = self._guard.counters.dead_letters
        if letters.total() > self._letters:
            self._letters, self._letters_until_ms = letters.total(), now_ms + QUIET_MS
        topics = ", ".join(sorted(letters))
        self._alarms.say(Problem.DEAD_LETTERS, topics if now_ms < self._letters_until_ms else None)


class EscalationBell:
    """Observer of decisions: rings where one makes an escalation, or may end one."""

    def __init__(self) -> None:
        self.ring: Callable[[], None] = lambda: None

    def published(self, published: Published) -> None:
        """A decision stands."""
        if published.decision.action == "ESCALATE" or published.attempt > 1:
            self.ring()
