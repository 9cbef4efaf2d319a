"""How commands end: exit codes, what is told on standard error, and standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from streams.commands.printing import printable

OK, FAILED, REFUSED, INTERRUPTED = 0, 1, 2, 130


class NotRun(ValueError):
    """What was asked for cannot be run, or what was handed in is not judged; the message says why, a line each."""


@dataclass(slots=True)
class Answer:
    """The exit code of a command."""

    code: int = OK


@contextmanager
def answering(stopped: str = "") -> Iterator[Answer]:
    """What a command answers: its exit code; 2 and the reason for what is refused; Ctrl-C ends the process at once.

    `stopped`: what Ctrl-C tells beside.
    """
    answer = Answer()
    try:
        yield answer
    except NotRun as error:
        sys.stderr.write("".join(f"{printable(line)}\n" for line in str(error).split("\n")))
        answer.code = REFUSED
    except KeyboardInterrupt:
        sys.stderr.write(f"stopped; {stopped}\n" if stopped else "stopped\n")
        sys.stderr.flush()
        os._exit(INTERRUPTED)  # threads may wait a minute for a server; what was kept is on disk


def check_output() -> None:
    """Raises NotRun where there is no standard output: before minutes of work, not after."""
    if sys.stdout is None:
        raise NotRun("standard output is closed")


def put(text: str | bytes) -> None:
    """Writes to standard output, and sees that it got there.

    Raises NotRun where it did not; BrokenPipeError for a reader that has read enough is for the command line, which
    ends quietly.
    """
    check_output()
    try:
        sys.stdout.buffer.write(text if isinstance(text, bytes) else text.encode(sys.stdout.encoding, "replace"))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop_output()
        raise NotRun(f"standard output: {error.strerror or error}") from error


@contextmanager
def others_output_on_stderr() -> Iterator[None]:
    """Meanwhile, what anybody prints goes to standard error: standard output is for rows, which programs read."""
    if sys.stdout is None:
        yield
        return
    sys.stdout.flush()
    own = os.dup(1)
    try:
        _point_output_at(2)
        yield
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(own, 1)
        os.close(own)


def _drop_output() -> None:
    """What is still unwritten goes nowhere; else the interpreter complains of it when it ends."""
    _point_output_at(None)
    with suppress(OSError, ValueError):
        sys.stdout.flush()


def _point_output_at(descriptor: int | None) -> None:
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY) if descriptor is None else descriptor, 1)
    except OSError:  # standard error is closed
        if descriptor is not None:
            _point_output_at(None)
