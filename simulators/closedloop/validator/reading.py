"""The files of a study, read strictly: what cannot be read is named by file and place."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simulators.closedloop.validator.layout import DOCUMENTS, FILES, LEDGER, MANIFEST, TABLES, Kind

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Document = dict[str, Any]

EMPTY: Final = -1
"""An empty cell of a column of counts. An empty cell of a column of numbers is NaN, which no file can hold."""
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")
_NUMBER: Final = re.compile(r"-?[0-9]{1,16}(\.[0-9]{1,30})?(e[-+]?[0-9]{1,3})?")
LARGEST: Final = 1 << 26
"""Bytes of a file: those of a study have far fewer."""
REPORT: Final = "report"
"""The folder that `wirelessops study report` leaves among the files of a study, unless told another."""
DEEPEST: Final = 24
"""Levels of a document: those of a study have fewer."""
_MARK: Final = b"\xef\xbb\xbf"


class Unreadable(Exception):
    """A folder that is no finished study: the file, the place in it, and what is wrong there, in one line."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of a study. `header`: all its columns; the arrays hold those that a study has, by name, a row each."""

    name: str
    header: tuple[str, ...]
    ints: Mapping[str, Ints]
    floats: Mapping[str, Floats]
    texts: Mapping[str, tuple[str, ...]]
    rows: int


@dataclass(frozen=True, slots=True, eq=False)
class Saved:
    """All files of a study: their bytes, and what they say. `ledger`: its claims, a line each; `others`: what lies in
    its folder and is none of its files.
    """

    content: Mapping[str, bytes]
    tables: Mapping[str, Table]
    documents: Mapping[str, Document]
    ledger: tuple[Document, ...]
    others: tuple[str, ...] = ()

    def only(self, names: Collection[str]) -> Saved:
        """The study with nothing but these files."""
        return Saved(
            {name: content for name, content in self.content.items() if name in names},
            {name: table for name, table in self.tables.items() if name in names},
            {name: document for name, document in self.documents.items() if name in names},
            self.ledger if LEDGER in names else (),
            self.others if MANIFEST in names else (),
        )

    def replaced(self, name: str, content: bytes) -> Saved:
        """The study with one other file. Raises Unreadable."""
        now = {**self.content, name: content}
        if name in TABLES:
            return replace(self, content=now, tables={**self.tables, name: read_table(name, content)})
        if name == LEDGER:
            return replace(self, content=now, ledger=_ledger(content))
        return replace(self, content=now, documents={**self.documents, name: read_document(name, content)})


def load(folder: Path) -> Saved:
    """Reads a folder. Raises Unreadable where a file of a finished study is not there or cannot be read."""
    if not folder.is_dir():
        raise Unreadable("is no folder")
    content = {name: _bytes(folder, name) for name in FILES}
    return Saved(
        content=content,
        tables={name: read_table(name, content[name]) for name in TABLES},
        documents={name: read_document(name, content[name]) for name in DOCUMENTS},
        ledger=_ledger(content[LEDGER]),
        others=_others(folder),
    )


def read_table(name: str, content: bytes) -> Table:
    """Reads a table by its layout; further columns stay in its header. Raises Unreadable."""
    lines = _text(name, content).split("\n")
    if lines[-1] != "":
        raise Unreadable(f"{name} line {len(lines)}: does not end with a line feed")
    header = tuple(lines[0].split(","))
    if len(set(header)) < len(header):
        raise Unreadable(f"{name} line 1: names a column twice")
    body = lines[1:-1]
    for number, line in enumerate(body, 2):
        if line.count(",") != len(header) - 1:
            raise Unreadable(f"{name} line {number}: has {line.count(',') + 1} cells, the header {len(header)}")
    cells = ",".join(body).split(",") if body else []
    columns = {column: cells[place :: len(header)] for place, column in enumerate(header)}
    ints: dict[str, Ints] = {}
    floats: dict[str, Floats] = {}
    texts: dict[str, tuple[str, ...]] = {}
    for column, kind in TABLES[name]:
        if column not in columns:
            raise Unreadable(f"{name} line 1: has no column {column}")
        values = columns[column]
        if kind == "text":
            texts[column] = tuple(values)
        elif kind in ("integer", "count or empty"):
            ints[column] = np.array(_parsed(name, column, kind, values, _INTEGER, int, EMPTY), dtype=np.int64)
        else:
            floats[column] = np.array(_parsed(name, column, kind, values, _NUMBER, float, math.nan), dtype=np.float64)
    return Table(name, header, ints, floats, texts, len(body))


def _parsed(
    name: str,
    column: str,
    kind: Kind,
    values: Sequence[str],
    form: re.Pattern[str],
    read: Callable[[str], float],
    empty: float,
) -> list[float]:
    known: dict[str, float] = {"": empty} if kind.endswith("or empty") else {}
    for value in set(values) - known.keys():
        if form.fullmatch(value) is None or (kind == "count or empty" and value.startswith("-")):
            line = values.index(value) + 2
            raise Unreadable(f"{name} line {line}: {column} is {_short(value)}, not: {kind}")
        known[value] = read(value)
        if math.isinf(known[value]):
            raise Unreadable(f"{name} line {values.index(value) + 2}: {column} is {_short(value)}, out of range")
        if repr(known[value]) != value:
            told = f"{column} is {_short(value)}, which is written {known[value]!r}"
            raise Unreadable(f"{name} line {values.index(value) + 2}: {told}")
    return [known[value] for value in values]


