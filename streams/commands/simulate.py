"""`wirelessops simulate`: the simulated RAN and its xApps against a guard that runs elsewhere."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import structlog
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from simulators.endless import EndlessRun
from simulators.ran.actuator import Outcome
from streams.guard import unix_ms
from streams.kafka_config import kafka_security
from streams.keys import KeyFault, known_keys
from streams.lifecycle import ExitWatchdog, first_of, run_bounded, until_signal
from streams.logs import log_to_stderr
from streams.settings import SettingsError
from streams.simulation import SimulatedRan, Simulation, Wire, raise_first, root_cause
from streams.topics import NoRegion, region_of, topics
from xapp.actuation import ActuatorCheck
from xapp.signing import SIGNATURE, KnownKeys

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_BAD_START: Final = 2

_STOP_TIMEOUT_S: Final = 5.0
_PATIENCE_S: Final = 1.0
_LOOK_AGAIN_S: Final = 0.5
_COUNTS_EVERY_S: Final = 10.0
_HEARTBEAT_EVERY_S: Final = 1.0

log = structlog.get_logger(__name__)


class UncheckedRun(SimulatedRan):
    """A RAN that knows no guard: who signed a decision does not matter to it."""

    def control(self, decision: Mapping[str, Any], now_ms: int) -> Outcome | None:
        return super().control({name: said for name, said in decision.items() if name != SIGNATURE}, now_ms)


def simulate(
    bootstrap_servers: str, *, prefix: str, region: str, seed: int, seconds: float | None,
    trusted_keys: Sequence[Path], kafka_config: Path | None, heartbeat: Path | None,
) -> int:  # fmt: skip
    """Run until `seconds` are over (None: for ever), SIGTERM or SIGINT, and log the counts every 10 s.

    Kafka and the guard's topics are awaited. `trusted_keys`: public keys of the guards whose decisions are carried out;
    without any, everybody's are. `heartbeat`: a file that is touched every second in which the RAN runs. Exit codes:
    0; 1 where a part failed; 2 for a bad option, each with the reason on stderr.
    """
    log_to_stderr()
    try:
        topics(prefix)
        region_of(region.encode())
        wire = Wire(bootstrap_servers, region, prefix, kafka_security(kafka_config))
        known = known_keys(trusted_keys) if trusted_keys else None
    except (SettingsError, KeyFault, NoRegion, ValueError) as error:
        return _complain(error, EXIT_BAD_START)
    if known is None:
        log.warning("no trusted keys: the RAN carries out decisions whoever signed them, and unsigned ones")
    return run_bounded(
        lambda watchdog: _simulate(wire, seed, seconds, known, heartbeat, watchdog), _STOP_TIMEOUT_S
    )


async def _simulate(
    wire: Wire, seed: int, seconds: float | None, known: KnownKeys | None, heartbeat: Path | None,
    watchdog: ExitWatchdog,
) -> int:  # fmt: skip
    stop = until_signal()
    try:
        await first_of(stop.wait(), asyncio.create_task(until_topics(wire), name="waits for Kafka"))
        if not stop.is_set():
            await _play(wire, seed, seconds, known, heartbeat, stop, watchdog)
    except Exception as error:
        watchdog.arm()
        return _complain(root_cause(error), EXIT_FAILED)
    return EXIT_OK


async def _play(
    wire: Wire, seed: int, seconds: float | None, known: KnownKeys | None, heartbeat: Path | None,
    stop: asyncio.Event, watchdog: ExitWatchdog,
) -> None:  # fmt: skip
    start_ms = unix_ms()
    check = ActuatorCheck(KnownKeys(), allow_unsigned=True) if known is None else ActuatorCheck(known)
    endless = EndlessRun(seed, start_ms, check)
    ran = (UncheckedRun if known is None else SimulatedRan)(endless.scenario, before_tick=endless.advance_to)
    async with Simulation(endless.scenario, ran, wire, unix_ms, _PATIENCE_S) as simulation:
        print(f"the RAN runs: region {wire.region} at {wire.bootstrap_servers}", flush=True)
        log.info("the RAN runs", bootstrap_servers=wire.bootstrap_servers, region=wire.region, seed=seed)
        ending = asyncio.Event()
        playing = asyncio.create_task(simulation.run(ending), name="simulation")
        telling = [
            asyncio.create_task(_tell_counts(endless, start_ms), name="counts"),
            asyncio.create_task(_beat(heartbeat, ran), name="heartbeat"),
        ]
        try:
            await first_of(stop.wait(), playing, *telling, timeout_s=seconds)
            watchdog.arm()
            ending.set()
            await first_of(playing, timeout_s=_STOP_TIMEOUT_S)
            raise_first([playing, *telling])
            _log_counts(endless, start_ms)
        finally:
            for task in (playing, *telling):
                task.cancel()
            await asyncio.wait({playing, *telling}, timeout=_PATIENCE_S)


async def until_topics(wire: Wire) -> None:
    """Wait until Kafka answers and has every topic of the prefix: they are the guard's to make."""
    needed = set(topics(wire.prefix).names())
    said = ""
    while True:
        try:
            admin = AIOKafkaAdminClient(
                bootstrap_servers=wire.bootstrap_servers, **wire.security.aiokafka_options()
            )
            try:
                await admin.start()
                missing = needed - set(await admin.list_topics())
            finally:
                await admin.close()
            why = f"no topic {', '.join(sorted(missing))}" if missing else ""
        except (KafkaError, OSError) as error:
            why = str(error) or type(error).__name__
        if not why:
            return
        if why != said:
            log.info("waiting for Kafka and the guard's topics", why=why)
            said = why
        await asyncio.sleep(_LOOK_AGAIN_S)


async def _tell_counts(endless: EndlessRun, start_ms: int) -> None:
    while True:
        await asyncio.sleep(_COUNTS_EVERY_S)
        _log_counts(endless, start_ms)


def _log_counts(endless: EndlessRun, start_ms: int) -> None:
    totals = endless.scenario.tally.document()["totals"]
    log.info("counts", seconds=round((unix_ms() - start_ms) / 1000, 1), **totals)


async def _beat(heartbeat: Path | None, ran: SimulatedRan) -> None:
    """Touch the file as long as the network moves on: a node that hangs in a send does not."""
    last = -1
    while True:
        if heartbeat is not None and ran.ticks != last:
            _touch(heartbeat)
            last = ran.ticks
        await asyncio.sleep(_HEARTBEAT_EVERY_S)


def _touch(path: Path) -> None:
    path.touch()


def _complain(error: BaseException, code: int) -> int:
    sys.stderr.write(f"{error or type(error).__name__}\n")
    return code
