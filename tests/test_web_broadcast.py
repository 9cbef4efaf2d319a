"""Events are made once for all pages; a page that takes nothing is dropped, one that lost its place begins anew."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from test_board import decision, message

from streams.web.board import Board
from streams.web.broadcast import LISTENERS, Broadcast, Full, Listener

T0 = 1_790_000_000_000


class Desk:
    """A board that can be filled and replaced, and what is told of it."""

    def __init__(self, limit: int = 10_000) -> None:
        self.board = Board(limit=limit)
        self.members: dict[str, Any] = {"open": []}
        self.dropped: list[str] = []
        self.broadcast = Broadcast(lambda: self.board, lambda: self.members, lambda: T0)

    def decide(self, number: int, explanation: str = "why") -> None:
        for _ in range(number):
            self.board.take("control", message(decision(explanation=explanation), self.board.cursor))

    def page(self, name: str = "page", cursor: int | None = None) -> Listener:
        return self.broadcast.join(cursor, lambda: self.dropped.append(name))


def events(listener: Listener) -> list[tuple[str, Any]]:
    """What waits for a page: the name and the data of each event, comments as `alive`."""
    found = []
    for chunk in listener._waiting:
        if chunk.startswith(b":"):
            found.append(("alive", None))
            continue
        fields = dict(line.split(": ", 1) for line in chunk.decode().strip().split("\n"))
        found.append((fields["event"], orjson.loads(fields["data"])))
    return found


def test_what_is_new_is_told_once_and_by_the_same_bytes() -> None:
    desk = Desk()
    one, other = desk.page(), desk.page()
    desk.decide(3)
    desk.broadcast.pulse(board_too=False)
    desk.broadcast.pulse(board_too=False)
    ((name, said),) = events(one)
    assert (name, said["cursor"], len(said["decisions"])) == ("decisions", 3, 3)
    assert one._waiting[0] is other._waiting[0]


def test_a_page_that_joins_between_two_pulses_misses_nothing_and_hears_nothing_twice() -> None:
    desk = Desk()
    desk.decide(2)
    desk.broadcast.pulse(board_too=False)
    desk.decide(2)
    page = desk.page(cursor=1)
    desk.broadcast.pulse(board_too=False)
    assert [said["cursor"] for _, said in events(page)] == [2, 4]
    assert [len(said["decisions"]) for _, said in events(page)] == [1, 2]


@pytest.mark.parametrize("cursor", [-1, 0, 50, 101, 10**17])
def test_a_page_whose_place_is_gone_or_never_was_begins_anew(cursor: int) -> None:
    desk = Desk(limit=10)
    desk.decide(100)
    desk.broadcast.pulse(board_too=False)
    assert events(desk.page(cursor=cursor)) == [("reset", {})]


def test_a_board_that_begins_anew_makes_all_pages_begin_anew() -> None:
    desk = Desk()
    desk.decide(5)
    desk.broadcast.pulse(board_too=False)
    page = desk.page(cursor=5)
    desk.board = Board(first_cursor=1_000)
    desk.broadcast.pulse(board_too=False)
    desk.decide(1)
    desk.broadcast.pulse(board_too=False)
    assert [name for name, _ in events(page)] == ["reset", "decisions"]


def test_more_than_a_page_could_draw_is_not_sent_but_loaded() -> None:
    desk = Desk()
    page = desk.page()
    desk.decide(2_001)
    desk.broadcast.pulse(board_too=False)
    assert events(page) == [("reset", {})]


def test_long_decisions_are_not_sent_but_loaded_where_they_are_together_too_much() -> None:
    desk = Desk()
    page = desk.page()
    desk.decide(1_500, explanation="x" * 1_900)
    desk.broadcast.pulse(board_too=False)
    assert events(page) == [("reset", {})]
    assert events(desk.page(cursor=100)) == [("reset", {})]
    assert [name for name, _ in events(desk.page(cursor=1_000))] == ["decisions"]


def test_a_board_goes_out_where_it_has_changed_and_a_sign_of_life_where_not() -> None:
    desk = Desk()
    page = desk.page()
    for members in ({"open": [1]}, {"open": [1]}, {"open": [2]}):
        desk.members = members
        desk.broadcast.pulse(board_too=True)
    assert events(page) == [
        ("board", {"now_ms": T0, "open": [1]}), ("alive", None), ("board", {"now_ms": T0, "open": [2]}),
    ]  # fmt: skip


async def test_a_page_that_takes_nothing_is_dropped_and_the_others_are_told_on() -> None:
    desk = Desk()
    slow, quick = desk.page("slow"), desk.page("quick")
    for _ in range(30):
        desk.decide(1)
        desk.broadcast.pulse(board_too=False)
        assert await quick.take() is not None
    assert desk.dropped == ["slow"]
    assert slow.ended
    assert await slow.take() is None
    assert len(desk.broadcast) == 1


def test_what_waits_for_a_page_is_bounded_in_bytes() -> None:
    desk = Desk()
    page = desk.page("slow")
    while not desk.dropped:
        desk.decide(500, explanation="x" * 1_900)
        desk.broadcast.pulse(board_too=False)
        assert sum(map(len, page._waiting)) < 5_000_000


def test_so_many_pages_may_listen_and_one_that_leaves_makes_room() -> None:
    desk = Desk()
    pages = [desk.page() for _ in range(LISTENERS)]
    with pytest.raises(Full):
        desk.page()
    desk.broadcast.leave(pages[0])
    desk.page()


async def test_the_end_is_told_to_who_waits_and_nobody_joins_after_it() -> None:
    desk = Desk()
    page = desk.page("page")
    waiting = asyncio.create_task(page.take())
    await asyncio.sleep(0)
    desk.broadcast.end()
    assert await asyncio.wait_for(waiting, 1) is None
    assert desk.dropped == ["page"]
    with pytest.raises(Full):
        desk.page()
