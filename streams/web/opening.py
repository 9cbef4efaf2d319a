"""Opened decisions, made in a child of the guard: a large one takes seconds, which the control path has not.

The child reads a request from its standard input and writes the reply to its standard output, one at a time: the
length of each part in 8 bytes, then the part. A request is a summary with what
answers were to (JSON), and the envelope of a record; a reply is a
dossier (JSON), or the reason why there is none, after `OPENED` or `UNREADABLE`. It ends when its input does.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO, Final

import orjson

from streams.keys import ENVIRONMENT
from streams.lifecycle import stop_all
from streams.web.dossier import dossier
from xapp.signing import EnvelopeError, open_envelope

OPENED: Final = b"\0"
UNREADABLE: Final = b"\1"
TIMEOUT_S: Final = 20.0
WAITING: Final = 20
"""So many may wait for their turn."""
_LENGTH: Final = struct.Struct(">Q")
_NICENESS: Final = 10
"""Less of the machine than the guard, where both want it."""
_STOP_S: Final = 1.0


class Unreadable(ValueError):
    """The record says no decision that can be shown."""


class Busy(RuntimeError):
    """Too many wait already, or it took too long."""


class Opener:
    """Makes dossiers, one at a time, by a child that is started when it is first needed and again where it failed."""

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._child: asyncio.subprocess.Process | None = None

    async def dossier(self, envelope: bytes, summary: Mapping[str, Any], answered: Mapping[str, str]) -> bytes:
        """The dossier as JSON (see `streams.web.dossier`). Raises Unreadable and Busy."""
        if self._waiting >= WAITING:
            raise Busy(f"{self._waiting} wait already for a decision to be opened")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._timeout_s), self._turn:
                try:
                    said = await self._asked(orjson.dumps((summary, answered)), envelope)
                except BaseException:
                    await self.close()  # what it would say next, it would say of this one
                    raise
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            raise Busy(f"the decision could not be opened in time: {type(error).__name__}") from error
        finally:
            self._waiting -= 1
        if said[:1] == UNREADABLE:
            raise Unreadable(said[1:].decode(errors="replace"))
        return said[1:]

    async def close(self) -> None:
        """End the child; never raises."""
        child, self._child = self._child, None
        if child is not None:
            if child.returncode is None:
                child.kill()
            await stop_all(child.wait(), timeout_s=_STOP_S)

    async def _asked(self, *parts: bytes) -> bytes:
        if self._child is None or self._child.returncode is not None:
            self._child = await asyncio.create_subprocess_exec(
                sys.executable, "-m", __name__, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                start_new_session=True,  # the interrupt of a terminal is for the guard, which ends us
                env={name: value for name, value in os.environ.items() if name != ENVIRONMENT},
            )  # fmt: skip
        to_it, from_it = self._child.stdin, self._child.stdout
        assert to_it is not None
        assert from_it is not None
        for part in parts:
            to_it.write(_LENGTH.pack(len(part)))
            to_it.write(part)
        await to_it.drain()
        (length,) = _LENGTH.unpack(await from_it.readexactly(_LENGTH.size))
        return await from_it.readexactly(length)


def opened(said: bytes, envelope: bytes) -> bytes:
    """The reply to one request."""
    try:
        record = orjson.loads(open_envelope(envelope).payload)
        return OPENED + orjson.dumps(dossier(record, *orjson.loads(said)))
    except (EnvelopeError, KeyError, TypeError, ValueError, RecursionError) as error:
        return UNREADABLE + f"its record cannot be read: {error}".encode(errors="replace")


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer until there are no more requests."""
    while (said := _part(requests)) is not None and (envelope := _part(requests)) is not None:
        reply = opened(said, envelope)
        replies.write(_LENGTH.pack(len(reply)) + reply)
        replies.flush()


def _part(requests: BinaryIO) -> bytes | None:
    head = requests.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    part = requests.read(length)
    return part if len(part) == length else None


if __name__ == "__main__":
    os.nice(_NICENESS)
    serve(sys.stdin.buffer, sys.stdout.buffer)
