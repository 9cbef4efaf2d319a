"""What was designed (docs/study.md), written down a second time: the validator takes no constant from the runner."""

from __future__ import annotations

from typing import Final

REGIMES: Final = (5, 7, 9)
COMPONENTS: Final = 24
FAMILIES: Final = ("uniform", "flow_weighted")
TARGETS: Final = (0.15, 0.3, 0.5, 0.75, 0.95)
DIRECTIONS: Final = ("outward", "inward")
PARTITIONS: Final = 15
EPISODES: Final = 160
"""Of a partition."""
BLOCKS: Final = ("development", "pilot", "reference", "current", "null")

UNITS: Final = len(REGIMES) * COMPONENTS
ARMS: Final = UNITS * len(FAMILIES) * len(TARGETS)
CASES: Final = ARMS * len(DIRECTIONS)
CASES_OF_UNIT: Final = CASES // UNITS
FORMAL_EPISODES: Final = 3_456_000

STEPS: Final = 24
CREDITS: Final = 111
"""0…110 PRB."""
CHANNELS: Final = 6
ACTIONS: Final = 8
HISTOGRAM: Final = tuple(f"a{action}" for action in range(ACTIONS))
STEPS_OF_QUARTER: Final = 6
VISITS_AT_MOST: Final = EPISODES * STEPS_OF_QUARTER
"""Of one component in one partition: a component lies in one quarter of the window."""

MIN_VISITS: Final = 12
MIN_PARTITIONS: Final = 14
DISTANCE_SCALE: Final = 0.20
GAP_SCALE: Final = 0.35
CUTOFFS: Final = (1.0, 1.25, 1.5, 1.75, 2.0)
BOUND_AT_MOST: Final = 0.20
CONFIDENCE: Final = 0.95


def component_of(cell: int) -> int | None:
    """The component of a cell of the table [24, 111, 6]; None for credit 0."""
    step, rest = divmod(cell, CREDITS * CHANNELS)
    credit, channel = divmod(rest, CHANNELS)
    if credit == 0:
        return None
    return (step // STEPS_OF_QUARTER * 2 + (credit > 55)) * 3 + channel // 2


def case_of(number: int) -> tuple[int, int, str, float, str]:
    """Regime, component, family, target and direction of a case of the grid, by its number 0…1439."""
    arm, direction = divmod(number, len(DIRECTIONS))
    rest, target = divmod(arm, len(TARGETS))
    unit, family = divmod(rest, len(FAMILIES))
    regime, component = divmod(unit, COMPONENTS)
    return REGIMES[regime], component, FAMILIES[family], TARGETS[target], DIRECTIONS[direction]
