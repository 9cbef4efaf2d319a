"""Evidence mutations, the positive control: what was done to the evidence must show in it, or the audit is blind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from simulators.optbench.audit.subject import Check, Subject
from simulators.optbench.model import Exposure, Facts

_DATED: Final = ("aged", "repeated")
_OLDER_MS: Final = 7


def evidence_mutations(subject: Subject) -> Check:
    """Every fact of every episode changed, one at a time: ledger or sources must differ.

    Facts are that a source tells a field, how old it is, each change of it, and each outage and its terms. Compared are
    observations and sources alone: a name or a time that differed would only say that something leaks.
    """
    blind: list[str] = []
    mutated = 0
    for case in subject.cases:
        shown = _evidence(case.view)
        for what, facts in mutations(case.sealed.facts):
            mutated += 1
            if _evidence(subject.render(replace(case.sealed, facts=facts)).view) == shown:
                blind.append(f"{case.episode_id}: {what} is not to be seen in its evidence")
    return Check(
        "evidence-mutations",
        f"evidence mutations: {mutated} facts changed, of which {len(blind)} do not show in the evidence",
        {"mutations": mutated, "unseen": len(blind)},
        tuple(blind),
    )


def mutations(facts: Facts) -> Iterator[tuple[str, Facts]]:
    """(what is changed, the facts with that changed), one fact at a time."""
    for place, exposure in enumerate(facts.exposures):
        where = f"'{exposure.field}' at {exposure.source}"
        yield f"the age of {where}", _with(facts, place, _older(exposure))
        yield f"that {where} is told", _without(facts, place)
        for change in exposure.changes:
            rest = tuple(one for one in exposure.changes if one is not change)
            yield f"'{change.kind}' of {where}", _with(facts, place, replace(exposure, changes=rest))
    for outage in facts.outages:
        others = tuple(one for one in facts.outages if one is not outage)
        yield f"the outage of {outage.source}", replace(facts, outages=others)
        later = replace(outage, retry_after_ms=outage.retry_after_ms + 1)
        yield f"the terms of {outage.source}", replace(facts, outages=(*others, later))


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


def _without(facts: Facts, place: int) -> Facts:
    """Without an exposure, and without all that is computed from it, which nobody could then tell."""
    gone = facts.exposures[place]
    if gone.memory:
        return replace(facts, exposures=(*facts.exposures[:place], *facts.exposures[place + 1 :]))
    lost, left = {(gone.field, gone.source)}, [one for one in facts.exposures if one is not gone]
    while heirs := [one for one in left if lost.intersection(one.parents)]:
        lost |= {(one.field, one.source) for one in heirs}
        left = [one for one in left if one not in heirs]
    return replace(facts, exposures=tuple(left))
