"""Server-sent events of the board: made once, four times a second, and handed to every page that listens.

A page that does not take what it is sent is dropped; it comes back by itself, and is told where it must begin anew.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from streams.web.board import Board, Kept, joined

PULSE_S: Final = 0.25
_BOARD_EVERY: Final = 4
"""A board goes out every so many pulses, or a comment, where nothing of it has changed: the page hears that we live."""
_BEHIND: Final = 2_000
"""A page that is so many decisions behind loads the board again."""
_BEHIND_BYTES: Final = 2_000_000
"""So it does where they are so long."""
_WAITING: Final = 20
_WAITING_BYTES: Final = 4_000_000
LISTENERS: Final = 200


class Full(RuntimeError):
    """So many pages listen that one more is refused."""


class Listener:
    """One page. `take` gives what is to be sent next; None once it is dropped or all ends."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._more = asyncio.Event()
        self.ended = False

    def offer(self, chunk: bytes) -> bool:
        """Send this next. False where too much waits already: the page is too slow, and ends."""
        if self.ended:
            return False
        if len(self._waiting) >= _WAITING or (self._waiting and self._bytes + len(chunk) > _WAITING_BYTES):
            self.end()
            return False
        self._waiting.append(chunk)
        self._bytes += len(chunk)
        self._more.set()
        return True

    def end(self) -> None:
        """Send nothing more, what waits included."""
        self.ended = True
        self._more.set()

    async def take(self) -> bytes | None:
        """What is to be sent next, once there is something."""
        while not self._waiting and not self.ended:
            self._more.clear()
            await self._more.wait()
        if self.ended:
            return None
        chunk = self._waiting.popleft()
        self._bytes -= len(chunk)
        return chunk


class Broadcast:
    """`board` gives the board in use, `members` all of its view but the decisions, the cursor and the time of day."""

    def __init__(
        self, board: Callable[[], Board], members: Callable[[], Mapping[str, Any]], clock: Callable[[], int]
    ) -> None:
        self._board = board
        self._members = members
        self._clock = clock
        self._listeners: dict[Listener, Callable[[], None]] = {}
        self._ended = False
        self._sent = board().cursor
        self._said = b""

    def __len__(self) -> int:
        """How many listen."""
        return len(self._listeners)

    def join(self, cursor: int | None, drop: Callable[[], None]) -> Listener:
        """A page that has all up to a cursor; None: it wants what comes from now on. Raises Full.

        `drop` is called when it turns out to be too slow, and when all ends.
        """
        if len(self._listeners) >= LISTENERS or self._ended:
            raise Full(f"{LISTENERS} pages listen already")
        board, listener = self._board(), Listener()
        if cursor is not None:
            if board.covers(cursor) and self._sent - cursor <= _BEHIND:
                missed = [kept for kept in board.after(cursor) if kept.cursor <= self._sent]
                if missed:
                    listener.offer(_decisions(missed))
            else:
                listener.offer(_RESET)
        self._listeners[listener] = drop
        return listener

    def leave(self, listener: Listener) -> None:
        """A page is gone."""
        self._listeners.pop(listener, None)

    async def run(self) -> None:
        """Tell all until cancelled."""
        pulses = 0
        while True:
            await asyncio.sleep(PULSE_S)
            pulses += 1
            self.pulse(board_too=pulses % _BOARD_EVERY == 0)

    def pulse(self, *, board_too: bool) -> None:
        """Tell all what is new since the last pulse."""
        board, chunks = self._board(), []
        if not board.covers(self._sent) or board.cursor - self._sent > _BEHIND:
            chunks.append(_RESET)
        elif new := board.after(self._sent):
            chunks.append(_decisions(new))
        self._sent = board.cursor
        if board_too and self._listeners:
            chunks.append(self._news())
        for listener, drop in tuple(self._listeners.items()):
            if not all(listener.offer(chunk) for chunk in chunks):
                self._listeners.pop(listener, None)
                drop()

    def end(self) -> None:
        """Drop all, and take no more."""
        self._ended = True
        for listener, drop in tuple(self._listeners.items()):
            listener.end()
            drop()
        self._listeners.clear()

    def _news(self) -> bytes:
        members = self._members()
        said = orjson.dumps(members)
        if said == self._said:
            return b": alive\n\n"
        self._said = said
        return _event("board", b'{"now_ms":%d,' % self._clock() + said[1:])


def _decisions(kept: list[Kept]) -> bytes:
    if sum(len(one.encoded) for one in kept) > _BEHIND_BYTES:
        return _RESET
    cursor = kept[-1].cursor
    body = b'{"cursor":%d,"decisions":%b}' % (cursor, joined(one.encoded for one in kept))
    return _event("decisions", body, cursor)


def _event(name: str, data: bytes, cursor: int | None = None) -> bytes:
    """One event; the data is one line of JSON. Its id comes back from a browser that connects again by itself."""
    identity = b"" if cursor is None else b"id: %d\n" % cursor
    return b"event: %b\n%bdata: %b\n\n" % (name.encode(), identity, data)


_RESET: Final = _event("reset", b"{}")
