"""How long the verifier study takes, whole, on one core: one part of `make bench`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time
from typing import Final

from simulators.closedloop import protocol
from simulators.closedloop.loop import EPISODES, PARTITIONS
from simulators.closedloop.running import execute, prepare

_COMMAND: Final = "from streams.cli import main; main()"


def measure_study() -> dict[str, float]:
    """Episodes under faults that one CPU second runs, and CPU seconds of `wirelessops study run` in a process of its

    own. CPU seconds, of one thread: what one core takes, however many there are and whatever else runs.
    """
    frozen = protocol.shipped()
    prepared = prepare(frozen.master_seed, frozen.blocks)
    started = process_time()
    cases = len(execute(prepared, frozen.master_seed, frozen.blocks).cases)
    seconds = process_time() - started
    return {
        "study_episodes_per_s": cases * PARTITIONS * EPISODES / seconds,
        "study_run_cpu_s": _whole_run(),
    }


def _whole_run() -> float:
    """CPU seconds of the command."""
    with tempfile.TemporaryDirectory() as folder:
        words = ("study", "run", "--out", str(Path(folder) / "study"))
        process = subprocess.Popen([sys.executable, "-c", _COMMAND, *words], stdout=subprocess.DEVNULL)  # noqa: S603 our own command
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"`wirelessops {' '.join(words)}` ended with {process.returncode}")
    return used.ru_utime + used.ru_stime
