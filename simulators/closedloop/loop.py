"""The closed loop: a slice that spends a finite PRB credit over a control window. Its constants, and its components.

At step t a tabular policy grants a cap from the state (t, credit b, channel class m). Demand is Poisson with mean
regime · load; served = min(demand, cap, b); b ← b − served; the reward is VALUES[m]·served^0.6 − 0.10·unmet −
0.10·cap. Tables over states have the shape STATES; a *cell* is the flat (C order) index of a state in them.

Source: section 3.1 of the paper (24 components, three demand regimes, 15 partitions, the policy fitted to each regime);
the loop itself, and how components divide it, is this project's: docs/study.md.
"""

from __future__ import annotations

import math
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

Family = Literal["uniform", "flow_weighted"]
Direction = Literal["outward", "inward"]

HORIZON: Final = 24
"""Steps of a control window, which is one episode."""
CREDIT: Final = 110
"""PRB at the start of an episode."""
CHANNELS: Final = 6
"""Channel classes, the worst first; the first one of an episode is uniform."""
CAPS: Final = (0, 1, 2, 3, 5, 7, 9, 12)
"""PRB granted by action 0…7."""
ACTIONS: Final = len(CAPS)
STATES: Final = (HORIZON, CREDIT + 1, CHANNELS)
"""Shape of a table over states: [step, credit, channel class]."""
REGIMES: Final = (5, 7, 9)
"""Mean demand in PRB per step."""

VALUES: Final = (0.5, 0.75, 1.0, 1.3, 1.6, 2.0)
"""Value of what is served, by channel class."""
EXPONENT: Final = 0.6
"""Of served PRB in the reward: what is served last is worth less."""
UNMET_COST: Final = 0.10
CAP_COST: Final = 0.10

STAY: Final = 0.5
"""Chance that a channel class stays for certain; otherwise the next one is drawn from all, uniformly."""

LOAD_SPREAD: Final = 0.35
LOAD_LEVELS: Final = (-1.5, -0.9, -0.3, 0.3, 0.9, 1.5)

QUARTERS: Final = 4
HALVES: Final = 2
THIRDS: Final = 3
COMPONENTS: Final = QUARTERS * HALVES * THIRDS
NO_COMPONENT: Final = -1
"""Of a state with credit 0: nothing is left to decide there."""

PARTITIONS: Final = 15
EPISODES: Final = 160
"""Episodes of a partition."""

FAMILIES: Final[tuple[Family, ...]] = ("uniform", "flow_weighted")
TARGETS: Final = (0.15, 0.30, 0.50, 0.75, 0.95)
"""Affected clean traffic that a mask aims at; whole percents."""
DIRECTIONS: Final[tuple[Direction, ...]] = ("outward", "inward")


def _loads() -> tuple[float, ...]:
    raw = [math.exp(LOAD_SPREAD * level) for level in LOAD_LEVELS]
    return tuple(load * len(raw) / sum(raw) for load in raw)


LOADS: Final = _loads()
"""Equiprobable loads with mean 1, the lowest first: one is drawn for an episode, and no policy sees it."""

TRANSITION: Final[tuple[tuple[float, ...], ...]] = tuple(
    tuple((STAY if old == new else 0.0) + (1 - STAY) / CHANNELS for new in range(CHANNELS)) for old in range(CHANNELS)
)
"""Chance of the next channel class, by the class before."""


def demand_law(mean: float, count: int) -> NDArray[np.float64]:
    """Chances of a Poisson demand of 0…count−1 PRB: float64[count]. `mean` > 0, PRB per step."""
    steps = np.full(count, math.exp(-mean))
    steps[1:] = mean / np.arange(1, count)
    return steps.cumprod()


def component_table() -> NDArray[np.int8]:
    """The component of each state: int8[STATES], 0…23, or NO_COMPONENT where the credit is 0.

    Quarter of the window × half of the credit (1…55, 56…110) × third of the channel classes; the number is (quarter ·
    2 + half) · 3 + third.
    """
    step, credit, channel = np.indices(STATES)
    quarter = step * QUARTERS // HORIZON
    half = (credit - 1) * HALVES // CREDIT
    third = channel * THIRDS // CHANNELS
    number = (quarter * HALVES + half) * THIRDS + third
    return np.where(credit > 0, number, NO_COMPONENT).astype(np.int8)


def parts(component: int) -> tuple[int, int, int]:
    """(quarter, half, third) of a component. Raises ValueError for a number that is none."""
    if not 0 <= component < COMPONENTS:
        raise ValueError(f"component {component}: there are 0 to {COMPONENTS - 1}")
    return component // (HALVES * THIRDS), component // THIRDS % HALVES, component % THIRDS


def component_name(component: int) -> str:
    """What a component covers, for a reader: `quarter 1, low credit, poor channel`. Raises ValueError for none."""
    quarter, half, third = parts(component)
    return f"quarter {quarter + 1}, {('low', 'high')[half]} credit, {('poor', 'fair', 'good')[third]} channel"
