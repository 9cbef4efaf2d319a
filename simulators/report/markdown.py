"""A report as GitHub-flavoured Markdown; its figures are the PNG files beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from simulators.report.document import Beside, Block, Document, Heading, Paragraph, Picture, Table

_SPECIAL: Final = re.compile(r"[\\`*|<>&]|\](?=\()|(?<!\w)_|_(?!\w)")
_LEADING: Final = re.compile(r"^(?=[#+-])")


def markdown(document: Document) -> str:
    """The whole text."""
    return "\n\n".join(part for block in document.blocks for part in _parts(block)) + "\n"


def _parts(block: Block) -> Iterator[str]:
    match block:
        case Heading(level, text):
            yield f"{'#' * level} {_plain(text)}"
        case Paragraph(text):
            yield _LEADING.sub(r"\\", _plain(text))
        case Table():
            yield from _table(block)
        case Beside(tables):
            for table in tables:
                yield from _table(table)
        case Picture(name, caption):
            yield f"![{_plain(caption)}]({name}.png)"
            yield f"*{_plain(caption)}*"


def _table(table: Table) -> Iterator[str]:
    yield f"**{_plain(table.caption)}**"
    rule = ("--:" if table.numeric(column) else ":--" for column in range(len(table.header)))
    lines = (map(_plain, table.header), rule, *(map(_plain, row) for row in table.rows))
    yield "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(text: str) -> str:
    """`text` as Markdown that shows it: one line, nothing in it is markup or ends a cell."""
    return _SPECIAL.sub(lambda found: "\\" + found.group(), " ".join(text.split()))