def read_document(name: str, content: bytes) -> Document:
    """Reads a JSON object. Raises Unreadable."""
    return _object(name, "", _text(name, content))


def at(document: Document, *path: str) -> Any:
    """The member of a document at a path of names; None where there is none."""
    value: Any = document
    for member in path:
        value = value.get(member) if isinstance(value, dict) else None
    return value


def apart(said: Any, value: Any, tolerance: float = 0.0, *path: str) -> Iterator[tuple[str, Any, Any]]:
    """Where two values of a document differ: path, what stands there, what should (None for what is not there).

    They differ by kind too: 1, 1.0 and true are three. Numbers that are no integers may differ by the tolerance.
    """
    if isinstance(said, dict) and isinstance(value, dict):
        for name in {**value, **said}:
            if name in said and name in value:
                yield from apart(said[name], value[name], tolerance, *path, name)
            else:
                yield " ".join((*path, name)), said.get(name), value.get(name)
    elif isinstance(said, list) and isinstance(value, list) and len(said) == len(value):
        for place, (one, other) in enumerate(zip(said, value, strict=True)):
            yield from apart(one, other, tolerance, *path, str(place))
    elif type(said) is not type(value) or not (
        abs(said - value) <= tolerance if isinstance(said, float) else said == value
    ):
        yield " ".join(path), said, value


def same(said: Any, value: Any, tolerance: float = 0.0) -> bool:
    """Whether two values are nowhere `apart`."""
    return next(apart(said, value, tolerance), None) is None


def foreign(document: Document, known: Mapping[str, Any], *path: str) -> Iterator[tuple[str, ...]]:
    """The paths of members that are not among those known: name → those within it, or None where all may be."""
    for name in document:
        if name not in known:
            yield (*path, name)
        elif isinstance(inner := document[name], dict) and known[name] is not None:
            yield from foreign(inner, known[name], *path, name)


def _ledger(content: bytes) -> tuple[Document, ...]:
    lines = _text(LEDGER, content).split("\n")
    if lines[-1] != "":
        raise Unreadable(f"{LEDGER} line {len(lines)}: does not end with a line feed")
    return tuple(_object(LEDGER, f" line {number}", line) for number, line in enumerate(lines[:-1], 1))


def _object(name: str, place: str, text: str) -> Document:
    try:
        value = json.loads(
            text, object_pairs_hook=_members, parse_constant=_refuse, parse_float=_finite, parse_int=_bounded
        )
    except json.JSONDecodeError as error:
        at = place or f" line {error.lineno}"
        raise Unreadable(f"{name}{at}: is no JSON: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError) as error:
        why = "is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Unreadable(f"{name}{place}: {why}") from None
    if not isinstance(value, dict):
        raise Unreadable(f"{name}{place}: is no JSON object")
    if _deeper(value, DEEPEST):
        raise Unreadable(f"{name}{place}: is nested too deeply")
    return value


def _deeper(value: Any, levels: int) -> bool:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels == 0 or any(_deeper(member, levels - 1) for member in members)


def _members(pairs: list[tuple[str, Any]]) -> Document:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("names a member twice")
    return document


def _refuse(constant: str) -> float:
    raise ValueError(f"holds {constant}, which is no number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"holds {_short(text)}, which is out of range")
    return value


def _bounded(text: str) -> int:
    if len(text) > 20:
        raise ValueError(f"holds {_short(text)}, which is out of range")
    return int(text)


def _bytes(folder: Path, name: str) -> bytes:
    path = folder / name
    try:
        if not path.exists():
            raise Unreadable(f"{name}: is missing")
        if not path.is_file():
            raise Unreadable(f"{name}: is no file")
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise Unreadable(f"{name}: is larger than {LARGEST} bytes")
        return content
    except (OSError, ValueError) as error:
        raise Unreadable(f"{name}: {getattr(error, 'strerror', None) or error}") from None


def _others(folder: Path) -> tuple[str, ...]:
    try:
        found = sorted(path.name for path in folder.iterdir() if path.name not in FILES)
        return tuple(name for name in found if name != REPORT or not (folder / name).is_dir())
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None


def _text(name: str, content: bytes) -> str:
    if content.startswith(_MARK):
        raise Unreadable(f"{name} line 1: begins with a byte order mark")
    if not content:
        raise Unreadable(f"{name}: is empty")
    if b"\r" in content:
        raise Unreadable(f"{name} line {content[: content.index(13)].count(10) + 1}: has a carriage return")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(10) + 1
        raise Unreadable(f"{name} line {line}: is not UTF-8") from None


def _short(value: str) -> str:
    return ascii(value if len(value) <= 40 else value[:40] + "…")
