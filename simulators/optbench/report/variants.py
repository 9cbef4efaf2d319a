"""Table VI: the ablations, and whether each moved the metrics as published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from simulators.optbench import published
from simulators.optbench.ablations import ABLATIONS
from simulators.optbench.report.cells import UNDEFINED, decimal, difference, interval
from simulators.optbench.report.measured import FULL, Measured
from simulators.optbench.report.names import LOWER_IS_BETTER, METRIC
from simulators.optbench.scoring import bootstrap
from simulators.optbench.scoring.bootstrap import Interval
from simulators.optbench.scoring.metrics import HEADLINE
from simulators.report.document import Table

Direction = Literal["↑ rises", "↓ falls", "= stays", "not better"]

STAYS_WITHIN: Final = 0.02
"""A metric that stays moves by no more than this; the published one moves by 0.011."""

_SAFE_PROGRESS_FALLS: Final[Mapping[str, Direction]] = {
    "safe_apply_recall": "↓ falls", "safe_apply_utility": "↓ falls", "unsafe_apply_rate": "↑ rises",
}  # fmt: skip
_ROUTING_FALLS: Final[Mapping[str, Direction]] = {"macro_f1": "↓ falls", "unsafe_apply_rate": "↑ rises"}
DIRECTIONS: Final[Mapping[str, Mapping[str, Direction]]] = {
    "monitor-only": {**_SAFE_PROGRESS_FALLS, "macro_f1": "= stays"},
    "no-integrity-monitor": _ROUTING_FALLS,
    "no-action-governor": _ROUTING_FALLS,
    "no-utility-repair": _SAFE_PROGRESS_FALLS,
    "no-normalizer": _ROUTING_FALLS,
    "no-conflict-freshness": _ROUTING_FALLS,
    "no-memory": dict.fromkeys(published.TABLE_VI_COLUMNS, "not better"),
}
"""Ablation → metric → where it goes against the full agent, in the metrics that section V-E draws on.

`no-memory` is named and not measured in the paper: nothing may get better without it.
"""


def matched(measured: Measured, backbone: str) -> Table:
    """Table VI: the full agent and each ablation that was run."""
    rows = tuple(
        (
            variant,
            ABLATIONS[variant].off if variant in ABLATIONS else "nothing",
            *(decimal(HEADLINE[name](measured.of(variant, backbone))) for name in published.TABLE_VI_COLUMNS),
        )
        for variant in measured.methods(backbone)
        if variant == FULL or variant in ABLATIONS
    )
    header = ("Variant", "Switched off", *(METRIC[name] for name in published.TABLE_VI_COLUMNS))
    return Table(header, rows, f"Table VI, measured: {backbone} (N = {len(measured.suite.cases)})")


def published_matched() -> Table:
    """Table VI as published."""
    rows = tuple(
        (FULL if variant == "full" else variant, *(decimal(values[name]) for name in published.TABLE_VI_COLUMNS))
        for variant, values in published.TABLE_VI.items()
    )
    header = ("Variant", *(METRIC[name] for name in published.TABLE_VI_COLUMNS))
    return Table(header, rows, f"Table VI, published: {published.BACKBONES[0]} (N = 600, frozen evaluator)")


def directions(measured: Measured, backbone: str) -> Table:
    """Each movement that the paper draws on: where it should go, how far it went, and whether that is the direction."""
    full = measured.of(FULL, backbone)
    rows = []
    for variant, expected in DIRECTIONS.items():
        if variant not in measured.methods(backbone):
            continue
        for name, direction in expected.items():
            found = bootstrap.paired_difference(measured.of(variant, backbone), full, HEADLINE[name])
            theirs = published.TABLE_VI.get(variant)
            moved = UNDEFINED if theirs is None else difference(theirs[name] - published.TABLE_VI["full"][name])
            said = {True: "yes", False: "no", None: UNDEFINED}[as_expected(name, direction, found)]
            rows.append((variant, METRIC[name][:-2], direction, moved, difference(found.mean), interval(found), said))
    header = ("Variant", "Metric", "Expected", "Published change", "Change", "95 % interval", "As expected")
    return Table(header, tuple(rows), f"Change of each variant against the full agent: {backbone}, paired")


def as_expected(name: str, direction: Direction, change: Interval) -> bool | None:
    """Whether a metric changed in a direction: up or down means that the whole interval lies there. None: undefined."""
    if change.mean != change.mean:
        return None
    match direction:
        case "↑ rises":
            return change.low > 0.0
        case "↓ falls":
            return change.high < 0.0
        case "= stays":
            return abs(change.mean) <= STAYS_WITHIN
        case "not better":
            return change.mean >= 0.0 if name in LOWER_IS_BETTER else change.mean <= 0.0
