"""All that one partition's owner does: takes in what was read, decides, publishes, and waits for what is missing.

One turn at a time: messages that were read are taken in, then a batch is decided and published as a whole. Nothing of
the state changes while a batch is under way, so a batch that came too late can be taken back and decided again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import orjson
import structlog
from aiokafka import TopicPartition
from pydantic import ValidationError

from streams.answering import BadQuery, answer, read_query
from streams.asking import Asked
from streams.deciding import (
    History,
    NotAProposal,
    Read,
    RegionState,
    Resume,
    Stamp,
    read_proposal_bytes,
    unrecordable,
)
from streams.guard_counters import Counters
from streams.guard_reading import Lost, Reached
from streams.guard_release import Release
from streams.guard_restore import ANSWERED_LIMIT, QUESTION_MS, Past, ProposalKey, Said, Start
from streams.messages import AnswerMessage, AsOfQuery, Evidence, OutcomeMessage, ViewQuery
from streams.open_proposals import OpenProposal, OpenProposals
from streams.publishing import Late, Outgoing, Publisher, PublishError, TooLarge
from streams.settings import GuardSettings
from streams.telemetry import Undecodable
from streams.topics import NoRegion, partition_of, region_of
from streams.waking import LOOK_AGAIN_MS, touched_by, touched_by_answer, touched_by_outcome, wakes
from streams.wire import parse_object
from xapp.contract import Contract
from xapp.contract_loading import document_errors
from xapp.evidence.store import Contradiction
from xapp.model import AppliedControl, Decision

AT_ONCE: Final = 64
"""Proposals of one batch: telemetry is read again before the next, so that a flood does not let the evidence age."""
OPEN_LIMIT_MS: Final = 600_000
"""No proposal stays open for longer, whatever its deadline."""
_INTERIM_LIMIT: Final = 32
"""Interim decisions published on one proposal; after them it still waits, and gets its final one."""
_BREATHE: Final = 64
"""Messages taken in between two turns of the event loop, so that a backlog does not silence the web."""
_INBOX_BYTES: Final = 64_000_000
_INBOX_MESSAGES: Final = 50_000
_LETTERS_AT_ONCE: Final = 500
_TRIES: Final = 5
_SMOOTHING: Final = 0.3
_LONGEST_BATCH_MS: Final = 2_000
_STEP_BACK_MS: Final = 1_000
_IDLE_S: Final = 0.5
_WATCH_MS: Final = 50
_CHECKPOINT_RECORDS: Final = 1_000
_CHECKPOINT_MS: Final = 10_000

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Made:
    """A decision made on an open proposal, not published yet. `outcome` of None: nothing new to say."""

    proposal: OpenProposal
    decision: Decision
    said: tuple[str, frozenset[str]]
    final: bool
    published: bool
    asked: bool
    messages: list[Outgoing]


class Desk:
    """The owner of one partition.

    `partitions`: all there are; `clock` gives t, Unix ms; `mark` the offset up to which telemetry was there when the
    broker last answered: a proposal is decided once telemetry is read as far as it was when the proposal was read.
    """

    def __init__(
        self,
        partition: int,
        partitions: Sequence[int],
        settings: GuardSettings,
        contracts: Mapping[str, Contract],
        clock: Callable[[], int],
        publisher: Publisher,
        release: Release,
        counters: Counters,
        mark: Callable[[TopicPartition], int],
        past: Past,
        start: Start,
    ) -> None:
        self.partition = partition
        self.states: dict[str, RegionState] = {}
        self._partitions = partitions
        self._settings = settings
        self._topics = settings.topics
        self._contracts = contracts
        self._clock = clock
        self._publisher = publisher
        self._release = release
        self._counters = counters
        self._mark = mark
        self._history = History(settings.history_ms, settings.history_count)
        self._spacing_ms = round(1000 / settings.retry_budget_per_s)
        self._wake = asyncio.Event()
        self._stopping = False
        self._inbox: deque[Any] = deque()
        self._inbox_bytes = 0
        self._open = OpenProposals()
        self._open_keys: dict[ProposalKey, str] = {}
        self._answered: OrderedDict[ProposalKey, str] = OrderedDict()
        self._extra: list[Outgoing] = []
        self._questions: deque[tuple[Any, str, AsOfQuery | ViewQuery]] = deque()
        self._told: set[tuple[str, str]] = set()
        self._watch_at_ms = 0
        self._watching = False
        self._last_ms = 0
        self._batch_ms = 0.0  # how long a batch takes while more wait
        self._at_once = AT_ONCE
        self._decide_from: int | None = None
        self._next = dict(start.positions)
        self._warm_at = start.warm_at
        self._answered_queries = start.answered_queries
        last = past.last
        self._reported = Read(0, 0, 0) if last is None else last.read
        self._sequence = 0 if last is None else last.sequence + 1
        self._first_sequence = 0 if last is None else last.resume.sequence
        self._chain = past.chain
        self._checkpoint = (past.chain.index, clock())
        self._interim: dict[ProposalKey, Said] = {}
        self._asked_before: deque[tuple[int, str, Asked]] = deque()
        self._remember(past)

    # What others see of it.

    @property
    def warm(self) -> bool:
        """Whether the evidence of the partition is rebuilt: nothing is decided before."""
        return all(self._next[tp] >= offset for tp, offset in self._warm_at.items())

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """Next offset of each input that was taken in."""
        return self._next

    @property
    def crowded(self) -> bool:
        """Whether no more proposals should be read for now."""
        return self._open.ready + len(self._inbox) > self._settings.queue_limit

    @property
    def full(self) -> bool:
        """Whether nothing more should be read for now."""
        return self._inbox_bytes > _INBOX_BYTES or len(self._inbox) > _INBOX_MESSAGES

    @property
    def open(self) -> int:
        """Proposals without a final decision."""
        return len(self._open)

    @property
    def done(self) -> int:
        """The offset of `proposals` below which every proposal has its final decision."""
        return self._resume().proposals

    def state(self, region: str) -> RegionState:
        """The state of a region; an empty one, not kept, where nothing of it was read yet."""
        held = self.states.get(region)
        return self._new_state(region) if held is None else held

    def evidence(self) -> Evidence:
        """How far the inputs were read."""
        read = self._read()
        return Evidence(
            topic=self._topics.telemetry,
            partition=self.partition,
            offset=read.telemetry,
            outcomes=read.outcomes,
            answers=read.answers,
        )

    def receive(self, messages: Iterable[Any], reached: Reached) -> None:
        """Messages of one topic that were read, in order, and how far that is."""
        for message in messages:
            self._inbox.append(message)
            self._inbox_bytes += len(message.value or b"")
        self._inbox.append(reached)
        self._wake.set()

    def lost(self, lost: Lost) -> None:
        """Offsets that could not be read: dead letters tell of them."""
        self._inbox.append(lost)
        self._wake.set()

    def stop(self) -> None:
        """Ask `run` to end after the turn in hand."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Turn after turn until `stop`. Raises Fenced, PublishError; anything else is a bug of ours."""
        while not self._stopping:
            self._wake.clear()
            if not await self._turn() and not self._wake.is_set():
                await self._rest()

    # One turn.

    async def _turn(self) -> bool:
        """Gives whether there may be more to do at once."""
        await self._take_in()
        now_ms = self._now()
        self._open.wake_due(now_ms)
        self._watch(now_ms)
        taken = []
        if self._may_decide():
            taken = self._open.take(self._at_once, now_ms, round(self._batch_ms))
            self._answer_questions()
        if taken or self._extra or self._wants_checkpoint(now_ms):
            await self._publish(taken)
        if taken:
            self._note_batch(max(0, self._clock() - now_ms))
        return bool(self._inbox) or (bool(taken) and self._open.ready > 0)

    def _note_batch(self, took_ms: int) -> None:
        """How long a batch takes while more wait: rises at once, falls slowly; nothing where none waits."""
        self._at_once = min(AT_ONCE, 2 * self._at_once)
        if not self._open.ready:
            self._batch_ms = 0.0
            return
        took_ms = min(took_ms, _LONGEST_BATCH_MS)
        self._batch_ms = max(took_ms, self._batch_ms - _SMOOTHING * (self._batch_ms - took_ms))

    def _now(self) -> int:
        """The clock. Where it was set back, what waits for a time of its own waits as much longer only as it should."""
        now_ms = self._clock()
        if now_ms < self._last_ms - _STEP_BACK_MS:
            log.warning("the clock was set back", by_ms=self._last_ms - now_ms)
            self._open.set_back(self._last_ms - now_ms)
            self._watch_at_ms = 0
        self._last_ms = now_ms
        return now_ms

    async def _rest(self) -> None:
        wake_ms = self._open.next_wake_ms()
        left_s = _WATCH_MS / 1000 if self._watching else _IDLE_S
        if wake_ms is not None:
            left_s = min(left_s, max(0.0, (wake_ms - self._clock()) / 1000))
        try:
            async with asyncio.timeout(left_s):
                await self._wake.wait()
        except TimeoutError:
            return

    def _may_decide(self) -> bool:
        """Whether telemetry is read as far as it was there when what waits was read."""
        if not self.warm:
            return False
        telemetry = TopicPartition(self._topics.telemetry, self.partition)
        if self._decide_from is None:
            if not self._open.ready and not self._questions:
                return False
            self._decide_from = self._mark(telemetry)
        if self._next[telemetry] < self._decide_from:
            return False
        self._decide_from = None
        return True

    # Taking in.

    async def _take_in(self) -> None:
        """What has been read by now; what comes meanwhile is for the next turn: a flood keeps nothing waiting."""
        for number in range(1, len(self._inbox) + 1):
            message = self._inbox.popleft()
            if isinstance(message, Reached):
                self._reach(message, message.offset)
            elif isinstance(message, Lost):
                self._tell_lost(message)
            else:
                self._inbox_bytes -= len(message.value or b"")
                self._take(message)
            if len(self._extra) >= _LETTERS_AT_ONCE:
                return
            if number % _BREATHE == 0:
                await asyncio.sleep(0)

    def _reach(self, place: Reached | Lost, offset: int) -> None:
        tp = TopicPartition(place.topic, place.partition)
        self._next[tp] = max(self._next[tp], offset)

    def _tell_lost(self, lost: Lost) -> None:
        log.error("messages lost", **lost._asdict())
        letters = self._release.lost_range(lost.topic, lost.first, lost.last, lost.reason)
        self._extra += letters
        self._counters.dead_letters += len(letters)
        self._reach(lost, lost.last + 1)

    def _take(self, message: Any) -> None:
        tp = TopicPartition(message.topic, message.partition)
        if message.offset < self._next.get(tp, 0):
            return
        taking = {
            self._topics.telemetry: self._take_telemetry,
            self._topics.proposals: self._take_proposal,
            self._topics.queries: self._take_query,
            self._topics.outcomes: self._take_outcome,
            self._topics.answers: self._take_answer,
        }
        taking[message.topic](message)
        self._next[tp] = message.offset + 1

    def _take_telemetry(self, message: Any) -> None:
        self._counters.telemetry_messages += 1
        while self._asked_before and self._asked_before[0][0] <= message.offset:
            _, region, asked = self._asked_before.popleft()
            self._state(region).asks.note(asked)
        try:
            state = self._state_of(message)
            ingested = state.ingest(message.value, message.timestamp)
        except (NoRegion, Undecodable, Contradiction) as error:
            if message.offset >= self._reported.telemetry:
                self._reject(message, str(error))
            return
        self._counters.observations += ingested.observations
        self._counters.repeated_reports += ingested.duplicate
        self._counters.unknown_keys += ingested.unknown_keys
        if self._open.waiting and not ingested.duplicate:
            self._open.touch(touched_by(state.region, ingested.message))

    def _take_proposal(self, message: Any) -> None:
        self._counters.proposals += 1
        try:
            document = read_proposal_bytes(message.value)
            key = ProposalKey(self._region_of(message), document.proposal_id)
            known = self._open_keys.get(key) or self._answered.get(key)
            if known is not None and known != document.digest:
                raise NotAProposal(f"$.proposal_id: {key.proposal_id!r} was proposed with other content")
        except (NoRegion, NotAProposal) as error:
            self._reject(message, str(error))
            return
        if known is not None:
            self._counters.repeated_proposals += 1
            return
        now_ms = self._clock()
        until_ms = now_ms + self._settings.hold_ms
        if document.deadline_ms is not None:
            until_ms = min(document.deadline_ms + 1, now_ms + OPEN_LIMIT_MS)
        proposal = OpenProposal(message, key.region, document, document.deadline_ms, until_ms, self._sequence)
        before = self._interim.pop(key, None)
        if before is not None and before.digest == document.digest:
            proposal.attempt, proposal.said = before.attempt, (before.action, before.codes)
            proposal.since_sequence = self._first_sequence
        self._open_keys[key] = document.digest
        self._open.add(proposal)

    def _take_query(self, message: Any) -> None:
        if not self.warm and message.timestamp < self._clock() - QUESTION_MS:
            return  # of the time before this owner: nobody waits for its answer
        self._counters.queries += 1
        try:
            region, query = self._region_of(message), read_query(message.value)
        except (NoRegion, BadQuery) as error:
            self._reject(message, str(error))
            return
        if query.query_id not in self._answered_queries:
            self._questions.append((message, region, query))

    def _take_outcome(self, message: Any) -> None:
        try:
            state = self._state_of(message)
            outcome = OutcomeMessage.model_validate(parse_object(message.value))
        except ValidationError as error:
            self._reject_read(message, self._reported.outcomes, _first_fault(error))
            return
        except (NoRegion, ValueError) as error:
            self._reject_read(message, self._reported.outcomes, str(error))
            return
        self._counters.outcomes[outcome.outcome] += 1
        self._told.discard((outcome.decision_id, outcome.outcome))
        control = state.take_outcome(outcome, message.timestamp)
        if control is not None:
            self._open.touch(touched_by_outcome(state.region))
            if message.offset >= self._reported.outcomes and state.is_newest(control, message.timestamp):
                self._extra.append(self._release.control(state.region, control))

    def _take_answer(self, message: Any) -> None:
        try:
            state = self._state_of(message)
            given = AnswerMessage.model_validate(parse_object(message.value))
            state.take_answer(given, message.timestamp)
        except ValidationError as error:
            self._reject_read(message, self._reported.answers, _first_fault(error))
            return
        except (NoRegion, Contradiction, ValueError) as error:
            self._reject_read(message, self._reported.answers, str(error))
            return
        self._counters.answers[given.verdict] += 1
        self._open.touch(touched_by_answer(state.region, given.proposal_id))

    def _reject_read(self, message: Any, reported: int, reason: str) -> None:
        if message.offset >= reported:
            self._reject(message, reason)

    def _reject(self, message: Any, reason: str) -> None:
        log.warning("dead letter", topic=message.topic, partition=message.partition, offset=message.offset, why=reason)
        self._extra.append(self._release.letter_of(message, reason))
        self._counters.dead_letters += 1

    # Watching what was applied.

    def _watch(self, now_ms: int) -> None:
        """Outcomes that time or evidence brings about; they count once they are read back from `outcomes`."""
        if now_ms < self._watch_at_ms or not self.warm:
            return
        self._watch_at_ms = now_ms + _WATCH_MS
        self._watching = False
        for state in self.states.values():
            due = state.controls.due(now_ms)
            self._watching = self._watching or state.controls.watching
            for control in due.unacknowledged:
                self._tell(state, control, "unacknowledged", now_ms, "no acknowledgement came in time")
            for control in due.effects:
                shown = state.effect(control, now_ms)
                if shown:
                    self._tell(state, control, "effect", now_ms, "the evidence shows it")
                elif control.effect_until_ms is not None and now_ms > control.effect_until_ms:
                    self._tell(state, control, "no_effect", now_ms, "the evidence did not show it in time")

    def _tell(self, state: RegionState, control: AppliedControl, kind: str, now_ms: int, detail: str) -> None:
        if (control.decision_id, kind) in self._told:
            return
        self._told.add((control.decision_id, kind))
        outcome = OutcomeMessage.model_validate(
            {
                "decision_id": control.decision_id,
                "proposal_id": control.proposal_id,
                "outcome": kind,
                "at_ms": now_ms,
                "detail": detail,
            }
        )
        self._extra.append(self._release.outcome(state.region.encode(), outcome))

    # Deciding, answering and publishing.

    def _answer_questions(self) -> None:
        while self._questions:
            message, region, query = self._questions.popleft()
            reply = orjson.dumps(answer(self.state(region), query, self._clock(), self.evidence()).model_dump())
            outgoing = self._release.view(message.key, query.query_id, reply)
            if self._release.fits(outgoing):
                self._extra.append(outgoing)
            else:
                self._reject(message, f"its answer of {len(reply)} bytes is larger than a message may be")

    async def _publish(self, taken: Sequence[OpenProposal]) -> None:
        """Decide and publish a batch, with all that is to be written besides, until it stands as a whole."""
        unrecorded: set[int] = set()
        for tries in count(1):
            before = self._snapshot(taken)
            chain_before, sequence_before = self._chain, self._sequence
            made: list[_Made] = []
            records: list[Outgoing] = []
            for proposal in taken:
                one, record = self._make(
                    proposal, too_large=proposal.message.offset in unrecorded, may_apply=tries <= _TRIES
                )
                made.append(one)
                records += record
            extra = [*self._extra, *self._checkpoints()]
            try:
                await self._publisher.publish(records, [*(m for one in made for m in one.messages), *extra])
            except Late:
                self._counters.redecided += sum(one.published for one in made)
                if tries == _TRIES:
                    log.error("APPLYs come too late: is the clock of the broker ahead of this one?")
                if not self._publisher.atomic:
                    chain_before = self._chain
                taken = self._halved(taken)
            except TooLarge as error:
                unrecorded |= self._shorten(error, made, records, unrecorded)
            else:
                self._extra.clear()
                self._settle(made)
                return
            self._chain, self._sequence = chain_before, sequence_before
            for state, (book, asks) in before.items():
                state.controls.restore(book)
                state.asks.restore(asks)

    def _halved(self, taken: Sequence[OpenProposal]) -> Sequence[OpenProposal]:
        """A batch that came too late is tried again with half of it: the rest goes back to the queue."""
        half = (len(taken) + 1) // 2
        for proposal in taken[half:]:
            self._open.again(proposal)
        self._at_once = max(1, half)
        return taken[:half]

    def _snapshot(self, taken: Sequence[OpenProposal]) -> dict[RegionState, tuple[int, dict[str, Asked]]]:
        states = {self._state(proposal.region) for proposal in taken}
        return {state: (state.controls.snapshot(), state.asks.snapshot()) for state in states}

    def _make(
        self, proposal: OpenProposal, *, too_large: bool, may_apply: bool = True
    ) -> tuple[_Made, list[Outgoing]]:
        """Decide one proposal; its messages, and its record.

        An APPLY that may not be, or whose authority will have ended before the batch is written, is held back.
        """
        state, t_ms = self._state(proposal.region), self._clock()
        decision = state.decide(proposal.document, t_ms)
        asked = None
        final = decision.action in ("APPLY", "ABSTAIN") or t_ms >= proposal.until_ms
        if too_large:
            decision, final = self._unrecordable(proposal, decision, t_ms), True
        if decision.action == "RETRY" and not final and proposal.attempt < _INTERIM_LIMIT:
            asked = state.asks.next_request(decision, t_ms)
        codes = frozenset(v.code for v in decision.violations if v.blocking)
        said = (decision.action, codes)
        news = said != proposal.said and proposal.attempt < _INTERIM_LIMIT
        ends_ms = decision.valid_until_ms
        if ends_ms is not None and (not may_apply or ends_ms < t_ms + self._batch_ms):
            return _Made(proposal, decision, said, False, False, False, []), []
        published = final or news or asked is not None
        one = _Made(proposal, decision, said, final, published, asked is not None, [])
        if not one.published:
            return one, []
        stamp = Stamp(
            guard=self._settings.guard_name,
            sequence=self._sequence,
            topic=self._topics.telemetry,
            partition=self.partition,
            read=self._read(),
            attempt=proposal.attempt + 1,
            final=final,
            proposal_offset=proposal.message.offset,
            resume=self._resume(),
            asked=asked,
        )
        key = proposal.message.key
        outcome = state.outcome(decision, proposal.document, t_ms, stamp)
        record, chain = self._release.record(key, outcome, stamp, t_ms, self._chain)
        messages = self._release.decision(key, outcome, stamp, t_ms)
        if decision.lease is not None:
            messages.append(self._release.control(proposal.region, decision.lease))
        if not too_large and not all(map(self._release.fits, (record, *messages))):
            return self._make(proposal, too_large=True)
        self._chain = chain
        self._sequence += 1
        state.note(decision.lease, asked)
        one.messages = messages
        return one, [record]

    def _unrecordable(self, proposal: OpenProposal, decision: Decision, t_ms: int) -> Decision:
        size = len(decision.record)
        reason = f"its record of {size} bytes is larger than a message may be: nothing was released"
        log.warning("not recordable", proposal_id=proposal.document.proposal_id, bytes=size)
        self._extra.append(self._release.letter_of(proposal.message, reason))
        self._counters.dead_letters += 1
        return unrecordable(proposal.region, proposal.document, t_ms, size)

    def _shorten(
        self, error: TooLarge, made: Sequence[_Made], records: Sequence[Outgoing], unrecorded: Set[int]
    ) -> set[int]:
        """What the broker does not take is left out; gives the offsets of proposals to refuse for their size."""
        published = [one for one in made if one.published]
        for one, record in zip(published, records, strict=True):
            if error.message is record or any(error.message is message for message in one.messages):
                if one.proposal.message.offset in unrecorded:
                    raise PublishError(f"not even a refusal can be recorded: {error}") from error
                return {one.proposal.message.offset}
        for index, outgoing in enumerate(self._extra):
            if outgoing is error.message:
                log.error("larger than the broker takes: left out", topic=outgoing.topic, bytes=len(outgoing.value))
                del self._extra[index]
                return set()
        raise PublishError(str(error)) from error

    def _settle(self, made: Sequence[_Made]) -> None:
        """The batch stands: proposals are closed, or wait."""
        for one in made:
            proposal, decision = one.proposal, one.decision
            key = ProposalKey(proposal.region, proposal.document.proposal_id)
            if one.published:
                proposal.attempt += 1
                proposal.said = one.said
                self._counters.decisions[decision.action] += 1
                self._counters.interim += not one.final
                self._counters.requests += one.asked
            if one.final:
                self._open.close(proposal)
                del self._open_keys[key]
                self._note_answered(key, proposal.document.digest)
            else:
                self._wait(proposal, decision)
        if self._wants_checkpoint(self._clock()):
            self._checkpoint = (self._chain.index, self._clock())

    def _wait(self, proposal: OpenProposal, decision: Decision) -> None:
        state, now_ms = self._state(proposal.region), self._clock()
        contract = self._contracts[proposal.document.document["contract_ref"]]
        wake_ms = min(proposal.until_ms, now_ms + LOOK_AGAIN_MS, state.next_lease_end_ms(decision, contract, now_ms))
        if decision.valid_until_ms is not None:
            wake_ms = min(wake_ms, decision.valid_until_ms + 1)
        if decision.retry is not None:
            outstanding = state.asks.outstanding(decision.retry.source, now_ms)
            if outstanding is not None:
                wake_ms = min(wake_ms, outstanding.until_ms + 1)
        self._open.wait(proposal, wakes(proposal.region, decision, contract), wake_ms)

    # Its own books.

    def _remember(self, past: Past) -> None:
        """Take up what former owners decided."""
        for region, control in past.controls:
            self._state(region).controls.grant(control)
        for said in past.said:
            if said.final:
                self._note_answered(said.key, said.digest)
                self._interim.pop(said.key, None)
            else:
                self._interim[said.key] = said
            if said.lease is not None:
                self._state(said.key.region).controls.grant(said.lease)
            if said.asked is not None:
                self._asked_before.append((said.read.telemetry, said.key.region, said.asked))

    def _note_answered(self, key: ProposalKey, digest: str) -> None:
        self._answered[key] = digest
        self._answered.move_to_end(key)
        if len(self._answered) > ANSWERED_LIMIT:
            self._answered.popitem(last=False)

    def _read(self) -> Read:
        names = (self._topics.telemetry, self._topics.outcomes, self._topics.answers)
        return Read(*(self._next[TopicPartition(name, self.partition)] for name in names))

    def _resume(self) -> Resume:
        first = self._open.first()
        if first is None:
            return Resume(self._next[TopicPartition(self._topics.proposals, self.partition)], self._sequence)
        return Resume(first.message.offset, first.since_sequence)

    def _wants_checkpoint(self, now_ms: int) -> bool:
        index, at_ms = self._checkpoint
        new = self._chain.index - index
        return new >= _CHECKPOINT_RECORDS or (new > 0 and now_ms - at_ms >= _CHECKPOINT_MS)

    def _checkpoints(self) -> list[Outgoing]:
        return [self._release.checkpoint(self._chain)] if self._wants_checkpoint(self._clock()) else []

    def _state_of(self, message: Any) -> RegionState:
        return self._state(self._region_of(message))

    def _region_of(self, message: Any) -> str:
        region = region_of(message.key)
        expected = partition_of(region, self._partitions)
        if message.partition != expected:
            raise NoRegion(f"region {region!r} belongs to partition {expected}: write it there (murmur2 of the key)")
        return region

    def _state(self, region: str) -> RegionState:
        state = self.states.get(region)
        if state is None:
            state = self.states[region] = self._new_state(region)
        return state

    def _new_state(self, region: str) -> RegionState:
        return RegionState(region, self._contracts, self._history, self._spacing_ms)


def _first_fault(error: ValidationError) -> str:
    (path, reason), *_ = document_errors(error)
    return f"{path}: {reason}"
