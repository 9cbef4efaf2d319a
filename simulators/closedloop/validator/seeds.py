"""Seeds: five blocks of episodes that share none."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, Final

from simulators.closedloop.validator.check import Check, Fault
from simulators.closedloop.validator.design import (
    BLOCKS,
    CASES,
    EPISODES,
    FORMAL_EPISODES,
    PARTITIONS,
)
from simulators.closedloop.validator.reading import Document, Saved, at, same

FILE: Final = "seeds.csv"
PROTOCOL: Final = "protocol.json"

Row = tuple[int, str, int, int, int]
"""Line, block, partition, first, count."""


def rows(saved: Saved) -> list[Row]:
    """The rows of seeds.csv with their lines."""
    table = saved.tables[FILE]
    columns = (table.ints[name].tolist() for name in ("partition", "first", "count"))
    return list(zip(range(2, table.rows + 2), table.texts["block"], *columns, strict=True))


def episodes(saved: Saved, block: str) -> set[int]:
    """The episode seeds of a block, as they were drawn: 160 from the first of each partition."""
    return {first + i for _, name, _, first, _ in rows(saved) if name == block for i in range(EPISODES)}


def frozen(protocol: Document) -> dict[str, tuple[Any, Any]]:
    """Block → (first, count) in the protocol; what is not there is None."""
    where = ("seeds", "blocks")
    return {block: (at(protocol, *where, block, "first"), at(protocol, *where, block, "count")) for block in BLOCKS}


def master_seed(saved: Saved) -> int | None:
    """The master seed of the protocol; None where it is no key of Philox."""
    said = at(saved.documents[PROTOCOL], "seeds", "master")
    return said if type(said) is int and 0 <= said < 1 << 64 else None


def _blocks(saved: Saved) -> Iterator[Fault]:
    found = rows(saved)
    wanted = [(block, partition) for block in BLOCKS for partition in range(PARTITIONS)]
    for (line, block, partition, _, _), (its_block, its_partition) in zip(found, wanted, strict=False):
        if (block, partition) != (its_block, its_partition):
            told = f"is partition {partition} of {block}; partition {its_partition} of {its_block} belongs there"
            yield Fault(FILE, f"line {line}", told)
    if len(found) != len(wanted):
        yield Fault(FILE, "", f"has {len(found)} rows; five blocks have {len(wanted)}")


def _counts(saved: Saved) -> Iterator[Fault]:
    for line, _, _, _, count in rows(saved):
        if count != EPISODES:
            yield Fault(FILE, f"line {line}", f"has {count} episodes, not {EPISODES}")
    current = sum(count for _, block, _, _, count in rows(saved) if block == "current")
    if current * CASES != FORMAL_EPISODES:
        yield Fault(FILE, "", f"{CASES} cases on {current} episodes are {current * CASES}, not {FORMAL_EPISODES}")


def _contiguous(saved: Saved) -> Iterator[Fault]:
    for (_, block, _, first, _), (line, its_block, _, its_first, _) in zip(
        rows(saved), rows(saved)[1:], strict=False
    ):
        if block == its_block and its_first != first + EPISODES:
            told = f"begins at {its_first}; the partition before it ends at {first + EPISODES}"
            yield Fault(FILE, f"line {line}", told)


def _disjoint(saved: Saved) -> Iterator[Fault]:
    drawn = {block: episodes(saved, block) for block in BLOCKS}
    for one, other in combinations(BLOCKS, 2):
        if shared := drawn[one] & drawn[other]:
            yield Fault(FILE, "", f"{one} and {other} share {len(shared)} episode seeds, the first {min(shared)}")


def _protocol(saved: Saved) -> Iterator[Fault]:
    firsts: dict[str, int] = {}
    for _, block, _, first, _ in rows(saved):
        firsts.setdefault(block, first)
    if master_seed(saved) is None:
        yield Fault(PROTOCOL, "seeds master", f"is {at(saved.documents[PROTOCOL], 'seeds', 'master')!r}, no seed")
    for block, (first, count) in frozen(saved.documents[PROTOCOL]).items():
        if type(first) is not int or not 0 <= first < (1 << 63) - PARTITIONS * EPISODES:
            yield Fault(PROTOCOL, f"seeds {block}", f"begins at {first!r}, no seed of an episode")
        if first != firsts.get(block):
            yield Fault(PROTOCOL, f"seeds {block}", f"begins at {first!r}; in {FILE} at {firsts.get(block)}")
        if not same(count, PARTITIONS * EPISODES):
            yield Fault(PROTOCOL, f"seeds {block}", f"has {count!r} episodes, not {PARTITIONS * EPISODES}")


CHECKS: Final = (
    Check("blocks", "seeds", "Five blocks of 15 partitions each, in order.", (FILE,), _blocks),
    Check("episodes", "seeds", "Every partition has 160 episodes; the formal grid has 3,456,000.", (FILE,), _counts),
    Check("contiguous", "seeds", "In a block each partition begins where the one before ends.", (FILE,), _contiguous),
    Check("disjoint", "seeds", "No episode seed is in two blocks.", (FILE,), _disjoint),
    Check("frozen", "seeds", "The blocks are those that the protocol froze.", (FILE, PROTOCOL), _protocol),
)
