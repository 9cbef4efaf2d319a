"""A language model behind any server that speaks OpenAI's chat completions, as a backbone of the benchmark."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from simulators.optbench.agents import Completion, Prompt
from streams.language_model_cache import Reply, ReplyCache, key

if TYPE_CHECKING:
    from openai import OpenAI

BASE_URL: Final = "https://api.openai.com/v1"
MAX_WAIT_S: Final = 60.0
"""The longest wait before a call is tried again, also where the server asks for a longer one."""
FIRST_WAIT_S: Final = 0.5
MAX_REPLY_BYTES: Final = 4_000_000
_TOKENS_PER_PRICE: Final = 1_000_000
_RETRIED: Final = frozenset({408, 409, 429})
"""Statuses below 500 that pass by themselves: timeout, lock timeout, rate limit."""
_NO_KEY: Final = "none"
_SHOWN: Final = 300


class _Failed(Exception):
    """A call that brought no reply. `again`: whether to try again; `wait_s`: what the server asked to wait."""

    def __init__(self, reason: str, *, again: bool, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.again = again
        self.wait_s = wait_s


class _Unaccepted(Exception):
    """The server does not know, or does not let be chosen, this sampling parameter."""


class LanguageModel:
    """A backbone (`simulators.optbench.agents.Backbone`) that asks a server; threads may share one.

    `timeout_s` bounds one call, its reply read to the end; calls that fail for a passing reason (429, 5xx, timeouts,
    lost connections, no JSON) are tried again up to `retries` times. Prices are US dollars per million tokens.
    `cache`: where replies are looked up first and kept; with `replay_only` nothing is ever sent. `api_key` None: the
    server wants none. It goes into one header of each call, and nowhere else.
    """

    synthetic = False

    def __init__(
        self,
        name: str,
        model: str,
        base_url: str = BASE_URL,
        api_key: str | None = None,
        *,
        cache: ReplyCache | None = None,
        replay_only: bool = False,
        timeout_s: float = 60.0,
        retries: int = 5,
        price_in: float | None = None,
        price_out: float | None = None,
        seed: int = 0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name = name
        self._model = model
        self._base_url = base_url.rstrip("/")
        self._api_key = api_key
        self._cache = cache
        self._replay_only = replay_only
        self._timeout_s = timeout_s
        self._retries = retries
        self._prices = (price_in, price_out)
        self._parameters: Mapping[str, Any] = {"temperature": 0, "seed": seed}
        self._unaccepted: frozenset[str] = frozenset()
        self._sleep = sleep
        self._connecting = threading.Lock()
        self._connected: OpenAI | None = None

    def complete(self, prompt: Prompt) -> Completion:
        """The model's answer. A call that fails for good says so in `error`, and is asked again by a later run.

        With `replay_only` a failure that the cache holds is replayed too, so that a replay gives what the run gave.
        """
        question = key(self._model, self._base_url, self._parameters, prompt.messages)
        known = self._cache.get(question) if self._cache else None
        if known is not None and (known.error is None or self._replay_only):
            return self._completion(known, cached=True)
        if self._replay_only:
            return Completion("", error="replay only: the cache holds no reply to this prompt")
        reply = self._ask([{"role": role, "content": text} for role, text in prompt.messages])
        if self._cache:
            try:
                reply = self._cache.keep(question, reply)
            except OSError as error:
                return Completion("", error=f"the cache cannot be written: {error.strerror or error}")
        return self._completion(reply, cached=False)

    def _completion(self, reply: Reply, *, cached: bool) -> Completion:
        parts = [
            None if tokens is None or price is None else tokens * price / _TOKENS_PER_PRICE
            for tokens, price in zip((reply.tokens_in, reply.tokens_out), self._prices, strict=True)
        ]
        known = [part for part in parts if part is not None]
        cost = sum(known) if len(known) == len(parts) else None
        return Completion(reply.text, reply.tokens_in or 0, reply.tokens_out or 0, cost, cached, reply.error)

    def _ask(self, messages: list[dict[str, str]]) -> Reply:
        tries = 0
        while True:
            sent = {name: value for name, value in self._parameters.items() if name not in self._unaccepted}
            try:
                return self._call(messages, sent)
            except _Unaccepted as error:
                self._unaccepted |= {str(error)}
            except _Failed as error:
                tries += 1
                if not error.again or tries > self._retries:
                    times = f" ({tries} tries)" if tries > 1 else ""
                    return Reply("", error=self._without_key(f"{error}{times}"), sent=sent)
                self._sleep(_wait_s(tries, error.wait_s))

    def _call(self, messages: list[dict[str, str]], sent: dict[str, Any]) -> Reply:
        """One call. Raises _Failed, and _Unaccepted for a parameter of `sent`."""
        import openai

        ends = time.monotonic() + self._timeout_s
        body = {"model": self._model, "messages": messages, **sent}
        try:
            with self._client().chat.completions.with_streaming_response.create(**body) as response:
                data = b""
                for block in response.iter_bytes():
                    data += block
                    if time.monotonic() > ends:
                        raise _Failed(f"no whole reply within {self._timeout_s:g} s", again=True)
                    if len(data) > MAX_REPLY_BYTES:
                        raise _Failed(f"a reply of more than {MAX_REPLY_BYTES} bytes", again=False)
        except _Failed:
            raise
        except openai.APIStatusError as error:
            raise _refusal(error.status_code, error.body, error.response.headers.get("retry-after"), sent) from error
        except (openai.OpenAIError, ValueError, TypeError) as error:
            passing = isinstance(error, openai.APIConnectionError)
            timeout = isinstance(error, openai.APITimeoutError)
            reason = f"no reply within {self._timeout_s:g} s" if timeout else f"{type(error).__name__}: {error}"
            raise _Failed(reason, again=passing) from error
        except Exception as error:  # the transport's own, while a reply was read
            raise _Failed(f"the reply broke off: {type(error).__name__}", again=True) from error
        return _reply(data, sent)

    def _client(self) -> OpenAI:
        with self._connecting:
            if self._connected is None:
                from openai import OpenAI

                self._connected = OpenAI(
                    api_key=self._api_key or _NO_KEY, base_url=self._base_url, timeout=self._timeout_s, max_retries=0
                )
            return self._connected

    def _without_key(self, reason: str) -> str:
        told = reason.replace(self._api_key, "[key]") if self._api_key else reason
        return " ".join(told.split())[:_SHOWN]


def _refusal(status: int, body: Any, retry_after: str | None, sent: Mapping[str, Any]) -> Exception:
    """What an HTTP status other than 2xx means for the call."""
    if status in (401, 403):  # what the server says then may show a part of the key
        return _Failed(f"HTTP {status}: the server refuses the key", again=False)
    told = body.get("message", body) if isinstance(body, dict) else body
    if status in (400, 422):
        named = body.get("param") if isinstance(body, dict) else None
        for parameter in sent:
            if named == parameter or (named is None and parameter in str(told).lower()):
                return _Unaccepted(parameter)
    reason = f"HTTP {status}: {told}" if told else f"HTTP {status}"
    return _Failed(reason, again=status >= 500 or status in _RETRIED, wait_s=_asked_s(retry_after))


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
    """The first choice of a chat completion. Raises _Failed for what is none: a proxy may have spoken, so try again."""
    try:
        document = json.loads(data)
        choice = document["choices"][0]
        text = choice["message"]["content"]
        usage = document.get("usage")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _Failed("the reply is no chat completion", again=True) from error
    told = usage if isinstance(usage, dict) else {}
    tokens_in, tokens_out = _count(told.get("prompt_tokens")), _count(told.get("completion_tokens"))
    if isinstance(text, str):
        return Reply(text, tokens_in, tokens_out, sent=sent)
    return Reply("", tokens_in, tokens_out, f"the reply has no text: finish_reason {choice.get('finish_reason')}", sent)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
