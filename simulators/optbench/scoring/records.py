"""Authorisation records against the public ledger: faithful, right about the state, free of unsafe overwrites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from simulators.optbench.model import Case, Scalar
from simulators.optbench.scoring.terms import Terms, canonical, equal, terms

Observation = Mapping[str, Any]

STATES: Final = ("supported", "blocked")


@dataclass(frozen=True)
class Ledger:
    """The ledger of a public view, as far as the evaluator needs it."""

    view: Mapping[str, Any]

    @cached_property
    def fields(self) -> dict[str, Terms]:
        """The contract's observed fields."""
        return {name: t for name, t in terms(self.view["episode"]["contract"]).items() if t.kind == "observed"}

    @cached_property
    def observations(self) -> dict[str, Observation]:
        """Id → observation, in arrival order."""
        return {observation["id"]: observation for observation in self.view["episode"]["observations"]}

    @property
    def at(self) -> int:
        """When the episode is decided, ms."""
        return int(self.view["episode"]["decided_at_ms"])

    @property
    def skew(self) -> int:
        """What clocks may be apart, ms."""
        return int(self.view["episode"]["contract"].get("max_clock_skew_ms", 0))

    def arrived(self, observation: Observation) -> bool:
        """Whether it was there when the episode was decided."""
        return bool(observation["ingest_time_ms"] <= self.at)

    def binds(self, observation: Observation) -> frozenset[str]:
        """The observed fields that an observation's name and subject bind it to."""
        return self._bound[observation["id"]]

    @cached_property
    def _bound(self) -> dict[str, frozenset[str]]:
        known: dict[tuple[str, bool], set[str]] = {}
        for name, field in self.fields.items():
            for spelling in field.names:
                known.setdefault((spelling, field.subject is None), set()).add(name)
        return {
            observation_id: frozenset(known.get((canonical(o["name"]), o.get("subject") is None), ()))
            for observation_id, o in self.observations.items()
        }

    def lineage(self, observation: Observation) -> tuple[Observation, ...] | None:
        """The observation and all its ancestors; None where the ledger does not hold one, or they form a cycle."""
        found: dict[str, Observation] = {}

        def held(current: Observation, path: frozenset[str]) -> bool:
            if current["id"] in path:
                return False
            if current["id"] in found:
                return True
            found[current["id"]] = current
            ids = [parent for parent in current.get("parents", ()) if isinstance(parent, str)]
            return all(
                parent in self.observations and held(self.observations[parent], path | {current["id"]})
                for parent in ids
            )

        return tuple(found.values()) if held(observation, frozenset()) else None

    def from_memory(self, observation: Observation) -> bool:
        """Whether it is, or descends from, what an agent or a store remembers."""
        return any(o.get("origin", "live") == "memory" for o in self.lineage(observation) or (observation,))

    def dependable(self, observation: Observation, name: str) -> bool:
        """Whether an observation could support the field `name`: live, newest of its source, sound, current.

        A cautious reading of section 3 of the rules: it and all its ancestors are the only observation of their source
        at their event time, and pass every check of the fields that they are bound to.
        """
        lineage = self.lineage(observation)
        if lineage is None or self.from_memory(observation) or observation is not self.head(observation, name):
            return False
        return self.age(observation) <= self.fields[name].freshness_ms and all(map(self._sound, lineage))

    def age(self, observation: Observation) -> int:
        """Its age at t by the oldest of its own and its ancestors' event times, ms."""
        oldest = min(o["event_time_ms"] for o in self.lineage(observation) or (observation,))
        return int(self.at - oldest)

    def head(self, observation: Observation, name: str) -> Observation | None:
        """The newest live observation of the field by the same source, those from the future aside; None if not one."""
        told = [o for o in self.told(name) if o["source"] == observation["source"] and not self.early(o)]
        newest = max((o["event_time_ms"] for o in told), default=None)
        heads = [o for o in told if o["event_time_ms"] == newest]
        return heads[0] if len(heads) == 1 else None

    def told(self, name: str) -> Iterator[Observation]:
        """The live observations bound to the field `name` that had arrived."""
        for observation in self.observations.values():
            live = observation.get("origin", "live") == "live"
            if live and self.arrived(observation) and name in self.binds(observation):
                yield observation

    def early(self, observation: Observation) -> bool:
        """Whether it says to be measured after t, or after it arrived."""
        event = observation["event_time_ms"]
        return bool(event > self.at + self.skew or event > observation["ingest_time_ms"] + self.skew)

    def _sound(self, observation: Observation) -> bool:
        bound = self.binds(observation)
        good = observation.get("quality", "good") == "good" and observation["value"] is not None
        if not good or len(bound) > 1 or self.early(observation) or not self.arrived(observation):
            return False
        if not bound:
            return any(observation["source"] in field.sources for field in self.fields.values())
        (name,) = bound
        field = self.fields[name]
        value = field.read(observation["value"], observation.get("unit"))
        schema = observation.get("schema")
        twins = [
            o
            for o in self.told(name)
            if o["source"] == observation["source"] and o["event_time_ms"] == observation["event_time_ms"]
        ]
        return (
            observation["source"] in field.sources
            and self.at - observation["event_time_ms"] <= field.freshness_ms
            and (schema is None or field.schemas is None or schema in field.schemas)
            and value is not None
            and field.within(value)
            and len(twins) == 1
        )


