"""Evidence mutations, the positive control: what was done to the evidence must show in it, or the audit is blind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, get_args

import orjson

from simulators.optbench.audit.subject import Check, Subject
from simulators.optbench.model import ChangeKind, Exposure, Facts
from simulators.optbench.suite_checks import WHOLE

_DATED: Final = ("aged", "repeated")
_RENAMING: Final = ("alias", "foreign_name", "shared_name")
_OLDER_MS: Final = 7


def evidence_mutations(subject: Subject) -> Check:
    """Every fact of every episode changed, one at a time: ledger or sources must differ, and nothing else may.

    Facts are that a source tells a field, how old it is, each change of it, and each outage and its terms. Compared are
    observations and sources alone: a name or a time that differed would only say that something leaks. It does, too,
    where what is told of other fields differs with a fact (`elsewhere`), whatever it is that does.
    """
    blind: list[str] = []
    leaking: list[str] = []
    mutated: Counter[str] = Counter()
    for case in subject.cases:
        shown = _evidence(case.view)
        for one in mutations(case.sealed.facts):
            mutated[one.kind] += 1
            other = subject.render(replace(case.sealed, facts=one.facts))
            if _evidence(other.view) == shown:
                blind.append(f"{case.episode_id}: {one.told} is not to be seen in its evidence")
            if elsewhere(case.view, one) != elsewhere(other.view, one):
                leaking.append(f"{case.episode_id}: {one.told} shows in what is told of something else")
    failures = [*blind, *leaking]
    if len(subject.cases) == WHOLE:
        failures += [f"no episode has the fact '{kind}'" for kind in KINDS if kind not in mutated]
    return Check(
        "evidence-mutations",
        f"evidence mutations: {mutated.total()} facts of {len(mutated)} of {len(KINDS)} kinds changed, of which "
        f"{len(blind)} do not show in the evidence, and {len(leaking)} show elsewhere",
        {"mutations": mutated.total(), "unseen": len(blind), "elsewhere": len(leaking), **mutated},
        tuple(failures),
    )


@dataclass(frozen=True, slots=True)
class Mutation:
    """One fact changed. `told`: what; `kind`: one of `KINDS`; `of`: (name as told, source) of each report that it may
    change, for an exposure and all that is computed from it; `source`: whose versions, or terms, it may.
    """

    told: str
    kind: str
    facts: Facts
    of: frozenset[tuple[str, str]] = frozenset()
    sources: frozenset[str] = frozenset()


KINDS: Final = ("age", "presence", *get_args(ChangeKind), "outage", "terms")
"""Kinds of facts: of an exposure, each kind of change, and of an outage."""


def mutations(facts: Facts) -> Iterator[Mutation]:
    """Facts with one of them changed, for each."""
    for place, exposure in enumerate(facts.exposures):
        where = f"'{exposure.field}' at {exposure.source}"
        heirs = _with_heirs(facts, exposure)
        sources = frozenset(heir.source for heir in heirs)
        of = frozenset((name, heir.source) for heir in heirs for name in _names(heir))
        yield Mutation(f"the age of {where}", "age", _with(facts, place, _older(exposure)), of, sources)
        without = replace(facts, exposures=tuple(one for one in facts.exposures if one not in heirs))
        yield Mutation(f"that {where} is told", "presence", without, of, sources)
        for change in exposure.changes:
            rest = tuple(one for one in exposure.changes if one is not change)
            clean = _with(facts, place, replace(exposure, changes=rest))
            yield Mutation(f"'{change.kind}' of {where}", change.kind, clean, of, sources)
    for outage in facts.outages:
        others = tuple(one for one in facts.outages if one is not outage)
        out = frozenset({outage.source})
        yield Mutation(f"the outage of {outage.source}", "outage", replace(facts, outages=others), sources=out)
        later = replace(outage, retry_after_ms=outage.retry_after_ms + 1)
        terms = replace(facts, outages=(*others, later))
        yield Mutation(f"the terms of {outage.source}", "terms", terms, sources=out)


def elsewhere(view: Mapping[str, Any], mutation: Mutation) -> tuple[bytes, list[bytes]]:
    """What of a view a mutation may not touch, in its order of members: all but ledger and sources, the terms of other
    sources, and the reports of other fields. A report's name is its place, and its parents are known by theirs; of the
    versions of a source that tells something else now, where they begin may be another's place, so they do not count.
    """
    episode = view["episode"]
    told = {one["id"]: one for one in episode["observations"]}
    sources = {name: terms for name, terms in episode["sources"].items() if mutation.of or name not in mutation.sources}
    rest = {**view, "episode": {**episode, "sources": sources, "observations": None}}
    left = []
    for one in episode["observations"]:
        if (one["name"], one["source"]) in mutation.of:
            continue
        parents = [_place_free(told[parent]) if parent in told else None for parent in one["parents"]]
        shown = {**one, "id": None, "parents": parents}
        if mutation.of and one["source"] in mutation.sources:
            shown["version"] = None
        left.append(orjson.dumps(shown))
    return orjson.dumps(rest), left


def _place_free(observation: Mapping[str, Any]) -> tuple[Any, ...]:
    return observation["name"], observation["source"], observation["event_time_ms"], observation["origin"]


def _names(exposure: Exposure) -> set[str]:
    """Names under which an exposure is told, with its changes or without one of them."""
    return {exposure.field, *(change.text for change in exposure.changes if change.kind in _RENAMING and change.text)}


def _evidence(view: Mapping[str, Any]) -> bytes:
    return orjson.dumps((view["episode"]["observations"], view["episode"]["sources"]))


def _with(facts: Facts, place: int, exposure: Exposure) -> Facts:
    return replace(facts, exposures=(*facts.exposures[:place], exposure, *facts.exposures[place + 1 :]))


def _older(exposure: Exposure) -> Exposure:
    """The age is that of the change that dates it, where there is one."""
    if not any(change.kind in _DATED for change in exposure.changes):
        return replace(exposure, age_ms=exposure.age_ms + _OLDER_MS)
    dated = (replace(c, amount=c.amount + _OLDER_MS) if c.kind in _DATED else c for c in exposure.changes)
    return replace(exposure, changes=tuple(dated))


def _with_heirs(facts: Facts, exposure: Exposure) -> list[Exposure]:
    """An exposure, and all that is computed from it."""
    if exposure.memory:
        return [exposure]
    lost, heirs = {(exposure.field, exposure.source)}, [exposure]
    while more := [one for one in facts.exposures if one not in heirs and lost.intersection(one.parents)]:
        lost |= {(one.field, one.source) for one in more}
        heirs += more
    return heirs
