"""What a partition's owner keeps of its open proposals while an old one of them pins `resume` (pure).

Without it a new owner reads every decision since the oldest open proposal, minutes of them, to know which are answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
from pydantic import ValidationError

from streams.sealed_messages import OPEN_FORMAT, OpenMessage


class Left(NamedTuple):
    """One open proposal: decisions published on it so far, and when the first was made at the earliest, Unix ms."""

    attempt: int
    began_ms: int


@dataclass(frozen=True, slots=True)
class LeftOpen:
    """How a partition stood before the decision of `sequence`: of the proposals below offset `proposals` those in
    `open` had no final decision yet. `decided_at_ms`: of the decision before; it tells whether this is of that log.
    """

    proposals: int
    sequence: int
    decided_at_ms: int
    open: Mapping[int, Left]

    def document(self, partition: int) -> bytes:
        """What `controls` keeps of it, unsigned (`OpenMessage`)."""
        return orjson.dumps(
            {
                "format": OPEN_FORMAT,
                "partition": partition,
                "proposals": self.proposals,
                "sequence": self.sequence,
                "decided_at_ms": self.decided_at_ms,
                "open": [[offset, *left] for offset, left in self.open.items()],
            }
        )


def read_left_open(document: Mapping[str, Any], partition: int) -> LeftOpen | None:
    """What `controls` keeps; None for what is none, or is another partition's."""
    if document.get("format") != OPEN_FORMAT:
        return None
    try:
        kept = OpenMessage.model_validate(document)
    except ValidationError:
        return None
    if kept.partition != partition:
        return None
    left = {offset: Left(attempt, began_ms) for offset, attempt, began_ms in kept.open}
    return LeftOpen(kept.proposals, kept.sequence, kept.decided_at_ms, left)
