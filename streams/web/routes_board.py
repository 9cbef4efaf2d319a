"""What the page reads: its files, the board, its events, one decision opened, contracts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson
from aiohttp import hdrs, web

from streams.guard import Guard
from streams.headers import JSON
from streams.web.assets import PAGE, Asset
from streams.web.board import Board
from streams.web.broadcast import Broadcast, Full
from streams.web.opening import Busy, Opener, Unreadable
from streams.web.records import Log, NotFound, Unanswered
from streams.web.replies import Refused, reply, reply_bytes, takes_gzip
from streams.web.summaries import DecisionId, summary
from streams.web.whole import Whole
from streams.wire import parse_object
from xapp.signing import EnvelopeError, open_envelope

_STREAM: Final = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
EVENTS: Final = "/v1/events"
"""Where replies go on and on."""
_RETRY: Final = b"retry: 1000\n\n"
"""How soon a browser that lost us tries again, ms."""
_DIGITS: Final = 18


class Decisions:
    """Decisions by their id: those of the board, and older ones where they stand."""

    def __init__(self, board: Callable[[], Board], log: Log, guard: Guard) -> None:
        self._board = board
        self._log = log
        self._guard = guard

    @property
    def answered(self) -> Mapping[str, str]:
        """To which proposals the newest answers were, by their id."""
        return self._board().answered

    async def summary(self, text: str) -> dict[str, Any]:
        """The summary of a decision. Raises Refused: 400 for what is no id, 404 where there is none, 503."""
        try:
            where = DecisionId.read(text)
        except ValueError as error:
            raise Refused(400, str(error)) from error
        held = self._board().find(where)
        if held is not None:
            return held.summary
        try:
            message = await self._log.decision(where)
            return summary(parse_object(message.value), where, self._guard.trusted, None)
        except (NotFound, ValueError) as error:
            raise Refused(404, str(error)) from error
        except Unanswered as error:
            raise Refused(503, str(error)) from error

    async def envelope(self, of: Mapping[str, Any]) -> bytes:
        """The envelope of the record of a decision (by its summary). Raises Refused."""
        try:
            where = DecisionId.read(of["id"])
            return await self._log.record(where, of["decision_id"], of["attempt"], of["decided_at_ms"])
        except NotFound as error:
            raise Refused(404, str(error)) from error
        except Unanswered as error:
            raise Refused(503, str(error)) from error

    async def record(self, of: Mapping[str, Any]) -> dict[str, Any]:
        """The record of a decision (by its summary). Raises Refused."""
        try:
            document: dict[str, Any] = orjson.loads(open_envelope(await self.envelope(of)).payload)
        except (EnvelopeError, orjson.JSONDecodeError) as error:
            raise Refused(404, f"its record cannot be read: {error}") from error
        return document


def page_routes(assets: Mapping[str, Asset]) -> list[web.RouteDef]:
    """The page and its files: those of the table alone, whatever a path says."""

    def served(request: web.Request, name: str) -> web.Response:
        asset = assets.get(name)
        if asset is None:
            raise Refused(404, "there is no such file")
        headers = {hdrs.ETAG: f'"{asset.etag}"', hdrs.CACHE_CONTROL: "no-cache", hdrs.VARY: hdrs.ACCEPT_ENCODING}
        known = request.if_none_match
        if known is not None and any(tag.value in (asset.etag, "*") for tag in known):
            return web.Response(status=304, headers=headers)
        body = asset.body
        if asset.packed is not None and takes_gzip(request):
            body, headers[hdrs.CONTENT_ENCODING] = asset.packed, "gzip"
        charset = "utf-8" if asset.content_type.startswith("text/") else None
        return web.Response(body=body, headers=headers, content_type=asset.content_type, charset=charset)

    async def page(request: web.Request) -> web.Response:
        return served(request, PAGE)

    async def file(request: web.Request) -> web.Response:
        return served(request, request.match_info["path"])

    return [web.get("/", page), web.get("/static/{path:.+}", file)]


def board_routes(
    whole: Whole, broadcast: Broadcast, decisions: Decisions, opener: Opener, guard: Guard
) -> list[web.RouteDef]:
    """What is asked of the board, and of single decisions and contracts."""

    async def all_of_it(request: web.Request) -> web.Response:
        packed = takes_gzip(request)
        loaded = reply_bytes(await whole.document(packed=packed))
        if packed:
            loaded.headers[hdrs.CONTENT_ENCODING] = "gzip"
        return loaded

    async def events(request: web.Request) -> web.StreamResponse:
        if request.method == hdrs.METH_HEAD:
            return web.Response(headers=_STREAM)

        def drop() -> None:
            if request.transport is not None:
                request.transport.abort()

        try:
            listener = broadcast.join(_cursor(request), drop)
        except Full as error:
            raise Refused(503, str(error)) from error
        response = web.StreamResponse(headers=_STREAM)
        try:
            await response.prepare(request)
            await response.write(_RETRY)
            while (chunk := await listener.take()) is not None:
                await response.write(chunk)
        except ConnectionError:
            pass  # the page is gone
        finally:
            broadcast.leave(listener)
        return response

    async def opened(request: web.Request) -> web.Response:
        said = await decisions.summary(request.match_info["id"])
        envelope = await decisions.envelope(said)
        try:
            return reply_bytes(await opener.dossier(envelope, said, decisions.answered))
        except Unreadable as error:
            raise Refused(404, str(error)) from error
        except Busy as error:
            raise Refused(503, str(error)) from error

    async def record(request: web.Request) -> web.Response:
        said = await decisions.summary(request.match_info["id"])
        envelope = await decisions.envelope(said)
        name = f"record-{said['id']}.dsse.json"
        return web.Response(
            body=envelope,
            content_type=JSON.decode(),
            headers={hdrs.CONTENT_DISPOSITION: f'attachment; filename="{name}"'},
        )

    async def contracts(_: web.Request) -> web.Response:
        return reply({"contracts": sorted(guard.contracts)})

    async def contract(request: web.Request) -> web.Response:
        found = guard.contracts.get(request.match_info["id"])
        if found is None:
            raise Refused(404, "no such contract here")
        return reply_bytes(found.document)

    return [
        web.get("/v1/board", all_of_it),
        web.get(EVENTS, events),
        web.get("/v1/decisions/{id}", opened),
        web.get("/v1/decisions/{id}/record", record),
        web.get("/v1/contracts", contracts),
        web.get("/v1/contracts/{id:.+}", contract),
    ]


def _cursor(request: web.Request) -> int | None:
    """Where a page stands: as its browser says when it connects again by itself, or else as its address says."""
    text = request.headers.get("Last-Event-ID") or request.query.get("cursor")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise Refused(400, "cursor: a number is required")
    return int(text)
