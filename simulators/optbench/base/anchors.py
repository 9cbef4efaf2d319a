"""The base items that a suite is built on: 200 final and 200 development anchors of each task, disjoint in content."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from simulators.optbench.base.files import Excluded, Files, content, read_files
from simulators.optbench.base.wchw import generate_wchw
from simulators.optbench.base.wcmsa import generate_wcmsa
from simulators.optbench.base.wcns import generate_wcns
from simulators.optbench.model import TASKS, BaseItem, Split, Task

ANCHORS: Final = 200
"""Of each task, in each split."""
SPLITS: Final[tuple[Split, ...]] = ("final", "development")

GENERATORS: Final[Mapping[Task, Callable[[random.Random, int], BaseItem]]] = {
    "WCHW": generate_wchw,
    "WCNS": generate_wcns,
    "WCMSA": generate_wcmsa,
}


@dataclass(frozen=True, slots=True)
class Anchors:
    """The anchors. `counts`: task → split → origin (`file`, `generated`) → how many. `excluded`: rows not used."""

    final: Mapping[Task, tuple[BaseItem, ...]]
    development: Mapping[Task, tuple[BaseItem, ...]]
    counts: Mapping[Task, Mapping[Split, Mapping[str, int]]]
    excluded: tuple[Excluded, ...]


def anchors(seed: int, base: Path | None) -> Anchors:
    """The anchors of `seed`: usable items of the files in `base` first, the final split before the development split.

    Where they run out, or there are none (`base` None), generated items fill up. Equal seeds and files give equal
    anchors. Raises what `read_files` raises.
    """
    files = read_files(base) if base is not None else Files({}, ())
    chosen: dict[Split, dict[Task, tuple[BaseItem, ...]]] = {split: {} for split in SPLITS}
    for task in TASKS:
        supply = _supply(random.Random(f"{seed}:{task}"), task, files.items.get(task, ()))
        for split in SPLITS:
            chosen[split][task] = tuple(next(supply) for _ in range(ANCHORS))
    counts = {task: {split: _origins(chosen[split][task]) for split in SPLITS} for task in TASKS}
    return Anchors(chosen["final"], chosen["development"], counts, files.excluded)


def _supply(rng: random.Random, task: Task, items: tuple[BaseItem, ...]) -> Iterator[BaseItem]:
    """Items of one task, no two of one content: those of the files in a drawn order, then generated ones."""
    yield from rng.sample(items, len(items))
    seen = {content(item) for item in items}
    number = 0
    while True:
        number += 1
        item = GENERATORS[task](rng, number)
        if content(item) not in seen:
            seen.add(content(item))
            yield item


def _origins(items: tuple[BaseItem, ...]) -> dict[str, int]:
    return {origin: sum(item.origin == origin for item in items) for origin in ("file", "generated")}
