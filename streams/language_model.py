"""A language model behind any server that speaks OpenAI's chat completions, as a backbone of the benchmark."""

from __future__ import annotations

import json
import math
import random
import re
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from simulators.optbench.agents import Completion, Prompt
from streams.language_model_cache import Question, Reply, ReplyCache, token_count
from streams.language_model_server import ChatServer, NoResponse

BASE_URL: Final = "https://api.openai.com/v1"
MAX_WAIT_S: Final = 60.0
"""The longest wait before a call is tried again, also where the server asks for a longer one."""
FIRST_WAIT_S: Final = 0.5
GIVES_UP_AT_FIRST: Final = 3
"""Calls in a row that find no server, or are not let in, after which a run is given up that had no reply yet."""
GIVES_UP_LATER: Final = 8
"""The same of a run that had one."""
_TOKENS_PER_PRICE: Final = 1_000_000
_RETRIED: Final = frozenset({408, 409, 429})
"""Statuses below 500 that pass by themselves: timeout, lock timeout, rate limit."""
_NOT_HERE: Final = frozenset({*range(300, 400), 401, 403, 404, 405})
"""Statuses that every call gets: the service is elsewhere, or lets nobody in."""
_SHOWN: Final = 300
_SHORTEST_SECRET: Final = 8
"""Characters of a key from which it is struck out; shorter ones are placeholders, as EMPTY, and words of replies."""
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_REFUSES: Final = re.compile("unsupported|not supported|unrecognized|unknown|not permitted|forbidden|deprecated")


