"""Replies of language models on disk: one JSON line each, found again by what was asked."""

from __future__ import annotations

import fcntl
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

MAX_TOKENS: Final = 2**40
"""The largest count of tokens that is believed; sums over any run stay below 2**63, which JSON readers hold."""


@dataclass(frozen=True, slots=True)
class Question:
    """What tells a call from others. Who asks (the key of the service) is no part of it.

    `base_url` None: of any server. `parameters`: those asked for, as JSON. `prompt`: SHA-256 of the messages.
    """

    model: str
    base_url: str | None
    parameters: str
    prompt: str

    @classmethod
    def of(
        cls, model: str, base_url: str | None, parameters: Mapping[str, Any], messages: Sequence[tuple[str, str]]
    ) -> Question:
        """The question of `messages`: (role, text) each."""
        return cls(model, base_url, _canonical(parameters), hashlib.sha256(_canonical(messages).encode()).hexdigest())


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


def token_count(value: Any) -> int | None:
    """A count of tokens, 0 to MAX_TOKENS; None of anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS else None


class ReplyCache:
    """Replies by question; every new one is appended at once, so that a killed run loses none that it has.

    Threads, and runs, may share a file: of the replies to a question the first in the file holds; of failures, the
    last, until there is a reply. `damaged` counts the lines that hold no reply, as a killed run may leave one: they are
    passed over. Raises OSError where the file cannot be read or written, and where it is no regular file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._replies: dict[Question, Reply] = {}
        self._of_prompt: dict[str, list[Question]] = {}
        self._end = 0
        self._torn = False
        self.damaged = 0
        if path.exists():
            if not path.is_file():
                raise OSError("not a regular file")
            with path.open("rb") as stream:
                fcntl.flock(stream, fcntl.LOCK_SH)
                self._take(stream)

    def get(self, question: Question) -> Reply | None:
        """The reply to a question; failures too (see `Reply.error`). Of any server, the first that is no failure."""
        if question.base_url is not None:
            return self._replies.get(question)
        asked = self._asked(question.prompt)
        fitting = [self._replies[one] for one in asked if replace(one, base_url=None) == question]
        return next((reply for reply in fitting if reply.error is None), fitting[0] if fitting else None)

    def why_missing(self, question: Question) -> str:
        """How a question differs from what the cache has of the same prompt."""
        nearest: list[str] = []
        for one in self._asked(question.prompt):
            told = [
                f"{name} {getattr(one, member)}, not {getattr(question, member)}"
                for name, member in (("model", "model"), ("server", "base_url"), ("parameters", "parameters"))
                if getattr(question, member) not in (None, getattr(one, member))
            ]
            if not nearest or len(told) < len(nearest):
                nearest = told
        return f"it holds one of {'; '.join(nearest)}" if nearest else "the prompt was never asked"

    def servers(self, model: str, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        """The servers that such questions were put to, sorted."""
        return tuple(sorted({one.base_url or "" for one in self._fitting(model, parameters)}))

    def disagreeing(self, model: str, parameters: Mapping[str, Any]) -> tuple[str, str] | None:
        """Two servers that replied differently, or counted differently, to one such question; None where none did."""
        first: dict[str, tuple[str, tuple[Any, ...]]] = {}
        for one in self._fitting(model, parameters):
            reply = self._replies[one]
            said = (reply.text, reply.tokens_in, reply.tokens_out)
            if reply.error is not None:
                continue
            server, before = first.setdefault(one.prompt, (one.base_url or "", said))
            if before != said:
                return server, one.base_url or ""
        return None

    def keep(self, question: Question, reply: Reply) -> Reply:
        """Keep it, unless the question has been answered meanwhile; gives the reply that holds from now on."""
        with self._lock, self._path.open("a+b") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            self._take(stream)
            known = self._replies.get(question)
            if known is not None and (known.error is None or known == reply):
                return known
            line = json.dumps({"asked": asdict(question)} | asdict(reply)).encode() + b"\n"
            stream.write(b"\n" + line if self._torn else line)
            stream.flush()
            self._end, self._torn = stream.tell(), False
            self._hold(question, reply)
            return reply

    def _take(self, stream: BinaryIO) -> None:
        """Reads what was written since; the lock on the file is held, so that a half line is one of a killed run."""
        stream.seek(self._end)
        data = stream.read()
        self._end += len(data)
        self._torn = not data.endswith(b"\n") if data else self._torn
        for line in filter(None, data.split(b"\n")):
            entry = _read(line)
            if entry is None:
                self.damaged += 1
            else:
                self._hold(*entry)

    def _hold(self, question: Question, reply: Reply) -> None:
        known = self._replies.get(question)
        if known is None:
            self._of_prompt.setdefault(question.prompt, []).append(question)
        if known is None or known.error is not None:
            self._replies[question] = reply

    def _asked(self, prompt: str) -> Sequence[Question]:
        return tuple(self._of_prompt.get(prompt, ()))

    def _fitting(self, model: str, parameters: Mapping[str, Any]) -> Iterator[Question]:
        asked = _canonical(parameters)
        return (one for one in self._replies if one.model == model and one.parameters == asked)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _read(line: bytes) -> tuple[Question, Reply] | None:
    try:
        entry = json.loads(line)
        question, reply = Question(**entry.pop("asked")), Reply(**entry)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    texts = (question.model, question.base_url, question.parameters, question.prompt, reply.text)
    counts = (reply.tokens_in, reply.tokens_out)
    sound = (
        all(isinstance(text, str) for text in texts)
        and all(count is None or token_count(count) is not None for count in counts)
        and (reply.error is None or isinstance(reply.error, str))
        and (reply.sent is None or isinstance(reply.sent, dict))
    )
    return (question, reply) if sound else None
