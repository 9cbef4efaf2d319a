"""A check, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from simulators.closedloop.validator.reading import Saved

LONGEST: Final = 300
"""Characters told of what is wrong: a value may be a whole document."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong: the file, the place in it (`line 7`, a member's path; empty: as a whole), and why."""

    file: str
    place: str
    why: str

    def __str__(self) -> str:
        why = self.why if len(self.why) <= LONGEST else self.why[:LONGEST] + "…"
        return f"{self.file}{' ' if self.place else ''}{self.place}: {why}"


@dataclass(frozen=True, slots=True)
class Check:
    """One of the 56.

    `says`: what holds where it passes. `reads`: the files that it sees; it is handed no others. `find`: the faults of a
    study, none where it passes. `besides`: the other checks, as `group/name`, that may fail when exactly its item is
    corrupted, since they rest on the same bytes on purpose; freeze/manifest, which covers all bytes, is understood.
    """

    name: str
    group: str
    says: str
    reads: tuple[str, ...]
    find: Callable[[Saved], Iterable[Fault]]
    besides: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """`group/name`."""
        return f"{self.group}/{self.name}"

    def faults(self, saved: Saved) -> tuple[Fault, ...]:
        """What is wrong with a study, by this check: it sees only the files that it says it reads."""
        return tuple(self.find(saved.only(self.reads)))
