"""`wirelessops record`: topics to a compressed JSON Lines file."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from aiokafka.errors import KafkaError

from streams.kafka_config import kafka_security
from streams.lifecycle import ExitWatchdog, first_of, run_bounded, until_signal
from streams.logs import log_to_stderr
from streams.recorder import Recorder
from streams.topics import DEFAULT_PREFIX, topics

STOP_TIMEOUT_S = 5.0
REPLAYED = ("telemetry", "proposals", "outcomes", "answers", "control", "controls", "records", "checkpoints")
"""What a replay of a live run needs (of `controls`, the switches in force), and what its tamper evidence rests on."""


def record(
    bootstrap_servers: str,
    out: Path,
    *,
    prefix: str = DEFAULT_PREFIX,
    only: Sequence[str] = REPLAYED,
    from_beginning: bool = False,
    seconds: float | None = None,
    kafka_config: Path | None = None,
) -> int:
    """Record until `seconds` are over, SIGTERM or SIGINT. `only`: names of topics without their prefix.

    Exit codes: 0; 2 with the reason on stderr where an option is bad, Kafka cannot be reached or the file not written.
    """
    try:
        names, security = topics(prefix), kafka_security(kafka_config)
        chosen = [getattr(names, name.replace("-", "_")) for name in only]
    except (AttributeError, ValueError) as error:
        return _complain(f"options: {error}")
    log_to_stderr()
    recorder = Recorder(
        bootstrap_servers, chosen, out, from_beginning=from_beginning, whole=(names.controls,), security=security
    )
    return run_bounded(lambda watchdog: _record(recorder, seconds, watchdog), STOP_TIMEOUT_S)


async def _record(recorder: Recorder, seconds: float | None, watchdog: ExitWatchdog) -> int:
    stop = until_signal()
    try:
        await recorder.start()
    except (KafkaError, TimeoutError, OSError) as error:
        return _complain(f"not recording: {error or type(error).__name__}")
    print(f"recording {'until SIGTERM or SIGINT' if seconds is None else f'for {seconds:g} s'}", flush=True)
    running = asyncio.create_task(recorder.run(), name="recorder")
    await first_of(stop.wait(), running, timeout_s=seconds)
    watchdog.arm()
    recorder.stop()
    await running
    print(f"{recorder.count} messages", flush=True)
    return 0


def _complain(reason: str) -> int:
    sys.stderr.write(f"{reason}\n")
    return 2
