"""Figures of a report: drawn without a display, and the same bytes for the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_IN, DPI = 6.4, 160


def drawn(figures: Mapping[str, Callable[[], Figure]]) -> Iterator[tuple[str, bytes, bytes]]:
    """(name, PNG, SVG) of each figure, one at a time."""
    for name, draw in figures.items():
        with _style():
            figure = draw()
            png, svg = _bytes(figure, "png"), _bytes(figure, "svg")
        yield name, png, svg


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def legend(figure: Figure, panels: Sequence[Axes], names: Sequence[str], columns: int) -> None:
    """One legend of whatever any panel shows, in the order of `names`."""
    pairs = (zip(*panel.get_legend_handles_labels(), strict=True) for panel in panels)
    shown = {label: handle for of_panel in pairs for handle, label in of_panel}
    labels = [name for name in names if name in shown]
    handles = [shown[name] for name in labels]
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, columnspacing=1.5)


def _bytes(figure: Figure, form: str) -> bytes:
    stream = BytesIO()
    dated = {"Date": None} if form == "svg" else {}
    figure.savefig(stream, format=form, dpi=DPI, metadata=dated)
    return stream.getvalue()


@contextmanager
def _style() -> Iterator[None]:
    import matplotlib

    style: Any = {
        "svg.hashsalt": "wirelessops", "svg.fonttype": "path", "font.family": "DejaVu Sans", "font.size": 9,
        "axes.titlesize": 9, "axes.titleweight": "bold", "axes.spines.top": False, "axes.spines.right": False,
        "figure.facecolor": "white", "savefig.facecolor": "white", "legend.frameon": False, "hatch.linewidth": 0.5,
    }  # fmt: skip
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(style)
        yield
