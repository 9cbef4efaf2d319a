"""Verdicts and figures, and how those of several partitions and phases add up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

Verdict = Literal["holds", "unknown", "broken"]

_WORSE: Final[Mapping[Verdict, int]] = {"holds": 0, "unknown": 1, "broken": 2}
_EXAMPLES: Final = 5


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of several; of none: unknown, for nothing was looked at."""
    found = sorted(verdicts, key=_WORSE.__getitem__)
    return found[-1] if found else "unknown"


@dataclass(slots=True)
class Findings:
    """Counts by name, the laws that were broken with the first few examples of each, and what could not be judged.

    `laws`: names of counts that must be zero. `needed`: names of counts that must not be zero, lest a law hold only
    because nothing happened.
    """

    laws: tuple[str, ...]
    needed: tuple[str, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    unjudged: list[str] = field(default_factory=list)

    def count(self, name: str, number: int = 1) -> None:
        """Add to a count."""
        self.counts[name] = self.counts.get(name, 0) + number

    def broken(self, law: str, example: str) -> None:
        """A law does not hold once."""
        assert law in self.laws, law
        self.count(law)
        kept = self.examples.setdefault(law, [])
        if len(kept) < _EXAMPLES:
            kept.append(example)

    def unknown(self, why: str) -> None:
        """Something could not be judged."""
        if why not in self.unjudged:
            self.unjudged.append(why)

    def add(self, other: Findings) -> None:
        """Take in the findings of another partition or phase."""
        self.laws = tuple(dict.fromkeys((*self.laws, *other.laws)))
        self.needed = tuple(dict.fromkeys((*self.needed, *other.needed)))
        for name, number in other.counts.items():
            self.count(name, number)
        for law, examples in other.examples.items():
            kept = self.examples.setdefault(law, [])
            kept += examples[: _EXAMPLES - len(kept)]
        for why in other.unjudged:
            self.unknown(why)

    def verdict(self) -> Verdict:
        """Broken where a law is; else unknown where something was not judged, or nothing happened to break it."""
        if any(self.counts.get(law) for law in self.laws):
            return "broken"
        if self.unjudged or any(not self.counts.get(name) for name in self.needed):
            return "unknown"
        return "holds"
