"""The support gate: what an episode carries, and what follows from it (docs/support-gate.md, "Verdict").

`judge` is what the engine calls: it reads the episode's `support` and nothing else, and believes nothing of it that it
can check. Whatever is missing or does not fit abstains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from xapp.contract import Contract, Member, Resolution
from xapp.support.book import Profile, Window
from xapp.support.carried import Asked, DriftClaim, MapClaim, Short, Support, SupportVerdict, in_order
from xapp.support.component import place_of, quarter_of
from xapp.support.features import features
from xapp.support.reference_map import DriftLimit, ReferenceMap
from xapp.support.rule import Rule, State, worst
from xapp.support.terms import Terms, labels_of
from xapp.times import utc

__all__ = ["Support", "SupportGate", "SupportVerdict", "judge"]

MAP_FAULTS: Final = ("mismatched", "expired")
"""Why a reference map does not count: for another contract, other terms or another time; or too old."""
_SHOWN: Final = 2  # components that a sentence names
_HIGHEST: Final = 1e300  # of a score: a map may divide by next to nothing
_REFRESH: Final = "A refresh of the reference map is needed."


class SupportGate:
    """The gate of one contract in front of live control."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._scored: tuple[DriftLimit | None, Mapping[Profile, float]] = (None, {})  # of the window that was last seen

    def carried(
        self, contract: Contract, reference_map: ReferenceMap | None, window: Window, resolution: Resolution, t_ms: int
    ) -> Support:
        """What an episode carries: all that the verdict follows from. `window`: of a book of the contract, at t."""
        asked = []
        for member in asked_of(contract, resolution):
            component = window.components[member.field.name, member.subject]
            reference = None
            if reference_map is not None and reference_map.partitions == self.terms.rule.partitions:
                reference = reference_map.reference(member.field.name, component, window.first)
            current = window.visits[member.field.name, member.subject]
            asked.append(Asked(member.field.name, member.subject, component, reference, current))
        return Support(
            terms=self.terms,
            map=None if reference_map is None else reference_map.claim,
            drift=None if reference_map is None else self.drift(reference_map, window, t_ms),
            first=window.first,
            asked=tuple(asked),
        )

    def evaluate(
        self, contract: Contract, reference_map: ReferenceMap | None, window: Window, resolution: Resolution, t_ms: int
    ) -> SupportVerdict:
        """The verdict at t, by the same path as the engine's."""
        return judge(self.carried(contract, reference_map, window, resolution, t_ms), contract, resolution, t_ms)

    def drift(self, reference_map: ReferenceMap, window: Window, t_ms: int) -> DriftClaim | None:
        """How the window's partitions that lie in the quarter of t score. One in which nothing was counted says nothing
        of drift: it lacks support.
        """
        quarter = quarter_of(t_ms, self.terms.utc_offset_min)
        limit = reference_map.drift.get(quarter)
        if not isinstance(limit, DriftLimit):
            return None
        scored_by, before = self._scored
        known = before if scored_by is limit else {}
        scores = {
            p: known[p] if p in known else _score(limit, p)
            for p in window.profiles
            if p.visits and self.terms.quarter_of_partition(p.index) == quarter
        }
        self._scored = limit, scores
        exceeded = sum(score > limit.limit for score in scores.values())
        return DriftClaim(exceeded, max(scores.values(), default=None), limit.limit)


def _score(limit: DriftLimit, profile: Profile) -> float:
    """Finite, as what an episode carries must be."""
    return min(limit.standard.score(features(profile, limit.components)), _HIGHEST)


def asked_of(contract: Contract, resolution: Resolution) -> tuple[Member, ...]:
    """The dependency closure of an action down to its evidence: each critical observed field at each subject, once."""
    members: dict[tuple[str, str | None], Member] = {}
    for member in resolution.members:
        if member.field.critical:
            members.setdefault((member.field.name, member.subject), member)
    return tuple(members.values())


def judge(support: Support, contract: Contract, resolution: Resolution, t_ms: int) -> SupportVerdict:
    """The verdict that follows from an episode's `support` alone. The worst of all that is asked wins."""
    try:
        return _judge(replace(support, asked=in_order(support.asked)), contract, resolution, t_ms)
    except Exception as error:  # whatever goes wrong inside the gate, unknown never permits
        return SupportVerdict("REFERENCE_ABSTAIN", f"error inside the support gate: {error!r}", support.map)