class _Failed(Exception):
    """A call that brought no reply. `again`: whether to try again; `wait_s`: what the server asked to wait.

    `absent`: there is no such server, or it lets nobody in: other calls would go the same way.
    """

    def __init__(self, reason: str, *, again: bool, absent: bool = False, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.again = again
        self.absent = absent
        self.wait_s = wait_s


class _Unaccepted(Exception):
    """The server does not know, or does not let be chosen, this sampling parameter."""


class LanguageModel:
    """A backbone (`simulators.optbench.agents.Backbone`) that asks a server; threads may share one.

    `timeout_s` bounds one call, its reply read to the end; calls that fail for a passing reason (429, 5xx, timeouts,
    lost connections, no JSON) are tried again up to `retries` times. Prices are US dollars per million tokens.
    `cache`: where replies are looked up first and kept; with `replay_only` nothing is ever sent, and where `base_url`
    is None a reply of any server answers; otherwise None is OpenAI's. `api_key` None: the server wants none. It goes
    into one header of each call, and nowhere else. `tell` gets the first failure, as soon as it is there. Raises
    ValueError where a replay of any server finds two that replied differently.
    """

    synthetic = False

    def __init__(
        self,
        name: str,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        cache: ReplyCache | None = None,
        replay_only: bool = False,
        timeout_s: float = 60.0,
        retries: int = 5,
        price_in: float | None = None,
        price_out: float | None = None,
        seed: int = 0,
        tell: Callable[[str], object] = lambda _: None,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self.name = name
        self._model = model
        self._api_key = api_key
        self._cache = cache
        self._replay_only = replay_only
        self._retries = retries
        self._prices = (price_in, price_out)
        self._parameters: Mapping[str, Any] = {"temperature": 0, "seed": seed}
        self._any_server = replay_only and base_url is None
        self.server = self._servers() if self._any_server else (base_url or BASE_URL).rstrip("/")
        """The address that is asked; of a replay of any server, of those in the cache."""
        self._chat = ChatServer(self.server, api_key, timeout_s)
        self._unaccepted: frozenset[str] = frozenset()
        self._tell = tell
        self._stopped = threading.Event()
        self._sleep = sleep or self._stopped.wait
        self._counting = threading.Lock()
        self._told = self._answered = False
        self._absent_in_a_row = 0
        self._gave_up: str | None = None

    def gave_up(self) -> str | None:
        """Why nothing is sent any more: the server is not there or lets nobody in; None while it is asked."""
        return self._gave_up

    def complete(self, prompt: Prompt) -> Completion:
        """The model's answer. A call that fails for good says so in `error`, and is asked again by a later run.

        With `replay_only` a failure that the cache holds is replayed too, so that a replay gives what the run gave.
        """
        server = None if self._any_server else self.server
        question = Question.of(self._model, server, self._parameters, prompt.messages)
        known = self._cache.get(question) if self._cache else None
        if known is not None and (known.error is None or self._replay_only):
            return self._completion(known, cached=True)
        if self._replay_only:
            why = f": {self._cache.why_missing(question)}" if self._cache else ""
            return Completion("", error=_one_line(f"replay only: the cache holds no reply to this prompt{why}"))
        if self._gave_up is not None:
            return Completion("", error=self._gave_up)
        reply = self._ask([{"role": role, "content": text} for role, text in prompt.messages])
        if self._cache:
            try:
                reply = self._cache.keep(question, reply)
            except OSError as error:
                return Completion("", error=f"the cache cannot be written: {error.strerror or error}")
        return self._completion(reply, cached=False)

    def _servers(self) -> str:
        if self._cache is None:
            return BASE_URL
        differing = self._cache.disagreeing(self._model, self._parameters)
        if differing is not None:
            raise ValueError(f"of {self._model}, {' and '.join(differing)} gave different replies to one prompt")
        return " and ".join(self._cache.servers(self._model, self._parameters)) or BASE_URL

    def _completion(self, reply: Reply, *, cached: bool) -> Completion:
        parts = [
            None if tokens is None or price is None else tokens * price / _TOKENS_PER_PRICE
            for tokens, price in zip((reply.tokens_in, reply.tokens_out), self._prices, strict=True)
        ]
        known = [part for part in parts if part is not None and math.isfinite(part)]
        cost = sum(known) if len(known) == len(parts) else None
        return Completion(reply.text, reply.tokens_in or 0, reply.tokens_out or 0, cost, cached, reply.error)

    def _ask(self, messages: list[dict[str, str]]) -> Reply:
        tries = 0
        left_out = self._unaccepted
        while True:
            sent = {name: value for name, value in self._parameters.items() if name not in left_out}
            try:
                reply = self._call(messages, sent)
            except _Unaccepted as error:
                left_out |= {str(error)}
            except _Failed as error:
                tries += 1
                self._tell_first(error)
                if not error.again or tries > self._retries or self._gave_up is not None:
                    times = f" ({tries} tries)" if tries > 1 else ""
                    reason = self._without_key(f"{error}{times}")
                    self._count(absent=f"{self.server}: {reason}" if error.absent else None)
                    return Reply("", error=reason, sent=sent)
                self._sleep(_wait_s(tries, error.wait_s))
            else:
                self._unaccepted |= left_out  # only now is it known that these were the reason
                self._count(absent=None, answered=True)
                return reply

    def _call(self, messages: list[dict[str, str]], sent: dict[str, Any]) -> Reply:
        """One call. Raises _Failed, and _Unaccepted for a parameter of `sent`."""
        try:
            response = self._chat.ask({"model": self._model, "messages": messages, **sent})
        except NoResponse as error:
            raise _Failed(str(error), again=error.again, absent=error.silent) from error
        if not 200 <= response.status < 300:
            raise _refusal(response.status, _told(response.body), response.retry_after, sent)
        reply = _reply(response.body, sent)
        return Reply(self._struck_out(reply.text), reply.tokens_in, reply.tokens_out, sent=sent)

    def _count(self, *, absent: str | None, answered: bool = False) -> None:
        """Counts a call that ended; gives up after too many in a row whose server was `absent`, for that reason."""
        with self._counting:
            self._answered |= answered
            self._absent_in_a_row = 0 if absent is None else self._absent_in_a_row + 1
            if self._absent_in_a_row >= (GIVES_UP_LATER if self._answered else GIVES_UP_AT_FIRST):
                self._gave_up = self._gave_up or absent
                self._stopped.set()

    def _tell_first(self, error: _Failed) -> None:
        with self._counting:
            told, self._told = self._told, True
        if not told:
            again = "; it is tried again" if error.again and self._retries else ""
            self._tell(f"{self.name}: {self.server}: {self._without_key(str(error))}{again}")

    def _without_key(self, reason: str) -> str:
        return _one_line(self._struck_out(reason))

    def _struck_out(self, text: str) -> str:
        """Text as it may be kept: without the key, which a server may echo, and such that it can be sent again."""
        key = self._api_key or ""
        return _LONE_SURROGATE.sub("\ufffd", text.replace(key, "[key]") if len(key) >= _SHORTEST_SECRET else text)


def _told(body: bytes) -> Any:
    """What an error's body says: its member `error` where it is such an object, else the whole."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return body.decode(errors="replace")
    return document.get("error", document) if isinstance(document, dict) else document


def _refusal(status: int, told: Any, retry_after: str | None, sent: Mapping[str, Any]) -> Exception:
    """What an HTTP status other than 2xx means for the call."""
    if status in (401, 403):  # what the server says then may show a part of the key
        return _Failed(f"HTTP {status}: the server refuses the key", again=False, absent=True)
    message = told.get("message", told) if isinstance(told, dict) else told
    if status in (400, 422):
        named = told.get("param") if isinstance(told, dict) else None
        for parameter in sent:
            if named == parameter or (named is None and _refuses(str(message), parameter)):
                return _Unaccepted(parameter)
    reason = f"HTTP {status}: {message}" if message else f"HTTP {status}"
    again = status >= 500 or status in _RETRIED
    return _Failed(reason, again=again, absent=status in _NOT_HERE, wait_s=_asked_s(retry_after))


def _refuses(message: str, parameter: str) -> bool:
    """Whether a sentence of an error says that it does not take this parameter."""
    sentences = re.split(r"[.;!\n](?:\s|$)", message.lower())
    return any(_REFUSES.search(one) and re.search(rf"\b{parameter}\b", one) for one in sentences)


def _asked_s(retry_after: str | None) -> float | None:
    """Seconds that a Retry-After header (RFC 9110, 10.2.3) asks to wait; None where it says nothing usable."""
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return seconds if seconds >= 0 else None  # of not-a-number, None


def _wait_s(tries: int, asked_s: float | None) -> float:
    if asked_s is not None:
        return min(asked_s, MAX_WAIT_S)
    return min(FIRST_WAIT_S * 2.0 ** (tries - 1), MAX_WAIT_S) * random.uniform(0.75, 1.0)


def _reply(data: bytes, sent: Mapping[str, Any]) -> Reply:
    """The first choice of a chat completion. Raises _Failed for what is none: a proxy may have spoken, so try again.

    A message without text (a refusal, calls of tools alone) is what the model said: nothing.
    """
    try:
        document = json.loads(data)
        content = document["choices"][0]["message"].get("content")
        usage = document.get("usage")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _Failed("the reply is no chat completion", again=True, absent=True) from error
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    told = usage if isinstance(usage, dict) else {}
    return Reply(
        "".join(text for text in texts if isinstance(text, str)),
        token_count(told.get("prompt_tokens")),
        token_count(told.get("completion_tokens")),
        sent=sent,
    )


def _one_line(reason: str) -> str:
    return " ".join(reason.split())[:_SHOWN]
