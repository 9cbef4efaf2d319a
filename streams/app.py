"""The Faust app: lifecycle, web and the low-rate topics. It starts and stops the guard's control path.

Web: `/ric/v1/health/alive`, `/ric/v1/health/ready`, `GET /v1/evidence`, `GET /v1/view`, `GET /v1/stats`.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faust
import structlog
from mode import Service

from streams.answering import BadQuery, read_web_query
from streams.guard import Guard, NotHere
from streams.messages import DeadLetterMessage
from streams.settings import GuardSettings
from streams.topics import NoRegion
from streams.wire import parse_object

log = structlog.get_logger(__name__)


class GuardService(Service):
    """Runs the control path as a part of the app; `finished` once it ended, `failure` where it failed."""

    abstract = False

    def __init__(self, guard: Guard, **options: Any) -> None:
        super().__init__(**options)
        self.guard = guard
        self.started_up = asyncio.Event()
        self.finished = asyncio.Event()
        self.failure: BaseException | None = None
        self._running: asyncio.Task[None] | None = None

    async def on_start(self) -> None:
        """Connect and catch up first: what the guard cannot reach, the rest of the app need not try."""
        await self.guard.start()
        self.started_up.set()
        self._running = asyncio.create_task(self._run(), name="guard")

    async def on_stop(self) -> None:
        """Stop within the guard's own bound."""
        await self.guard.stop()
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        try:
            await self.guard.run()
        except Exception as error:
            self.failure = error
        finally:
            self.finished.set()


def create_app(settings: GuardSettings, guard: Guard) -> tuple[faust.App, GuardService]:
    """The app and its control path, not started. To be called in the running event loop."""
    brokers = [f"kafka://{server.strip()}" for server in settings.bootstrap_servers.split(",")]
    app = faust.App(
        f"{settings.prefix}app.{settings.guard_name}",
        broker=";".join(brokers),
        broker_credentials=settings.security.faust_credentials(),
        store="memory://",
        datadir=str(Path(tempfile.gettempdir()) / f"{settings.prefix}{settings.guard_name}"),
        loop=asyncio.get_running_loop(),
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=settings.web_port is not None,
        web_bind=settings.web_host,
        web_host=settings.web_host,
        web_port=settings.web_port or 6066,
    )
    service = GuardService(guard, loop=app.loop, beacon=app.beacon)
    app.add_dependency(service)
    alarms: Counter[str] = Counter()
    _count_dead_letters(app, settings, alarms)
    _serve_web(app, guard, alarms)
    return app, service


def _count_dead_letters(app: faust.App, settings: GuardSettings, alarms: Counter[str]) -> None:
    """Dead letters of all workers, by topic: what an operator's alarm looks at."""
    topic = app.topic(
        settings.topics.dead_letters, value_type=bytes, value_serializer="raw", key_type=bytes, key_serializer="raw"
    )

    @app.agent(topic, name="dead-letters")
    async def dead_letters(stream: Any) -> None:
        async for event in stream.events():
            alarms[_blamed_topic(event.value)] += 1


def _blamed_topic(value: bytes | None) -> str:
    try:
        return DeadLetterMessage.model_validate(parse_object(value)).topic
    except ValueError:
        return "unreadable"


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    document: Any


def readiness(why_not: str | None) -> _Reply:
    """What `/ric/v1/health/ready` says."""
    return _Reply(200, {"status": "ready"}) if why_not is None else _Reply(503, {"status": "not ready", "why": why_not})


def _serve_web(app: faust.App, guard: Guard, alarms: Mapping[str, int]) -> None:
    def ask(request: Any, kind: str) -> _Reply:
        try:
            region, query = read_web_query(kind, request.query)
            reply = guard.ask(region, query)
        except (BadQuery, NoRegion) as error:
            return _Reply(400, {"error": str(error)})
        except NotHere as error:
            return _Reply(503, {"error": str(error)})
        return _Reply(400 if reply.error is not None else 200, reply.model_dump())

    def page(path: str, reply: Any) -> None:
        @app.page(path, name=path.strip("/").replace("/", "-"))
        async def view(web: Any, request: Any) -> Any:
            found = reply(request)
            return web.json(found.document, status=found.status)

    page("/ric/v1/health/alive", lambda _: _Reply(200, {"status": "alive"}))
    page(
        "/ric/v1/health/ready",
        lambda _: readiness(guard.why_not_ready()),
    )
    page("/v1/evidence", lambda request: ask(request, "as_of"))
    page("/v1/view", lambda request: ask(request, "view"))
    page("/v1/stats", lambda _: _Reply(200, {**guard.stats(), "dead_letters_of_all": dict(alarms)}))
