"""What platforms and clients ask of a guard: health, metrics, evidence and views."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import hdrs, web

from streams.answering import BadQuery, read_web_query
from streams.guard import Guard, NotHere
from streams.metrics import render
from streams.topics import NoRegion
from streams.web.replies import Refused, reply


def service_routes(guard: Guard, alarms: Mapping[str, int]) -> list[web.RouteDef]:
    """`alarms`: dead letters of all guards, by topic."""

    def asked(kind: str) -> Callable[[web.Request], Any]:
        async def answer(request: web.Request) -> web.Response:
            try:
                region, query = read_web_query(kind, request.query)
                answered = guard.ask(region, query)
            except (BadQuery, NoRegion) as error:
                raise Refused(400, str(error)) from error
            except NotHere as error:
                raise Refused(503, str(error)) from error
            return reply(answered.model_dump(), 400 if answered.error is not None else 200)

        return answer

    async def alive(_: web.Request) -> web.Response:
        why_dead = guard.why_dead()
        return reply({"status": "alive"}) if why_dead is None else reply({"status": "dead", "why": why_dead}, 503)

    async def ready(_: web.Request) -> web.Response:
        why_not = guard.why_not_ready()
        return reply({"status": "ready"}) if why_not is None else reply({"status": "not ready", "why": why_not}, 503)

    async def metrics(_: web.Request) -> web.Response:
        body, content_type = render(guard)
        return web.Response(body=body, headers={hdrs.CONTENT_TYPE: content_type})

    async def stats(_: web.Request) -> web.Response:
        return reply({**guard.stats(), "dead_letters_of_all": dict(alarms)})

    return [
        web.get("/ric/v1/health/alive", alive),
        web.get("/ric/v1/health/ready", ready),
        web.get("/ric/v1/metrics", metrics),
        web.get("/v1/evidence", asked("as_of")),
        web.get("/v1/view", asked("view")),
        web.get("/v1/stats", stats),
    ]
