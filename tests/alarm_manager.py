"""An alarm manager on loopback that does with alarms what O-RAN SC's does (ric-plt-alarm-go, manager/cmd)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

NAMES = {
    "managedObjectId": str,
    "applicationId": str,
    "specificProblem": int,
    "perceivedSeverity": str,
    "additionalInfo": str,
    "identifyingInfo": str,
    "AlarmAction": str,
    "AlarmTime": int,
}
SEVERITIES = {"UNSPECIFIED", "CRITICAL", "MAJOR", "MINOR", "WARNING", "CLEARED", "DEFAULT"}
Identity = tuple[str, str, int, str]


class AlarmManager:
    """Knows an alarm by four of its members, takes none whose problem is not defined, and suppresses what it has.

    `history`: what it took note of, in order; `status`: what it answers instead, where it is not 200; `answers`: an
    event without which it does not answer at all.
    """

    def __init__(self) -> None:
        self.defined: dict[int, dict[str, Any]] = {}
        self.active: dict[Identity, dict[str, Any]] = {}
        self.history: list[tuple[str, Identity]] = []
        self.suppressed: list[Identity] = []
        self.requests = 0
        self.status = 200
        self.answers = asyncio.Event()
        self.answers.set()
        self._news = asyncio.Condition()

    async def until(self, wanted: Callable[[], bool], wait_s: float = 8.0) -> None:
        """Wait until something that it was asked made it so."""
        async with asyncio.timeout(wait_s), self._news:
            await self._news.wait_for(wanted)

    def forget(self) -> None:
        """A restart without memory."""
        self.defined.clear()
        self.active.clear()

    def identities(self, problem: int) -> set[str]:
        """The identifying information of the active alarms of a problem."""
        return {identity[3] for identity in self.active if identity[2] == problem}

    def routes(self) -> list[web.RouteDef]:
        base = "/ric/v1/alarms"
        return [
            web.post(base, self._alarm),
            web.delete(base, self._alarm),
            web.post(f"{base}/define", self._define),
            web.get(f"{base}/active", self._active),
        ]

    @web.middleware
    async def misbehave(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests += 1
        await self._tell()
        await self.answers.wait()
        if self.status != 200:
            return web.Response(status=self.status)
        reply: web.StreamResponse = await handler(request)
        await self._tell()
        return reply

    async def _define(self, request: web.Request) -> web.Response:
        for definition in (await request.json())["alarmdefinitions"]:
            assert definition["alarmText"]
            assert definition["operationInstructions"]
            self.defined.setdefault(definition["alarmId"], definition)
        return web.json_response(None)

    async def _active(self, _: web.Request) -> web.Response:
        return web.json_response(list(self.active.values()))

    async def _alarm(self, request: web.Request) -> web.Response:
        message = await request.json()
        assert {name: type(value) for name, value in message.items()} == NAMES
        assert message["perceivedSeverity"] in SEVERITIES
        assert (request.method, message["AlarmAction"]) in {("POST", "RAISE"), ("DELETE", "CLEAR")}
        assert abs(message["AlarmTime"] - time.time_ns()) < 60_000_000_000
        identity = (
            message["managedObjectId"], message["applicationId"], message["specificProblem"], message["identifyingInfo"]
        )  # fmt: skip
        if message["specificProblem"] not in self.defined:
            self.suppressed.append(identity)
        elif message["AlarmAction"] == "RAISE":
            if identity in self.active:
                self.suppressed.append(identity)
            else:
                self.history.append(("RAISE", identity))
                self.active[identity] = message
        elif self.active.pop(identity, None) is not None:
            self.history.append(("CLEAR", identity))
        else:
            self.suppressed.append(identity)
        return web.json_response(None)

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()


@asynccontextmanager
async def serving(manager: AlarmManager, port: int = 0) -> AsyncIterator[str]:
    """The URL that alarms are posted to, while it is up."""
    application = web.Application(middlewares=[manager.misbehave])
    application.add_routes(manager.routes())
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port, reuse_address=True)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/ric/v1/alarms"
    finally:
        manager.answers.set()
        await runner.cleanup()
