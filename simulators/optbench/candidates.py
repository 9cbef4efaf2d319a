"""The candidates: every family realised on 80 anchors of each task, and labelled by two judges that must agree.

32 families x 3 tasks x 80 anchors are the 7,680 of the paper (section III-C; how the number arises is not published).
The label is the judges': nothing here knows an action beforehand.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from simulators.optbench.certificate import certify
from simulators.optbench.model import TASKS, BaseItem, Case, Facts, Sealed, Task
from simulators.optbench.oracle import judge
from simulators.optbench.realisation import FAMILIES, Family, Scene, render
from simulators.optbench.realisation.nonces import Nonces

ANCHORS_PER_FAMILY: Final = 80
EPOCH_MS: Final = 1_790_000_000_000
_SPREAD_MS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two judges that differ on one candidate, and all that is needed to see why."""

    family: str
    task: Task
    item_id: str
    oracle: str
    certificate: str
    view: Mapping[str, Any]

    def __str__(self) -> str:
        return (
            f"{self.family} on {self.task} {self.item_id}: the oracle says {self.oracle}, the certificate checker "
            f"{self.certificate}; the view is {orjson.dumps(self.view).decode()}"
        )


class BuildError(ValueError):
    """The suite cannot be built as the rules ask; says what is short or who disagrees."""


def candidates(anchors: Mapping[Task, Sequence[BaseItem]], seed: int) -> Iterator[Sealed]:
    """All candidates, by task and family. Raises BuildError where an anchor set is too small or the judges differ."""
    for task in TASKS:
        for family in FAMILIES:
            yield from _realised(family, task, anchors[task], seed)


def _realised(family: Family, task: Task, anchors: Sequence[BaseItem], seed: int) -> Iterator[Sealed]:
    found = 0
    for item in sorted(anchors, key=lambda i: _digest(seed, family.name, task, i.item_id)):
        facts = family.realise(scene_of(item, family, seed))
        if facts is None:
            continue
        yield _labelled(family, item, facts)
        found += 1
        if found == ANCHORS_PER_FAMILY:
            return
    raise BuildError(
        f"{family.name} finds only {found} suitable {task} items among {len(anchors)}, of {ANCHORS_PER_FAMILY}"
    )


def scene_of(item: BaseItem, family: Family, seed: int) -> Scene:
    """The clean world in which a family finds an item."""
    return Scene(item, random.Random(_digest("scene", seed, family.name, item.task, item.item_id)))


def _labelled(family: Family, item: BaseItem, facts: Facts) -> Sealed:
    view = view_of(item, facts)
    try:
        by_facts, by_view = judge(item, facts), certify(view)
    except ValueError as error:
        raise BuildError(f"{family.name} on {item.task} {item.item_id}: {error}") from error
    if (by_facts.action, by_facts.predicate, by_facts.blocked) != (by_view.action, by_view.predicate, by_view.blocked):
        raise BuildError(
            str(
                Disagreement(
                    family.name,
                    item.task,
                    item.item_id,
                    f"{by_facts.action} ({by_facts.predicate}, blocked {sorted(by_facts.blocked)})",
                    f"{by_view.action} ({by_view.predicate}, blocked {sorted(by_view.blocked)})",
                    view,
                )
            )
        )
    if uncited := by_view.blocked - {name for name, cited in by_view.cites.items() if cited}:
        raise BuildError(f"{family.name} on {item.task} {item.item_id}: nothing is cited for {sorted(uncited)}")
    return Sealed(item, family.name, family.domain, facts, by_facts.action, by_facts.blocked)


def view_of(item: BaseItem, facts: Facts) -> dict[str, Any]:
    """The public view of an item under `facts`: a function of these two alone, so that no label can show in it.

    Name, time base and all that is arbitrary come of the item's public part alone: only evidence tells of the facts.
    """
    digest = _digest(item.task, item.question, orjson.dumps(item.input, option=orjson.OPT_SORT_KEYS).decode())
    nonces = Nonces(digest)
    t = EPOCH_MS + nonces.between(0, _SPREAD_MS - 1, "time base")
    observations, sources = render(item, facts, t, nonces)
    episode_id = "wob-" + digest[:16]
    return {
        "episode_id": episode_id,
        "task": {"task": item.task, "question": item.question, "input": item.input},
        "episode": {
            "format": "wirelessops.episode/1",
            "episode_id": episode_id,
            "decided_at_ms": t,
            "contract": item.contract,
            "sources": sources,
            "observations": observations,
        },
    }


def case_of(sealed: Sealed) -> Case:
    """The episode of a candidate."""
    return Case(view_of(sealed.item, sealed.facts), sealed)


def _digest(*parts: object) -> str:
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()
