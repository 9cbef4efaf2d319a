"""`wirelessops run`: the guard as a service."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import structlog

from streams.alarm_posting import AlarmPoster
from streams.alarm_watch import AlarmWatch, EscalationBell
from streams.broker import EmbeddedBroker
from streams.configuration import Configuration
from streams.decision_log import DecisionLog
from streams.descriptor import KAFKA_CONFIG, Descriptor, read_descriptor
from streams.guard import Guard, unix_ms
from streams.guard_kafka import Unreachable
from streams.kafka_config import kafka_security
from streams.keys import KeyFault, ephemeral_key, known_keys, signing_key
from streams.lifecycle import ExitWatchdog, first_of, run_bounded, until_signal
from streams.logs import log_to_stderr
from streams.settings import GuardSettings, SettingsError, check_port, load_contracts
from streams.tracing import start_tracing
from xapp.signing import KnownKeys, Signer

log = structlog.get_logger(__name__)

_APP_SHARE = 0.3
"""What the app round the control path may take of the time for stopping."""

_OF_A_CLUSTER = frozenset({"partitions", "replication", "session_timeout_ms"})
"""Options that the embedded broker has no use for."""

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_BAD_START = 2


def run(
    bootstrap_servers: str | None = None, kafka_config: Path | None = None, config: Path | None = None, **options: Any
) -> int:
    """Serve until SIGTERM or SIGINT. Without `bootstrap_servers` the embedded broker is started, its address printed.

    `options`: those of `streams.settings.GuardSettings` that were given; they win over the controls of the descriptor
    `config`, and those over the defaults. Exit codes: 0 stopped as asked; 1 failed while serving; 2 not started (bad
    option, bad descriptor or contract file, no Kafka), with the reason on stderr, one line per fault.
    """
    log_to_stderr()
    with ExitStack() as stack:
        try:
            descriptor = None if config is None else _descriptor(config)
            options |= {} if bootstrap_servers is None else {"bootstrap_servers": bootstrap_servers}
            options |= {} if kafka_config is None else {KAFKA_CONFIG: kafka_config}
            settings = _settings({} if descriptor is None else descriptor.controls, options, stack)
            log_to_stderr(settings.log_level)
            contracts = load_contracts(settings.contracts_dir, settings.shipped_contracts)
            signer = _signer(settings)
            tracing = start_tracing(os.environ, settings.guard_name)
            if tracing is not None:
                stack.callback(tracing.stop)
            trusted = _trusted(settings, signer)
            bell = EscalationBell()
            guard = Guard(
                settings, contracts, unix_ms, signer, trusted, observers=[DecisionLog(), bell], tracing=tracing
            )
            guard.tuning.tell(lambda tuning: log_to_stderr(tuning.log_level))
            configuration = Configuration(settings, guard.tuning, descriptor, config, options.keys())
            if settings.web_port is not None:
                check_port(settings.web_host, settings.web_port)
        except (SettingsError, KeyFault, RuntimeError) as error:
            return _complain(error, EXIT_BAD_START)
        return run_bounded(
            lambda watchdog: serve(settings, guard, watchdog, configuration, bell), settings.stop_timeout_s
        )


def _descriptor(path: Path) -> Descriptor:
    try:
        return read_descriptor(path.read_bytes(), path)
    except OSError as error:
        raise SettingsError(f"config: {path}: {error.strerror or error}") from error


def _settings(controls: Mapping[str, Any], options: Mapping[str, Any], stack: ExitStack) -> GuardSettings:
    """Settings of the controls and the options, which win. The embedded broker is started where no Kafka is named."""
    chosen = {**controls, **options}
    bootstrap_servers, kafka_config = chosen.pop("bootstrap_servers", None), chosen.pop(KAFKA_CONFIG, None)
    if bootstrap_servers is not None:
        security = kafka_security(kafka_config)
        return GuardSettings.of(bootstrap_servers=bootstrap_servers, security=security, **chosen)
    chosen = {name: value for name, value in chosen.items() if name not in _OF_A_CLUSTER}
    GuardSettings.embedded("checked before the broker is started", **chosen)
    return GuardSettings.embedded(stack.enter_context(EmbeddedBroker()).bootstrap_servers, **chosen)


async def serve(
    settings: GuardSettings, guard: Guard, watchdog: ExitWatchdog, configuration: Configuration, bell: EscalationBell
) -> int:
    """Run the app until a signal or a failure, then stop it within `stop_timeout_s`. Gives the exit code."""
    from streams.app import create_app

    stop = until_signal()
    try:
        app, control_path = create_app(settings, guard, configuration)
    except SettingsError as error:
        return _complain(error, EXIT_BAD_START)
    failure: BaseException | None = None
    running = asyncio.create_task(_run_app(app), name="app")
    watching = asyncio.create_task(configuration.watch(), name="descriptor")
    poster = await _post_alarms(settings, guard, configuration, bell)
    try:
        await first_of(stop.wait(), control_path.started_up.wait(), control_path.finished.wait(), running)
        if control_path.started_up.is_set():
            await first_of(stop.wait(), guard.until_ready(), control_path.finished.wait(), running)
        if guard.ready:
            print(f"ready: Kafka at {settings.bootstrap_servers}, topics {settings.prefix}*", flush=True)
            await first_of(stop.wait(), control_path.finished.wait(), running)
    finally:
        failure = control_path.failure or (running.exception() if running.done() else None)
        watchdog.arm()
        watching.cancel()
        await asyncio.gather(_stop(settings, guard, app, running), *([] if poster is None else [poster.stop()]))
    if failure is None:
        log.info("stopped", why="asked by a signal" if stop.is_set() else "the app ended")
        return EXIT_OK
    log.info("stopped", why=f"a failure: {str(failure) or type(failure).__name__}")
    return _complain(failure, EXIT_BAD_START if isinstance(failure, Unreachable) else EXIT_FAILED)


async def _post_alarms(
    settings: GuardSettings, guard: Guard, configuration: Configuration, bell: EscalationBell
) -> AlarmPoster | None:
    """Tell alarms from now on, where there is an alarm manager."""
    if settings.alarm_url is None:
        return None
    poster = AlarmPoster(settings.alarm_url, settings.prefix.rstrip("."), settings.guard_name, guard.partition_of)
    poster.look = AlarmWatch(poster.alarms, guard, configuration, unix_ms, poster.compare).look
    bell.ring = poster.wake
    await poster.start()
    return poster


async def _run_app(app: Any) -> None:
    """Start the app and wait for its end. Raises what made it crash."""
    await app.start()
    await app.wait_until_stopped()
    if app.crash_reason is not None:
        raise app.crash_reason


async def _stop(settings: GuardSettings, guard: Guard, app: Any, running: asyncio.Task[None]) -> None:
    """Stop the control path first, so that what it answered is committed whatever the rest does; then the app."""
    await guard.stop()
    running.cancel()
    stopping = asyncio.create_task(app.stop(), name="app stop")
    _, late = await asyncio.wait({stopping, running}, timeout=settings.stop_timeout_s * _APP_SHARE)
    for task in late:
        task.cancel()


def _signer(settings: GuardSettings) -> Signer | None:
    """The key of this guard: as set, else one of this run's own; none only where that was asked for."""
    if settings.unsigned:
        log.warning("unsigned: nobody can tell what this guard writes from what another writes")
        return None
    signer = signing_key(settings.signing_key, os.environ)
    if signer is None:
        signer = ephemeral_key()
        log.warning("no signing key: one of this run's own is used, which ends with it", keyid=signer.keyid)
    return signer


def _trusted(settings: GuardSettings, signer: Signer | None) -> KnownKeys | None:
    """Whose decisions are taken up. Raises SettingsError where this guard would not believe its own."""
    if not settings.trusted_keys:
        return None
    known = known_keys(settings.trusted_keys)
    if signer is None or signer.keyid not in known:
        raise SettingsError("trusted_keys: this guard's own key must be among them (give it by signing_key)")
    return known


def _complain(error: BaseException, code: int) -> int:
    sys.stderr.write(f"{error or type(error).__name__}\n")
    return code
