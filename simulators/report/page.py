"""A report as one HTML page that needs nothing else: styles and figures are inside it, and there are no scripts."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from simulators.report.document import Beside, Block, Document, Heading, Paragraph, Picture, Table

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --line: #d0d7de; --soft: #f3f5f7; --dim: #57606a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e2e6ea; --paper: #14181d; --line: #363d46; --soft: #1d232a; --dim: #9aa4af; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 78rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); } h3 { margin-top: 2rem; }
p { max-width: 46rem; }
nav { columns: 16rem; max-width: 60rem; font-size: .9rem; } nav a { display: block; color: inherit; }
.beside { display: flex; flex-wrap: wrap; gap: 0 2rem; align-items: flex-start; }
.scroll { overflow-x: auto; margin: 1rem 0; max-width: 100%; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
caption { text-align: left; font-weight: 600; padding-bottom: .4rem; position: sticky; left: 0;
  max-width: calc(100vw - 2rem); }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
.number { text-align: right; }
th.text, td.text { white-space: normal; min-width: min(28rem, 70vw); max-width: 46rem; }
thead th { background: var(--soft); vertical-align: bottom; }
tbody th { font-weight: 400; }
figure { margin: 1rem 0; } figure img { display: block; width: 100%; max-width: 44rem; background: #fff;
  border: 1px solid var(--line); border-radius: 6px; }
figcaption { max-width: 46rem; color: var(--dim); font-size: .9rem; padding-top: .4rem; }
"""

_ON_ONE_LINE: Final = 80
"""The longest cell that is not wrapped, in characters."""


def page(document: Document, drawings: Mapping[str, bytes]) -> str:
    """The whole page. `drawings`: the SVG of each figure, by its name."""
    title = next(block.text for block in document.blocks if isinstance(block, Heading))
    body = "\n".join(part for block in document.blocks for part in _parts(block, drawings))
    links = "\n".join(
        f'<a href="#{_anchor(block.text)}">{escape(block.text)}</a>'
        for block in document.blocks
        if isinstance(block, Heading) and block.level == 2
    )
    body = body.replace("</h1>", f"</h1>\n<nav>\n{links}\n</nav>", 1)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _parts(block: Block, drawings: Mapping[str, bytes]) -> Iterator[str]:
    match block:
        case Heading(level, text):
            yield f'<h{level} id="{_anchor(text)}">{escape(text)}</h{level}>'
        case Paragraph(text):
            yield f"<p>{escape(text)}</p>"
        case Table():
            yield _table(block)
        case Beside(tables):
            yield f'<div class="beside">\n{"".join(map(_table, tables))}</div>'
        case Picture(name, caption):
            drawing = base64.b64encode(drawings[name]).decode()
            shown = escape(caption)
            yield (
                f'<figure><img alt="{shown}" src="data:image/svg+xml;base64,{drawing}">'
                f"<figcaption>{shown}</figcaption></figure>"
            )


def _table(table: Table) -> str:
    classes = [_class(table, column) for column in range(len(table.header))]
    head = "".join(
        f'<th scope="col"{kind}>{escape(cell)}</th>' for kind, cell in zip(classes, table.header, strict=True)
    )
    rows = "\n".join(f"<tr>{_row(row, classes)}</tr>" for row in table.rows)
    return (
        f'<div class="scroll"><table>\n<caption>{escape(table.caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>\n"
    )


def _class(table: Table, column: int) -> str:
    """Numbers stand to the right, and long texts wrap; any other cell stays on one line."""
    if table.numeric(column):
        return ' class="number"'
    return ' class="text"' if any(len(row[column]) > _ON_ONE_LINE for row in table.rows) else ""


def _row(row: Sequence[str], classes: Sequence[str]) -> str:
    first, *cells = (escape(cell) for cell in row)
    others = (f"<td{kind}>{cell}</td>" for kind, cell in zip(classes[1:], cells, strict=True))
    return f'<th scope="row">{first}</th>{"".join(others)}'


def _anchor(text: str) -> str:
    return re.sub(r"\W+", "-", text.lower()).strip("-")
