"""The web server as a part of `wirelessops run`, and what feeds its board when Kafka fails: it harms nobody."""

from __future__ import annotations

import asyncio
import itertools
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
from aiokafka import TopicPartition
from guard_rig import PARTITIONS, proposal
from test_lifecycle import BOUND_S, RUN, start, wait_for_line
from web_rig import WAIT_S, free_port, served, tokens_file

from streams.broker import EmbeddedBroker
from streams.guard import unix_ms
from streams.settings import GuardSettings
from streams.web.board import Board
from streams.web.feed import Feed

STOP_S = 5.0


async def test_pages_that_listen_do_not_hold_up_the_end(tmp_path: Path) -> None:
    port = free_port()
    process = start(RUN.format(server=None, options={"web_port": port, "operator_tokens": str(tokens_file(tmp_path))}))
    try:
        await asyncio.to_thread(wait_for_line, process, "ready")
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http:
            replies = [await http.get("/v1/events") for _ in range(5)]
            assert [reply.status for reply in replies] == [200] * 5
            board = orjson.loads(await (await http.get("/v1/board")).read())
            assert board["acting"] is True
            process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            await asyncio.to_thread(process.wait, timeout=BOUND_S)
            assert time.monotonic() - began < STOP_S
    finally:
        process.kill()
        _, said = process.communicate()
    assert process.returncode == 0
    assert "did not stop" not in said


def test_a_tokens_file_that_cannot_be_read_is_no_start(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("alice\n")
    process = start(RUN.format(server=None, options={"web_port": free_port(), "operator_tokens": str(path)}))
    _, said = process.communicate(timeout=BOUND_S)
    assert process.returncode == 2
    assert "operator_tokens" in said
    assert "line 1" in said


@asynccontextmanager
async def feeding(feed: Feed) -> AsyncIterator[None]:
    """The feed at work, once it has caught up."""

    async def partitions() -> range:
        return range(PARTITIONS)

    task = asyncio.create_task(feed.run(partitions))
    try:
        async with asyncio.timeout(WAIT_S):
            await feed.caught_up.wait()
        yield
    finally:
        task.cancel()
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(task, return_exceptions=True)


async def test_where_the_log_is_not_what_it_was_the_board_begins_anew_and_else_goes_on_from_where_it_stood() -> None:
    cursors = itertools.count(1_000, 1_000)
    async with served() as page:
        await page.rig.send("proposals", proposal("p1"))
        await page.final("p1")
        settings = GuardSettings.embedded(page.rig.bootstrap_servers)
        feed = Feed(settings, lambda: Board(first_cursor=next(cursors)), unix_ms)
        async with feeding(feed):
            held = feed.board
        async with feeding(feed):
            assert feed.board is held
        control = TopicPartition(settings.topics.control, page.rig.partition_of_region())
        feed._positions[control] = 10**9
        async with feeding(feed), asyncio.timeout(WAIT_S):
            while feed.board is held or not feed.caught_up.is_set():  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.01)
            assert feed.board.decisions() == held.decisions() != []
            assert not feed.board.covers(held.cursor)


async def test_a_feed_whose_broker_is_gone_keeps_its_board_and_can_be_ended() -> None:
    with EmbeddedBroker() as broker:
        feed = Feed(GuardSettings.embedded(broker.bootstrap_servers), Board, unix_ms)
        async with feeding(feed):
            held = feed.board
            broker.stop()
            began = time.monotonic()
    assert time.monotonic() - began < STOP_S
    assert feed.board is held