def _judge(support: Support, contract: Contract, resolution: Resolution, t_ms: int) -> SupportVerdict:
    terms = support.terms
    unusable = next(_unusable(support, contract, resolution, t_ms), None)
    if unusable is not None:
        return SupportVerdict("REFERENCE_ABSTAIN", unusable, support.map)
    observed = [(asked, terms.rule.judge(asked.reference, asked.current)) for asked in support.asked]
    derived = _derived(contract, resolution, support.asked, terms.rule)
    found = worst([state for _, state in (*observed, *derived)])
    if found == "SUPPORTED":
        return SupportVerdict(found, _passed(support), support.map)
    # What is derived is named only where each of its parents has enough by itself
    lacking = [asked for asked, state in observed if state == found] or [a for a, state in derived if state == found]
    short = tuple(_short(terms.rule, asked, found) for asked in lacking)
    asked = (*support.asked, *(a for a, _ in derived))
    earliest = _earliest(support, asked, t_ms) if found == "RUNTIME_ABSTAIN" else None
    return SupportVerdict(found, _lacking(found, short, earliest, terms), support.map, short, earliest)


# Why a map, or what is said of it, cannot be used: the first reason counts.


def _unusable(support: Support, contract: Contract, resolution: Resolution, t_ms: int) -> Iterator[str]:
    terms, named, drift = support.terms, support.map, support.drift
    if terms.contract_id != contract.contract_id:
        yield f"the terms of support are for '{terms.contract_id}', the contract is '{contract.contract_id}'"
    if named is None:
        yield "there is no reference map: record the network, and build one"
        return
    name = _name(named)
    yield from (told for _, told in map_faults(named, terms, contract, t_ms))
    if drift is not None and not _consistent(drift, terms.rule.partitions):
        yield f"what is said of drift from {name} contradicts itself"
    if drift is not None and drift.exceeded >= terms.drift_partitions:
        yield (
            f"the network has drifted from {name}: {drift.exceeded} partitions of the window lie beyond its limit, "
            f"{terms.drift_partitions} are too many. {_REFRESH}"
        )
    yield from _misfits(support, contract, resolution, t_ms)


def map_faults(named: MapClaim, terms: Terms, contract: Contract, t_ms: int) -> Iterator[tuple[str, str]]:
    """Why a reference map does not count at t: which of `MAP_FAULTS`, and in words, the first reason first."""
    name = _name(named)
    if named.contract_digest != contract.digest:
        yield "mismatched", f"{name} was built for other content of contract '{contract.contract_id}'. {_REFRESH}"
    if named.terms_digest != terms.digest:
        yield "mismatched", f"{name} was built under other terms. {_REFRESH}"
    if named.expires_at_ms > named.built_at_ms + terms.expires_after_ms:
        yield "mismatched", f"{name} says that it expires later than its terms allow"
    if t_ms < named.built_at_ms:
        yield "mismatched", f"{name} was built at {utc(named.built_at_ms)}, after the decision"
    if t_ms > named.expires_at_ms:
        yield "expired", f"{name} expired at {utc(named.expires_at_ms)}. {_REFRESH}"


def _name(named: MapClaim) -> str:
    return f"reference map '{named.map_id}' version {named.version}"


def _consistent(drift: DriftClaim, partitions: int) -> bool:
    """Whether the highest score lies above the limit exactly where some of the window's partitions do."""
    above = drift.score is not None and drift.score > drift.limit
    return above == (drift.exceeded > 0) and drift.exceeded <= partitions


def _misfits(support: Support, contract: Contract, resolution: Resolution, t_ms: int) -> Iterator[str]:
    """What of the components asked does not fit the action, or the instant."""
    terms = support.terms
    if support.first != terms.first_of(t_ms):
        yield f"the window begins at partition {support.first}, at this instant it is {terms.first_of(t_ms)}"
    asked = {(a.field, a.subject) for a in support.asked}
    wanted = {(m.field.name, m.subject) for m in asked_of(contract, resolution)}
    for field, subject in sorted(wanted - asked, key=str):
        yield f"the component of {_pair(field, subject)} was not asked"
    for field, subject in sorted(asked - wanted, key=str):
        yield f"{_pair(field, subject)} was asked, and the action does not rest on it"
    if len(asked) != len(support.asked):
        yield "a field was asked twice at one subject"
    quarter = quarter_of(t_ms, terms.utc_offset_min)
    for a in support.asked:
        of = f"the component of {_pair(a.field, a.subject)}"
        c = a.component
        if c.place != place_of(a.subject):
            yield f"{of} is at '{c.place}', the subject at '{place_of(a.subject)}'"
        if c.quarter != quarter:
            yield f"{of} is of quarter {c.quarter}, this instant is of quarter {quarter}"
        if c.load not in labels_of(terms.load) or c.cqi not in labels_of(terms.cqi):
            yield f"{of} has load '{c.load}' and cqi '{c.cqi}', which the terms do not know"
        for visits in (a.current, a.reference):
            if visits is not None and len(visits) != terms.rule.partitions:
                yield f"{of} has visits of {len(visits)} partitions, the terms say {terms.rule.partitions}"


# Derived fields: each has the least of its parents, partition by partition.


