"""One call to a server of chat completions: within one deadline and one size, whatever the server does."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from openai import AsyncOpenAI

MAX_REPLY_BYTES: Final = 4_000_000
_NO_KEY: Final = "none"


@dataclass(frozen=True, slots=True)
class Response:
    """What a server answered. `retry_after`: that header, as it is."""

    status: int
    body: bytes
    retry_after: str | None = None


class NoResponse(Exception):
    """A call that brought no response. `again`: whether it may pass; `silent`: the server said nothing at all."""

    def __init__(self, reason: str, *, again: bool = True, silent: bool = True) -> None:
        super().__init__(reason)
        self.again = again
        self.silent = silent


class ChatServer:
    """A server of OpenAI's chat completions; threads may share one. Redirections are responses, and not followed.

    `timeout_s` bounds a call from its start to the last byte of the response, of an error's too: names looked up,
    connection, head and body. `api_key` None: the server wants none.
    """

    def __init__(self, base_url: str, api_key: str | None, timeout_s: float) -> None:
        self._base_url = base_url
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._starting = threading.Lock()
        self._started: tuple[asyncio.AbstractEventLoop, AsyncOpenAI] | None = None

    def ask(self, body: Mapping[str, Any]) -> Response:
        """The response to one request. Raises NoResponse."""
        loop, client = self._start()
        return asyncio.run_coroutine_threadsafe(self._within_time(client, body), loop).result()

    def _start(self) -> tuple[asyncio.AbstractEventLoop, AsyncOpenAI]:
        """The loop that calls run in, in a thread of its own: only there can one deadline bound all of a call."""
        with self._starting:
            if self._started is None:
                try:
                    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

                    http = DefaultAsyncHttpxClient(timeout=None, event_hooks={"response": [_read_refusal]})
                    client = AsyncOpenAI(
                        api_key=self._api_key or _NO_KEY, base_url=self._base_url, max_retries=0, timeout=None,
                        http_client=http,
                    )  # fmt: skip
                except Exception as error:  # another module of that name on the path, or an address that it refuses
                    reason = f"the package openai cannot be used: {type(error).__name__}: {error}"
                    raise NoResponse(reason, again=False) from error
                loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(loop,), daemon=True).start()
                weakref.finalize(self, loop.call_soon_threadsafe, loop.stop)
                self._started = loop, client
            return self._started

    async def _within_time(self, client: AsyncOpenAI, body: Mapping[str, Any]) -> Response:
        begun: list[int] = []
        try:
            async with asyncio.timeout(self._timeout_s):
                return await _exchange(client, body, begun)
        except TimeoutError as error:
            reason = f"no whole reply within {self._timeout_s:g} s"
            raise NoResponse(reason, silent=not begun) from error


async def _exchange(client: AsyncOpenAI, body: Mapping[str, Any], begun: list[int]) -> Response:
    """`begun` gets the status of a response whose body is to follow. Raises NoResponse."""
    import openai

    try:
        async with client.chat.completions.with_streaming_response.create(**body) as response:
            begun.append(response.status_code)
            return Response(response.status_code, await _bounded(response.iter_bytes()))
    except _Refused as refused:
        return refused.response
    except NoResponse:
        raise
    except openai.APIConnectionError as error:
        if isinstance(error.__cause__, _Refused):
            return error.__cause__.response
        cause = error.__cause__ or error
        reason = f"no connection: {type(cause).__name__}: {cause}"
        raise NoResponse(reason, silent=not isinstance(cause, NoResponse)) from error
    except (openai.OpenAIError, ValueError, TypeError) as error:
        raise NoResponse(f"{type(error).__name__}: {error}", again=False, silent=False) from error
    except Exception as error:  # the transport's own, while a reply was read
        raise NoResponse(f"the reply broke off: {type(error).__name__}", silent=not begun) from error


class _Refused(Exception):
    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


async def _read_refusal(response: Any) -> None:
    """Reads a response that is no success before the package does, which would read any amount, or follow it.

    Raises _Refused.
    """
    if not response.is_success:
        body = await _bounded(response.aiter_bytes())
        raise _Refused(Response(response.status_code, body, response.headers.get("retry-after")))


async def _bounded(blocks: AsyncIterator[bytes]) -> bytes:
    data = bytearray()
    async for block in blocks:
        data += block
        if len(data) > MAX_REPLY_BYTES:
            raise NoResponse(f"a reply of more than {MAX_REPLY_BYTES} bytes", again=False, silent=False)
    return bytes(data)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
