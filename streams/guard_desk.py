"""The owner of one partition at work: a batch at a time is decided, published as a whole, and settled.

Nothing of the books changes while a batch is under way, so a batch that came too late can be taken back and decided
again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import count
from typing import Final

import orjson
import structlog
from aiokafka import TopicPartition

from streams.answering import answer
from streams.asking import Asked
from streams.deciding import RegionState, Stamp, unrecordable
from streams.guard_books import Books
from streams.guard_counters import Counters
from streams.guard_intake import Intake
from streams.guard_reading import Lost
from streams.guard_release import Release
from streams.guard_watch import EVERY_MS, Watch
from streams.left_open import LeftOpen
from streams.observing import Observers, Published
from streams.open_proposals import OpenProposal
from streams.publishing import Late, Outgoing, Publisher, PublishError, TooLarge
from streams.settings import GuardSettings
from streams.support_watch import MapsInForce
from streams.tuning import LiveTuning
from streams.waking import LOOK_AGAIN_MS, touched_by_answer, wakes
from xapp.contract import Contract
from xapp.governor import SHADOW
from xapp.model import Decision

AT_ONCE: Final = 64
"""Proposals of one batch: telemetry is read again before the next, so that a flood does not let the evidence age."""
_INTERIM_LIMIT: Final = 32
"""Interim decisions published on one proposal; after them it still waits, and gets its final one."""
_BATCH_BYTES: Final = 8_000_000
_TRIES: Final = 5
_SMOOTHING: Final = 0.3
_LONGEST_BATCH_MS: Final = 2_000
_STEP_BACK_MS: Final = 1_000
_IDLE_S: Final = 0.5
_CHECKPOINT_RECORDS: Final = 1_000
_CHECKPOINT_MS: Final = 10_000

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Made:
    """A decision made on an open proposal, not published yet. No `messages`: there is nothing new to say."""

    proposal: OpenProposal
    decision: Decision
    said: tuple[str, frozenset[str]]
    final: bool
    asked: bool
    messages: list[Outgoing]
    t_ms: int = 0
    until_ms: int | None = None
    sequence: int = 0
    unrecorded: bool = False
    record: bytes = b""
    decide_s: float = 0.0

    @property
    def published(self) -> bool:
        """Whether there is anything to say."""
        return bool(self.messages)


class Desk:
    """Decides and publishes for one partition.

    `clock` gives t, Unix ms; `mark` the offset up to which telemetry was there when the broker last answered: a
    proposal is decided once telemetry is read as far as it was when the proposal was read. `observers` are told what
    was published. `maps`: of the support gate. `gone`: proposals that the broker dropped before any owner decided them.
    """

    def __init__(
        self,
        books: Books,
        settings: GuardSettings,
        tuning: LiveTuning,
        contracts: Mapping[str, Contract],
        clock: Callable[[], int],
        publisher: Publisher,
        release: Release,
        counters: Counters,
        mark: Callable[[TopicPartition], int],
        observers: Observers,
        maps: MapsInForce,
        gone: Lost | None = None,
    ) -> None:
        self.books = books
        self._wake = asyncio.Event()
        self._outbox: list[Outgoing] = []
        self.intake = Intake(books, settings, tuning, clock, release, counters, self._outbox, self._wake)
        self._watch = Watch(books, release, self._outbox)
        self._settings = settings
        self._tuning = tuning
        self._contracts = contracts
        self._clock = clock
        self._publisher = publisher
        self._release = release
        self._counters = counters
        self._mark = mark
        self._observers = observers
        self._maps = maps
        self._telemetry = books.place(settings.topics.telemetry)
        self._stopping = False
        self._writing_since_s: float | None = None
        self._last_ms = 0
        self._batch_ms = 0.0  # how long a batch takes while more wait
        self._at_once = AT_ONCE
        self._decide_from: int | None = None
        self._checkpoint = (books.chain.index, clock())
        self.durable = books.resume().proposals
        """The offset below which every proposal is answered, dropped, or named by a dead letter that is written."""
        self._wrote = False
        if gone is not None:
            self.intake.lost(gone)

    @property
    def writing_s(self) -> float:
        """For how long the batch in hand has been written without being acknowledged, seconds."""
        return 0.0 if self._writing_since_s is None else time.perf_counter() - self._writing_since_s

    @property
    def recovered(self) -> bool:
        """Whether it has written something, or knows that there is nothing to write: an owner that gave up a batch and
        began anew has not recovered before.
        """
        idle = self.books.reread and not self.books.open.ready and not self.intake and self._writing_since_s is None
        return self._wrote or idle

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
        now_ms = self._now()
        await self.intake.take_in()
        now_ms = self._now()
        self.books.open.wake_due(now_ms)
        self._watch.look(now_ms)
        taken = []
        if self._may_decide():
            taken = self._bounded(self.books.open.take(self._at_once, now_ms, round(self._batch_ms)))
            self._answer_questions()
        if taken or self._outbox or self._wants_checkpoint(now_ms):
            await self._publish(taken)
        if not self._outbox:
            self.durable = self.books.resume().proposals
        if taken:
            self._note_batch(max(0, self._clock() - now_ms))
        return len(self.intake) > 0 or (bool(taken) and self.books.open.ready > 0)

    def _bounded(self, taken: list[OpenProposal]) -> list[OpenProposal]:
        """No more bytes at once than one batch should carry; the rest goes back to the queue."""
        size = 0
        for number, proposal in enumerate(taken):
            size += proposal.size
            if number and size > _BATCH_BYTES:
                for left in taken[number:]:
                    self.books.open.again(left)
                return taken[:number]
        return taken

    def _note_batch(self, took_ms: int) -> None:
        """How long a batch takes while more wait: rises at once, falls slowly; nothing where none waits."""
        self._at_once = min(AT_ONCE, 2 * self._at_once)
        if not self.books.open.ready:
            self._batch_ms = 0.0
            return
        took_ms = min(took_ms, _LONGEST_BATCH_MS)
        self._batch_ms = max(took_ms, self._batch_ms - _SMOOTHING * (self._batch_ms - took_ms))

    def _now(self) -> int:
        """The clock. Where it was set back, what waits for a time of its own waits as much longer only as it should."""
        now_ms = self._clock()
        if now_ms < self._last_ms - _STEP_BACK_MS:
            log.warning("the clock was set back", by_ms=self._last_ms - now_ms)
            self.books.open.set_back(self._last_ms - now_ms)
            for state in self.books.states.values():
                state.asks.forget()
        self._last_ms = now_ms
        return now_ms

    async def _rest(self) -> None:
        wake_ms = self.books.open.next_wake_ms()
        left_s = EVERY_MS / 1000 if self._watch.watching else _IDLE_S
        if wake_ms is not None:
            left_s = min(left_s, max(0.0, (wake_ms - self._clock()) / 1000))
        try:
            async with asyncio.timeout(left_s):
                await self._wake.wait()
        except TimeoutError:
            return

    def _may_decide(self) -> bool:
        """Whether telemetry is read as far as it was there when what waits was read, and no switch that may hold back
        is still to be taken in.
        """
        if not self.books.warm or self.intake.holding:
            return False
        if self._decide_from is None:
            if not self.books.open.ready and not self.intake.questions:
                return False
            self._decide_from = self._mark(self._telemetry)
        if self.books.next[self._telemetry] < self._decide_from:
            return False
        self._decide_from = None
        return True

    # Deciding, answering and publishing.

    def _answer_questions(self) -> None:
        while self.intake.questions:
            message, region, query = self.intake.questions.popleft()
            reply = orjson.dumps(
                answer(self.books.glance(region), query, self._clock(), self.books.evidence()).model_dump()
            )
            outgoing = self._release.view(message.key, query.query_id, reply)
            if self._release.fits(outgoing):
                self._outbox.append(outgoing)
            else:
                self.intake.reject(message, f"its answer of {len(reply)} bytes is larger than a message may be")

    async def _publish(self, taken: Sequence[OpenProposal]) -> None:
        """Decide and publish a batch, with all that is to be written besides, until it stands as a whole."""
        unrecorded: set[int] = set()
        for tries in count(1):
            before = self._snapshot(taken)
            chain_before, sequence_before = self.books.chain, self.books.sequence
            made: list[_Made] = []
            records: list[Outgoing] = []
            for proposal in taken:
                began_s = time.perf_counter()
                too_large = proposal.message.offset in unrecorded
                may_apply = tries <= _TRIES and not self.intake.holding  # a switch may come while it is written
                one, record = self._make(proposal, too_large=too_large, may_apply=may_apply)
                one.decide_s = time.perf_counter() - began_s
                made.append(one)
                records += record
            left = self.books.left_open(sequence_before)
            extra = [*self._outbox, *self._checkpoints(), *self._kept_open(left)]
            self._writing_since_s = began_s = time.perf_counter()
            try:
                await self._publisher.publish(records, [*(m for one in made for m in one.messages), *extra])
            except Late:
                self._counters.redecided += sum(one.published for one in made)
                if tries == _TRIES:
                    log.error("APPLYs come too late: is the clock of the broker ahead of this one?")
                if not self._publisher.atomic:
                    chain_before = self.books.chain
                taken = self._halved(taken)
            except TooLarge as error:
                unrecorded |= self._shorten(error, made, records, unrecorded)
            else:
                publish_s = time.perf_counter() - began_s
                self._wrote = True
                self._outbox.clear()
                self._settle(made)
                if left is not None:
                    self.books.note_kept(left)
                self._tell(made, publish_s)
                return
            finally:
                self._writing_since_s = None
            self.books.chain, self.books.sequence = chain_before, sequence_before
            for state, (book, asks) in before.items():
                state.controls.restore(book)
                state.asks.restore(asks)

    def _halved(self, taken: Sequence[OpenProposal]) -> Sequence[OpenProposal]:
        """A batch that came too late is tried again with half of it: the rest goes back to the queue."""
        half = (len(taken) + 1) // 2
        for proposal in taken[half:]:
            self.books.open.again(proposal)
        self._at_once = max(1, half)
        return taken[:half]

    def _snapshot(self, taken: Sequence[OpenProposal]) -> dict[RegionState, tuple[int, dict[str, Asked]]]:
        states = {self.books.state(proposal.region) for proposal in taken}
        return {state: (state.controls.snapshot(), state.asks.snapshot()) for state in states}

    def _make(self, proposal: OpenProposal, *, too_large: bool, may_apply: bool = True) -> tuple[_Made, list[Outgoing]]:
        """Decide one proposal; its messages, and its record.

        An APPLY that may not be, or whose authority will have ended before the batch is written, is held back.
        """
        state, t_ms = self.books.state(proposal.region), self._clock()
        switch = self.books.switches.in_force(proposal.region)
        decision = state.decide(proposal.document, t_ms, switch, self._maps.now)
        codes = frozenset(v.code for v in decision.violations if v.blocking)
        asked = None
        if decision.action == "ESCALATE":
            proposal.escalated = True
        elif proposal.escalated:
            proposal.escalated, proposal.respite_ms = False, t_ms + self._tuning.now.hold_ms
        until_ms = self._until_ms(proposal, decision.action)
        final = decision.action in ("APPLY", "ABSTAIN") or SHADOW in codes or t_ms >= until_ms
        letters: list[Outgoing] = []
        if too_large:
            decision, letters, final = *self._unrecordable(proposal, decision, t_ms), True
            codes = frozenset(v.code for v in decision.violations if v.blocking)
        if decision.action == "RETRY" and not final and proposal.attempt < _INTERIM_LIMIT:
            asked = state.asks.next_request(decision, t_ms)
        said = (decision.action, codes)
        news = (said != proposal.said or proposal.answered) and proposal.attempt < _INTERIM_LIMIT
        ends_ms = decision.valid_until_ms
        if ends_ms is not None and (not may_apply or ends_ms < t_ms + self._batch_ms):
            return _Made(proposal, decision, said, False, False, []), []
        one = _Made(proposal, decision, said, final, asked is not None, [])
        if not (final or news or one.asked):
            return one, []
        stamp = Stamp(
            guard=self._settings.guard_name,
            sequence=self.books.sequence,
            topic=self._telemetry.topic,
            partition=self.books.partition,
            read=self.books.read(),
            attempt=proposal.attempt + 1,
            final=final,
            proposal_offset=proposal.message.offset,
            resume=self.books.resume(),
            asked=asked,
            until_ms=None if final else until_ms,
        )
        key = proposal.message.key
        outcome = state.outcome(decision, proposal.document, t_ms, stamp)
        record, chain = self._release.record(key, outcome, stamp, t_ms, self.books.chain)
        messages = [*self._release.decision(proposal.message, outcome, stamp, t_ms), *letters]
        if decision.lease is not None:
            messages.append(self._release.control(proposal.region, decision.lease))
        if not too_large and not all(map(self._release.fits, (record, *messages))):
            return self._make(proposal, too_large=True)
        self.books.chain = chain
        self.books.sequence += 1
        state.note(decision.lease, asked)
        one.messages, one.t_ms, one.sequence, one.unrecorded = messages, t_ms, stamp.sequence, too_large
        one.until_ms, one.record = stamp.until_ms, record.value
        return one, [record]

    def _unrecordable(self, proposal: OpenProposal, decision: Decision, t_ms: int) -> tuple[Decision, list[Outgoing]]:
        """The refusal of a proposal whose record no message carries, and the dead letter that keeps its bytes."""
        size = len(decision.record)
        reason = f"its record of {size} bytes is larger than a message may be: nothing was released"
        log.warning(
            "not recordable",
            decision_id=decision.decision_id,
            proposal_id=proposal.document.proposal_id,
            region=proposal.region,
            bytes=size,
        )
        letter = self._release.letter_of(proposal.message, reason)
        return unrecordable(proposal.region, proposal.document, t_ms, size), [letter]

    def _shorten(
        self, error: TooLarge, made: Sequence[_Made], records: Sequence[Outgoing], unrecorded: Set[int]
    ) -> set[int]:
        """What the broker does not take is left out; gives the offsets of proposals to refuse for their size."""
        published = [one for one in made if one.published]
        for one, record in zip(published, records, strict=True):
            if error.message is record or any(error.message is message for message in one.messages):
                if one.proposal.message.offset in unrecorded:
                    raise PublishError(f"not even a refusal can be written: {error}") from error
                return {one.proposal.message.offset}
        for index, outgoing in enumerate(self._outbox):
            if outgoing is error.message:
                log.error("larger than the broker takes", topic=outgoing.topic, bytes=len(outgoing.value))
                self._outbox[index : index + 1] = self._release.shortened(outgoing)
                return set()
        raise PublishError(str(error)) from error

    def _settle(self, made: Sequence[_Made]) -> None:
        """The batch stands: proposals are closed, or wait."""
        for one in made:
            proposal, decision = one.proposal, one.decision
            if one.published:
                proposal.attempt += 1
                self.books.decided_at_ms = one.t_ms
                proposal.said, proposal.answered = one.said, False
                self._counters.decisions[decision.action] += 1
                self._counters.interim += not one.final
                self._counters.requests += one.asked
                if one.unrecorded:
                    self._counters.dead_letters[proposal.message.topic] += 1
            if one.final:
                self.books.close(proposal)
            else:
                self._wait(proposal, decision)
        if self._wants_checkpoint(self._clock()):
            self._checkpoint = (self.books.chain.index, self._clock())

    def _tell(self, made: Sequence[_Made], publish_s: float) -> None:
        """The observers hear of what was published."""
        now_ms = self._clock()
        for one in made:
            if one.published and self._observers:
                proposal = one.proposal
                self._observers.tell(
                    Published(
                        decision=one.decision,
                        proposal=proposal.document.document,
                        region=proposal.region,
                        partition=self.books.partition,
                        sequence=one.sequence,
                        attempt=proposal.attempt,
                        final=one.final,
                        appended_at_ms=proposal.message.timestamp,
                        decided_at_ms=one.t_ms,
                        published_at_ms=now_ms,
                        until_ms=one.until_ms,
                        decide_s=one.decide_s,
                        publish_s=publish_s,
                        record=one.record,
                        headers=proposal.message.headers,
                    )
                )

    def _wait(self, proposal: OpenProposal, decision: Decision) -> None:
        state, now_ms = self.books.state(proposal.region), self._clock()
        contract = self._contracts[proposal.document.document["contract_ref"]]
        until_ms = self._until_ms(proposal, decision.action)
        wake_ms = min(until_ms, now_ms + LOOK_AGAIN_MS, state.next_lease_end_ms(decision, contract, now_ms))
        if decision.valid_until_ms is not None:
            wake_ms = min(wake_ms, decision.valid_until_ms + 1)
        if decision.retry is not None:
            outstanding = state.asks.outstanding(decision.retry.source, now_ms)
            if outstanding is not None:
                wake_ms = min(wake_ms, outstanding.until_ms + 1)
        keys = wakes(proposal.region, decision, contract)
        if now_ms >= proposal.until_ms:  # it waits for a person: evidence is looked at now and then
            keys = frozenset(touched_by_answer(proposal.region, decision.proposal_id))
        self.books.open.wait(proposal, keys, wake_ms)

    def _until_ms(self, proposal: OpenProposal, action: str) -> int:
        """When a decision of this action would be the final one. Escalated ones wait longer, while they are not many:
        a person answers a few, and what waits is looked at again and again. What an ESCALATE turns into has a time of
        its own: a report that comes late takes nothing from the person who is to answer.
        """
        if len(self.books.open) > self._tuning.now.queue_limit // 2:
            return proposal.until_ms
        if action == "ESCALATE":
            return proposal.escalated_until_ms
        return max(proposal.until_ms, min(proposal.respite_ms, proposal.escalated_until_ms))

    def _kept_open(self, left: LeftOpen | None) -> list[Outgoing]:
        kept = [] if left is None else [self._release.left_open(left)]
        return [outgoing for outgoing in kept if self._release.fits(outgoing)]

    def _wants_checkpoint(self, now_ms: int) -> bool:
        index, at_ms = self._checkpoint
        new = self.books.chain.index - index
        return new >= _CHECKPOINT_RECORDS or (new > 0 and now_ms - at_ms >= _CHECKPOINT_MS)

    def _checkpoints(self) -> list[Outgoing]:
        return [self._release.checkpoint(self.books.chain)] if self._wants_checkpoint(self._clock()) else []
