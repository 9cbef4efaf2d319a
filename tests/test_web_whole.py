"""Pages that load the board at the same time are given one document, made and packed once."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import orjson
from test_board import decision, message

from streams.web.board import Board
from streams.web.whole import FRESH_S, Whole

T0 = 1_790_000_000_000


class Desk:
    """A board that can be filled and replaced; how often its view was made."""

    def __init__(self) -> None:
        self.board, self.made = Board(), 0
        self.whole = Whole(lambda: self.board, self.members, lambda: T0)

    def members(self) -> dict[str, Any]:
        self.made += 1
        return {"guard": "g"}


async def test_two_hundred_pages_at_once_get_the_same_document_made_once() -> None:
    desk = Desk()
    for n in range(2_000):
        desk.board.take("control", message(decision(f"p{n}"), n))
    loaded = await asyncio.gather(*(desk.whole.document(packed=bool(n % 2)) for n in range(200)))
    assert desk.made == 1
    assert len({id(one) for one in loaded}) == 2
    plain, packed = loaded[:2]
    assert gzip.decompress(packed) == plain
    document = orjson.loads(plain)
    assert (document["now_ms"], document["cursor"], document["guard"]) == (T0, 2_000, "g")
    assert len(document["decisions"]) == 2_000


async def test_what_is_new_is_in_it_as_soon_as_an_event_would_tell_it_and_of_another_board_at_once() -> None:
    desk = Desk()
    await desk.whole.document(packed=True)
    desk.board.take("control", message(decision("p")))
    assert orjson.loads(await desk.whole.document(packed=False))["cursor"] == 0
    desk.whole._made_at_s -= 2 * FRESH_S
    assert orjson.loads(gzip.decompress(await desk.whole.document(packed=True)))["cursor"] == 1
    desk.board = Board(first_cursor=500)
    assert orjson.loads(await desk.whole.document(packed=False))["cursor"] == 499
