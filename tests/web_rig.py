"""A guard with its web server on the embedded broker, and an HTTP client: what a browser would talk to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from guard_rig import CONTRACT, Rig, contracts, proposal, report, running

from streams.broker import EmbeddedBroker
from streams.configuration import Configuration
from streams.guard import Guard, unix_ms
from streams.settings import GuardSettings
from streams.web.operators import line_of
from streams.web.server import WebServer
from xapp.signing import KnownKeys, Signer

WAIT_S = 8.0
TOKEN = "the token of alice"
BOB = "the token of bob"
TWO_SOURCES: dict[str, Any] = {
    **CONTRACT,
    "fields": {**CONTRACT["fields"], "cqi": {**CONTRACT["fields"]["cqi"], "sources": ["e2:gnb-1", "rt:north"]}},
}
BEARER = {"Authorization": f"Bearer {TOKEN}"}


async def repeat_the_dispute(rig: Rig) -> None:
    """Both sources report once more what they contradict each other in; a guard with `history_count=1` holds no other
    report of theirs then.
    """
    for value, source in ((3, "e2:gnb-1"), (12, "rt:north")):
        await rig.send("telemetry", report(f"repeated/{source}", value, source=source))
    view = await rig.ask(kind="as_of", query_id="repeated", name="cqi", subject="cell:1/ue:7")
    assert {o["id"] for o in view["observations"]} == {"repeated/e2:gnb-1#0", "repeated/rt:north#0"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def tokens_file(folder: Path) -> Path:
    path = folder / "tokens"
    path.write_text(f"# who may act\n{line_of('alice', TOKEN)}\n{line_of('bob', BOB)}  # on call\n")
    return path


@dataclass
class Page:
    """What a browser has: `get` and `post` give status and document."""

    rig: Rig
    guard: Guard
    server: WebServer
    http: aiohttp.ClientSession
    port: int

    async def get(self, path: str, **options: Any) -> tuple[int, Any]:
        async with self.http.get(path, **options) as reply:
            return reply.status, orjson.loads(await reply.read())

    async def post(self, path: str, document: Any, headers: Mapping[str, str] = BEARER) -> tuple[int, Any]:
        async with self.http.post(path, json=document, headers=headers) as reply:
            return reply.status, orjson.loads(await reply.read())

    async def board(self, wanted: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        """The board, once it is as wanted."""
        async with asyncio.timeout(WAIT_S):
            while True:
                status, board = await self.get("/v1/board")
                assert status == 200
                if wanted(board):
                    return board
                await asyncio.sleep(0.02)

    async def decided(self, proposal_id: str) -> dict[str, Any]:
        """The summary of the newest decision on a proposal, once the board has one."""
        board = await self.board(lambda b: any(d["proposal_id"] == proposal_id for d in b["decisions"]))
        return next(d for d in reversed(board["decisions"]) if d["proposal_id"] == proposal_id)

    async def escalated(self, proposal_id: str = "p1") -> dict[str, Any]:
        """The summary of a proposal on which two sources contradict each other."""
        now_ms = unix_ms()
        for value, source in ((3, "e2:gnb-1"), (12, "rt:north")):
            await self.rig.send("telemetry", report(f"{proposal_id}/{source}", value, now_ms, source=source))
        await self.rig.send("proposals", proposal(proposal_id, deadline_ms=now_ms + 60_000))
        said = await self.decided(proposal_id)
        assert (said["action"], said["final"]) == ("ESCALATE", False)
        return said

    async def final(self, proposal_id: str) -> dict[str, Any]:
        """The final decision of a proposal, as it stands on `control`."""
        return await self.rig.wait_for("control", lambda d: d["proposal_id"] == proposal_id and d["final"])


@asynccontextmanager
async def served(
    document: Mapping[str, Any] = TWO_SOURCES, signer: Signer | None = None, trusted: KnownKeys | None = None,
    **options: Any,
) -> AsyncIterator[Page]:  # fmt: skip
    """Broker, guard, web server, rig and client."""
    with EmbeddedBroker() as broker:
        settings = GuardSettings.embedded(broker.bootstrap_servers, web_port=free_port(), **options)
        async with serving(Guard(settings, contracts(document), signer=signer, trusted=trusted)) as page:
            yield page


@asynccontextmanager
async def serving(guard: Guard) -> AsyncIterator[Page]:
    """Of a guard that is not started: it decides, with its web server, a rig and a client."""
    settings, made = guard.settings, asyncio.Event()
    assert settings.web_port is not None

    async def topics_made() -> tuple[int, ...]:
        await made.wait()
        return guard.partitions

    server = WebServer(settings, guard, Configuration(settings, guard.tuning), topics_made, {})
    rig = Rig(settings.bootstrap_servers, settings.prefix)
    try:
        await server.start()
        address = f"http://127.0.0.1:{settings.web_port}"
        async with running(guard), aiohttp.ClientSession(address) as http:
            made.set()
            await rig.open()
            async with asyncio.timeout(WAIT_S):
                await server.feed.caught_up.wait()
            yield Page(rig, guard, server, http, settings.web_port)
    finally:
        await server.stop()
        await rig.close()
