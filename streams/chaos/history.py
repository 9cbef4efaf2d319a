"""What a chaos run did and saw: operations of the clients, faults, and the messages that the topics hold at the end.

All times are Unix ms; those of messages are the broker's append times.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

Status = Literal["ok", "fail", "unknown"]
"""Of an operation: acknowledged; surely not done; nobody knows (a timeout)."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message as a transactional reader sees it."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    append_time: bool = True
    """Whether the time is the broker's, of appending; else it is the producer's."""


@dataclass(frozen=True, slots=True)
class Op:
    """One proposal that a client sent, perhaps several times with the same bytes, and what it knows of it."""

    region: str
    proposal_id: str
    partition: int
    sent_ms: int
    status: Status


@dataclass(frozen=True, slots=True)
class Fault:
    """Something broken on purpose: what, whom, from when until when it was made whole again (by the harness's clock).

    `recovers`: whether every partition must decide again after `from_ms` (a recovery time is then measured).
    """

    kind: str
    whom: str
    from_ms: int
    until_ms: int
    recovers: bool = True


@dataclass(frozen=True, slots=True)
class PartitionHistory:
    """All topics of one partition, each in offset order, and the operations that went there.

    `foreign`: (topic, offset) of what the harness wrote to be refused: fuzz, and its own on the guard's topics.
    `records` is read once, for it may be large.
    """

    partition: int
    ops: Sequence[Op]
    proposals: Sequence[Message]
    telemetry: Sequence[Message]
    control: Sequence[Message]
    records: Iterable[Message]
    outcomes: Sequence[Message] = ()
    foreign: Set[tuple[str, int]] = frozenset()

    @property
    def append_times(self) -> bool:
        """Whether the times of the decisions are the broker's; else being late or stale cannot be judged by them."""
        return all(message.append_time for message in self.control)


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision on `control`, as far as the laws speak of it."""

    offset: int
    timestamp_ms: int
    proposal_id: str
    decision_id: str
    action: str
    attempt: int
    final: bool
    sequence: int
    decided_at_ms: int
    valid_until_ms: int | None
    control_key: str | None
    region: str
    evidence_offset: int
    released: Mapping[str, Any] | None = field(hash=False)
    used: Mapping[str, Sequence[str]] = field(hash=False)
    bindings: Mapping[str, Any] = field(hash=False)

    @property
    def key(self) -> tuple[str, str]:
        """The proposal that it decides."""
        return self.region, self.proposal_id


Key = tuple[str, str]
"""What a proposal goes by: its region and its id."""


def region_name(key: bytes | None) -> str:
    """The region that the key of a message names."""
    return (key or b"").decode("utf-8", "replace")


def read_object(value: bytes | None) -> dict[str, Any] | None:
    """The JSON object of a message; None where it is none."""
    try:
        document = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None


def read_decision(message: Message) -> Decided | None:
    """The decision that a message of `control` holds; None where it holds none."""
    document = read_object(message.value)
    if document is None:
        return None
    try:
        return Decided(
            offset=message.offset,
            timestamp_ms=message.timestamp_ms,
            proposal_id=document["proposal_id"],
            decision_id=document["decision_id"],
            action=document["action"],
            attempt=document["attempt"],
            final=document["final"],
            sequence=document["sequence"],
            decided_at_ms=document["decided_at_ms"],
            valid_until_ms=document["valid_until_ms"],
            control_key=document["control_key"],
            region=document["region"],
            evidence_offset=document["evidence"]["offset"],
            released=document["released"],
            used=document["used"],
            bindings=document["bindings"],
        )
    except (KeyError, TypeError):
        return None


def read_record(value: bytes | None) -> dict[str, Any] | None:
    """The decision of a message of `records`: plain, or the payload of a DSSE envelope; None where it holds neither."""
    document = read_object(value)
    if document is None or "payload" not in document:
        return document
    try:
        return read_object(base64.b64decode(document["payload"], validate=True))
    except (binascii.Error, TypeError, ValueError):
        return None
