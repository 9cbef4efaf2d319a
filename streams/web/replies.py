"""What every request goes through, and every reply carries: whose host, which type, which headers, how packed."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson
import structlog
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from streams.wire import parse_object

OPERATOR: Final = web.RequestKey("operator", str)
"""Who acts, once that is known."""
ACT: Final = web.RequestKey("act", dict)
"""What the act is, for the log."""

_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_READS: Final = frozenset({hdrs.METH_GET, hdrs.METH_HEAD})
_PACKED: Final = frozenset({"application/json", "text/html", "text/plain"})
_PACK_FROM: Final = 1_400
"""Smaller bodies fit one packet as they are."""
_THREAD_FROM: Final = 50_000
_PACK_LEVEL: Final = 1
_SHOWN_PATH: Final = 200

log = structlog.get_logger(__name__)


class Refused(Exception):
    """A request that is not served: its status, and the reason for whoever asked."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, dict(headers or {})


def reply(document: Any, status: int = 200) -> web.Response:
    """A document as JSON."""
    return reply_bytes(orjson.dumps(document), status)


def reply_bytes(body: bytes, status: int = 200) -> web.Response:
    """JSON that is encoded already."""
    return web.Response(body=body, status=status, content_type="application/json")


def refusal(error: Refused) -> web.Response:
    """The reply to a request that is not served."""
    refused = reply({"error": error.reason}, error.status)
    refused.headers.update(error.headers)
    return refused


async def read_object(request: web.Request) -> dict[str, Any]:
    """The JSON object in a request's body. Raises Refused."""
    try:
        return parse_object(await request.read())
    except ValueError as error:
        raise Refused(400, str(error)) from error


async def add_headers(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """A signal of aiohttp, before a reply begins: what every one carries, and nothing of what serves it."""
    response.headers.update(_HEADERS)
    response.headers.setdefault(hdrs.CACHE_CONTROL, "no-store")
    response.headers.pop(hdrs.SERVER, None)


@web.middleware
async def told_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors as `{"error": …}`; those of ours are logged, and say nothing of us."""
    try:
        return await handler(request)
    except Refused as error:
        return refusal(error)
    except web.HTTPException as error:
        headers: dict[str, str] = {hdrs.ALLOW: error.headers[hdrs.ALLOW]} if hdrs.ALLOW in error.headers else {}
        return refusal(Refused(error.status, error.reason, headers))
    except (web.RequestPayloadError, ConnectionError):
        refused = refusal(Refused(400, "the body cannot be read: it ends early, or its coding is not what it says"))
        refused.force_close()  # where the next request begins cannot be told
        return refused
    except Exception:
        log.exception("a request failed", method=request.method, path=_path(request))
        return refusal(Refused(500, "the guard's web failed at this request: its log says why"))


@web.middleware
async def audited(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every act, and every attempt at one, stands in the log: who, from where, what, and what came of it."""
    if request.method in _READS:
        return await handler(request)
    try:
        response = await handler(request)
    except asyncio.CancelledError:
        log.warning(
            "an act was cut off by the end of the guard: it may have been done", method=request.method,
            path=_path(request), operator=request.get(OPERATOR), remote=request.remote, **request.get(ACT, {}),
        )  # fmt: skip
        raise
    done = response.status < 400
    refused = {} if done else {"why": _error_of(response)}
    (log.info if done else log.warning)(
        "an operator acted" if done else "an act was refused",
        method=request.method,
        path=_path(request),
        status=response.status,
        operator=request.get(OPERATOR),
        remote=request.remote,
        **request.get(ACT, {}),
        **refused,
    )
    return response


@web.middleware
async def json_alone(request: web.Request, handler: Handler) -> web.StreamResponse:
    """What acts is JSON and says so: no form of another site can send that without asking us first."""
    if request.method not in _READS and request.content_type != "application/json":
        raise Refused(415, "Content-Type: application/json is required")
    return await handler(request)


@web.middleware
async def packed(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Larger replies go by gzip where the client takes it."""
    response = await handler(request)
    if not isinstance(response, web.Response) or response.content_type not in _PACKED:
        return response
    response.headers.setdefault(hdrs.VARY, hdrs.ACCEPT_ENCODING)
    body = response.body
    if hdrs.CONTENT_ENCODING in response.headers or not isinstance(body, bytes) or len(body) < _PACK_FROM:
        return response
    if takes_gzip(request):
        pack: Callable[[], bytes] = lambda: gzip.compress(body, _PACK_LEVEL, mtime=0)  # noqa: E731
        response.body = await asyncio.to_thread(pack) if len(body) >= _THREAD_FROM else pack()
        response.headers[hdrs.CONTENT_ENCODING] = "gzip"
    return response


def takes_gzip(request: web.Request) -> bool:
    """Whether the client takes gzip (RFC 9110, 12.5.3)."""
    for said in request.headers.get(hdrs.ACCEPT_ENCODING, "").lower().split(","):
        coding, _, weight = said.partition(";")
        if coding.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def own_host(bound_to: str) -> Middleware | None:
    """Refuses requests for the names of others where we listen on loopback alone; None where we do not.

    A page of a stranger whose name is made to point here (DNS rebinding) would else read all that is served.
    """
    if not _loopback(bound_to):
        return None

    @web.middleware
    async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not _loopback(_name_of(request.headers.get(hdrs.HOST, ""))):
            raise Refused(421, "this host is not served here: it listens on loopback alone")
        return await handler(request)

    return checked


def _path(request: web.Request) -> str:
    """The path as it may stand in a log, whatever bytes it has."""
    return request.path[:_SHOWN_PATH].encode(errors="replace").decode()


def _name_of(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def _loopback(name: str) -> bool:
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _error_of(response: web.StreamResponse) -> str | None:
    body = response.body if isinstance(response, web.Response) else None
    try:
        said = orjson.loads(body if isinstance(body, bytes) else b"null")
    except orjson.JSONDecodeError:
        return None
    return str(said["error"]) if isinstance(said, dict) and "error" in said else None
