"""Connections to the web server, bounded: a guard has so many files, and those of its control path are among them."""

from __future__ import annotations

import asyncio
import math
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

CONNECTIONS: Final = 400
PATIENCE_S: Final = 60.0
"""So long may a request take from its first byte to the last of its reply; longer than the slowest act."""
_LOOK_S: Final = 1.0


class Connections:
    """Makes the protocol of each connection, as `loop.create_server` asks; one too many is closed at once.

    A connection on which no request has begun for `patience_s` is cut: whoever sends a byte a minute, or takes no byte
    of its reply, keeps it from others. One that listens to events has no such end: what it does not take is bounded.
    """

    def __init__(self, limit: int = CONNECTIONS, patience_s: float = PATIENCE_S) -> None:
        self._server: web.Server | None = None
        self._limit = limit
        self._patience_s = patience_s
        self._since: dict[asyncio.BaseProtocol, float] = {}

    def of(self, server: web.Server) -> None:
        """The server that they are made for, once there is one."""
        self._server = server

    def __call__(self) -> asyncio.Protocol:
        assert self._server is not None
        self._forget()
        if len(self._since) >= self._limit:
            return _Refused()
        protocol = self._server()
        self._since[protocol] = self._now()
        return protocol

    def __len__(self) -> int:
        """How many there are."""
        self._forget()
        return len(self._since)

    def noted(self, endless: str) -> Middleware:
        """Notes when requests begin. `endless`: the path whose replies go on and on."""

        @web.middleware
        async def noting(request: web.Request, handler: Handler) -> web.StreamResponse:
            self._since[request.protocol] = math.inf if request.path == endless else self._now()
            return await handler(request)

        return noting

    async def watch(self) -> None:
        """Cut those that take too long, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            self.cut(self._now() - self._patience_s)

    def cut(self, before: float) -> None:
        """Cut those on which no request has begun since a time of the loop's clock."""
        for protocol, since in tuple(self._since.items()):
            transport = getattr(protocol, "transport", None)
            if since < before and transport is not None:
                transport.abort()

    def _forget(self) -> None:
        there: set[asyncio.BaseProtocol] = set(() if self._server is None else self._server.connections)
        new = self._now() - _LOOK_S
        self._since = {
            protocol: since
            for protocol, since in self._since.items()
            if protocol in there or new < since < math.inf  # the server knows one only once it is made
        }

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


class _Refused(asyncio.Protocol):
    """A connection that is one too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()
