"""Dead letters: what could not be used, with its place, the reason and its bytes. The stream goes on."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

import orjson

from streams.messages import DeadLetterMessage

_ENVELOPE_BYTES: Final = 4096
_REASON_CHARACTERS: Final = 1000


def dead_letter(
    *,
    topic: str,
    partition: int,
    offset: int,
    timestamp_ms: int | None,
    key: bytes | None,
    value: bytes | None,
    reason: str,
    max_bytes: int,
    last_offset: int | None = None,
) -> bytes:
    """The dead letter of one message.

    A letter of more than `max_bytes` leaves the value out and carries its length and SHA-256 instead; the message
    itself stands in its topic, at the offset named, as long as the topic keeps it.
    """
    reason = reason[:_REASON_CHARACTERS]
    fits = value is None or _base64_length(len(value)) + _base64_length(len(key or b"")) + _ENVELOPE_BYTES <= max_bytes
    if not fits:
        reason += f" (value of {len(value or b'')} bytes not carried: more than a letter may hold)"
    message = DeadLetterMessage(
        topic=topic,
        partition=partition,
        offset=offset,
        last_offset=last_offset,
        timestamp_ms=timestamp_ms,
        key=_text(key if _base64_length(len(key or b"")) + _ENVELOPE_BYTES <= max_bytes else None),
        value=_text(value) if fits else None,
        value_bytes=None if value is None else len(value),
        value_sha256=None if value is None else hashlib.sha256(value).hexdigest(),
        reason=reason,
    )
    return orjson.dumps(message.model_dump())


def carried_value(letter: DeadLetterMessage) -> bytes | None:
    """The bytes a dead letter carries, or None where it carries none."""
    return None if letter.value is None else base64.b64decode(letter.value, validate=True)


def _base64_length(size: int) -> int:
    return (size + 2) // 3 * 4


def _text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()
