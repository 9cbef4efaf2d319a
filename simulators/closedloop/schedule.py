"""The formal grid and the seeds of its episodes: fixed before anything is seen, whatever the gates will say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, get_args

from simulators.closedloop.loop import DIRECTIONS, EPISODES, PARTITIONS, REGIMES
from simulators.closedloop.rows import Block, Case, arms

MASTER_SEED: Final = 2026
BLOCKS: Final[tuple[Block, ...]] = get_args(Block)
"""In the order in which they take their episode seeds."""
STREAMED: Final[tuple[Block, ...]] = ("reference", "pilot", "null", "current")
"""The blocks of the drift alarm."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """Episode seeds first … first + count − 1."""

    first: int
    count: int


@dataclass(frozen=True, slots=True)
class PartitionSeeds:
    """The episode seeds of one partition of a block."""

    block: Block
    partition: int
    first: int
    count: int


def cases() -> tuple[Case, ...]:
    """The 1,440 cases, the directions of an arm side by side. Case number = place of its arm · 2 + direction."""
    grid = ((arm, direction) for arm in arms() for direction in DIRECTIONS)
    return tuple(Case(number, *arm, direction) for number, (arm, direction) in enumerate(grid))


def blocks(first: int = 0) -> dict[Block, Seeds]:
    """The episode seeds of each block, one after the other from `first` ≥ 0: disjoint by construction."""
    size = PARTITIONS * EPISODES
    return {block: Seeds(first + place * size, size) for place, block in enumerate(BLOCKS)}


def partitions(seeds: dict[Block, Seeds]) -> Iterator[PartitionSeeds]:
    """The seeds of each of the 75 partitions: a block's seeds in 15 runs of 160."""
    for block, of_block in seeds.items():
        for partition in range(PARTITIONS):
            yield PartitionSeeds(block, partition, of_block.first + partition * EPISODES, EPISODES)


def streams() -> Iterator[tuple[int, int, Block]]:
    """Regime of the policy, demand that it meets and block of each clean stream of the drift alarm, in order.

    Reference, pilot and null are as the policy was fitted, current as each of the regimes demands.
    """
    for regime in REGIMES:
        for block in STREAMED:
            for demand in REGIMES if block == "current" else (regime,):
                yield regime, demand, block
