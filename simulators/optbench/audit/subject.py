"""What is audited, and what a check says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from simulators.optbench.candidates import case_of
from simulators.optbench.model import Case, Sealed

Render = Callable[[Sealed], Case]


@dataclass(frozen=True, slots=True)
class Subject:
    """A suite, and what makes its episodes.

    `cases`: in the suite's order. `seed`: of what families do to a base item. `render`: the episode of a sealed part,
    as whoever made the suite renders it.
    """

    cases: Sequence[Case]
    seed: int
    render: Render = case_of


@dataclass(frozen=True, slots=True)
class Check:
    """What one check did: `told` in one line, `counts` as numbers, and what fails, a line each; none: it passes."""

    name: str
    told: str
    counts: Mapping[str, int | float] = field(default_factory=dict)
    failures: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing fails."""
        return not self.failures
