"""The web server of a guard: the operator's page, what it asks, and what platforms ask. A service of the Faust app.

Faust's own web server is not used: it would serve its router, tables and statistics beside ours, with CORS.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import orjson
import structlog
from aiohttp import web
from mode import Service

from streams.configuration import Configuration
from streams.guard import Guard, unix_ms
from streams.lifecycle import stop_all
from streams.settings import GuardSettings
from streams.web.acting import Writer
from streams.web.assets import load_assets
from streams.web.board import Appended, Board, joined
from streams.web.broadcast import Broadcast
from streams.web.config import config_routes
from streams.web.connections import Connections
from streams.web.feed import Feed
from streams.web.kept_records import KeptRecords
from streams.web.opening import Opener
from streams.web.operators import Operators
from streams.web.records import Log
from streams.web.replies import add_headers, audited, json_alone, own_host, packed, told_as_json
from streams.web.routes_acting import Doorkeeper, acting_routes
from streams.web.routes_board import EVENTS, Decisions, board_routes, page_routes
from streams.web.routes_service import service_routes
from streams.web.whole import Whole

MAX_BODY_BYTES: Final = 65_536
_SHUTDOWN_S: Final = 0.5
"""How long requests in hand may take when all ends; events end at once."""
_STOP_S: Final = 1.0
_IDLE_S: Final = 30.0
"""How long a connection may wait for its next request."""
_BACKLOG: Final = 128
_CURSORS: Final = 2**52
"""A board begins anywhere among so many, all exact in a browser: what a page has of one board, or of one guard of
several behind an address, is no place in another.
"""

log = structlog.get_logger(__name__)


class WebServer(Service):
    """Serves on `settings.web_host`, `settings.web_port`, from its start to its stop.

    `topics_made` gives the partitions once the guard has made or found its topics; `alarms`: dead letters of all
    guards, by topic. Raises SettingsError for a tokens file that cannot be read.
    """

    abstract = False

    def __init__(
        self,
        settings: GuardSettings,
        guard: Guard,
        configuration: Configuration,
        topics_made: Callable[[], Awaitable[Sequence[int]]],
        alarms: Mapping[str, int],
        clock: Callable[[], int] = unix_ms,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        tokens = settings.operator_tokens
        self._settings = settings
        self._guard = guard
        self._clock = clock
        self._topics_made = topics_made
        self._doorkeeper = Doorkeeper(None if tokens is None else Operators(tokens))
        self.feed = Feed(settings, lambda: Board(guard.trusted, secrets.randbelow(_CURSORS)), clock)
        guard.observe(Appended(lambda: self.feed.board))
        self._broadcast = Broadcast(lambda: self.feed.board, self._members, clock)
        self.connections = Connections()
        self.kept = KeptRecords(lambda: guard.alone)
        guard.observe(self.kept)
        self._log = Log(settings, lambda: guard.partitions, self.kept)
        self._writer = Writer(guard, clock)
        self._opener = Opener()
        self._runner = web.AppRunner(
            self._application(configuration, alarms), access_log=None, shutdown_timeout=_SHUTDOWN_S,
            keepalive_timeout=_IDLE_S,
        )  # fmt: skip
        self._listening: asyncio.Server | None = None
        self._parts: list[asyncio.Task[None]] = []

    async def on_start(self) -> None:
        """Listen; the board fills once the guard has its topics."""
        await self._runner.setup()
        assert self._runner.server is not None
        self.connections.of(self._runner.server)
        self._listening = await asyncio.get_running_loop().create_server(
            self.connections, self._settings.web_host, self._settings.web_port, backlog=_BACKLOG
        )
        self._parts = [
            asyncio.create_task(self.connections.watch(), name="connections"),
            asyncio.create_task(self.feed.run(self._topics_made), name="board"),
            asyncio.create_task(self._broadcast.run(), name="events"),
        ]
        log.info("the operator's page is served", host=self._settings.web_host, port=self._settings.web_port)

    async def on_stop(self) -> None:
        """End events at once, and all else within a bound."""
        if self._listening is not None:
            self._listening.close()
        self._broadcast.end()
        for task in self._parts:
            task.cancel()
        await asyncio.gather(*self._parts, return_exceptions=True)
        await stop_all(
            self._runner.cleanup(), self._opener.close(), self._log.close(), self._writer.close(), timeout_s=_STOP_S
        )

    def _members(self) -> dict[str, Any]:
        """The view of the board, all but the decisions, the cursor and the time of day."""
        board, now_ms = self.feed.board, self._clock()
        return {
            "guard": self._settings.guard_name,
            "open": orjson.Fragment(joined(board.open())),
            "leases": board.leases(now_ms),
            "sources": board.sources(),
            "partitions": board.partitions(),
            "switches": board.switches(),
            "contracts": sorted(self._guard.contracts),
            "acting": self._doorkeeper.open,
        }

    def _application(self, configuration: Configuration, alarms: Mapping[str, int]) -> web.Application:
        guard, clock = self._guard, self._clock
        own = own_host(self._settings.web_host)
        noted = self.connections.noted(EVENTS)
        middlewares = [noted, packed, audited, told_as_json, *([] if own is None else [own]), json_alone]
        application = web.Application(middlewares=middlewares, client_max_size=MAX_BODY_BYTES)
        application.on_response_prepare.append(add_headers)
        decisions = Decisions(lambda: self.feed.board, self._log, guard)
        whole = Whole(lambda: self.feed.board, self._members, clock)
        application.add_routes(
            [
                *page_routes(load_assets()),
                *board_routes(whole, self._broadcast, decisions, self._opener, guard),
                *acting_routes(self._doorkeeper, guard, lambda: self.feed.board, decisions, self._writer, clock),
                *config_routes(configuration, self._doorkeeper.authenticate),
                *service_routes(guard, alarms),
            ]
        )
        return application
