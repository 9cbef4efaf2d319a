"""The JSON documents of a file that a command is given: one, or one a line; `-` is standard input; gzip by content."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from xapp.faithfulness import MAX_DEPTH, deeper_than

STDIN: Final = "-"
MAX_LINE_BYTES: Final = 64_000_000
"""Bound on one line of a compressed file, as in recordings."""

_GZIP: Final = b"\x1f\x8b"
_GZIP_WBITS: Final = 16 + zlib.MAX_WBITS
_READ_BYTES: Final = 1 << 16


class Unreadable(ValueError):
    """A file that is no text at all; the message says why."""


class Refused(ValueError):
    """JSON that is not judged: it is nested too deep, or other readers may take it for something else."""


class EndsEarly(ValueError):
    """A compressed file that stops in the middle: whoever wrote it was stopped, or somebody cut it."""

    def __init__(self) -> None:
        super().__init__("the compressed file ends early: what came after is not shown here")


def documents(source: str) -> Iterator[tuple[int, Any]]:
    """(line, document) of each; line 0 where the whole file is one document.

    In place of a document that is not JSON stands its JSONDecodeError, and Refused of one that `read_document` refuses;
    a compressed file that stops in the middle gives its whole lines, and EndsEarly. Raises OSError, and Unreadable for
    a damaged one.
    """
    with sys.stdin.buffer if source == STDIN else Path(source).open("rb") as stream:
        head = stream.read(len(_GZIP))
        if head == _GZIP:
            yield from _compressed(_unzipped(head, stream))
        else:
            yield from _plain(head + stream.read())


def read_document(data: bytes) -> Any:
    """The JSON document in these bytes, where there is one way to read it.

    Raises JSONDecodeError, and Refused for one nested deeper than MAX_DEPTH, or with a key twice in one object: which
    of the two values counts, each parser decides for itself, and a signature holds for the one alone.
    """
    document = orjson.loads(data)
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and deeper_than(document, MAX_DEPTH):
        raise Refused(f"nested deeper than {MAX_DEPTH}")
    json.loads(data.decode(), object_pairs_hook=_unique, parse_int=len, parse_float=len)
    return document


def _unique(pairs: list[tuple[str, Any]]) -> None:
    seen = set()
    for key, _ in pairs:
        if key in seen:
            raise Refused(f"the key {ascii(key)[:100]} stands twice in one object")
        seen.add(key)


def _plain(data: bytes) -> Iterator[tuple[int, Any]]:
    whole = _parsed(data)
    if not isinstance(whole, orjson.JSONDecodeError):
        yield 0, whole
        return
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            yield number, _parsed(line)


def _compressed(lines: Iterator[bytes | EndsEarly]) -> Iterator[tuple[int, Any]]:
    """Line by line, for it may be large; but if its first line is no document, perhaps the whole is."""
    for number, line in enumerate(lines, 1):
        if isinstance(line, EndsEarly):
            yield number, line
        elif line.strip():
            document = _parsed(line)
            if number == 1 and isinstance(document, orjson.JSONDecodeError):
                rest = list(lines)
                yield from _plain(b"\n".join([line, *(one for one in rest if isinstance(one, bytes))]))
                yield from ((len(rest), one) for one in rest if isinstance(one, EndsEarly))
            else:
                yield number, document


def _parsed(line: bytes) -> Any:
    try:
        return read_document(line)
    except (orjson.JSONDecodeError, Refused) as error:
        return error


def _unzipped(head: bytes, stream: BinaryIO) -> Iterator[bytes | EndsEarly]:
    rest = b""
    decoder = zlib.decompressobj(_GZIP_WBITS)
    begun = False
    block = head
    while block:
        while block:
            try:
                rest += decoder.decompress(block)
            except zlib.error as error:
                raise Unreadable(f"damaged gzip: {error}") from error
            begun = True
            *whole, rest = rest.split(b"\n")
            yield from whole
            if len(rest) > MAX_LINE_BYTES:
                raise Unreadable(f"a line of more than {MAX_LINE_BYTES} bytes")
            block = decoder.unused_data
            if decoder.eof:
                decoder, begun = zlib.decompressobj(_GZIP_WBITS), False
        block = stream.read(_READ_BYTES)
    if begun:
        yield EndsEarly()
    elif rest:
        yield rest
