"""The ledger of one decision: what had arrived at t, what it binds to, and what it was computed from (section 3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from xapp.contract import Member, Resolution, normalise
from xapp.model import Observation


class Ancestry(NamedTuple):
    """What an observation inherits.

    `oldest_ms`, `oldest`: the effective event time and whose it is (own or an ancestor's); `broken`: the id that the
    ledger does not hold or that closes a cycle, None where there is none.
    """

    oldest_ms: int
    oldest: str
    broken: str | None


@dataclass(frozen=True, slots=True)
class Ledger:
    """Observations that had arrived at t.

    `bound`: member → observations bound to it, by arrival then id; `unknown_names`: source → an observation of it whose
    name no field of the contract knows; `from_memory`: ids of origin memory, and of whatever descends from one.
    `answers`: what operators said (section 7), kept apart: it is no evidence that others could be computed from.
    """

    arrived: dict[str, Observation]
    bound: dict[Member, list[Observation]]
    unknown_names: dict[str, Observation]
    from_memory: frozenset[str]
    ancestries: dict[str, Ancestry]
    answers: dict[str, Observation]

    def held(self, observation_id: str) -> Observation | None:
        """Evidence or answer, by its id."""
        return self.arrived.get(observation_id) or self.answers.get(observation_id)

    def ancestry(self, observation: Observation) -> Ancestry:
        """What `observation` inherits: each edge between observations is followed once, whatever their depth."""
        if not observation.parents:
            return Ancestry(observation.event_time_ms, observation.id, None)
        found = self.ancestries.get(observation.id)
        if found is None:
            for one in _lineage(observation, self.arrived):
                if one.id not in self.ancestries:
                    self.ancestries[one.id] = self._inherited(one)
            found = self.ancestries[observation.id]
        return found

    def ancestors(self, observation: Observation) -> tuple[Observation, ...]:
        """All held ancestors, each after its own parents (but where they close a cycle). An answer has none."""
        if not observation.parents or observation.origin == "operator":
            return ()
        return _lineage(observation, self.arrived)[:-1]

    def _inherited(self, observation: Observation) -> Ancestry:
        oldest_ms, oldest = observation.event_time_ms, observation.id
        broken: str | None = None
        for parent_id in observation.parents:
            parent = self.arrived.get(parent_id)
            passed = self.ancestries.get(parent_id) if parent is None or parent.parents else self.ancestry(parent)
            if passed is None:  # not held, or not finished yet: it closes a cycle
                broken = parent_id if broken is None else broken
                continue
            if passed.oldest_ms < oldest_ms:
                oldest_ms, oldest = passed.oldest_ms, passed.oldest
            broken = passed.broken if broken is None else broken
        return Ancestry(oldest_ms, oldest, broken)


def build_ledger(observations: Iterable[Observation], resolution: Resolution, now_ms: int) -> Ledger:
    """The ledger as of t: what was ingested later takes no part."""
    arrived: dict[str, Observation] = {}
    bound: dict[Member, list[Observation]] = {member: [] for member in resolution.members}
    unknown: dict[str, Observation] = {}
    answers: dict[str, Observation] = {}
    by_binding, known = resolution.bound, resolution.known_names
    for observation in observations:
        if observation.ingest_time_ms > now_ms:
            continue
        if observation.origin == "operator":
            answers[observation.id] = observation
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
    return Ledger(arrived, bound, unknown, _from_memory(arrived), {}, answers)


def _from_memory(arrived: dict[str, Observation]) -> frozenset[str]:
    found = {o.id for o in arrived.values() if o.origin == "memory"}
    if not found:
        return frozenset()
    children: dict[str, list[str]] = {}
    for o in arrived.values():
        for parent in o.parents:
            children.setdefault(parent, []).append(o.id)
    waiting = list(found)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return frozenset(found)


def _arrival(observation: Observation) -> tuple[int, str]:
    return observation.ingest_time_ms, observation.id


def _newer(one: Observation, other: Observation) -> bool:
    return (-one.event_time_ms, one.id) < (-other.event_time_ms, other.id)


def _lineage(root: Observation, arrived: dict[str, Observation]) -> tuple[Observation, ...]:
    """Every held ancestor of `root` and then itself, each after its own parents."""
    done: dict[str, Observation] = {}
    seen = {root.id}
    stack = [(root, iter(root.parents))]
    while stack:
        current, parents = stack[-1]
        for parent_id in parents:
            parent = arrived.get(parent_id)
            if parent is not None and parent_id not in seen:
                seen.add(parent_id)
                stack.append((parent, iter(parent.parents)))
                break
        else:
            stack.pop()
            done[current.id] = current
    return tuple(done.values())
