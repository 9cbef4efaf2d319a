"""`wirelessops demo`: broker, simulated RAN, faults, proposers and guard in one process, in real time.

All parts talk over the embedded broker, as they would over Kafka. The truth about each proposal stays with the RAN.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, TextIO

import orjson

from simulators.proposers.base import drive
from simulators.ran.actuator import Outcome
from simulators.ran.emission import Emission
from simulators.scenario import Scenario, build_scenario
from streams.broker import EmbeddedBroker
from streams.client import GuardClient
from streams.demo_view import Show, print_result, show_for
from streams.demo_xapps import WitnessedGuard, feed
from streams.guard import Guard, unix_ms
from streams.keys import ephemeral_key
from streams.lifecycle import ExitWatchdog, first_of, run_bounded, until_signal
from streams.logs import log_to_stderr
from streams.ran_node import RanNode
from streams.settings import GuardSettings, load_contracts
from xapp.actuation import ActuatorCheck
from xapp.signing import KnownKeys

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_INTERRUPTED: Final = 130  # 128 + SIGINT, as shells say it

REGION: Final = "demo"
_STOP_TIMEOUT_S: Final = 5.0
_PROPOSER_TICK_S: Final = 0.05
_GUARD_WAIT_MS: Final = 5
_RAN_WAIT_MS: Final = 10
_XAPP_WAIT_MS: Final = 20
"""The embedded broker lets every fetch wait so long: short for loops of 100 ms, long enough to leave the CPU idle."""
_SHOW_EVERY_S: Final = 0.25
_SETTLE_S: Final = 0.3
"""After the last answer: time for the network to carry it out."""


def run_demo(seconds: float, seed: int, as_json: bool, out: TextIO | None = None) -> int:
    """Run for `seconds`, then print the counts: a table, or one JSON document. `out` of None is standard output.

    Exit codes: 0; 1 where a part failed, with the reason on stderr; 130 where SIGINT or SIGTERM ended it early (the
    counts so far are printed).
    """
    log_to_stderr(logging.WARNING)
    target = sys.stdout if out is None else out
    with EmbeddedBroker() as broker:
        settings = GuardSettings.embedded(
            broker.bootstrap_servers, guard_name="demo", fetch_wait_ms=_GUARD_WAIT_MS, stop_timeout_s=_STOP_TIMEOUT_S
        )
        show = show_for(target, seconds, seed, as_json)
        demo = Demo(settings, seconds, seed, show)
        code = run_bounded(demo.run, 2 * _STOP_TIMEOUT_S)
    if demo.failure is not None:
        sys.stderr.write(f"the demo failed: {_root(demo.failure)!r}\n")
        return EXIT_FAILED
    if demo.document is not None:
        if as_json:
            target.write(orjson.dumps(demo.document).decode() + "\n")
        else:
            print_result(target, demo.document)
        target.flush()
    return code


class _Watched:
    """The scenario as the RAN node sees it (`streams.ran_node.Ran`); each decision is shown as well."""

    def __init__(self, scenario: Scenario, show: Show, start_ms: int) -> None:
        self._scenario = scenario
        self._show = show
        self._start_ms = start_ms

    def tick(self, now_ms: int) -> Sequence[Emission]:
        return self._scenario.network.tick(now_ms)

    def control(self, decision: Mapping[str, Any], now_ms: int) -> Outcome | None:
        outcome = self._scenario.control(decision, now_ms)
        self._show.said((now_ms - self._start_ms) / 1000, decision)
        return outcome

    def request(self, request: Mapping[str, Any]) -> None:
        self._scenario.network.request(request)

    def effects(self) -> Sequence[Outcome]:
        return self._scenario.network.effects()


class Demo:
    """One demo on a broker that runs. After `run`: `document` (the result, None before a start) or `failure`."""

    def __init__(self, settings: GuardSettings, seconds: float, seed: int, show: Show) -> None:
        self.document: dict[str, Any] | None = None
        self.failure: BaseException | None = None
        self._settings = settings
        self._seconds = seconds
        self._seed = seed
        self._show = show

    async def run(self, watchdog: ExitWatchdog) -> int:
        """The whole demo, all parts stopped at the end. Gives the exit code."""
        interrupted = until_signal()
        signer = ephemeral_key()
        guard = Guard(self._settings, load_contracts(None), signer=signer)
        async with AsyncExitStack() as stack:
            try:
                await guard.start()
                stack.push_async_callback(guard.stop)
                await self._play(stack, guard, ActuatorCheck(KnownKeys([signer.public_key])), interrupted)
            except Exception as error:
                self.failure = error
            watchdog.arm()
        if self.failure is not None:
            return EXIT_FAILED
        return EXIT_INTERRUPTED if interrupted.is_set() else EXIT_OK

    async def _play(
        self, stack: AsyncExitStack, guard: Guard, check: ActuatorCheck, interrupted: asyncio.Event
    ) -> None:
        settings, topics = self._settings, self._settings.topics
        servers = settings.bootstrap_servers
        start_ms = unix_ms()
        scenario = build_scenario(self._seed, self._seconds, start_ms, check=check)
        node = RanNode(_Watched(scenario, self._show, start_ms), servers, topics, REGION, unix_ms, _RAN_WAIT_MS)
        await node.start()
        stack.push_async_callback(node.stop)
        guards = []
        for proposer in scenario.proposers:
            client = await stack.enter_async_context(
                GuardClient(servers, region=REGION, name=proposer.name, fetch_wait_ms=_XAPP_WAIT_MS)
            )
            guards.append(WitnessedGuard(client, scenario, unix_ms))
        stop = asyncio.Event()
        stack.enter_context(self._show)
        parts = [
            asyncio.create_task(guard.run(), name="guard"),
            asyncio.create_task(node.run(), name="RAN"),
            asyncio.create_task(
                feed(scenario.proposers, servers, node.telemetry, unix_ms, _XAPP_WAIT_MS), name="telemetry of the xApps"
            ),
            asyncio.create_task(self._report(scenario, start_ms), name="view"),
        ]
        drives = [
            asyncio.create_task(drive(proposer, one, unix_ms, _PROPOSER_TICK_S, stop), name=proposer.name)
            for proposer, one in zip(scenario.proposers, guards, strict=True)
        ]
        try:
            left_s = self._seconds - (unix_ms() - start_ms) / 1000
            await first_of(interrupted.wait(), *parts, *drives, timeout_s=left_s)
            stop.set()
            ran_s = (unix_ms() - start_ms) / 1000
            await first_of(*parts, asyncio.wait(drives), timeout_s=_STOP_TIMEOUT_S)
            await first_of(*parts, timeout_s=_SETTLE_S)
            _raise_first(parts + drives)
            self.document = {**scenario.tally.document(), "seed": self._seed, "seconds": round(ran_s, 1)}
        finally:
            for task in (*drives, *parts[1:]):
                task.cancel()
            await asyncio.wait({*drives, *parts[1:]}, timeout=1.0)

    async def _report(self, scenario: Scenario, start_ms: int) -> None:
        while True:
            self._show.update((unix_ms() - start_ms) / 1000, scenario.tally.document())
            await asyncio.sleep(_SHOW_EVERY_S)


def _raise_first(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            raise error


def _root(error: BaseException) -> BaseException:
    """The first real cause inside groups of exceptions."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
