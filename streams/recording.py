"""Recordings: messages of topics in one compressed JSON Lines file, written as they come and read back.

One line per message: `{"topic", "partition", "offset", "timestamp_ms", "key", "value" | "value_base64", "headers"}`.
`key` and `value` are text where the bytes are UTF-8, else they stand under `key_base64` and `value_base64`, never under
both; a null value is a tombstone. The same messages give the same file, byte for byte (gzip without a time or a name
in it).
"""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

import orjson

MAX_LINE_BYTES: Final = 64_000_000
"""Bound on one line: a message of 10 MB, the most the rules accept, in base64, several times over."""

_GZIP_WBITS: Final = 16 + zlib.MAX_WBITS
_READ_BYTES: Final = 1 << 16


class RecordingError(ValueError):
    """A line that is no recorded message: the message names the fault, and file and line where they are known."""


@dataclass(frozen=True, slots=True)
class RecordedMessage:
    """One Kafka message as it stood in its topic. `timestamp_ms`: the broker's timestamp of it, Unix ms."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class RecordingWriter:
    """Writes messages to a gzip JSON Lines file. After `flush()` everything written so far is readable.

    `path` is replaced if it exists. Raises OSError as the file system does.
    """

    def __init__(self, path: Path) -> None:
        self._raw: BinaryIO = path.open("wb")
        self._gzip = gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, compresslevel=6, mtime=0)
        self.count = 0

    def write(self, message: RecordedMessage) -> None:
        """Append one message."""
        self._gzip.write(_encode(message) + b"\n")
        self.count += 1

    def flush(self) -> None:
        """Make what was written so far readable, also should the writer be killed now."""
        self._gzip.flush()
        self._raw.flush()

    def close(self) -> None:
        """End the file. Later calls do nothing."""
        self._gzip.close()
        self._raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def read_recording(path: Path) -> Iterator[RecordedMessage]:
    """The messages of a recording, in the order they were written.

    A file that ends early (its recorder was killed) gives its whole lines. Raises RecordingError for a line that is no
    recorded message or for bytes that are no gzip, OSError as the file system does.
    """
    for number, line in enumerate(_lines(path), start=1):
        try:
            yield decode(orjson.loads(line))
        except orjson.JSONDecodeError as error:
            raise RecordingError(f"{path}: line {number}: no recorded message: {error!r}") from error
        except RecordingError as error:
            raise RecordingError(f"{path}: line {number}: {error}") from error


def _lines(path: Path) -> Iterator[bytes]:
    """Whole lines of a gzip file that may end early."""
    rest = b""
    with path.open("rb") as raw:
        decoder = zlib.decompressobj(_GZIP_WBITS)
        while block := raw.read(_READ_BYTES):
            while block:
                try:
                    rest += decoder.decompress(block)
                except zlib.error as error:
                    raise RecordingError(f"{path}: no gzip file, or a damaged one: {error}") from error
                *whole, rest = rest.split(b"\n")
                yield from whole
                if len(rest) > MAX_LINE_BYTES:
                    raise RecordingError(f"{path}: a line of more than {MAX_LINE_BYTES} bytes")
                block = decoder.unused_data
                if decoder.eof:
                    decoder = zlib.decompressobj(_GZIP_WBITS)


def _encode(message: RecordedMessage) -> bytes:
    line: dict[str, Any] = {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "timestamp_ms": message.timestamp_ms,
    }
    _put(line, "key", message.key)
    _put(line, "value", message.value)
    line["headers"] = [[name, base64.b64encode(value).decode()] for name, value in message.headers]
    return orjson.dumps(line)


def _put(line: dict[str, Any], name: str, content: bytes | None) -> None:
    if content is None:
        line[name] = None
        return
    try:
        line[name] = content.decode()
    except UnicodeDecodeError:
        line[f"{name}_base64"] = base64.b64encode(content).decode()


def _take(line: dict[str, Any], name: str) -> bytes | None:
    coded = f"{name}_base64"
    if name not in line:
        return base64.b64decode(line[coded], validate=True)
    if coded in line:
        raise ValueError(f"both {name} and {coded}: one message has one {name}")
    content = line[name]
    if content is not None and not isinstance(content, str):
        raise TypeError(f"{name} must be a string or null")
    return None if content is None else content.encode()


def decode(line: Any) -> RecordedMessage:
    """The message in one line of a recording, parsed. All that read recordings read them with this.

    Raises RecordingError.
    """
    try:
        return _decode(line)
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise RecordingError(f"no recorded message: {error!r}") from error


def _decode(line: dict[str, Any]) -> RecordedMessage:
    partition, offset, timestamp_ms = line["partition"], line["offset"], line["timestamp_ms"]
    if not all(type(number) is int for number in (partition, offset, timestamp_ms)):
        raise TypeError("partition, offset and timestamp_ms must be integers")
    if not isinstance(line["topic"], str):
        raise TypeError("topic must be a string")
    headers = tuple((str(name), base64.b64decode(value)) for name, value in line.get("headers", ()))
    return RecordedMessage(
        topic=line["topic"],
        partition=partition,
        offset=offset,
        timestamp_ms=timestamp_ms,
        key=_take(line, "key"),
        value=_take(line, "value"),
        headers=headers,
    )
