"""Who opens connections, or keeps them, takes nothing from others: their number and their time are bounded."""

from __future__ import annotations

import asyncio

from test_web_reading import listening
from web_rig import Page, served

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
HOST = b"Host: localhost\r\n"


async def connect(page: Page, said: bytes = b"") -> Connection:
    reader, writer = await asyncio.open_connection("127.0.0.1", page.port)
    writer.write(said)
    await writer.drain()
    return reader, writer


async def cut(reader: asyncio.StreamReader) -> bool:
    """Whether the other side has ended it, within a second."""
    try:
        async with asyncio.timeout(1):
            return await reader.read() is not None
    except ConnectionError:
        return True
    except TimeoutError:
        return False


async def until(page: Page, number: int) -> None:
    async with asyncio.timeout(8):
        while len(page.server.connections) != number:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)


async def test_one_connection_too_many_is_closed_and_another_end_makes_room() -> None:
    async with served() as page:
        assert (await page.get("/ric/v1/health/alive"))[0] == 200  # a connection of its own, kept
        page.server.connections._limit = 5
        held = [await connect(page, b"GET / HTT") for _ in range(4)]
        await until(page, 5)
        for _ in range(20):
            reader, writer = await connect(page)
            assert await cut(reader)
            writer.close()
        assert (await page.get("/ric/v1/health/alive"))[0] == 200
        held[0][1].close()
        async with asyncio.timeout(8):
            while True:
                reader, writer = await connect(page, b"GET /ric/v1/health/alive HTTP/1.0\r\n" + HOST + b"\r\n")
                try:
                    if b" 200 " in await reader.readline():
                        break
                except ConnectionError:
                    pass
                finally:
                    writer.close()
        for _, writer in held:
            writer.close()


async def test_who_is_slow_is_cut_and_who_listens_to_events_is_not() -> None:
    async with served() as page, listening(page) as events:
        asking = b"GET /static/style.css HTTP/1.1\r\n" + HOST + b"\r\n"
        slow = [
            await connect(page, said)
            for said in (b"", b"GET / HTTP/1.1\r\nHost: lo", b"POST /v1/answers HTTP/1.1\r\n" + HOST, asking * 2_000)
        ]
        await until(page, 1 + len(slow))
        now = asyncio.get_running_loop().time()
        page.server.connections.cut(now - 60)
        assert not any([await cut(reader) for reader, _ in slow[:3]])
        page.server.connections.cut(now + 60)
        await until(page, 1)
        assert all([await cut(reader) for reader, _ in slow[:3]])
        assert await events.next("board")
        for _, writer in slow:
            writer.close()
