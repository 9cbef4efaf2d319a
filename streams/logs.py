"""Logs of a service: one JSON object a line on standard error; standard output is for what was asked for."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import orjson
import structlog

if TYPE_CHECKING:
    from streams.settings import LogLevel

_LEVELS: Final[Mapping[LogLevel, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def log_to_stderr(level: LogLevel = "info") -> None:
    """Configure structlog, and the loggers of the libraries below, for this process; again, to change the level.

    Faust and aiokafka are heard from warnings on.
    """
    log_to(sys.stderr.buffer, level)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.stdlib.add_log_level,
                structlog.stdlib.add_logger_name,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
            ],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(serializer=lambda event, **_: _json(event).decode()),
            ],
        )
    )
    logging.basicConfig(level=max(_LEVELS[level], logging.WARNING), handlers=[handler], force=True)


def log_to(file: BinaryIO, level: LogLevel = "info") -> None:
    """Configure structlog for this process: lines to a file."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(serializer=_json),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.BytesLoggerFactory(file=file),
    )


def _json(event: Any, **_: Any) -> bytes:
    """A line. What JSON has no form for is written as Python shows it: logging never fails, and no line is lost."""
    try:
        return orjson.dumps(event, default=repr)
    except TypeError:  # text that is no Unicode, integers beyond 64 bits, keys that are no text
        return orjson.dumps({_text(key): _text(value) for key, value in event.items()})


def _text(value: Any) -> str:
    shown = value if isinstance(value, str) else repr(value)
    return shown.encode("utf-8", "backslashreplace").decode()
