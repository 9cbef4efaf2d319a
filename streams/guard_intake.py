"""Taking in what was read of one partition: evidence and outcomes into its books, proposals and questions to wait.

What cannot be used becomes a dead letter, to be published with the next batch.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog
from aiokafka import TopicPartition
from pydantic import ValidationError

from streams.answering import BadQuery, read_query
from streams.deciding import NotAProposal, read_proposal_bytes
from streams.guard_books import Books
from streams.guard_counters import Counters
from streams.guard_reading import Lost, Reached
from streams.guard_release import Release
from streams.guard_restore import OPEN_LIMIT_MS, QUESTION_MS, ProposalKey
from streams.messages import AnswerMessage, AsOfQuery, OutcomeMessage, ViewQuery
from streams.open_proposals import OpenProposal
from streams.publishing import Outgoing
from streams.settings import GuardSettings
from streams.switching import Kept, is_switch, read_switch
from streams.telemetry import Undecodable
from streams.topics import NoRegion
from streams.tuning import LiveTuning
from streams.waking import touched_by, touched_by_answer, touched_by_outcome, touched_by_switch
from streams.wire import parse_object
from xapp.contract_loading import document_errors
from xapp.evidence.store import Contradiction

_BREATHE: Final = 64
"""Messages taken in between two turns of the event loop, so that a backlog does not silence the web."""
_BYTES: Final = 64_000_000
_MESSAGES: Final = 50_000
_LETTERS_AT_ONCE: Final = 500

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Held:
    """How much of an inbox is held."""

    items: int = 0
    bytes: int = 0

    @property
    def full(self) -> bool:
        return self.bytes > _BYTES or self.items > _MESSAGES

    def add(self, item: Any, sign: int) -> None:
        self.items += sign
        if not isinstance(item, Reached | Lost):
            self.bytes += sign * len(item.value or b"")


class Intake:
    """The inbox of one partition. `outbox`: what is to be published; `questions`: what is to be answered; `wake` is
    set when there is something to take in.
    """

    def __init__(
        self,
        books: Books,
        settings: GuardSettings,
        tuning: LiveTuning,
        clock: Callable[[], int],
        release: Release,
        counters: Counters,
        outbox: list[Outgoing],
        wake: asyncio.Event,
    ) -> None:
        self.questions: deque[tuple[Any, str, AsOfQuery | ViewQuery]] = deque()
        self._books = books
        self._clock = clock
        self._tuning = tuning
        self._release = release
        self._counters = counters
        self._outbox = outbox
        self._wake = wake
        self._inbox: deque[Any] = deque()
        self._held, self._held_answers = _Held(), _Held()
        self._holding: set[int] = set()  # offsets of switches in the inbox that may hold back
        self._names = names = settings.topics
        self._taking: dict[str, Callable[[Any], None]] = {
            names.telemetry: self._take_telemetry,
            names.proposals: self._take_proposal,
            names.queries: self._take_query,
            names.outcomes: self._take_outcome,
            names.answers: self._take_answer,
        }

    def __len__(self) -> int:
        """Messages that were read and not taken in yet."""
        return len(self._inbox)

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """Next offset of each input that was taken in."""
        return self._books.next

    @property
    def holding(self) -> bool:
        """Whether a switch to hold or shadow was read that is not taken in yet: until it is, nothing may be decided."""
        return bool(self._holding)

    def wants(self, topic: str) -> bool:
        """Whether more of a topic should be read for now. Answers are few: only too many of themselves hold them back,
        so that no kill switch stands behind telemetry.
        """
        if topic == self._names.answers:
            return not self._held_answers.full
        if self._held.full:
            return False
        if topic == self._names.proposals:
            many = self._books.open.ready + len(self._inbox) > self._tuning.now.queue_limit
            return not many and self._books.open_bytes <= _BYTES
        return True

    def receive(self, messages: Iterable[Any], reached: Reached) -> None:
        """Messages of one topic that were read, in order, and how far that is."""
        for message in messages:
            if message.topic == self._names.answers and _may_hold_back(message.value):
                self._holding.add(message.offset)
            self._put(message)
        self._put(reached)
        self._wake.set()

    def lost(self, lost: Lost) -> None:
        """Offsets that could not be read."""
        self._put(lost)
        self._wake.set()

    async def take_in(self) -> None:
        """What has been read by now; what comes meanwhile is for the next turn: a flood keeps nothing waiting.

        Switches that were read are kept with the next batch, so none is known to a decision and to no later owner.
        """
        await self._take_all()
        if self._books.warm:  # before, an older one is read again and must not displace a newer one
            self._outbox += map(self._release.switched, self._books.switches.changed())

    async def _take_all(self) -> None:
        for number in range(1, len(self._inbox) + 1):
            message = self._get()
            if isinstance(message, Reached):
                self._books.reach(TopicPartition(message.topic, message.partition), message.offset)
            elif isinstance(message, Lost):
                self._tell_lost(message)
            else:
                self._take(message)
            if len(self._outbox) >= _LETTERS_AT_ONCE:
                return
            if number % _BREATHE == 0:
                await asyncio.sleep(0)

    def _put(self, item: Any) -> None:
        self._inbox.append(item)
        self._count(item, 1)

    def _get(self) -> Any:
        item = self._inbox.popleft()
        self._count(item, -1)
        return item

    def _count(self, item: Any, sign: int) -> None:
        self._held.add(item, sign)
        if item.topic == self._names.answers:
            self._held_answers.add(item, sign)

    def reject(self, message: Any, reason: str) -> None:
        """A message that cannot be used becomes a dead letter."""
        log.warning("dead letter", topic=message.topic, partition=message.partition, offset=message.offset, why=reason)
        self._outbox.append(self._release.letter_of(message, reason))
        self._counters.dead_letters[message.topic] += 1

    def _tell_lost(self, lost: Lost) -> None:
        log.error("messages lost", **lost._asdict())
        letters = self._release.lost_range(lost.topic, lost.first, lost.last, lost.reason)
        self._outbox += letters
        self._counters.dead_letters[lost.topic] += len(letters)
        self._books.reach(TopicPartition(lost.topic, lost.partition), lost.last + 1)

    def _take(self, message: Any) -> None:
        tp = TopicPartition(message.topic, message.partition)
        if message.offset >= self._books.next[tp]:
            self._taking[message.topic](message)
            self._books.reach(tp, message.offset + 1)
        if message.topic == self._names.answers:
            self._holding.discard(message.offset)

    def _take_telemetry(self, message: Any) -> None:
        self._counters.telemetry_messages += 1
        self._books.note_asked_before(message.offset)
        try:
            state = self._books.glance(self._books.region_of(message))
            ingested = state.ingest(message.value, message.timestamp)
        except (NoRegion, Undecodable, Contradiction) as error:
            self._reject_unless_told(message, self._books.reported.telemetry, str(error))
            return
        self._books.keep(state)
        self._counters.observations += ingested.observations
        self._counters.repeated_reports += ingested.duplicate
        self._counters.unknown_keys += ingested.unknown_keys
        if self._books.open.waiting and not ingested.duplicate:
            self._books.open.touch(touched_by(state.region, ingested.message))

    def _take_proposal(self, message: Any) -> None:
        self._counters.proposals += 1
        if self._books.is_settled(message.offset):
            self._counters.repeated_proposals += 1
            return
        try:
            document = read_proposal_bytes(message.value)
            key = ProposalKey(self._books.region_of(message), document.proposal_id)
            known = self._books.known(key)
            if known is not None and known != document.digest:
                raise NotAProposal(f"$.proposal_id: {key.proposal_id!r} was proposed with other content")
        except (NoRegion, NotAProposal) as error:
            self.reject(message, str(error))
            return
        if known is not None:
            self._counters.repeated_proposals += 1
            return
        now_ms, tuning = self._clock(), self._tuning.now
        began_ms = self._books.began_ms(key, message.offset, now_ms)
        last_ms = began_ms + OPEN_LIMIT_MS
        if document.deadline_ms is None:
            until_ms = min(now_ms + tuning.hold_ms, last_ms)
            escalated_ms = min(began_ms + tuning.escalation_ms, last_ms)
        else:
            until_ms = escalated_ms = min(document.deadline_ms + 1, last_ms)
        self._books.enter(
            OpenProposal(
                message, key.region, document, document.deadline_ms, until_ms, escalated_ms, began_ms=began_ms
            )
        )

    def _take_query(self, message: Any) -> None:
        if not self._books.warm and message.timestamp < self._clock() - QUESTION_MS:
            return  # of the time before this owner: nobody waits for its answer
        self._counters.queries += 1
        try:
            region, query = self._books.region_of(message), read_query(message.value)
        except (NoRegion, BadQuery) as error:
            self.reject(message, str(error))
            return
        if query.query_id not in self._books.answered_queries:
            self.questions.append((message, region, query))

    def _take_outcome(self, message: Any) -> None:
        try:
            state = self._books.glance(self._books.region_of(message))
            outcome = OutcomeMessage.model_validate(parse_object(message.value))
        except ValidationError as error:
            self._reject_unless_told(message, self._books.reported.outcomes, _first_fault(error))
            return
        except (NoRegion, ValueError) as error:
            self._reject_unless_told(message, self._books.reported.outcomes, str(error))
            return
        self._counters.outcomes[outcome.outcome] += 1
        control = state.take_outcome(outcome, message.timestamp)
        if control is not None:
            self._books.open.touch(touched_by_outcome(state.region))
            if message.offset >= self._books.reported.outcomes and state.is_newest(control, message.timestamp):
                self._outbox.append(self._release.control(state.region, control))

    def _take_answer(self, message: Any) -> None:
        try:
            document = parse_object(message.value)
            if is_switch(document):
                self._take_switch(message, document)
                return
            state = self._books.glance(self._books.region_of(message))
            given = AnswerMessage.model_validate(document)
            state.take_answer(given, message.timestamp)
            self._books.keep(state)
        except ValidationError as error:
            self._reject_unless_told(message, self._books.reported.answers, _first_fault(error))
            return
        except (NoRegion, Contradiction, ValueError) as error:
            self._reject_unless_told(message, self._books.reported.answers, str(error))
            return
        self._counters.answers[given.verdict] += 1
        if message.offset >= self._books.reported.answers:
            self._books.open.note_answer(state.region, given.proposal_id)
        self._books.open.touch(touched_by_answer(state.region, given.proposal_id))

    def _take_switch(self, message: Any, document: Mapping[str, Any]) -> None:
        region = None if message.key is None else self._books.region_of(message)
        switch = read_switch(document, region)
        self._books.switches.take(Kept(region, message.offset, switch))
        self._books.open.touch(touched_by_switch(region))
        if message.offset >= self._books.reported.answers:
            log.warning(
                "switch",
                mode=switch.mode,
                region=region,
                partition=message.partition,
                operator=switch.operator,
                reason=switch.reason,
                switch_id=switch.switch_id,
            )

    def _reject_unless_told(self, message: Any, told: int, reason: str) -> None:
        """What is read again after a change of owner was told by its dead letter before."""
        if message.offset >= told:
            self.reject(message, reason)


def _may_hold_back(value: bytes | None) -> bool:
    """Whether a message on `answers` may be a switch to another mode than live."""
    try:
        document = parse_object(value)
    except ValueError:
        return False
    return is_switch(document) and document.get("mode") != "live"


def _first_fault(error: ValidationError) -> str:
    (path, reason), *_ = document_errors(error)
    return f"{path}: {reason}"