def faithful(record: Any, view: Mapping[str, Any]) -> list[str]:
    """The claims of `record` that the ledger of `view` does not bear out, in the record's order; empty: faithful.

    A record that is missing or no mapping is one failing claim. Of every observed field: the state is one of `STATES`;
    a cited observation exists, had arrived, and is bound by name to that field alone; the claimed value and unit are
    what it says, after conversion (with neither, nothing is claimed of them); a supported field cites one that can be
    read in the field's terms, from a source that the field lists. Every critical observed field is mentioned; every id
    among `blocked`, and among the `support` of a repair, exists. Never raises.
    """
    if not isinstance(record, Mapping):
        return ["no record"]
    ledger = Ledger(view)
    claims = record.get("fields")
    if not isinstance(claims, Mapping):
        return ["fields: not a mapping"]
    failing = [f"{name}: {fault}" for name, claim in claims.items() for fault in _faults(name, claim, ledger)]
    failing += [f"{name}: not mentioned" for name, t in ledger.fields.items() if t.critical and name not in claims]
    failing += [f"blocked: {one}" for one in _unheld(record.get("blocked", ()), ledger)]
    failing += [f"blocked: {one} supports {name}" for name, one in _supporting(claims) if _named(record, one)]
    repairs = record.get("repairs", ())
    if not isinstance(repairs, Sequence) or isinstance(repairs, str):
        return [*failing, "repairs: not a list"]
    for repair in repairs:
        support = repair.get("support", ()) if isinstance(repair, Mapping) else repair
        failing += [f"repairs: {one}" for one in _unheld(support, ledger)]
    return failing


