"""The figures of the study's report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from simulators.closedloop import published
from simulators.closedloop.analysis import LEAST
from simulators.closedloop.gates import RULE
from simulators.closedloop.loop import COMPONENTS, FAMILIES, PARTITIONS, REGIMES, TARGETS
from simulators.closedloop.report.study import Study
from simulators.closedloop.report.tables import FAMILY_NAME, SHORT_STATE
from simulators.report import drawing
from simulators.report.drawing import WIDTH_IN, legend, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which are told apart with any colour vision.
_FAMILY_COLOUR: Final = {"uniform": "#0072B2", "flow_weighted": "#D55E00"}
_STATE_COLOUR: Final = {"REFERENCE_ABSTAIN": "#dddddd", "RUNTIME_ABSTAIN": "#F0E442", "SIGNAL_ELIGIBLE": "#009E73"}
_VERDICT_COLOUR: Final = {"LABEL_DEPENDENT": "#CC79A7", "SINGLETON_REVEAL": "#E69F00", "RESIDUAL_EMPTY": "#56B4E9"}
_RATIOS: Final = (0.3, 1, 3, 10)
_BANDS: Final = 8
"""Bands of equally many arms in which the share of detections is drawn."""


def coverage(study: Study) -> Figure:
    """The state of each unit, and the fewest partitions in which it has support."""
    from matplotlib.patches import Patch, Rectangle

    figure = new_figure(WIDTH_IN, 1.9)
    panel = figure.subplots()
    for regime, component, reference, runtime, state in study.units:
        row = REGIMES.index(regime)
        panel.add_patch(Rectangle((component - 0.5, row - 0.5), 1, 1, color=_STATE_COLOUR[state], linewidth=0))
        fewest = reference if runtime is None else min(reference, runtime)
        panel.text(component, row, str(fewest), ha="center", va="center", fontsize=7)
    panel.set(xlim=(-0.5, COMPONENTS - 0.5), ylim=(len(REGIMES) - 0.5, -0.5), xlabel="Component")
    panel.set_xticks(range(COMPONENTS))
    panel.set_yticks(range(len(REGIMES)), [f"λ0 = {regime}" for regime in REGIMES])
    shown = [Patch(color=colour, label=SHORT_STATE[state]) for state, colour in _STATE_COLOUR.items()]
    figure.legend(handles=shown, loc="outside upper center", ncols=len(shown))
    return figure


def calibration(study: Study) -> Figure:
    """In how many clean partitions each represented component signalled at most."""
    figure = new_figure(WIDTH_IN, 2.3)
    panel = figure.subplots()
    of = study.calibration["by_component"]
    panel.bar([one["component"] for one in of], [one["most_signalling"] for one in of], 0.7, color="#0072B2")
    panel.axhline(RULE.min_partitions, color="black", linestyle="--", linewidth=1)
    panel.text(-0.4, RULE.min_partitions - 0.2, "stable from here", va="top", fontsize=8)
    panel.set(xlim=(-0.6, COMPONENTS - 0.4), ylim=(0, PARTITIONS), xlabel="Component", ylabel="Partitions that signal")
    panel.set_xticks(range(COMPONENTS))
    panel.set_yticks(range(0, PARTITIONS + 1, 5))
    return figure


def power(study: Study) -> Figure:
    """Share of units detected at each target, ours and published."""
    figure = new_figure(WIDTH_IN, 2.8)
    panel = figure.subplots()
    for family in FAMILIES:
        colour, name = _FAMILY_COLOUR[family], FAMILY_NAME[family]
        ours = np.array(study.analysis["detections"][family]) / max(1, study.analysis["admitted"])
        theirs = np.array(published.DETECTIONS[family]) / published.RUNTIME_ADMITTED
        panel.plot(TARGETS, 100 * ours, "-o", color=colour, label=name, markersize=4)
        panel.plot(TARGETS, 100 * theirs, "--x", color=colour, label=f"{name}, published", markersize=5, linewidth=1)
    panel.set(ylim=(-3, 103), xlabel="Target of affected clean traffic τ", ylabel="Units detected (%)")
    panel.set_xticks(TARGETS)
    panel.grid(alpha=0.3)
    legend(figure, [panel], panel.get_legend_handles_labels()[1], 2)
    return figure


def coordinates(study: Study) -> Figure:
    """Detections against affected traffic and against nominal fraction: shares in bands of arms, and the models."""
    figure = new_figure(WIDTH_IN, 2.9)
    panels: list[Axes] = list(figure.subplots(1, 2, sharey=True))
    asked = [place for place, arm in enumerate(study.arms) if arm[-1] in ("DETECTED", "NOT_DETECTED")]
    family = np.array([study.arms[place][2] for place in asked])
    detected = np.array([study.arms[place][-1] == "DETECTED" for place in asked])
    for panel, column, name, label, ticks in (
        (panels[0], 8, "traffic", "Affected clean traffic τ", (*TARGETS[:-1], 1)),
        (panels[1], 9, "fraction", "Nominal fraction of cells", (0.01, 0.1, 1)),
    ):
        share = np.maximum([study.masks[place][column] for place in asked], LEAST)
        for one in FAMILIES:
            _bands(panel, share[family == one], detected[family == one], _FAMILY_COLOUR[one], FAMILY_NAME[one])
        coefficients = study.analysis["models"][name]["coefficients"]
        if coefficients is not None:
            x = np.geomspace(share.min(), share.max(), 200)
            model = 100 / (1 + np.exp(-(coefficients[0] + coefficients[1] * np.log(x))))
            panel.plot(x, model, color="black", linewidth=1, label="model of all arms")
        panel.set(xscale="log", xlabel=label, ylim=(-3, 103))
        panel.set_xticks(ticks, [str(tick) for tick in ticks])
        panel.set_xticks([], minor=True)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("Arms detected (%)")
    legend(figure, panels, [*FAMILY_NAME.values(), "model of all arms"], 3)
    return figure


def _bands(panel: Axes, share: np.ndarray, detected: np.ndarray, colour: str, label: str) -> None:
    order = share.argsort(kind="stable")
    bands = [band for band in np.array_split(order, _BANDS) if len(band)]
    x = [float(np.exp(np.log(share[band]).mean())) for band in bands]
    panel.plot(x, [100 * detected[band].mean() for band in bands], "o", color=colour, label=label, markersize=4)


def difference(study: Study) -> Figure:
    """By how much traffic is the better coordinate, with intervals: pooled, within each family, published."""
    figure = new_figure(WIDTH_IN, 1.9)
    panel = figure.subplots()
    found = [("all arms", study.analysis["models"], "black")]
    found += [(FAMILY_NAME[one], study.analysis["within_family"][one], _FAMILY_COLOUR[one]) for one in FAMILIES]
    theirs = {"difference": published.DIFFERENCE, "interval": published.DIFFERENCE_INTERVAL}
    found.append(("published: all arms", theirs, "#999999"))
    for place, (_, of, colour) in enumerate(found):
        if of["difference"] is not None:
            panel.plot(of["interval"], [place, place], color=colour, linewidth=1.6)
            panel.plot([of["difference"]], [place], "o", color=colour, markersize=5)
    panel.axvline(0.0, color="black", linestyle=":", linewidth=1)
    panel.set_yticks(range(len(found)), [name for name, _, _ in found])
    panel.set(ylim=(len(found) - 0.5, -0.5), xlabel="NLL of fraction less NLL of traffic (nats a row)")
    return figure


def drift(study: Study) -> Figure:
    """Scores of the drift alarm in units of its limit, by policy and by the demand that it met."""
    figure = new_figure(WIDTH_IN, 2.6)
    panels: list[Axes] = list(figure.subplots(1, len(study.drift["policies"]), sharey=True, squeeze=False)[0])
    for panel, policy in zip(panels, study.drift["policies"], strict=True):
        streams = policy["streams"]
        for place, stream in enumerate(streams):
            own = stream["demand"] == policy["regime"]
            scores = np.array(stream["scores"]) / policy["limit"]
            panel.plot(
                [place] * len(scores), scores, "o", color="#009E73" if own else "#D55E00", markersize=3, alpha=0.6
            )
        panel.axhline(1.0, color="black", linestyle="--", linewidth=1)
        panel.set(yscale="log", title=f"fitted to λ0 = {policy['regime']}", xlim=(-0.6, len(streams) - 0.4))
        panel.set_xticks(range(len(streams)), [f"{s['demand']}\n{s['block']}" for s in streams], fontsize=7)
    panels[0].set_ylabel("Score / limit")
    panels[0].set_yticks(_RATIOS, list(map(str, _RATIOS)))
    panels[0].set_yticks([], minor=True)
    figure.supxlabel("λ0 of the demand, block", fontsize=9)
    return figure


def leakage(study: Study) -> Figure:
    """Cases of each verdict of the audit, by how conflicts are compiled."""
    figure = new_figure(WIDTH_IN, 2.6)
    panel = figure.subplots()
    modes = study.leakage["modes"]
    counted = {
        "LABEL_DEPENDENT": [mode["verdicts"]["LABEL_DEPENDENT"]["cases"] for mode in modes],
        "SINGLETON_REVEAL": [mode["verdicts"]["SINGLETON_REVEAL"]["cases_with_any"] for mode in modes],
        "RESIDUAL_EMPTY": [
            mode["cases"] - mode["verdicts"]["RESIDUAL_EMPTY"]["cases_with_residual"] for mode in modes
        ],
    }  # fmt: skip
    width = 0.8 / len(counted)
    for place, (verdict, counts) in enumerate(counted.items()):
        x = [mode + (place - 1) * width for mode in range(len(modes))]
        bars = panel.bar(
            x, counts, width, color=_VERDICT_COLOUR[verdict], label=verdict, edgecolor="black", linewidth=0.5
        )
        panel.bar_label(bars, fontsize=8)
    panel.set_xticks(range(len(modes)), [mode["mode"].replace("_", " ") for mode in modes])
    panel.set(ylabel="Cases", ylim=(0, 1.12 * max(1, *(mode["cases"] for mode in modes))))
    legend(figure, [panel], list(counted), len(counted))
    return figure


FIGURES: Final[Mapping[str, Callable[[Study], Figure]]] = {
    "figure-coverage": coverage,
    "figure-calibration": calibration,
    "figure-power": power,
    "figure-coordinates": coordinates,
    "figure-difference": difference,
    "figure-drift": drift,
    "figure-leakage": leakage,
}
"""File name → what draws it."""


def drawn(study: Study) -> Iterator[tuple[str, bytes, bytes]]:
    """(name, PNG, SVG) of each figure, one at a time."""
    return drawing.drawn({name: partial(draw, study) for name, draw in FIGURES.items()})
