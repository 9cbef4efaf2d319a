"""Which 600 of the candidates are the suite: exactly the published composition, one episode a base item.

Quotas are per domain and action (the only split that gives the published recall and utility), dealt evenly over the
three tasks and over the families that yield the action; which anchor a slot gets is a bipartite matching, so that
every anchor is used once. Deterministic: order follows from hashes, never from sets.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import networkx as nx

from simulators.optbench.candidates import ANCHORS_PER_FAMILY, BuildError
from simulators.optbench.model import DOMAINS, TASKS, Domain, Sealed, Task

QUOTAS: Final[Mapping[Domain, Mapping[str, int]]] = {
    "schema_unit": {"APPLY": 80, "HOLD": 20, "ESCALATE": 20},
    "freshness_order": {"APPLY": 40, "HOLD": 60, "ESCALATE": 20},
    "availability_brownout": {"APPLY": 40, "RETRY": 80},
    "conflict_provenance": {"APPLY": 40, "ESCALATE": 80},
    "mixed_evidence": {"HOLD": 20, "RETRY": 20, "ESCALATE": 80},
}
"""Episodes per domain and reference action, over the three tasks together."""


def quotas_of_tasks() -> dict[tuple[Task, Domain, str], int]:
    """How many episodes of each (task, domain, action): 40 per task and domain."""
    found: dict[tuple[Task, Domain, str], int] = {}
    for domain in DOMAINS:
        rest: list[str] = []
        for action, total in QUOTAS[domain].items():
            for task in TASKS:
                found[task, domain, action] = total // len(TASKS)
            rest += [action] * (total % len(TASKS))
        for position, action in enumerate(rest):
            found[TASKS[position % len(TASKS)], domain, action] += 1
    return found


def select(candidates: Iterable[Sealed]) -> tuple[Sealed, ...]:
    """The suite, in the order task, domain, action, family. Raises BuildError where the composition cannot be met."""
    pools: dict[tuple[Task, Domain, str, str], list[Sealed]] = defaultdict(list)
    for candidate in candidates:
        pools[candidate.item.task, candidate.domain, candidate.reference, candidate.family].append(candidate)
    chosen: list[Sealed] = []
    for task in TASKS:
        slots = [
            pool
            for (of_task, domain, action), count in quotas_of_tasks().items()
            if of_task == task
            for pool in _shares(task, domain, action, count, pools)
        ]
        chosen += _matched(task, slots)
    return tuple(chosen)


def _shares(
    task: Task,
    domain: Domain,
    action: str,
    count: int,
    pools: Mapping[tuple[Task, Domain, str, str], list[Sealed]],
) -> list[list[Sealed]]:
    """One pool of candidates per slot, dealt in turn over the families of which most candidates carry the action."""
    serving = [
        pool
        for (of_task, of_domain, of_action, _), pool in pools.items()
        if (of_task, of_domain, of_action) == (task, domain, action) and len(pool) > ANCHORS_PER_FAMILY // 2
    ]
    if not serving:
        raise BuildError(f"no family of {domain} gives {action} on {task} for most of its anchors")
    return [serving[position % len(serving)] for position in range(count)]


def _matched(task: Task, slots: Sequence[Sequence[Sealed]]) -> list[Sealed]:
    """A different anchor for every slot. Nodes are integers: matching then visits them in one order everywhere."""
    anchors: dict[str, int] = {}
    graph = nx.Graph()
    graph.add_nodes_from(range(len(slots)))
    for slot, pool in enumerate(slots):
        for candidate in pool:
            anchor = anchors.setdefault(candidate.item.item_id, len(slots) + len(anchors))
            graph.add_edge(slot, anchor, candidate=candidate)
    matching = nx.bipartite.hopcroft_karp_matching(graph, top_nodes=range(len(slots)))
    if unmet := [slot for slot in range(len(slots)) if slot not in matching]:
        short = Counter(slots[slot][0].family for slot in unmet)
        raise BuildError(f"{task}: {len(unmet)} slots find no anchor that is not used yet: {dict(short)}")
    return [graph.edges[slot, matching[slot]]["candidate"] for slot in range(len(slots))]
