"""The rule of support (sections 5.1, 5.2): repeated exposure in the reference, then comparable exposure at runtime.

The one place of the rule, for live control and for the study.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

State = Literal["NOT_APPLICABLE", "REFERENCE_ABSTAIN", "RUNTIME_ABSTAIN", "SUPPORTED"]

SEVERITY: Final[tuple[State, ...]] = ("NOT_APPLICABLE", "SUPPORTED", "RUNTIME_ABSTAIN", "REFERENCE_ABSTAIN")
"""The mildest first: of many that are asked, the worst counts."""


@dataclass(frozen=True, slots=True)
class Rule:
    """At least `min_visits` in at least `min_partitions` of `partitions` partitions. Raises ValueError otherwise than
    1 ≤ min_partitions ≤ partitions and min_visits ≥ 1.
    """

    min_visits: int = 12
    min_partitions: int = 14
    partitions: int = 15

    def __post_init__(self) -> None:
        if not (self.min_visits >= 1 and 1 <= self.min_partitions <= self.partitions):
            raise ValueError("min_visits must be at least 1, and min_partitions from 1 to partitions")

    def adequate(self, visits: Sequence[int]) -> tuple[bool, ...]:
        """Per partition whether it has enough visits. Raises ValueError unless there are `partitions` of them."""
        if len(visits) != self.partitions:
            raise ValueError(f"visits of {len(visits)} partitions: the rule is over {self.partitions}")
        return tuple(count >= self.min_visits for count in visits)

    def joint(self, reference: Sequence[int], current: Sequence[int]) -> tuple[bool, ...]:
        """Per partition whether reference and current both have enough."""
        return tuple(a and b for a, b in zip(self.adequate(reference), self.adequate(current), strict=True))

    def judge(self, reference: Sequence[int] | None, current: Sequence[int]) -> State:
        """The state of one component: the reference gate first, then the runtime gate. None: not in the reference."""
        if reference is None or sum(self.adequate(reference)) < self.min_partitions:
            return "REFERENCE_ABSTAIN"
        return "SUPPORTED" if sum(self.joint(reference, current)) >= self.min_partitions else "RUNTIME_ABSTAIN"


def worst(states: Sequence[State]) -> State:
    """The worst of the states; NOT_APPLICABLE where nothing was asked."""
    return max(states, key=SEVERITY.index, default="NOT_APPLICABLE")
