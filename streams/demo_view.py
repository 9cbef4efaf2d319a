"""What the demo shows: the table at the end, the live view of a terminal, or plain lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol, Self, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from simulators.faults.base import KINDS
from simulators.tally import UNANSWERED
from xapp.model import ACTIONS

_COLOURS: Final = {"APPLY": "green", "HOLD": "yellow", "RETRY": "cyan", "ESCALATE": "magenta", "ABSTAIN": "red"}
_LABELS: Final = {"none": "no fault"}
_LAST_WORDS: Final = 8
_PLAIN_WIDTH: Final = 120


class Show(Protocol):
    """Where progress goes while the demo runs."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def update(self, elapsed_s: float, document: Mapping[str, Any]) -> None:
        """Show the counts so far. Called a few times a second."""

    def said(self, elapsed_s: float, decision: Mapping[str, Any]) -> None:
        """A decision has gone out on `control`."""


def result_table(document: Mapping[str, Any]) -> Table:
    """Actions per kind of fault, against the truth. `document`: `simulators.tally.Tally.document`."""
    table = Table(title="What the guard did, against what was true", title_justify="left")
    table.add_column("evidence")
    for heading in ("proposals", *ACTIONS, "unsafe without", "unsafe with", "safe", "safe kept"):
        table.add_column(heading, justify="right")
    for kind in KINDS:
        table.add_row(_LABELS.get(kind, kind), *_cells(document["kinds"][kind]))
    table.add_section()
    table.add_row("total", *_cells(document["totals"]), style="bold")
    return table


def _cells(row: Mapping[str, Any]) -> list[str | Text]:
    kept = "–" if not row["safe"] else f"{row['safe_kept']} ({100 * row['safe_kept'] / row['safe']:.1f} %)"
    unsafe = row["unsafe_with_guard"]
    return [
        str(row["proposals"]),
        *(Text(str(row["actions"][action]), style=_COLOURS[action]) for action in ACTIONS),
        str(row["unsafe_without_guard"]),
        Text(str(unsafe), style="bold red" if unsafe else "bold green"),
        str(row["safe"]),
        kept,
    ]


def summary(document: Mapping[str, Any]) -> str:
    """The result in a sentence or two."""
    totals = document["totals"]
    text = (
        f"{totals['proposals']} proposals. Carried out as proposed, {totals['unsafe_without_guard']} would have been "
        f"unsafe; with the guard {totals['unsafe_with_guard']} were. Of {totals['safe']} safe ones "
        f"{totals['safe_kept']} were carried out."
    )
    unanswered = totals["actions"][UNANSWERED]
    return text + (f" {unanswered} were not answered before the end." if unanswered else "")


class LiveShow:
    """A table that fills, and the last refusals and repairs below it, on a terminal."""

    def __init__(self, console: Console, seconds: float, seed: int) -> None:
        self._title = f"wirelessops demo · {seconds:g} s · seed {seed}"
        self._words: list[Text] = []
        self._live = Live(console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def update(self, elapsed_s: float, document: Mapping[str, Any]) -> None:
        head = Text(f"{self._title} · {elapsed_s:.0f} s gone", style="bold")
        parts: list[RenderableType] = [head, result_table(document), *self._words]
        self._live.update(Group(*parts))

    def said(self, elapsed_s: float, decision: Mapping[str, Any]) -> None:
        action = decision["action"]
        if action == "APPLY" and not _mended(decision):
            return
        line = Text(f"{elapsed_s:5.1f} s  ")
        line.append(f"{action:9}", style=_COLOURS[action]).append(f"{decision['control_key']}  {_reason(decision)}")
        line.truncate(max(20, self._live.console.width - 1), overflow="ellipsis")
        self._words = [*self._words, line][-_LAST_WORDS:]


class PlainShow:
    """One line a second, for logs."""

    def __init__(self, out: TextIO, seconds: float, seed: int) -> None:
        self._out = out
        self._next_s = 0.0
        self._head = f"wirelessops demo: {seconds:g} s, seed {seed}\n"

    def __enter__(self) -> Self:
        self._out.write(self._head)
        self._out.flush()
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def update(self, elapsed_s: float, document: Mapping[str, Any]) -> None:
        if elapsed_s < self._next_s:
            return
        self._next_s = int(elapsed_s) + 1.0
        totals = document["totals"]
        actions = " ".join(f"{action} {totals['actions'][action]}" for action in ACTIONS)
        self._out.write(
            f"{elapsed_s:5.1f} s  proposals {totals['proposals']}  {actions}  "
            f"unsafe without the guard {totals['unsafe_without_guard']}, with it {totals['unsafe_with_guard']}\n"
        )
        self._out.flush()

    def said(self, elapsed_s: float, decision: Mapping[str, Any]) -> None:
        return None


class NoShow:
    """Nothing while it runs: standard output is for the one JSON document."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def update(self, elapsed_s: float, document: Mapping[str, Any]) -> None:
        return None

    def said(self, elapsed_s: float, decision: Mapping[str, Any]) -> None:
        return None


def show_for(out: TextIO, seconds: float, seed: int, as_json: bool) -> Show:
    """The way to show progress that suits where the output goes."""
    if as_json:
        return NoShow()
    if out.isatty():
        return LiveShow(Console(file=out), seconds, seed)
    return PlainShow(out, seconds, seed)


def print_result(out: TextIO, document: Mapping[str, Any]) -> None:
    """The table and the sentence under it."""
    console = Console(file=out) if out.isatty() else Console(file=out, width=_PLAIN_WIDTH + 20)
    console.print(result_table(document))
    console.print(summary(document))


def _mended(decision: Mapping[str, Any]) -> list[str]:
    """The operators of the repairs worth telling: other names are everyday."""
    return [name for name in dict.fromkeys(repair["operator"] for repair in decision["repairs"]) if name != "rename"]


def _reason(decision: Mapping[str, Any]) -> str:
    if decision["action"] == "APPLY":
        return "repaired: " + ", ".join(_mended(decision))
    return str(decision["explanation"])
