"""Worker processes: `wirelessops run`, started, killed, paused and stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_COMMAND: Final = (sys.executable, "-c", "from streams.cli import main; main()", "run", "--escalation-ms", "2000")
"""Nobody answers an ESCALATE here: it ends as soon as a HOLD does."""
_STOP_S: Final = 15.0


class WorkerFailed(RuntimeError):
    """A worker ended by itself, or did not come up; with the end of what it said."""


class Worker:
    """One process; what it says goes into a file."""

    def __init__(self, name: str, options: Sequence[str], folder: Path) -> None:
        self.name = name
        self.paused = False
        self._said = folder / f"{name}.log"
        with self._said.open("ab") as said:
            self._process = subprocess.Popen(
                [*_COMMAND, "--guard-name", name, *options],
                stdout=said,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        """Whether the process is there (paused or not)."""
        return self._process.poll() is None

    @property
    def code(self) -> int | None:
        """Its exit code once it ended; negative: by that signal."""
        return self._process.poll()

    def said(self) -> str:
        """The end of what it said."""
        return self._said.read_bytes()[-2000:].decode("utf-8", "replace") if self._said.exists() else ""

    def wait_ready(self, timeout_s: float) -> None:
        """Until it says that it decides. Raises WorkerFailed."""
        ends_at = time.monotonic() + timeout_s
        while b"ready: " not in self._said.read_bytes():
            if not self.alive or time.monotonic() > ends_at:
                raise WorkerFailed(f"{self.name} (exit {self.code}): {self.said()}")
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL, also of a paused one."""
        self._signal(signal.SIGKILL)
        self._process.wait(_STOP_S)

    def pause(self) -> None:
        """SIGSTOP."""
        self._signal(signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)
        self.paused = False

    def stop(self) -> int:
        """SIGTERM, and its exit code; one that does not end is killed."""
        if self.paused:
            self.resume()
        self._signal(signal.SIGTERM)
        try:
            return self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL

    def _signal(self, number: int) -> None:
        if self.alive:
            self._process.send_signal(number)


class Workers:
    """The workers of a phase: each has a name of its own, also one that takes the place of another."""

    def __init__(self, options: Sequence[str], folder: Path, *, ready_s: float = 60.0) -> None:
        self.running: list[Worker] = []
        self.unexpected: list[str] = []
        """Workers that ended by themselves."""
        self._options = options
        self._folder = folder
        self._ready_s = ready_s
        self._made = 0

    def start(self) -> Worker:
        """One more, not waited for."""
        self._made += 1
        worker = Worker(f"w{self._made}", self._options, self._folder)
        self.running.append(worker)
        return worker

    def wait_ready(self) -> None:
        """Until all say that they decide. Raises WorkerFailed."""
        for worker in self.running:
            worker.wait_ready(self._ready_s)

    def lose(self, worker: Worker) -> None:
        """Kill one."""
        worker.kill()
        self.running.remove(worker)

    def look(self) -> None:
        """Note those that ended by themselves, and start others in their place."""
        for worker in [w for w in self.running if not w.alive]:
            self.unexpected.append(f"{worker.name} (exit {worker.code}): {worker.said()[-500:]}")
            self.running.remove(worker)
            self.start()

    def stop(self) -> None:
        """End all."""
        for worker in self.running:
            worker.stop()
        self.running.clear()
