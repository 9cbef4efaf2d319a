"""Logs of a service: one JSON object a line on standard error; standard output is for what was asked for.

Lines are written by a thread of its own, so that whoever logs never waits for whoever reads.
"""

from __future__ import annotations

import atexit
import logging
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import orjson
import structlog

if TYPE_CHECKING:
    from streams.settings import LogLevel

MOST_BYTES: Final = 4_000_000
"""Lines that wait for a reader that has stopped reading; what comes then is dropped, counted, and told of later."""
_AT_ONCE_BYTES: Final = 65_536
_GATHER_S: Final = 0.05
"""How long lines are gathered before they are written: waking a thread for each would cost more than the line."""
_FLUSH_S: Final = 1.0
_LEVELS: Final[Mapping[LogLevel, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class Lines:
    """Lines for a file, written one after the other by a thread. One that takes no more loses them, and that is all."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.dropped = 0
        """Lines that were not written, in all."""
        self._raw = getattr(file, "raw", file)  # a buffer's lock, held while a write waits, would keep us from ending
        self._waiting = deque[bytes]()
        self._size = 0  # of what waits and what is being written
        self._untold = 0
        self._changed = threading.Condition()
        self._idle = True
        self._thread: threading.Thread | None = None

    def put(self, line: bytes) -> None:
        """One more line, without its end. Never waits, never raises."""
        with self._changed:
            if self._size + len(line) >= MOST_BYTES:
                self._drop(1)
                return
            self._waiting.append(line)
            self._size += len(line) + 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log", daemon=True)
                self._thread.start()
            if self._idle:
                self._idle = False
                self._changed.notify_all()

    def flush(self, within_s: float = _FLUSH_S) -> bool:
        """Wait until all that was put is written, for so many seconds at most; gives whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self._size == 0, within_s)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle = not self._waiting
                self._changed.wait_for(lambda: self._waiting)
            time.sleep(_GATHER_S)
            with self._changed:
                taken = [self._waiting.popleft()]
                size = len(taken[0]) + 1
                while self._waiting and size < _AT_ONCE_BYTES:
                    taken.append(self._waiting.popleft())
                    size += len(taken[-1]) + 1
                untold = 0 if self._waiting else self._untold  # after what was there before they were dropped
                self._untold -= untold
            told = [_told_of(untold)] if untold else []
            try:
                self._write(b"\n".join([*taken, *told, b""]))
            except (OSError, ValueError):  # its reader is gone, its disk is full, it is closed
                with self._changed:
                    self._drop(len(taken))
                    self._untold += untold
            with self._changed:
                self._size -= size
                self._changed.notify_all()

    def _write(self, content: bytes) -> None:
        left = memoryview(content)
        while left:
            written = self._raw.write(left)
            if written is None:  # it does not block, and takes nothing now
                select.select((), (self._raw,), (), 1.0)
            left = left[written or 0 :]

    def _drop(self, lines: int) -> None:
        self.dropped += lines
        self._untold += lines


class _Logger:
    """What structlog hands rendered lines to."""

    def __init__(self, lines: Lines) -> None:
        self.msg = self.debug = self.info = self.warning = self.error = self.critical = lines.put


class _Handler(logging.Handler):
    """The same for the loggers of the libraries below."""

    def __init__(self, lines: Lines) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        self._lines.put(self.format(record).encode("utf-8", "backslashreplace"))


_current: Lines | None = None


def log_to_stderr(level: LogLevel = "info") -> None:
    """Configure structlog, and the loggers of the libraries below, for this process; again, to change the level.

    Faust and aiokafka are heard from warnings on.
    """
    handler = _Handler(log_to(sys.stderr.buffer, level))
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_log_level, structlog.stdlib.add_logger_name, _stamped],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(serializer=lambda event, **_: _json(event).decode()),
            ],
        )
    )
    logging.basicConfig(level=max(_LEVELS[level], logging.WARNING), handlers=[handler], force=True)


def log_to(file: BinaryIO, level: LogLevel = "info") -> Lines:
    """Configure structlog for this process: lines to a file. Gives who writes them, the same for the same file."""
    global _current
    if _current is None or _current.file is not file:
        flush()
        _current = Lines(file)
        atexit.register(_current.flush)
    logger = _Logger(_current)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            _stamped,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(serializer=_json),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lambda *_: logger,
    )
    return _current


def flush(within_s: float = _FLUSH_S) -> None:
    """Wait until all that was logged is written, for so many seconds at most."""
    if _current is not None:
        _current.flush(within_s)


def dropped() -> int:
    """Lines of this process's log that were not written."""
    return 0 if _current is None else _current.dropped


def _told_of(lines: int) -> bytes:
    event = {"event": "lines of the log were dropped: it was not read", "lines": lines, "level": "warning"}
    return _json(_stamped(None, "", event))


def _stamped(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event["timestamp"] = datetime.now(UTC)
    return event


def _json(event: Any, **_: Any) -> bytes:
    """A line. What JSON has no form for is written as Python shows it: logging never fails, and no line is lost."""
    try:
        return orjson.dumps(event, default=repr, option=orjson.OPT_UTC_Z)
    except TypeError:  # text that is no Unicode, integers beyond 64 bits, keys that are no text
        return orjson.dumps({_text(key): _text(value) for key, value in event.items()})


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    shown = value if isinstance(value, str) else repr(value)
    return shown.encode("utf-8", "backslashreplace").decode()
