"""Figures 4 to 7."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from simulators.optbench.model import DOMAINS, REFERENCES, TASKS
from simulators.optbench.report.cells import UNDEFINED, points
from simulators.optbench.report.measured import FULL, METHODS, Measured
from simulators.optbench.report.names import METHOD, SHORT_DOMAIN
from simulators.optbench.report.plotted import THRESHOLDS, gains, mean_confusion, routing, survival_curve
from simulators.optbench.scoring.metrics import COLUMNS
from simulators.optbench.scoring.outcome import ACTIONS
from simulators.report import drawing
from simulators.report.drawing import WIDTH_IN, legend, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which are told apart with any colour vision.
_METHOD_STYLE: Final[Mapping[str, tuple[str, str]]] = {
    "direct": ("#E69F00", ":"),
    "wirelessagent-contract": ("#CC79A7", "-."),
    "critic": ("#009E73", "--"),
    "wirelessopsagent": ("#0072B2", "-"),
}
_ACTION_STYLE: Final[Mapping[str, tuple[str, str]]] = {
    "APPLY": ("#009E73", ""),
    "HOLD": ("#F0E442", ""),
    "RETRY": ("#56B4E9", ""),
    "ESCALATE": ("#D55E00", ""),
    "ABSTAIN": ("#999999", "//"),
    "invalid": ("#ffffff", "xx"),
}
NOTHING_ROUTED: Final = "no proposal of APPLY"
_LABELLED_FROM: Final = 0.06
"""The smallest share of a bar that has room for its number."""


def survival(measured: Measured) -> Figure:
    """Figure 4: OPS survival of each method, a panel for each backbone."""
    figure, panels = _panels(measured, 2.3, "Readiness threshold τ")
    for panel, backbone in zip(panels, measured.backbones, strict=True):
        for method in METHODS:
            colour, dashes = _METHOD_STYLE[method]
            shares = [100.0 * share for share in survival_curve(measured.of(method, backbone))]
            panel.plot(
                THRESHOLDS, shares, dashes, color=colour, label=METHOD[method], drawstyle="steps-pre", linewidth=1.8
            )
        panel.set(xlim=(-0.02, 1.0), ylim=(0.0, 103.0), ylabel="OPS survival (%)")
        panel.grid(alpha=0.3)
    legend(figure, panels, tuple(METHOD.values()), 2)
    return figure


def routes(measured: Measured) -> Figure:
    """Figure 5: final actions of the proposals that were APPLY, stacked, with their number above."""
    figure, panels = _panels(measured, 2.4, "Stress condition")
    for panel, backbone in zip(panels, measured.backbones, strict=True):
        found = routing(measured.of(FULL, backbone))
        bottoms = [0.0] * len(DOMAINS)
        for action in COLUMNS:
            heights = [100.0 * found[domain].shares.get(action, 0.0) for domain in DOMAINS]
            if not any(heights) and action not in REFERENCES:
                continue
            colour, hatch = _ACTION_STYLE[action]
            panel.bar(
                range(len(DOMAINS)), heights, 0.62, bottoms, color=colour, hatch=hatch, label=action,
                edgecolor="black", linewidth=0.5,
            )  # fmt: skip
            for place, (height, bottom) in enumerate(zip(heights, bottoms, strict=True)):
                if height >= 100.0 * _LABELLED_FROM:
                    panel.text(place, bottom + height / 2, f"{height:.0f}", ha="center", va="center")
            bottoms = [bottom + height for bottom, height in zip(bottoms, heights, strict=True)]
        for place, domain in enumerate(DOMAINS):
            panel.text(place, 102.0, f"n={found[domain].n}", ha="center", va="bottom", fontsize=8)
        if not any(of_domain.n for of_domain in found.values()):
            panel.text((len(DOMAINS) - 1) / 2, 50.0, NOTHING_ROUTED, ha="center", va="center")
            panel.set_xlim(-0.5, len(DOMAINS) - 0.5)
        panel.set(ylim=(0.0, 116.0), yticks=range(0, 101, 20), ylabel="Final action share (%)")
        panel.set_xticks(range(len(DOMAINS)), [SHORT_DOMAIN[domain] for domain in DOMAINS])
    legend(figure, panels, COLUMNS, len(COLUMNS))
    return figure


def confusion(measured: Measured) -> Figure:
    """Figure 6: confusion matrices of each method, row-normalised and averaged over backbones."""
    figure = new_figure(WIDTH_IN, 5.6)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for panel, method in zip(panels.flat, METHODS, strict=True):
        shares = mean_confusion([measured.of(method, backbone) for backbone in measured.backbones])
        shown = shares[:, : len(ACTIONS)]
        image = panel.imshow(shown, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
        _numbers(panel, shown, lambda share: f"{share:.2f}", lambda share: share > 0.55)
        panel.set_title(METHOD[method])
        panel.set_xticks(range(len(ACTIONS)), ACTIONS, rotation=35, ha="right", rotation_mode="anchor")
        panel.set_yticks(range(len(REFERENCES)), REFERENCES)
    figure.supxlabel("Predicted action")
    figure.supylabel("Reference action")
    figure.suptitle(f"Mean over {', '.join(_titled(measured, backbone) for backbone in measured.backbones)}",
                    fontsize=9, parse_math=False, wrap=True)  # fmt: skip
    figure.colorbar(image, ax=panels, label="Share of the reference's episodes", shrink=0.8)
    return figure


def gain_maps(measured: Measured) -> Figure:
    """Figure 7: gain in exact accuracy over the strongest baseline of each cell, a panel for each backbone."""
    figure, panels = _panels(measured, 1.75, "Stress condition")
    import matplotlib

    colours = matplotlib.colormaps["Blues"].with_extremes(under="#D55E00", bad="#dddddd")
    for panel, backbone in zip(panels, measured.backbones, strict=True):
        found = gains(measured, backbone)
        shown = [[found[task][domain] for domain in DOMAINS] for task in TASKS]
        image = panel.imshow(shown, cmap=colours, vmin=0.0, vmax=100.0, aspect="auto")
        _numbers(panel, shown, points, lambda gain: gain > 55.0)
        panel.set_xticks(range(len(DOMAINS)), [SHORT_DOMAIN[domain] for domain in DOMAINS])
        panel.set_yticks(range(len(TASKS)), TASKS)
    figure.colorbar(image, ax=panels, label="Gain (percentage points)", extend="min")
    return figure


FIGURES: Final[Mapping[str, Callable[[Measured], Figure]]] = {
    "figure-4-survival": survival,
    "figure-5-routing": routes,
    "figure-6-confusion": confusion,
    "figure-7-gains": gain_maps,
}
"""File name → what draws it."""


def drawn(measured: Measured) -> Iterator[tuple[str, bytes, bytes]]:
    """(name, PNG, SVG) of each figure, one at a time."""
    return drawing.drawn({name: partial(draw, measured) for name, draw in FIGURES.items()})


def _panels(measured: Measured, height: float, below: str) -> tuple[Figure, list[Axes]]:
    """A column of panels, each of `height` inches and headed by its backbone; `below` labels the axis of the last."""
    count = len(measured.backbones)
    figure = new_figure(WIDTH_IN, height * count + 0.6)
    panels: list[Axes] = list(figure.subplots(count, 1, squeeze=False)[:, 0])
    for panel, backbone in zip(panels, measured.backbones, strict=True):
        panel.set_title(_titled(measured, backbone), loc="left", parse_math=False)
    panels[-1].set_xlabel(below)
    return figure, panels


def _titled(measured: Measured, backbone: str) -> str:
    return f"{backbone} (synthetic proposer)" if backbone in measured.synthetic else backbone


def _numbers(panel: Axes, values: Any, printed: Callable[[float], str], dark: Callable[[float], bool]) -> None:
    """Writes each value into its cell; white on the dark ones."""
    for y, line in enumerate(values):
        for x, value in enumerate(line):
            text = UNDEFINED if math.isnan(value) else printed(value)
            panel.text(x, y, text, ha="center", va="center", color="white" if dark(value) else "black")
    panel.spines[:].set_visible(False)
