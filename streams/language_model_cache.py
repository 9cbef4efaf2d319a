"""Replies of language models on disk: one JSON line each, found again by what was asked."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said, or why a call failed for good. Token counts are None where the server told none.

    `sent`: the sampling parameters that the server accepted.
    """

    text: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    error: str | None = None
    sent: Mapping[str, Any] | None = None


def key(model: str, base_url: str, parameters: Mapping[str, Any], messages: Sequence[tuple[str, str]]) -> str:
    """SHA-256 of a question, as hexadecimal digits. Who asks (the key of the service) is no part of it."""
    asked = {"model": model, "base_url": base_url, "parameters": dict(parameters), "messages": messages}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class ReplyCache:
    """Replies by the question's key; every new one is appended at once, so that a killed run loses none that it has.

    Threads may share one. `damaged` counts the lines that hold no reply, as a killed run may leave one: they are passed
    over. Raises OSError where the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._replies: dict[str, Reply] = {}
        self.damaged = 0
        data = path.read_bytes() if path.exists() else b""
        self._torn = bool(data) and not data.endswith(b"\n")
        for line in data.splitlines():
            if entry := _read(line):
                self._replies[entry[0]] = entry[1]
            else:
                self.damaged += 1

    def get(self, question: str) -> Reply | None:
        """The reply to a question; failures too (see `Reply.error`)."""
        return self._replies.get(question)

    def keep(self, question: str, reply: Reply) -> Reply:
        """Keep it, unless the question has been answered meanwhile; gives the reply that holds from now on."""
        with self._lock:
            known = self._replies.get(question)
            if known is not None and (known.error is None or known == reply):
                return known
            line = json.dumps({"key": question} | asdict(reply)).encode() + b"\n"
            with self._path.open("ab") as stream:
                stream.write(b"\n" + line if self._torn else line)
            self._torn = False
            self._replies[question] = reply
            return reply


def _read(line: bytes) -> tuple[str, Reply] | None:
    try:
        entry = json.loads(line)
        return entry.pop("key"), Reply(**entry)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
