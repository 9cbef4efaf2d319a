"""The ledger of one decision: what had arrived at t, what it binds to, and what it was computed from (section 3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from xapp.contract import Member, Resolution, normalise
from xapp.model import Observation


class Ancestry(NamedTuple):
    """All ancestors of an observation.

    `ids`: each after its own parents; `oldest_ms`, `oldest`: the effective event time and whose it is (own or an
    ancestor's); `broken`: the id that the ledger does not hold or that closes a cycle, None where there is none;
    `memory`: whether it or an ancestor is of origin memory.
    """

    ids: tuple[str, ...]
    oldest_ms: int
    oldest: str
    broken: str | None
    memory: bool


@dataclass(frozen=True, slots=True)
class Ledger:
    """Observations that had arrived at t.

    `bound`: member → observations bound to it, by arrival then id; `unknown_names`: source → an observation of it whose
    name no field of the contract knows.
    """

    arrived: dict[str, Observation]
    bound: dict[Member, list[Observation]]
    unknown_names: dict[str, Observation]
    ancestries: dict[str, Ancestry]

    def ancestry(self, observation: Observation) -> Ancestry:
        """Ancestors of `observation`; linear in their number, whatever their depth."""
        if not observation.parents:
            return Ancestry((), observation.event_time_ms, observation.id, None, observation.origin == "memory")
        found = self.ancestries.get(observation.id)
        if found is None:
            found = self.ancestries[observation.id] = _ancestry(observation, self.arrived)
        return found


def build_ledger(observations: Iterable[Observation], resolution: Resolution, now_ms: int) -> Ledger:
    """The ledger as of t: what was ingested later takes no part."""
    arrived: dict[str, Observation] = {}
    bound: dict[Member, list[Observation]] = {member: [] for member in resolution.members}
    unknown: dict[str, Observation] = {}
    by_binding, known = resolution.bound, resolution.known_names
    for observation in observations:
        if observation.ingest_time_ms > now_ms:
            continue
        arrived[observation.id] = observation
        name = normalise(observation.name)
        members = by_binding.get((observation.subject, name))
        if members is not None:
            for member in members:
                bound[member].append(observation)
        elif name not in known and observation.origin != "memory":
            other = unknown.get(observation.source)
            if other is None or _newer(observation, other):
                unknown[observation.source] = observation
    for items in bound.values():
        if len(items) > 1:
            items.sort(key=_arrival)
    return Ledger(arrived, bound, unknown, {})


def _arrival(observation: Observation) -> tuple[int, str]:
    return observation.ingest_time_ms, observation.id


def _newer(one: Observation, other: Observation) -> bool:
    return (-one.event_time_ms, one.id) < (-other.event_time_ms, other.id)


def _ancestry(root: Observation, arrived: dict[str, Observation]) -> Ancestry:
    oldest = root
    memory = root.origin == "memory"
    broken: str | None = None
    done: dict[str, None] = {}
    open_ids = {root.id}
    stack = [(root, iter(root.parents))]
    while stack:
        current, parents = stack[-1]
        for parent_id in parents:
            if parent_id in done:
                continue
            parent = arrived.get(parent_id)
            if parent is None or parent_id in open_ids:
                broken = parent_id if broken is None else broken
                continue
            memory = memory or parent.origin == "memory"
            if parent.event_time_ms < oldest.event_time_ms:
                oldest = parent
            open_ids.add(parent_id)
            stack.append((parent, iter(parent.parents)))
            break
        else:
            stack.pop()
            open_ids.discard(current.id)
            if current is not root:
                done[current.id] = None
    return Ancestry(tuple(done), oldest.event_time_ms, oldest.id, broken, memory)
