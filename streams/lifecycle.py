"""Ending on a signal, within a bound: shared by every command that runs until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final

import structlog

from streams.logs import flush

log = structlog.get_logger(__name__)

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def until_signal() -> asyncio.Event:
    """An event that SIGTERM or SIGINT sets, in the running loop of the main thread."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop.set)
    return stop


async def first_of(*waiting: Coroutine[Any, Any, Any] | asyncio.Task[Any], timeout_s: float | None = None) -> None:
    """Return once one of them is done, or the time is over. Coroutines are cancelled then, tasks are left alone."""
    ours = [asyncio.create_task(each) for each in waiting if not isinstance(each, asyncio.Task)]
    tasks = [*ours, *(each for each in waiting if isinstance(each, asyncio.Task))]
    try:
        await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in ours:
            task.cancel()


async def stop_all(*stops: Coroutine[Any, Any, Any], timeout_s: float) -> None:
    """Run the stops one after the other, together within the bound; what fails or is late is logged and left behind.

    Each runs in a task of its own: aiokafka lets the cancellation of its inner tasks escape from `stop()`.
    """
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + timeout_s
    for stop in stops:
        what = getattr(stop, "__qualname__", "stop")
        task = asyncio.create_task(stop)
        _, late = await asyncio.wait({task}, timeout=max(0.0, ends_at - loop.time()))
        if late:
            task.cancel()
            log.warning("not stopped within the bound: left behind", what=what)
        elif not task.cancelled() and (error := task.exception()) is not None:
            log.warning("stopping failed", what=what, why=str(error) or type(error).__name__)


class ExitWatchdog:
    """Ends the process hard if it is still there `after_s` seconds after `arm()`: the last bound on a stop.

    Libraries below may swallow a cancellation; a supervisor that waits for us must not wait for them.
    """

    def __init__(self, after_s: float, code: int = 1) -> None:
        self._timer = threading.Timer(after_s, self._end, args=(code,))
        self._timer.daemon = True

    def arm(self) -> None:
        """Start the countdown."""
        self._timer.start()

    def disarm(self) -> None:
        """All is stopped."""
        self._timer.cancel()

    @staticmethod
    def _end(code: int) -> None:
        log.error("did not stop within the bound: ending hard")
        flush()  # never longer than its bound: what keeps us may be that nobody reads standard error
        os._exit(code)


def run_bounded(main: Callable[[ExitWatchdog], Coroutine[Any, Any, int]], stop_timeout_s: float) -> int:
    """Run a service to its end; `main` arms the watchdog when it begins to stop. Gives the exit code."""
    watchdog = ExitWatchdog(stop_timeout_s + 1.0)
    try:
        return asyncio.run(main(watchdog))
    finally:
        watchdog.disarm()
