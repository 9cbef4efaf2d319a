"""JSON from a stranger, read within bounds: size and nesting (rules of assurance, section 8), finite numbers only."""

from __future__ import annotations

from typing import Any, Final

import orjson

MAX_BYTES: Final = 10_000_000
"""A document of more than 10 MB is invalid (rules of assurance, section 8)."""

MAX_DEPTH: Final = 100
"""So is one nested deeper than 100 (same place)."""


def parse_json(value: bytes | None) -> Any:
    """The document in `value`. Raises ValueError with a reason for a person: empty, too large, too deep, not JSON.

    NaN and Infinity are not JSON.
    """
    if value is None:
        raise ValueError("a tombstone: the message has no value")
    if not value:
        raise ValueError("the value is empty")
    if len(value) > MAX_BYTES:
        raise ValueError(f"{len(value)} bytes, more than {MAX_BYTES}")
    try:
        document = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    if value.count(b"[") + value.count(b"{") > MAX_DEPTH and _deeper_than(document, MAX_DEPTH):
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    return document


def parse_object(value: bytes | None) -> dict[str, Any]:
    """As `parse_json`, and the document must be an object."""
    document = parse_json(value)
    if not isinstance(document, dict):
        raise ValueError(f"a JSON object is required, not {type(document).__name__}")
    return document


def _deeper_than(document: Any, bound: int) -> bool:
    """Whether containers nest deeper than `bound`, level by level: no recursion."""
    level = [document] if isinstance(document, dict | list) else []
    for _ in range(bound):
        if not level:
            return False
        level = [
            child
            for container in level
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, dict | list)
        ]
    return bool(level)
