"""The Faust app: lifecycle and the low-rate topics. It starts and stops the guard's control path and its web server."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import faust
from mode import Service

from streams.configuration import Configuration
from streams.guard import Guard
from streams.messages import DeadLetterMessage
from streams.settings import GuardSettings
from streams.web.server import WebServer
from streams.wire import parse_object


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


def create_app(
    settings: GuardSettings, guard: Guard, configuration: Configuration | None = None
) -> tuple[faust.App, GuardService]:
    """The app and its control path, not started. To be called in the running event loop.

    With a `web_port` it has a web server, which listens before the control path is up, so that it can be asked why that
    is not. `configuration`: what the guard runs with, by `settings` alone where none is given. Raises SettingsError for
    a tokens file that cannot be read.
    """
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
        web_enabled=False,
    )
    service = GuardService(guard, loop=app.loop, beacon=app.beacon)
    alarms: Counter[str] = Counter()
    _count_dead_letters(app, settings, alarms)
    if settings.web_port is not None:
        running = configuration or Configuration(settings, guard.tuning)

        async def topics_made() -> Sequence[int]:
            await service.started_up.wait()
            return guard.partitions

        app.add_dependency(
            WebServer(settings, guard, running, topics_made, alarms, loop=app.loop, beacon=app.beacon)
        )
    app.add_dependency(service)
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
