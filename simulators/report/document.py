"""A report as a value: headings, paragraphs, tables and figures, which each format renders in its own way."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heading:
    """A title; `level` 1 is the report's own, 2 a section, 3 a part of one."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Plain text without any markup."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as they are printed. `rows` are as long as `header`; the first column names the row."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str

    def __post_init__(self) -> None:
        if any(len(row) != len(self.header) for row in self.rows):
            raise ValueError(f"a row of {self.caption!r} is not as long as its header")

    def numeric(self, column: int) -> bool:
        """Whether a column holds numbers, and so is set to the right: a cell with letters at its start is none."""
        return not any(row[column][:1].isalpha() for row in self.rows)


@dataclass(frozen=True, slots=True)
class Beside:
    """Tables to be compared: next to each other where there is room, else one after the other."""

    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure of the report. `name`: its files are `name.png` and `name.svg`, in the report's folder."""

    name: str
    caption: str


Block = Heading | Paragraph | Table | Beside | Picture


@dataclass(frozen=True, slots=True)
class Document:
    """A report, from top to bottom; the first block is its title."""

    blocks: tuple[Block, ...]
