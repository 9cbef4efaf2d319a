"""Lines and bytes of recorded files, plain or gzip'd; bounded, and never an exception of a codec."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from streams.replay.recorded import Tally, Unreadable, UnreadableRecording

MAX_LINE_BYTES: Final = 10_000_000
"""The most that the rules accept of one document or line."""
_GZIP_MAGIC: Final = b"\x1f\x8b"


def open_recording(path: Path) -> BinaryIO:
    """Open a file, gzip'd or not. Raises UnreadableRecording where it cannot be opened."""
    try:
        raw = path.open("rb")
        magic = raw.read(2)
        raw.seek(0)
    except OSError as error:
        raise UnreadableRecording(f"{path.name}: {error.strerror or error}") from error
    return gzip.GzipFile(fileobj=raw, mode="rb") if magic == _GZIP_MAGIC else raw  # type: ignore[return-value]


def text_lines(path: Path, tally: Tally) -> Iterator[tuple[int, str]]:
    """(line number, text) of each line; those that are no UTF-8 or too long are tallied, and so is a damaged end."""
    with open_recording(path) as stream:
        line = 0
        while True:
            line += 1
            try:
                raw = stream.readline(MAX_LINE_BYTES + 1)
            except (OSError, EOFError, zlib.error) as error:
                tally.unreadable.append(Unreadable(path.name, line, f"damaged gzip: {error}"))
                return
            if not raw:
                return
            if len(raw) > MAX_LINE_BYTES:
                tally.unreadable.append(Unreadable(path.name, line, f"more than {MAX_LINE_BYTES} bytes"))
                while raw and not raw.endswith(b"\n"):
                    raw = stream.readline(MAX_LINE_BYTES)
                continue
            try:
                yield line, raw.decode("utf-8-sig" if line == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                tally.unreadable.append(Unreadable(path.name, line, f"no UTF-8: {error.reason}"))


def table(path: Path, needed: frozenset[str], tally: Tally) -> Iterator[tuple[int, dict[str, str]]]:
    """(line number, column → cell) of a CSV file whose first line names the columns; blank separators are left out.

    Raises UnreadableRecording where the first line lacks a needed column. Rows of another width are tallied.
    """
    lines = text_lines(path, tally)
    first = next(lines, None)
    if first is None:
        raise UnreadableRecording(f"{path.name}: empty, or its first line cannot be read")
    header = [name.strip() for name in next(csv.reader([first[1]]), [])]
    missing = sorted(needed - set(header))
    if missing:
        raise UnreadableRecording(f"{path.name}: line 1: no column {', '.join(map(repr, missing))}")
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        raise UnreadableRecording(f"{path.name}: line 1: column {twice[0]!r} stands there twice")
    for line, text in lines:
        if not text.strip():
            continue
        tally.rows += 1
        try:
            cells = next(csv.reader([text], strict=True))
        except csv.Error as error:
            tally.unreadable.append(Unreadable(path.name, line, f"no CSV: {error}"))
            continue
        if len(cells) != len(header):
            reason = f"{len(cells)} cells where the first line names {len(header)}"
            tally.unreadable.append(Unreadable(path.name, line, reason))
            continue
        yield line, {name: cell for name, cell in zip(header, cells, strict=True) if name}
