"""Proposals of one partition that have no final decision yet: which is decided next, and what wakes the others.

Pure: t is an argument. A proposal is *ready* (to be decided), or it *waits* for one of its keys to be touched or for
its time. Those nearest their deadline come first; those whose deadline has passed, or will have before a batch is
published, get what is left of a batch, at least a quarter, so that neither keeps the other out.
"""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from streams.deciding import NEVER_MS, ProposalDocument


@dataclass(slots=True, eq=False)
class OpenProposal:
    """One proposal without a final decision.

    `message`: its Kafka message. `until_ms`: when it gets its final decision at the latest, but while it is escalated:
    then `escalated_until_ms`, for a person is slower than evidence; and `respite_ms` where it was escalated before.
    `escalated`: whether it was when last decided. `since_sequence`: all decisions on it have at least this sequence.
    `attempt`: decisions published so far; `said`: what the last of them said (action, blocking codes); `answered`: an
    operator answered since. `keys` and `wake_ms`: what it waits for. `began_ms`: when it was first decided, at the
    earliest.
    """

    message: Any
    region: str
    document: ProposalDocument
    deadline_ms: int | None
    until_ms: int
    escalated_until_ms: int
    respite_ms: int = 0
    escalated: bool = False
    since_sequence: int = 0
    attempt: int = 0
    said: tuple[str, frozenset[str]] | None = None
    answered: bool = False
    began_ms: int = NEVER_MS
    keys: frozenset[Hashable] = frozenset()
    wake_ms: int = NEVER_MS
    ready: bool = field(default=False)

    @property
    def size(self) -> int:
        """Bytes of the message."""
        return len(self.message.value or b"")


class OpenProposals:
    """All open proposals of a partition, by their offset."""

    def __init__(self) -> None:
        self._open: OrderedDict[int, OpenProposal] = OrderedDict()
        self._ready: list[tuple[int, int, OpenProposal]] = []
        self._passed: list[tuple[int, int, OpenProposal]] = []
        self._timers: list[tuple[int, int, OpenProposal]] = []
        self._waiting: defaultdict[Hashable, set[OpenProposal]] = defaultdict(set)
        self._turn = count()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def ready(self) -> int:
        """How many are to be decided."""
        return len(self._ready) + len(self._passed)

    @property
    def waiting(self) -> int:
        """How many wait for something."""
        return len(self._open) - self.ready

    def waiting_by_action(self) -> Counter[str]:
        """How many wait under which action that was last said of them."""
        found: Counter[str] = Counter()
        for proposal in self._open.values():
            if not proposal.ready and proposal.said is not None:
                found[proposal.said[0]] += 1
        return found

    def __iter__(self) -> Iterator[OpenProposal]:
        """All, by offset."""
        return iter(self._open.values())

    def escalated(self) -> Iterator[OpenProposal]:
        """Those that wait for a person, as was last said of them, oldest first."""
        return (one for one in self._open.values() if one.said is not None and one.said[0] == "ESCALATE")

    def add(self, proposal: OpenProposal) -> None:
        """A proposal was read; offsets come in order."""
        self._open[proposal.message.offset] = proposal
        self._make_ready(proposal)

    def first(self) -> OpenProposal | None:
        """The open proposal with the lowest offset."""
        return next(iter(self._open.values()), None)

    def touch(self, keys: Iterable[Hashable]) -> None:
        """What these keys name has changed: whoever waits for it is decided again."""
        for key in keys:
            for proposal in tuple(self._waiting.get(key, ())):
                self._make_ready(proposal)

    def note_answer(self, region: str, proposal_id: str) -> None:
        """An operator answered: the next decision on that proposal is told, also where it is what it was."""
        for proposal in self._open.values():
            if (proposal.region, proposal.document.proposal_id) == (region, proposal_id):
                proposal.answered = True

    def wake_due(self, t_ms: int) -> None:
        """Those whose time has come are decided again."""
        while self._timers and self._timers[0][0] <= t_ms:
            wake_ms, _, proposal = heapq.heappop(self._timers)
            if not proposal.ready and proposal.wake_ms == wake_ms and proposal.message.offset in self._open:
                self._make_ready(proposal)

    def next_wake_ms(self) -> int | None:
        """When `wake_due` may next find one, Unix ms; None: nothing waits for a time."""
        return self._timers[0][0] if self._timers else None

    def take(self, number: int, t_ms: int, lead_ms: int = 0) -> list[OpenProposal]:
        """The next to decide at t, at most `number`: they are out of the queue until `wait`, `again` or `close`.

        `lead_ms`: how long a batch takes. Who has no more time than that counts as passed: else, under overload, those
        that are just missed would be decided first for ever, and nobody would be in time.
        """
        while self._ready and self._ready[0][0] < t_ms + lead_ms:
            heapq.heappush(self._passed, heapq.heappop(self._ready))
        most = number - min(len(self._passed), max(number // 4, number - len(self._ready)))
        taken = [heapq.heappop(self._ready)[2] for _ in range(min(most, len(self._ready)))]
        taken += [heapq.heappop(self._passed)[2] for _ in range(min(number - len(taken), len(self._passed)))]
        return taken

    def again(self, proposal: OpenProposal) -> None:
        """To be decided in a later batch: it was taken, and not decided."""
        proposal.ready = False
        self._make_ready(proposal)

    def wait(self, proposal: OpenProposal, keys: frozenset[Hashable], wake_ms: int) -> None:
        """Decide it again when a key is touched, or at `wake_ms`."""
        proposal.ready, proposal.keys, proposal.wake_ms = False, keys, wake_ms
        for key in keys:
            self._waiting[key].add(proposal)
        heapq.heappush(self._timers, (wake_ms, next(self._turn), proposal))

    def set_back(self, by_ms: int) -> None:
        """The clock was set back: who has no deadline waits as long as it would have, and all are decided again."""
        for proposal in self._open.values():
            if proposal.deadline_ms is None:
                proposal.until_ms -= by_ms
                proposal.escalated_until_ms -= by_ms
                proposal.respite_ms -= by_ms
            self._make_ready(proposal)

    def close(self, proposal: OpenProposal) -> None:
        """It has its final decision."""
        self._forget_keys(proposal)
        del self._open[proposal.message.offset]

    def _make_ready(self, proposal: OpenProposal) -> None:
        if proposal.ready:
            return
        self._forget_keys(proposal)
        proposal.ready, proposal.wake_ms = True, NEVER_MS
        due_ms = proposal.until_ms if proposal.deadline_ms is None else proposal.deadline_ms
        heapq.heappush(self._ready, (due_ms, next(self._turn), proposal))

    def _forget_keys(self, proposal: OpenProposal) -> None:
        for key in proposal.keys:
            waiting = self._waiting[key]
            waiting.discard(proposal)
            if not waiting:
                del self._waiting[key]
        proposal.keys = frozenset()