def _supporting(claims: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(Field, the observation that is claimed to support it)."""
    for name, claim in claims.items():
        cited = claim.get("observation") if isinstance(claim, Mapping) and claim.get("state") == "supported" else None
        if isinstance(cited, str):
            yield name, cited


def _named(record: Mapping[str, Any], one: str) -> bool:
    blocked = record.get("blocked", ())
    return isinstance(blocked, Sequence | frozenset | set) and not isinstance(blocked, str) and one in blocked


def _unheld(ids: Any, ledger: Ledger) -> list[str]:
    if not isinstance(ids, Sequence | frozenset | set) or isinstance(ids, str):
        return ["not a list of ids"]
    return [f"no observation {one}" for one in ids if not isinstance(one, str) or one not in ledger.observations]


def _faults(name: Any, claim: Any, ledger: Ledger) -> Iterator[str]:
    if name not in ledger.fields:
        yield "no observed field"
        return
    if not isinstance(claim, Mapping) or claim.get("state") not in STATES:
        yield "no state"
        return
    field, cited = ledger.fields[name], claim.get("observation")
    supported = claim["state"] == "supported"
    if cited is None:
        if supported:
            yield "supported by nothing"
        elif claim.get("value") is not None:
            yield "a value that nothing cited says"
        return
    if not isinstance(cited, str) or cited not in ledger.observations:
        yield f"no observation {cited}"
        return
    observation = ledger.observations[cited]
    if not ledger.arrived(observation):
        yield f"{cited} had not arrived"
    bound = ledger.binds(observation)
    if name not in bound or (supported and len(bound) > 1):
        yield f"{cited} is not told of this field alone"
    if supported and observation["source"] not in field.sources:
        yield f"{cited} is from a source that the field does not list"
    if not _says(observation, claim, field, supported):
        yield f"{cited} says another value"


def _says(observation: Observation, claim: Mapping[str, Any], field: Terms, supported: bool) -> bool:
    """Whether an observation says what is claimed of it; of a blocked field, also in terms that the field cannot read.

    A blocked field may leave the value out; any field, value and unit together: what is not claimed cannot disagree.
    """
    value, unit = claim.get("value"), claim.get("unit")
    claimed, told = field.read(value, unit), field.read(observation["value"], observation.get("unit"))
    if value is None and unit is None and told is not None:
        return True
    if claimed is not None and told is not None:
        return equal(claimed, told)
    if supported:
        return False
    return value is None or (value == observation["value"] and unit == observation.get("unit"))


def state_right(record: Any, case: Case) -> bool:
    """Whether the record claims of every critical observed field what the judges said: blocked, or supported."""
    claims = record.get("fields") if isinstance(record, Mapping) else None
    if not isinstance(claims, Mapping):
        return False
    return all(
        isinstance(claims.get(name), Mapping)
        and claims[name].get("state") == ("blocked" if name in case.sealed.blocked else "supported")
        for name, field in Ledger(case.view).fields.items()
        if field.critical
    )


def unsafe_overwrites(record: Any, view: Mapping[str, Any]) -> int:
    """How many fields the record supports by stale, conflicting or memory-derived state in place of better (eq. 8).

    An observation takes the place of what its own source, and those that the field lists before it, tell of the field
    by a newer event; one that is or descends from memory takes that of all live ones. It is an unsafe overwrite where
    one that it took the place of is dependable (see `Ledger.dependable`), while it is memory itself, or past the
    field's limit, or further than the tolerance from that one. So preferring the primary to a newer secondary replaces
    nothing, and an older value that agrees and is current does no harm.
    """
    claims = record.get("fields") if isinstance(record, Mapping) else None
    if not isinstance(claims, Mapping):
        return 0
    ledger = Ledger(view)
    return sum(_overwrites(name, claim, ledger) for name, claim in claims.items() if name in ledger.fields)


def _overwrites(name: str, claim: Any, ledger: Ledger) -> bool:
    cited = claim.get("observation") if isinstance(claim, Mapping) and claim.get("state") == "supported" else None
    if not isinstance(cited, str) or cited not in ledger.observations:
        return False
    observation = ledger.observations[cited]
    field, own = ledger.fields[name], observation["source"]
    before = field.sources[: field.sources.index(own)] if own in field.sources else field.sources
    memory = ledger.from_memory(observation)
    stale = ledger.age(observation) > field.freshness_ms
    value = field.read(observation["value"], observation.get("unit"))

    def worse(other: Observation) -> bool:
        if memory:
            return True
        newer = other["source"] in (own, *before) and other["event_time_ms"] > observation["event_time_ms"]
        return newer and (stale or value is None or not _agree(value, other, field))

    return any(worse(o) and ledger.dependable(o, name) for o in ledger.told(name) if o["id"] != cited)


def _agree(value: Scalar, other: Observation, field: Terms) -> bool:
    told = field.read(other["value"], other.get("unit"))
    return told is not None and (field.near(value, told) or field.near(told, value))  # of the larger magnitude
