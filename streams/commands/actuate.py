"""`wirelessops actuate-check`: the check that an actuator makes before it carries out a decision, over a file."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import orjson

from streams.commands.documents import EndsEarly, Refused, Unreadable, documents
from streams.keys import KeyFault, known_keys
from streams.whole_file import replace_file
from xapp.actuation import ActuatorCheck, ActuatorState, StateError, Verdict

OK, REFUSED, INVALID = 0, 1, 2

_LOCK_WAIT_S: Final = 10.0
_LOCK_POLL_S: Final = 0.02


class _Busy(Exception):
    """Another run holds the state."""


def actuate_file(
    source: str,
    *,
    keys: Sequence[Path] = (),
    allow_unsigned: bool = False,
    state: Path | None = None,
    now_ms: int | None = None,
) -> int:
    """One JSON verdict a line for each decision of a file.

    Verdicts are printed once the state that they lead to is on disk: whatever happens to this process, no decision is
    permitted twice. Exit codes: 0; 1 where one was refused; 2 where the file, the keys or the state cannot be read.
    """
    try:
        check = ActuatorCheck(known_keys(keys), allow_unsigned)
        found = list(documents(source))
        if all(isinstance(document, orjson.JSONDecodeError | EndsEarly) for _, document in found):
            return _complain(f"{source}: holds no decision")
        state = None if state is None else Path(os.path.realpath(state))  # a link to it stays one: it is replaced
        refused = False
        said: list[bytes] = []
        with _locked(state):
            seen = _load(state)
            for line, document in found:
                verdict, seen = _judge(check, document, time.time_ns() // 1_000_000 if now_ms is None else now_ms, seen)
                said.append(_line(line, document, verdict) + b"\n")
                refused |= verdict.refused
            _store(state, seen)
    except (KeyFault, Unreadable) as error:
        return _complain(str(error))
    except StateError as error:
        return _complain(f"{state}: {error}")
    except _Busy:
        return _complain(f"{state}: in use by another run")
    except OSError as error:
        return _complain(f"{error.filename or source}: {error.strerror or error}")
    sys.stdout.buffer.write(b"".join(said))
    sys.stdout.buffer.flush()
    return REFUSED if refused else OK


def _judge(check: ActuatorCheck, document: Any, now_ms: int, seen: ActuatorState) -> tuple[Verdict, ActuatorState]:
    if isinstance(document, ValueError):
        reason = f"{document}" if isinstance(document, Refused) else f"not JSON: {document}"
        return Verdict("malformed", reason, believed=False), seen
    return check.check(document, now_ms, seen)


def _line(line: int, document: Any, verdict: Verdict) -> bytes:
    said: dict[str, Any] = {"verdict": verdict.kind}
    if verdict.detail:
        said["detail"] = verdict.detail
    if isinstance(document, dict):
        ids = ((name, document.get(name)) for name in ("decision_id", "proposal_id", "attempt", "action"))
        said |= {name: value if isinstance(value, str | int) else None for name, value in ids}
    if line:
        said["line"] = line
    return orjson.dumps(said)


@contextmanager
def _locked(state: Path | None) -> Iterator[None]:
    """One run at a time on one state. The lock is a file beside it, for the state itself is replaced."""
    if state is None:
        yield
        return
    handle = os.open(state.with_name(state.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + _LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= until:
                    raise _Busy from error
                time.sleep(_LOCK_POLL_S)
        yield
    finally:
        os.close(handle)


def _load(state: Path | None) -> ActuatorState:
    """The state of the last run; of a first run there is none. Raises StateError for one that is damaged."""
    if state is None:
        return ActuatorState()
    try:
        return ActuatorState.from_json(state.read_bytes())
    except FileNotFoundError:
        return ActuatorState()


def _store(state: Path | None, seen: ActuatorState) -> None:
    """Replace the state: after a crash at any point the old one is there, or the new one, whole."""
    if state is not None:
        replace_file(state, seen.to_json() + b"\n", mode=0o600)


def _complain(reason: str) -> int:
    sys.stderr.write(f"{reason}\n")
    return INVALID
