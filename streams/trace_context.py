"""W3C trace context (Trace Context Level 1, sections 3.2 and 3.3) in the headers of Kafka messages.

The guard hands on what a proposal carries, so that whoever executes a decision can go on with the proposer's trace.
Pure: no tracing library is needed for that.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
_TRACEPARENT: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_LONGEST_STATE: Final = 4_096


class TraceParent(NamedTuple):
    """Where a trace comes from. `state`: the header `tracestate` as it came; empty: none."""

    trace_id: int
    span_id: int
    flags: int
    state: bytes


def trace_parent(headers: Iterable[tuple[str, bytes | None]]) -> TraceParent | None:
    """The trace context in a message's headers (of repeated ones the last); None where there is none that is valid."""
    found = {name: value for name, value in headers if value is not None and name in (TRACEPARENT, TRACESTATE)}
    match = _TRACEPARENT.fullmatch(found.get(TRACEPARENT, b""))
    if match is None:
        return None
    version, trace_id, span_id, flags, more = match.groups()
    known = version != b"ff" and not (version == b"00" and more is not None)
    if not known or int(trace_id, 16) == 0 or int(span_id, 16) == 0:
        return None
    state = found.get(TRACESTATE, b"")
    state = state if len(state) <= _LONGEST_STATE else b""
    return TraceParent(int(trace_id, 16), int(span_id, 16), int(flags, 16), state)


def span_of(event_id: str) -> int:
    """The span id of a decision, from its event id: it is known before the decision is written, and its span after."""
    return int.from_bytes(hashlib.sha256(event_id.encode()).digest()[:8], "big") or 1


def passed_on(headers: Iterable[tuple[str, bytes | None]], span_id: int | None) -> list[tuple[str, bytes]]:
    """The headers that carry a message's trace context on. `span_id`: of the guard's own span, the new parent; None:
    it makes none, and the parent stays who it was.
    """
    parent = trace_parent(headers)
    if parent is None:
        return []
    own = parent.span_id if span_id is None else span_id
    value = f"00-{parent.trace_id:032x}-{own:016x}-{parent.flags & 1:02x}"
    found = [(TRACEPARENT, value.encode())]
    return [*found, (TRACESTATE, parent.state)] if parent.state else found
