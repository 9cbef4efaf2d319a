"""Rows of results as JSON or as a table, and the bars while they are made."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import orjson

_COLUMNS: Final = {
    "exact": "exact", "macro_f1": "macro\nF1", "safe_apply_recall": "safe\nrecall", "unsafe_apply_rate": "unsafe\nrate",
    "safe_apply_utility": "safe\nutility", "task_score": "task\nscore", "ops": "OPS", "ops_survival": "OPS\n≥ 0.8",
    "record_faithfulness": "record\nfaithful", "invalid": "invalid", "n": "n",
}  # fmt: skip


def show(rows: Sequence[Mapping[str, Any]], as_json: bool, synthetic: Sequence[str]) -> None:
    """Print rows (see `simulators.optbench.rows`). `synthetic`: the backbones among them that are no models."""
    if as_json:
        sys.stdout.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode() + "\n")  # not-a-number becomes null
        return
    from rich.console import Console
    from rich.table import Table

    priced = any(row["cost_usd"] is not None for row in rows)
    spent = ("tokens_in", "tokens_out", "cost_usd") if priced else ()
    table = Table(title="WirelessOptBench")
    for title in ("method", "backbone"):
        table.add_column(title, no_wrap=True)
    for title in (*_COLUMNS.values(), *(name.replace("_", "\n") for name in spent)):
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(row["method"], row["backbone"], *(_cell(row[name]) for name in (*_COLUMNS, *spent)))
    console = Console() if sys.stdout.isatty() else Console(width=160)
    console.print(table)
    if synthetic:
        console.print(f"{', '.join(synthetic)}: no language models, but draws by the error rates of table IV.")


def _cell(value: Any) -> str:
    if value is None or value != value:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"


@contextmanager
def progress_of(rows: int) -> Iterator[Any]:
    """Gives what makes the progress of a row, by the row's name: bars where standard error is a terminal, else None."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        total = bars.add_task("rows", total=rows)

        def watch(name: str) -> Any:
            bar = bars.add_task(name, total=None)

            def moved(done: int, of: int) -> None:
                bars.update(bar, completed=done, total=of)
                if done == of:
                    bars.remove_task(bar)
                    bars.advance(total)

            return moved

        yield watch
