"""CloudEvents attributes as Kafka headers (CloudEvents 1.0, Kafka protocol binding, binary content mode)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

JSON: Final = b"application/json"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def cloud_event(*, event_id: str, source: str, kind: str, time_ms: int) -> list[tuple[str, bytes]]:
    """Headers of one message.

    `event_id` is unique within `source`, a URI reference; `kind`: the value's `format`
    (`wirelessops.decision/1` gives the type `wirelessops.decision.v1`); `time_ms`: Unix ms, written as RFC 3339.
    """
    return [
        ("ce_specversion", b"1.0"),
        ("ce_id", event_id.encode()),
        ("ce_source", source.encode()),
        ("ce_type", kind.replace("/", ".v").encode()),
        ("ce_time", rfc3339(time_ms).encode()),
        ("content-type", JSON),
    ]


def decision_event(decision_id: str, attempt: int) -> str:
    """The event id of an attempt at a decision: of its record, its decision and its request."""
    return f"{decision_id}/{attempt}"


def rfc3339(time_ms: int) -> str:
    """Unix ms as RFC 3339 in UTC with milliseconds; times beyond the year 9999 saturate."""
    try:
        moment = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return "9999-12-31T23:59:59.999Z"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def attributes(headers: Iterable[tuple[str, bytes | None]]) -> dict[str, str]:
    """CloudEvents attributes of a message's headers, without the `ce_` prefix; what is not UTF-8 is left out."""
    found: dict[str, str] = {}
    for name, value in headers:
        if name.startswith("ce_") and value is not None:
            try:
                found[name[3:]] = value.decode()
            except UnicodeDecodeError:
                continue
    return found
