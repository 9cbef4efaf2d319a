"""How the study's files are written, and read strictly: what would not be written so is an error with its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import orjson

from simulators.closedloop.loop import ACTIONS
from simulators.closedloop.rows import FEATURES

Kind = Literal["integer", "number", "flag", "text"]
Value = int | float | str | None

PATTERNS: Final[Mapping[Kind, str]] = {
    "integer": r"(?:0|[1-9][0-9]{0,17})",
    "number": r"-?[0-9][0-9.e+-]*",
    "flag": "[01]",
    "text": r"[A-Za-z0-9_:]+",
}
"""What a value of each kind looks like. A number is Python's `repr` of a finite float."""


class FileFault(ValueError):
    """A file that is not as the study writes it; says which, the line and the column."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `optional`: may be empty, which is None."""

    name: str
    kind: Kind
    optional: bool = False


def _columns(text: str) -> tuple[Column, ...]:
    """Columns of `name:kind name:kind? …`; the ? makes one optional."""
    return tuple(_column(*word.split(":")) for word in text.split())


def _column(name: str, kind: str) -> Column:
    return Column(name, next(known for known in PATTERNS if known == kind.removesuffix("?")), kind.endswith("?"))


_UNIT: Final = "regime:integer component:integer"
_ARM: Final = f"{_UNIT} family:text target:number"
_ACTIONS: Final = " ".join(f"a{action}:integer" for action in range(ACTIONS))
_CLEAN: Final = f"{_UNIT} partition:integer visits:integer {_ACTIONS}"

TABLES: Final[Mapping[str, tuple[Column, ...]]] = {
    name: _columns(text)
    for name, text in {
        "schedule.csv": f"case:integer {_ARM} direction:text",
        "seeds.csv": "block:text partition:integer first:integer count:integer",
        "occupancy.csv": "regime:integer cell:integer visits:integer",
        "cells.csv": f"{_UNIT} family:text place:integer cell:integer outward:flag inward:flag",
        "masks.csv": f"{_ARM} selected:integer changeable:integer tau_outward:number tau_inward:number tau:number"
        " fraction:number digest:text",
        "reference.csv": _CLEAN,
        "null.csv": _CLEAN,
        "current.csv": f"case:integer partition:integer visits:integer {_ACTIONS}",
        "drift_features.csv": "regime:integer demand:integer block:text partition:integer "
        + " ".join(f"{feature}:number" for feature in FEATURES),
        "units.csv": f"{_UNIT} reference_partitions:integer runtime_partitions:integer? state:text",
        "signals.csv": "case:integer partition:integer joint:flag z:number?",
        "arms.csv": f"{_ARM} stable_outward:flag stable_inward:flag state:text",
        "null_signals.csv": f"{_UNIT} partition:integer joint:flag z:number?",
    }.items()
}
"""File → its columns: the schema of every table of a run."""


def write(name: str, rows: Iterable[Sequence[Value]]) -> bytes:
    """The table `name` of `TABLES`: header and rows, None as an empty cell.

    Raises ValueError for a row of another length, and for a cell that `read` would not take.
    """
    columns = TABLES[name]
    lines = [",".join(map(_text, row)) for row in rows]
    found = ("\n".join([",".join(column.name for column in columns), *lines]) + "\n").encode()
    read(name, found)
    return found


def read(name: str, content: bytes) -> list[tuple[Any, ...]]:
    """The rows of the table `name` of `TABLES`: int, float or str by column, None for an empty optional cell.

    Raises FileFault, with line and column, for anything that `write` would not have written.
    """
    columns = TABLES[name]
    lines = _lines(name, content)
    header = [column.name for column in columns]
    if lines[0].split(",") != header:
        raise FileFault(f"{name}: line 1: the columns are {','.join(header)}")
    line_form = re.compile(",".join(f"({PATTERNS[c.kind]}){'?' if c.optional else ''}" for c in columns))
    readers = [_READERS[column.kind] for column in columns]
    rows = []
    for number, line in enumerate(lines[1:], 2):
        found = line_form.fullmatch(line)
        if found is None:
            raise FileFault(_misplaced(name, number, line.split(","), columns))
        try:
            rows.append(tuple([None if t is None else r(t) for t, r in zip(found.groups(), readers, strict=True)]))
        except ValueError:
            raise FileFault(_misplaced(name, number, line.split(","), columns)) from None
    return rows


def document(value: Any) -> bytes:
    """A JSON document as the study writes it: indented, members in the order given, a newline at the end."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n"


def read_document(name: str, content: bytes) -> dict[str, Any]:
    """The JSON object of the file `name`. Raises FileFault, with line and column, where it is none."""
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise FileFault(f"{name}: line {error.lineno}, column {error.colno}: {error.msg}") from None
    if not isinstance(found, dict):
        raise FileFault(f"{name}: line 1: no JSON object")
    return found


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return "" if value is None else float.__repr__(value) if isinstance(value, float) else str(value)


def _lines(name: str, content: bytes) -> list[str]:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FileFault(f"{name}: line {line}: no UTF-8") from None
    if not text.endswith("\n"):
        raise FileFault(f"{name}: line {text.count(chr(10)) + 1}: cut short, the last line has no end")
    return text.split("\n")[:-1]


def _number(text: str) -> float:
    """Raises ValueError unless it is the `repr` of a finite float."""
    value = float(text)
    if repr(value) != text:
        raise ValueError(text)
    return value


_READERS: Final[Mapping[Kind, Callable[[str], Value]]] = {
    "integer": int, "number": _number, "flag": int, "text": str,
}  # fmt: skip


def _misplaced(name: str, line: int, cells: Sequence[str], columns: Sequence[Column]) -> str:
    """What is wrong with a line that is not as it would be written."""
    if len(cells) != len(columns):
        return f"{name}: line {line}: {len(cells)} cells, and {len(columns)} columns"
    for cell, column in zip(cells, columns, strict=True):
        if not _taken(cell, column):
            return f"{name}: line {line}, column {column.name}: {cell[:40]!r} is no {column.kind}"
    raise AssertionError("a line with no fault")


def _taken(cell: str, column: Column) -> bool:
    if not cell:
        return column.optional
    try:
        return re.fullmatch(PATTERNS[column.kind], cell) is not None and _READERS[column.kind](cell) is not None
    except ValueError:
        return False
