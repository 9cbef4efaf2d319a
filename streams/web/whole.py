"""The whole board as a page loads it: made and packed once for all that load it at the same time."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from streams.web.board import Board, joined

FRESH_S: Final = 0.25
"""So old it may be: no more than what events bring a page that has it already."""
_PACK_LEVEL: Final = 1


class Whole:
    """`members`: of the view of the board, all but the decisions, the cursor and the time of day (Unix ms)."""

    def __init__(
        self, board: Callable[[], Board], members: Callable[[], Mapping[str, Any]], clock: Callable[[], int]
    ) -> None:
        self._board = board
        self._members = members
        self._clock = clock
        self._turn = asyncio.Lock()
        self._of: Board | None = None
        self._made_at_s = 0.0
        self._plain = b""
        self._packed: bytes | None = None

    async def document(self, *, packed: bool) -> bytes:
        """The document of `GET /v1/board`, by gzip where it is to be `packed`."""
        async with self._turn:
            now_s = asyncio.get_running_loop().time()
            if self._of is not self._board() or now_s - self._made_at_s > FRESH_S:
                self._make(now_s)
            if not packed:
                return self._plain
            if self._packed is None:
                self._packed = await asyncio.to_thread(gzip.compress, self._plain, _PACK_LEVEL, mtime=0)
            return self._packed

    def _make(self, now_s: float) -> None:
        board = self._board()
        head = orjson.dumps({"now_ms": self._clock(), "cursor": board.cursor, **self._members()})
        self._plain = b'%b,"decisions":%b}' % (head[:-1], joined(board.decisions()))
        self._packed, self._of, self._made_at_s = None, board, now_s
