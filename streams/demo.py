"""`wirelessops demo`: broker, simulated RAN, faults, proposers and guard in one process, in real time.

All parts talk over the embedded broker, as they would over Kafka. The truth about each proposal stays with the RAN.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import orjson

from simulators.scenario import Scenario, build_scenario
from streams.broker import EmbeddedBroker
from streams.demo_view import Show, print_result, show_for
from streams.guard import Guard, unix_ms
from streams.keys import ephemeral_key
from streams.lifecycle import ExitWatchdog, first_of, run_bounded, until_signal
from streams.logs import log_to_stderr
from streams.settings import GuardSettings, SettingsError, check_port, load_contracts
from streams.simulation import SimulatedRan, Simulation, Wire, raise_first, root_cause
from streams.support_folder import load_support
from xapp.actuation import ActuatorCheck
from xapp.signing import KnownKeys

if TYPE_CHECKING:
    from streams.app import GuardService

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_BAD_START: Final = 2
EXIT_INTERRUPTED: Final = 130  # 128 + SIGINT, as shells say it

REGION: Final = "demo"
_STOP_TIMEOUT_S: Final = 5.0
_GUARD_WAIT_MS: Final = 5
"""The embedded broker lets every fetch wait so long: short for loops of 100 ms, long enough to leave the CPU idle."""
_SHOW_EVERY_S: Final = 0.25


def run_demo(
    seconds: float,
    seed: int,
    as_json: bool,
    out: TextIO | None = None,
    web_port: int | None = None,
    support_dir: Path | None = None,
) -> int:
    """Run for `seconds`, then print the counts: a table, or one JSON document. `out` of None is standard output.

    `web_port`: the operator's page is at this port of 127.0.0.1 meanwhile; `support_dir`: terms and maps of a support
    gate. Exit codes: 0; 1 where a part failed, with the reason on stderr; 2 where the port is taken or the folder has a
    fault; 130 where SIGINT or SIGTERM ended it early (the counts so far are
    printed).
    """
    log_to_stderr("warning")
    target = sys.stdout if out is None else out
    with EmbeddedBroker() as broker:
        settings = GuardSettings.embedded(
            broker.bootstrap_servers, guard_name="demo", fetch_wait_ms=_GUARD_WAIT_MS, stop_timeout_s=_STOP_TIMEOUT_S,
            web_port=web_port, support_dir=support_dir,
        )  # fmt: skip
        try:
            load_support(support_dir, load_contracts(None))
            if web_port is not None:
                check_port(settings.web_host, web_port)
        except SettingsError as error:
            sys.stderr.write(f"{error}\n")
            return EXIT_BAD_START
        if web_port is not None:
            sys.stderr.write(f"the page: http://{settings.web_host}:{web_port}/\n")
        show = show_for(target, seconds, seed, as_json)
        demo = Demo(settings, seconds, seed, show)
        code = run_bounded(demo.run, 2 * _STOP_TIMEOUT_S)
    if demo.failure is not None:
        sys.stderr.write(f"the demo failed: {root_cause(demo.failure)!r}\n")
        return EXIT_FAILED
    if demo.document is not None:
        if as_json:
            target.write(orjson.dumps(demo.document).decode() + "\n")
        else:
            print_result(target, demo.document)
        target.flush()
    return code


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
                guarding = await stack.enter_async_context(_guarding(self._settings, guard))
                await self._play(stack, guarding, ActuatorCheck(KnownKeys([signer.public_key])), interrupted)
            except Exception as error:
                self.failure = error
            watchdog.arm()
        if self.failure is not None:
            return EXIT_FAILED
        return EXIT_INTERRUPTED if interrupted.is_set() else EXIT_OK

    async def _play(
        self, stack: AsyncExitStack, guarding: asyncio.Task[None], check: ActuatorCheck, interrupted: asyncio.Event
    ) -> None:
        start_ms = unix_ms()

        def said(decision: Mapping[str, Any], now_ms: int) -> None:
            self._show.said((now_ms - start_ms) / 1000, decision)

        scenario = build_scenario(self._seed, self._seconds, start_ms, check=check)
        wire = Wire(self._settings.bootstrap_servers, REGION, self._settings.prefix)
        simulation = Simulation(scenario, SimulatedRan(scenario, said=said), wire, unix_ms, _STOP_TIMEOUT_S)
        await stack.enter_async_context(simulation)
        stop = asyncio.Event()
        stack.enter_context(self._show)
        view = asyncio.create_task(self._report(scenario, start_ms), name="view")
        playing = asyncio.create_task(simulation.run(stop), name="simulation")
        try:
            left_s = self._seconds - (unix_ms() - start_ms) / 1000
            await first_of(interrupted.wait(), guarding, view, playing, timeout_s=left_s)
            stop.set()
            ran_s = (unix_ms() - start_ms) / 1000
            await first_of(guarding, view, playing)
            raise_first([guarding, view, playing])
            self.document = {**scenario.tally.document(), "seed": self._seed, "seconds": round(ran_s, 1)}
        finally:
            playing.cancel()
            view.cancel()
            await asyncio.wait({playing, view}, timeout=2.0)

    async def _report(self, scenario: Scenario, start_ms: int) -> None:
        while True:
            self._show.update((unix_ms() - start_ms) / 1000, scenario.tally.document())
            await asyncio.sleep(_SHOW_EVERY_S)


@asynccontextmanager
async def _guarding(settings: GuardSettings, guard: Guard) -> AsyncIterator[asyncio.Task[None]]:
    """The guard, deciding, with its page where there is a web port; its task, which ends where the guard fails."""
    async with AsyncExitStack() as stack:
        if settings.web_port is None:
            stack.push_async_callback(guard.stop)
            await guard.start()
            yield asyncio.create_task(guard.run(), name="guard")
        else:
            from streams.app import create_app

            app, control_path = create_app(settings, guard)
            stack.push_async_callback(app.stop)
            stack.push_async_callback(guard.stop)
            await app.start()
            yield asyncio.create_task(_until_failure(control_path), name="guard")


async def _until_failure(control_path: GuardService) -> None:
    await control_path.finished.wait()
    if control_path.failure is not None:
        raise control_path.failure
