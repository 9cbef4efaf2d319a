"""Rows of results as JSON or as tables, and how far a run is while they are made."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from shutil import get_terminal_size
from time import monotonic
from typing import Any, Final

import orjson

from streams.commands.answering import put

WIDTH: Final = 80
"""Columns of what is no terminal; every table fits."""
_COLUMNS: Final = {
    "exact": "exact", "macro_f1": "macro\nF1", "safe_apply_recall": "safe\nrecall", "unsafe_apply_rate": "unsafe",
    "safe_apply_utility": "util-\nity", "task_score": "task", "ops": "OPS", "ops_survival": "OPS\n≥0.8",
    "invalid": "invalid",
}  # fmt: skip
_METHOD_WIDTH: Final = 22
"""The longest name of a shipped method; longer ones are folded."""


def show(rows: Sequence[Mapping[str, Any]], as_json: bool, synthetic: Sequence[str]) -> None:
    """Print rows (see `simulators.optbench.rows`). `synthetic`: the backbones among them that are no models."""
    if as_json:
        told = [{name: _valid(value) for name, value in row.items()} for row in rows]
        put(orjson.dumps(told, option=orjson.OPT_INDENT_2) + b"\n")  # not-a-number becomes null
    else:
        put(rendered(*_tables(rows, synthetic)))


def _valid(value: Any) -> Any:
    """A name may be that of a file, which need be no Unicode."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def rendered(*parts: Any) -> str:
    """Renderables of rich, and lines of text, as they are printed: as wide as the terminal, else `WIDTH`."""
    from rich.console import Console

    terminal = sys.stdout is not None and sys.stdout.isatty()
    text = StringIO()
    page = Console(file=text, width=get_terminal_size().columns if terminal else WIDTH, force_terminal=terminal)
    for part in parts:
        page.print(part, markup=False, highlight=False)
    return text.getvalue()


def _tables(rows: Sequence[Mapping[str, Any]], synthetic: Sequence[str]) -> Iterator[Any]:
    """A table for each backbone, and what its tokens cost."""
    from rich.table import Table
    from rich.text import Text

    for backbone in dict.fromkeys(row["backbone"] for row in rows):
        of_it = [row for row in rows if row["backbone"] == backbone]
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
        table.add_column("method", overflow="fold", max_width=_METHOD_WIDTH)
        for column in _COLUMNS.values():
            table.add_column(column, justify="right", no_wrap=True)
        for row in of_it:
            table.add_row(Text(row["method"]), *(_cell(row[name]) for name in _COLUMNS))
        yield f"{backbone}: {of_it[0]['n']} episodes"
        yield table
        for row in of_it:
            if row["cost_usd"] is not None:
                yield (
                    f"{row['method']}: {row['tokens_in']:,} tokens in, {row['tokens_out']:,} out, "
                    f"US$ {row['cost_usd']:.4f}"
                )
        yield ""
    if synthetic:
        yield f"{', '.join(synthetic)}: no language models, but draws by the error rates of table IV."


def _cell(value: Any) -> str:
    if value is None or value != value:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"


@contextmanager
def progress_of(rows: int) -> Iterator[Any]:
    """Gives what makes the progress of a row, by the row's name: bars where standard error is a terminal, else a line

    there for each row that is done.
    """
    if not sys.stderr.isatty():
        yield _lines
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        total = bars.add_task("rows", total=rows)

        def watch(name: str) -> Any:
            bar = bars.add_task(escape(name), total=None)

            def moved(done: int, of: int) -> None:
                bars.update(bar, completed=done, total=of)
                if done == of:
                    bars.remove_task(bar)
                    bars.advance(total)

            return moved

        yield watch


def _lines(name: str) -> Any:
    started = monotonic()

    def moved(done: int, of: int) -> None:
        if done == of:
            sys.stderr.write(f"{name}: {of} episodes in {monotonic() - started:.0f} s\n")
            sys.stderr.flush()

    return moved
