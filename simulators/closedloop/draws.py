"""Common random numbers: what happens to an episode whatever the policy does.

An episode is Philox under the key (master seed, episode seed), so its numbers depend on nothing else: not on the batch
it is drawn in, the regime, or the fault. Masks draw under keys whose second word no episode seed can be. Philox and
`random()` are used, and no other method of the generator, because those two are the same in every numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray

from simulators.closedloop.loop import CHANNELS, HORIZON, LOADS, TRANSITION, demand_law

Uniforms = NDArray[np.float64]

DRAWS: Final = 1 + 2 * HORIZON
"""Numbers of an episode: its load, then the channel class of each step, then the demand of each step."""
EPISODE_SEEDS: Final = 2**63
"""Episode seeds lie below; the seeds of everything else at or above it."""
MASTER_SEEDS: Final = 2**64

_DEMANDS: Final = 80
"""Demands that are told apart: at the highest mean, 14 PRB, P(demand ≥ 80) is far below the step of a uniform."""


def uniforms(master_seed: int, first: int, count: int) -> Uniforms:
    """Numbers in [0, 1) of the episodes with seeds first…first+count−1: float64[count, DRAWS].

    Raises ValueError for a master seed outside 0…2^64−1, or episode seeds outside 0…2^63−1.
    """
    if not 0 <= first <= first + count <= EPISODE_SEEDS:
        raise ValueError(f"episode seeds {first} to {first + count - 1}: must lie within 0 to 2^63 - 1")
    philox = _philox(master_seed, first)
    generator = Generator(philox)
    state = philox.state  # at the start of its stream; restored under each key, which is quicker than building anew
    found = np.empty((count, DRAWS))
    for place in range(count):
        state["state"]["key"][1] = first + place
        philox.state = state
        generator.random(out=found[place])
    return found


def other_uniforms(master_seed: int, number: int, count: int) -> Uniforms:
    """Numbers in [0, 1) for what is no episode: float64[count]; `number` 0…2^63−1 names the stream.

    Raises ValueError for a master seed outside 0…2^64−1, or another number.
    """
    if not 0 <= number < EPISODE_SEEDS:
        raise ValueError(f"stream {number}: must lie within 0 to 2^63 - 1")
    return Generator(_philox(master_seed, EPISODE_SEEDS + number)).random(count)


def _philox(master_seed: int, second: int) -> Philox:
    if not 0 <= master_seed < MASTER_SEEDS:
        raise ValueError(f"master seed {master_seed}: must lie within 0 to 2^64 - 1")
    return Philox(key=np.array([master_seed, second], dtype=np.uint64))


@dataclass(frozen=True, slots=True, eq=False)
class Exogenous:
    """Channel class and demand in PRB of each step of each episode: int64[HORIZON, episodes] both."""

    channel: NDArray[np.int64]
    demand: NDArray[np.int64]


def exogenous(regime: float, drawn: Uniforms) -> Exogenous:
    """What `uniforms` mean under a regime (mean demand, PRB per step): loads, channels and demands by inversion.

    Loads and channel classes are the same in each regime, and demand is nondecreasing in it. Raises ValueError for
    another shape than [episodes, DRAWS].
    """
    if drawn.ndim != 2 or drawn.shape[1] != DRAWS:
        raise ValueError(f"uniforms of the shape {drawn.shape}: must be [episodes, {DRAWS}]")
    load = (drawn[:, 0] * len(LOADS)).astype(np.int64)
    channel = np.empty((HORIZON, len(drawn)), dtype=np.int64)
    channel[0] = (drawn[:, 1] * CHANNELS).astype(np.int64)
    bounds = np.cumsum(TRANSITION, axis=1)[:, :-1]
    for step in range(1, HORIZON):
        channel[step] = (drawn[:, 1 + step, None] >= bounds[channel[step - 1]]).sum(axis=1)
    demand = np.empty((HORIZON, len(drawn)), dtype=np.int64)
    for number, factor in enumerate(LOADS):
        chosen = load == number
        reached = np.cumsum(demand_law(regime * factor, _DEMANDS))
        demand[:, chosen] = np.searchsorted(reached, drawn[chosen, 1 + HORIZON :].T, side="right")
    return Exogenous(channel, demand)