def _derived(
    contract: Contract, resolution: Resolution, asked: Iterable[Asked], rule: Rule
) -> list[tuple[Asked, State]]:
    """What derived fields of several parents have, each member of a mapping for itself, and its state."""
    found: list[tuple[Asked, State]] = []
    by_pair = {(a.field, a.subject): a for a in asked}
    for name, f in contract.fields.items():
        if f.kind != "derived":
            continue
        inputs = [
            {m.key: by_pair[parent, m.subject] for m in resolution.by_field[parent]} for parent in contract.inputs[name]
        ]
        for key in resolution.keys.get(name, (None,)):
            parents = [a for of in inputs for a in ((of[key],) if key in of else of.values())]
            if len(parents) > 1:
                least = least_of(name, parents, rule)
                found.append((least, rule.judge(least.reference, least.current)))
    return found


def least_of(field: str, parents: Sequence[Asked], rule: Rule) -> Asked:
    """A derived field's support: in each partition the least of its parents'; named after the weakest of them."""
    references = [p.reference for p in parents if p.reference is not None]
    weakest = min(parents, key=lambda p: (sum(rule.adequate(p.current)), sum(p.current), p.field, p.subject or ""))
    return Asked(
        field,
        weakest.subject,
        weakest.component,
        tuple(map(min, zip(*references, strict=True))) if len(references) == len(parents) else None,
        tuple(map(min, zip(*(p.current for p in parents), strict=True))),
    )


# What is missing, and until when.


def _short(rule: Rule, asked: Asked, state: State) -> Short:
    """The deficit of a component: of the reference where that is what lacks, of the window otherwise."""
    reference = asked.reference or (0,) * rule.partitions
    if state == "REFERENCE_ABSTAIN":
        counts = list(reference)
    else:  # only where the reference has enough can more visits help
        pairs = zip(rule.adequate(reference), asked.current, strict=True)
        counts = [current for admitted, current in pairs if admitted]
    missing = sorted(rule.min_visits - count for count in counts if count < rule.min_visits)
    partitions = rule.min_partitions - (len(counts) - len(missing))
    return Short(asked.field, asked.subject, asked.component, partitions, sum(missing[:partitions]))


def _earliest(support: Support, short: Iterable[Asked], t_ms: int) -> int | None:
    """The first end of a partition at which all would pass if every partition from now on had enough.

    None where that is never; where the map has expired by then, or another quarter of the day has begun: what its
    components have is not known.
    """
    terms = support.terms
    ended = max(_needed(terms.rule, asked) for asked in short)
    at = (t_ms // terms.partition_ms + ended) * terms.partition_ms
    known = support.map is not None and at <= support.map.expires_at_ms
    same = quarter_of(at, terms.utc_offset_min) == quarter_of(t_ms, terms.utc_offset_min)
    return at if known and same else None


def _needed(rule: Rule, asked: Asked) -> int:
    """How many more partitions have to end with enough visits: each replaces the oldest one, whose slot it has. The
    reference has enough.
    """
    admitted = rule.adequate(asked.reference or ())
    joint = rule.joint(asked.reference or (), asked.current)
    gains = [ended for ended, (a, both) in enumerate(zip(admitted, joint, strict=True), 1) if a and not both]
    missing = rule.min_partitions - sum(joint)
    return gains[missing - 1] if missing > 0 else 0


# In words.


def _passed(support: Support) -> str:
    rule, named = support.terms.rule, support.map
    return (
        f"each component has {rule.min_visits} visits in {rule.min_partitions} of {rule.partitions} partitions, in "
        f"reference map '{named.map_id if named else ''}' and now"
    )


def _lacking(state: State, short: Sequence[Short], earliest_ms: int | None, terms: Terms) -> str:
    rule = terms.rule
    where = "the reference map" if state == "REFERENCE_ABSTAIN" else "the current window"
    told = [
        f"{_pair(s.field, s.subject)} ({s.component.text}) lacks {_counted(s.visits, 'visit')} in "
        f"{_counted(s.partitions, 'partition')}"
        for s in short[:_SHOWN]
    ]
    if len(short) > _SHOWN:
        told.append(f"and {len(short) - _SHOWN} more")
    said = (
        f"in {where} {'; '.join(told)}: {rule.min_visits} visits are needed in {rule.min_partitions} of "
        f"{rule.partitions} partitions"
    )
    if state == "REFERENCE_ABSTAIN":
        return f"{said}. No waiting helps. {_REFRESH}"
    if earliest_ms is None:
        return f"{said}. No waiting helps before the quarter of the day or the map is over."
    return f"{said}. It could pass at {utc(earliest_ms)} at the earliest."


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _pair(field: str, subject: str | None) -> str:
    return field if subject is None else f"{field} of {subject}"
