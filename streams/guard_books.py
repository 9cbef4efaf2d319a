"""What the owner of one partition knows: its regions, its open proposals, what was answered, how far all is read."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aiokafka import TopicPartition

from streams.asking import Asked
from streams.deciding import NEVER_MS, History, Read, RegionState, Resume
from streams.guard_restore import ANSWERED_LIMIT, Past, ProposalKey, Said, Start
from streams.left_open import Left, LeftOpen
from streams.messages import Evidence
from streams.open_proposals import OpenProposal, OpenProposals
from streams.settings import GuardSettings
from streams.switching import Switches
from streams.topics import NoRegion, partition_of, region_of
from xapp.chain import Chain
from xapp.contract import Contract
from xapp.support.terms import Terms

KEEP_OPEN_EVERY: Final = 5_000
"""Decisions after which what is open is kept anew, while the oldest of it was read as many decisions ago."""
_NOTHING: Final = Left(0, NEVER_MS)


class Books:
    """The books of one partition, taken up from `past`. `partitions`: all there are; `terms`: of support, by contract.

    `sequence` and `chain` are those of the next decision and record; `decided_at_ms`: of the decision before, where
    there is one; `next` the next offset of each input;
    `reported`: what was read before that was told by dead letters already.
    """

    def __init__(
        self,
        partition: int,
        partitions: Sequence[int],
        settings: GuardSettings,
        contracts: Mapping[str, Contract],
        past: Past,
        start: Start,
        terms: Mapping[str, Terms] | None = None,
    ) -> None:
        last = past.last
        self.partition = partition
        self.states: dict[str, RegionState] = {}
        self.open = OpenProposals()
        self.next = dict(start.positions)
        self.reported = Read(0, 0, 0) if last is None else last.read
        self.sequence = 0 if last is None else last.sequence + 1
        self.chain: Chain = past.chain
        self.switches = Switches(past.switches)
        self.answered_queries = start.answered_queries
        self._partitions = partitions
        self._topics = settings.topics
        self._contracts = contracts
        self._terms = terms
        self._history = History(settings.history_ms, settings.history_count)
        self._spacing_ms = round(1000 / settings.retry_budget_per_s)
        self._warm_at = start.warm_at
        self._reread_to = start.reread_to
        self._first_sequence = 0 if last is None else last.resume.sequence
        left = past.left
        self._left = left if left is not None and left.proposals <= start.reread_to else None
        self._kept_sequence = 0 if left is None else left.sequence
        self.decided_at_ms = 0 if last is None else last.decided_at_ms
        self._open_keys: dict[ProposalKey, str] = {}
        self._answered: OrderedDict[ProposalKey, str] = OrderedDict()
        self._interim: dict[ProposalKey, Said] = {}
        self._began_ms: dict[ProposalKey, int] = {}
        self._taken_up: dict[ProposalKey, str] = {}
        self._asked: deque[tuple[int, str, Asked]] = deque()
        self.open_bytes = 0
        self._take_up(past)

    @property
    def warm(self) -> bool:
        """Whether the evidence of the partition is rebuilt: nothing is decided before."""
        return all(self.next[tp] >= offset for tp, offset in self._warm_at.items())

    @property
    def reread(self) -> bool:
        """Whether the proposals are read again that former owners may have left open."""
        position: int = self.next[self.place(self._topics.proposals)]
        return position >= self._reread_to

    def place(self, topic: str) -> TopicPartition:
        """This partition of a topic."""
        return TopicPartition(topic, self.partition)

    def region_of(self, message: Any) -> str:
        """The region that a message is about. Raises NoRegion where its key names none, or one of another partition."""
        region = region_of(message.key)
        expected = partition_of(region, self._partitions)
        if message.partition != expected:
            raise NoRegion(f"region {region!r} belongs to partition {expected}: write it there (murmur2 of the key)")
        return region

    def state(self, region: str) -> RegionState:
        """The state of a region, made when first asked for."""
        state = self.states.get(region)
        if state is None:
            state = self.states[region] = self._new_state(region)
        return state

    def glance(self, region: str) -> RegionState:
        """The state of a region; an empty one, not kept, where nothing of it was read yet."""
        held = self.states.get(region)
        return self._new_state(region) if held is None else held

    def keep(self, state: RegionState) -> None:
        """Keep the state of a region of which something was read."""
        self.states.setdefault(state.region, state)

    def reach(self, tp: TopicPartition, offset: int) -> None:
        """All of an input below the offset is taken in."""
        self.next[tp] = max(self.next[tp], offset)
        if tp.topic == self._topics.telemetry:
            self.note_asked_before(offset)
        elif tp.topic == self._topics.proposals and offset >= self._reread_to:
            self._taken_up.clear()

    def read(self) -> Read:
        """How far the inputs are taken in."""
        names = (self._topics.telemetry, self._topics.outcomes, self._topics.answers)
        return Read(*(self.next[self.place(name)] for name in names))

    def evidence(self) -> Evidence:
        """The same, as a message says it."""
        read = self.read()
        return Evidence(
            topic=self._topics.telemetry,
            partition=self.partition,
            offset=read.telemetry,
            outcomes=read.outcomes,
            answers=read.answers,
        )

    def resume(self) -> Resume:
        """Where a next owner would go on."""
        first = self.open.first()
        if first is None:
            return Resume(self.next[self.place(self._topics.proposals)], self.sequence)
        return Resume(first.message.offset, first.since_sequence)

    def known(self, key: ProposalKey) -> str | None:
        """The digest of a proposal that is open or was answered."""
        return self._open_keys.get(key) or self._answered.get(key) or self._taken_up.get(key)

    def enter(self, proposal: OpenProposal) -> None:
        """A proposal was read: it is open, and goes on where a former owner left it."""
        key = key_of(proposal)
        proposal.since_sequence = self.sequence
        if proposal.message.offset < self._reread_to:
            proposal.since_sequence = self._first_sequence
        before = self._interim.pop(key, None)
        self._began_ms.pop(key, None)
        if before is not None and before.digest == proposal.document.digest:
            proposal.attempt, proposal.said = before.attempt, (before.action, before.codes)
        proposal.attempt = max(proposal.attempt, self._left_at(proposal.message.offset).attempt)
        self._open_keys[key] = proposal.document.digest
        self.open_bytes += proposal.size
        self.open.add(proposal)

    def began_ms(self, key: ProposalKey, offset: int, now_ms: int) -> int:
        """When a former owner first decided on the proposal that is taken up at an offset; now where none did."""
        return min(now_ms, self._began_ms.get(key, now_ms), self._left_at(offset).began_ms)

    def is_settled(self, offset: int) -> bool:
        """Whether a former owner kept that the proposal at an offset needs no decision any more."""
        return self._left is not None and offset < self._left.proposals and offset not in self._left.open

    def left_open(self, sequence: int) -> LeftOpen | None:
        """What is to be kept before the decision of `sequence`; None while a new owner need not read far without it."""
        behind = sequence - self.resume().sequence
        proposals = self.next[self.place(self._topics.proposals)]
        if min(behind, sequence - self._kept_sequence) < KEEP_OPEN_EVERY or proposals < self._reread_to:
            return None
        held = {one.message.offset: Left(one.attempt, one.began_ms) for one in self.open}
        return LeftOpen(proposals, sequence, self.decided_at_ms, held)

    def note_kept(self, left: LeftOpen) -> None:
        """It stands in the log."""
        self._kept_sequence = left.sequence

    def close(self, proposal: OpenProposal) -> None:
        """A proposal has its final decision."""
        key = key_of(proposal)
        self.open.close(proposal)
        self.open_bytes -= proposal.size
        del self._open_keys[key]
        self._note_answered(key, proposal.document.digest)

    def note_asked_before(self, offset: int) -> None:
        """Requests that former owners made before telemetry of this offset was read."""
        while self._asked and self._asked[0][0] <= offset:
            _, region, asked = self._asked.popleft()
            self.state(region).asks.note(asked)

    def _left_at(self, offset: int) -> Left:
        return _NOTHING if self._left is None else self._left.open.get(offset, _NOTHING)

    def _take_up(self, past: Past) -> None:
        for region, control in past.controls:
            self.state(region).controls.grant(control)
        for said in past.said:
            if said.final:
                self._note_answered(said.key, said.digest)
                self._interim.pop(said.key, None)
                self._began_ms.pop(said.key, None)
                if past.last is not None and said.proposal_offset >= past.last.resume.proposals:
                    self._taken_up[said.key] = said.digest  # it will be read again, however many were answered since
            else:
                self._interim[said.key] = said
                self._began_ms.setdefault(said.key, said.decided_at_ms)
            if said.lease is not None:
                self.state(said.key.region).controls.grant(said.lease)
            if said.asked is not None:
                self._asked.append((said.read.telemetry, said.key.region, said.asked))

    def _note_answered(self, key: ProposalKey, digest: str) -> None:
        self._answered[key] = digest
        self._answered.move_to_end(key)
        if len(self._answered) > ANSWERED_LIMIT:
            self._answered.popitem(last=False)

    def _new_state(self, region: str) -> RegionState:
        return RegionState(region, self._contracts, self._history, self._spacing_ms, self._terms)


def key_of(proposal: OpenProposal) -> ProposalKey:
    """What names a proposal within its partition."""
    return ProposalKey(proposal.region, proposal.document.proposal_id)
