"""What the clients of a running phase know between them: proposals sent, final decisions seen, and where."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from streams.chaos.history import Op, Status


def now_ms() -> int:
    """The host's clock, Unix ms."""
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class Sent:
    """A proposal on its way: its bytes until an acknowledgement, how often it was sent, what became of it."""

    number: int
    region: str
    partition: int
    sent_ms: int
    value: bytes | None
    status: Status | None = None
    times: int = 0


class Board:
    """Shared by the threads of a phase: each entry is written by one of them."""

    def __init__(self, partitions: int) -> None:
        self.sent: dict[str, Sent] = {}
        self.foreign: set[tuple[str, int, int]] = set()
        """(topic, partition, offset) of what was written to be refused."""
        self.final: dict[str, str] = {}
        """Proposal id → action of its final decision."""
        self.newest_final: list[int] = [0] * partitions
        """By partition: when the newest of the finally decided proposals had been sent."""
        self.errors: list[str] = []

    def decided(self, proposal_id: str, partition: int, action: str) -> None:
        """A final decision was seen."""
        self.final[proposal_id] = action
        sent = self.sent.get(proposal_id)
        if sent is not None:
            self.newest_final[partition] = max(self.newest_final[partition], sent.sent_ms)

    def decides_again(self, since_ms: int) -> bool:
        """Whether every partition finally decided a proposal sent since then."""
        return min(self.newest_final) >= since_ms

    def open(self) -> Sequence[str]:
        """Proposals that were acknowledged, or are under way, without a final decision yet."""
        sent = list(self.sent.items())
        return [proposal_id for proposal_id, s in sent if s.status in {None, "ok"} and proposal_id not in self.final]

    def ops(self) -> list[Op]:
        """All proposals with what became of them: without an answer nobody knows."""
        return [Op(s.region, p, s.partition, s.sent_ms, s.status or "unknown") for p, s in list(self.sent.items())]
