"""The messages that a guard writes for one partition: chained and sealed records, signed decisions, and the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import orjson

from streams.deadletters import dead_letter
from streams.deciding import Outcome, Stamp
from streams.headers import cloud_event, decision_event
from streams.left_open import LeftOpen
from streams.messages import OutcomeMessage
from streams.publishing import Headers, Outgoing
from streams.settings import GuardSettings
from streams.switching import Kept, kept_document
from streams.trace_context import passed_on, span_of
from xapp.chain import CHECKPOINT_TYPE, RECORD_TYPE, Chain
from xapp.model import AppliedControl
from xapp.signing import Signer, seal, sign_document

_SINGLE_LETTERS: Final = 100
_OVERHEAD_BYTES: Final = 1_000
"""More than the headers, the key and Kafka's framing of one message take."""


class Release:
    """Makes the messages of one partition. `clock` gives Unix ms; without a `signer` they say they are unsigned; where
    the guard is `traced`, decisions name its own span as the one to go on from.
    """

    def __init__(
        self,
        partition: int,
        settings: GuardSettings,
        clock: Callable[[], int],
        signer: Signer | None,
        traced: bool = False,
    ) -> None:
        self._partition = partition
        self._topics = settings.topics
        self._guard = settings.guard_name
        self._clock = clock
        self._signer = signer
        self._traced = traced
        self._source = f"/wirelessops/guard/{settings.guard_name}"
        self._max_bytes = settings.max_message_bytes

    def fits(self, outgoing: Outgoing) -> bool:
        """Whether a message is within what the guard may write."""
        return len(outgoing.value) + len(outgoing.key or b"") + _OVERHEAD_BYTES <= self._max_bytes

    def record(self, key: bytes, outcome: Outcome, stamp: Stamp, t_ms: int, chain: Chain) -> tuple[Outgoing, Chain]:
        """The full record, next in the chain."""
        payload, after = chain.append(outcome.record_value)
        value = seal(payload, RECORD_TYPE, self._signer)
        return self._keyed(self._topics.records, key, value, self._id(outcome, stamp), "record/1", t_ms), after

    def decision(self, proposal: Any, outcome: Outcome, stamp: Stamp, t_ms: int) -> list[Outgoing]:
        """The decision on the proposal of a message, and the request of a RETRY: both carry its trace context on."""
        names, identity, key = self._topics, self._id(outcome, stamp), proposal.key
        value = sign_document(outcome.control_value, self._signer)
        until_ms = outcome.decision.valid_until_ms
        found = [self._keyed(names.control, key, value, identity, "decision/1", t_ms, until_ms)]
        if outcome.request_value is not None:
            found.append(self._keyed(names.requests, key, outcome.request_value, identity, "request/1", t_ms))
        trace = passed_on(proposal.headers, span_of(identity) if self._traced else None)
        for outgoing in found:
            outgoing.headers.extend(trace)
        return found

    def outcome(self, key: bytes, outcome: OutcomeMessage) -> Outgoing:
        """What the guard saw, or missed, of a control."""
        value, identity = orjson.dumps(outcome.model_dump()), f"{outcome.decision_id}/{outcome.outcome}"
        return self._keyed(self._topics.outcomes, key, value, identity, "outcome/1", outcome.at_ms)

    def control(self, region: str, control: AppliedControl) -> Outgoing:
        """A control as it stands now: the newest of its key, which outlives the decisions that can be read back."""
        value = sign_document(
            orjson.dumps({"format": "wirelessops.control/1", "region": region, "control": control}), self._signer
        )
        key = orjson.dumps([region, control.control_key])
        time_ms = control.applied_at_ms or control.granted_at_ms
        return self._keyed(self._topics.controls, key, value, control.decision_id, "control/1", time_ms)

    def switched(self, kept: Kept) -> Outgoing:
        """A switch as it stands now: the newest of its scope, which outlives the message that brought it."""
        value = sign_document(kept_document(kept, self._partition), self._signer)
        key = orjson.dumps({"switch": kept.region})
        message = kept.message
        return self._keyed(self._topics.controls, key, value, message.switch_id, "switched/1", message.at_ms)

    def left_open(self, left: LeftOpen) -> Outgoing:
        """What is open now: the newest of the partition."""
        value = sign_document(left.document(self._partition), self._signer)
        key, identity = orjson.dumps({"open": self._partition}), f"{self._partition}/{left.sequence}"
        return self._keyed(self._topics.controls, key, value, identity, "open/1", self._clock())

    def view(self, key: bytes, query_id: str, value: bytes) -> Outgoing:
        """The answer to a question."""
        return self._keyed(self._topics.views, key, value, query_id, "view/1", self._clock())

    def checkpoint(self, chain: Chain) -> Outgoing:
        """How far the chain of records goes."""
        at_ms = self._clock()
        checkpoint = chain.checkpoint(topic=self._topics.records, at_ms=at_ms, guard=self._guard)
        value = seal(checkpoint.payload(), CHECKPOINT_TYPE, self._signer)
        identity = f"{checkpoint.topic}/{checkpoint.partition}/{checkpoint.index}"
        return self._message(self._topics.checkpoints, self._partition, None, value, identity, "checkpoint/1", at_ms)

    def letter(self, **letter: Any) -> Outgoing:
        """A dead letter (arguments of `deadletters.dead_letter` but the bound)."""
        value = dead_letter(**letter, max_bytes=self._max_bytes - _OVERHEAD_BYTES)
        identity = f"{letter['topic']}/{letter['partition']}/{letter['offset']}"
        return self._message(self._topics.dead_letters, None, None, value, identity, "dead-letter/1", self._clock())

    def letter_of(self, message: Any, reason: str, *, carried: bool = True) -> Outgoing:
        """The dead letter of a consumed message, with its bytes where they are to be carried."""
        return self.letter(
            topic=message.topic,
            partition=message.partition,
            offset=message.offset,
            timestamp_ms=message.timestamp,
            key=message.key,
            value=message.value if carried else None,
            reason=reason,
        )

    def shortened(self, letter: Outgoing) -> list[Outgoing]:
        """A dead letter without the bytes it carries, for a broker that takes less; none where that is no help."""
        if letter.topic != self._topics.dead_letters:
            return []
        document = orjson.loads(letter.value)
        if document["value"] is None:
            return []
        document |= {"value": None, "reason": document["reason"] + " (value not carried: larger than the broker takes)"}
        return [replace(letter, value=orjson.dumps(document))]

    def lost_range(self, topic: str, first: int, last: int, reason: str) -> list[Outgoing]:
        """Dead letters of offsets that could not be read: one for each, the last one for all that remain."""
        singles = min(last, first + _SINGLE_LETTERS - 1)
        return [
            self.letter(
                topic=topic,
                partition=self._partition,
                offset=offset,
                last_offset=last if offset == singles else offset,
                timestamp_ms=None,
                key=None,
                value=None,
                reason=reason,
            )
            for offset in range(first, singles + 1)
        ]

    def _id(self, outcome: Outcome, stamp: Stamp) -> str:
        return decision_event(outcome.decision.decision_id, stamp.attempt)

    def _keyed(
        self, topic: str, key: bytes, value: bytes, identity: str, kind: str, time_ms: int, until_ms: int | None = None
    ) -> Outgoing:
        return self._message(topic, self._partition, key, value, identity, kind, time_ms, until_ms)

    def _message(
        self, topic: str, partition: int | None, key: bytes | None, value: bytes, identity: str, kind: str,
        time_ms: int, until_ms: int | None = None,
    ) -> Outgoing:  # fmt: skip
        headers: Headers = cloud_event(
            event_id=identity, source=self._source, kind=f"wirelessops.{kind}", time_ms=time_ms
        )
        return Outgoing(topic, partition, key, value, headers, until_ms)
