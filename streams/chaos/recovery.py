"""How long deciding stood still after a fault, and how fast a backlog was worked off. Pure, from the topics' times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from streams.chaos.history import Fault, Key, PartitionHistory, read_decision, read_object, region_name


class Times:
    """When the proposals of each partition were appended, first decided, and finally decided."""

    def __init__(self, histories: Iterable[PartitionHistory] = ()) -> None:
        self.asked: dict[int, dict[Key, int]] = {}
        self.first: dict[int, dict[Key, int]] = {}
        self.final: dict[int, dict[Key, int]] = {}
        for history in histories:
            self.take(history)

    def take(self, history: PartitionHistory) -> None:
        """One more partition."""
        asked = self.asked.setdefault(history.partition, {})
        first = self.first.setdefault(history.partition, {})
        final = self.final.setdefault(history.partition, {})
        for message in history.proposals:
            document = read_object(message.value)
            if document is not None and isinstance(document.get("proposal_id"), str):
                asked.setdefault((region_name(message.key), document["proposal_id"]), message.timestamp_ms)
        for message in history.control:
            decision = read_decision(message)
            if decision is not None:
                first.setdefault(decision.key, message.timestamp_ms)
                if decision.final:
                    final.setdefault(decision.key, message.timestamp_ms)

    def recovery_ms(self, fault: Fault) -> int | None:
        """From the fault until every partition has given a final decision on a proposal appended after the fault.

        None where a partition never did, or had no such proposal.
        """
        slowest = 0
        for partition, asked in self.asked.items():
            final = self.final[partition]
            ends = [final[p] for p, at_ms in asked.items() if at_ms >= fault.from_ms and p in final]
            if not ends:
                return None
            slowest = max(slowest, min(ends) - fault.from_ms)
        return slowest if self.asked else None

    def catch_up(self, fault: Fault) -> tuple[int, int] | None:
        """How many proposals had piled up while nothing decided, and how many ms it took to decide each once.

        The backlog: appended from the fault on, undecided when the first decision after the end of the fault came.
        None where nothing piled up, or some of it was never decided.
        """
        first = [at_ms for found in self.first.values() for at_ms in found.values() if at_ms >= fault.until_ms]
        if not first:
            return None
        begins = min(first)
        ends = [
            self.first[partition].get(key)
            for partition, asked in self.asked.items()
            for key, at_ms in asked.items()
            if fault.from_ms <= at_ms < begins and self.first[partition].get(key, begins) >= begins
        ]
        decided = [at_ms for at_ms in ends if at_ms is not None]
        if not decided or len(decided) < len(ends):
            return None
        return len(decided), max(decided) - begins


def quantile(values: Sequence[int], share: float) -> int | None:
    """The smallest value that at least `share` of the values do not exceed; None of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None
