"""Label-only mutations (paper, section III-D): what is hidden changes, and neither a view nor a decision may."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import cycle
from typing import Any, Final

import orjson

from simulators.optbench.audit.deciding import Bench, Methods
from simulators.optbench.audit.subject import Check, Subject
from simulators.optbench.methods import METHODS
from simulators.optbench.model import DOMAINS, REFERENCES, BaseItem, Facts, Sealed
from simulators.optbench.realisation import FAMILIES

_NAMES: Final = tuple(family.name for family in FAMILIES)


def _stress_name(sealed: Sealed) -> Sealed:
    """Told of the next family, and of the next domain."""
    at = _NAMES.index(sealed.family) if sealed.family in _NAMES else -1
    domain = DOMAINS[(DOMAINS.index(sealed.domain) + 1) % len(DOMAINS)]
    return replace(sealed, family=_NAMES[(at + 1) % len(_NAMES)], domain=domain)


def _reference_action(sealed: Sealed) -> Sealed:
    return replace(sealed, reference=REFERENCES[(REFERENCES.index(sealed.reference) + 1) % len(REFERENCES)])


def _materiality(sealed: Sealed) -> Sealed:
    """What was said to block does not, and the other fields do."""
    return replace(sealed, blocked=sealed.blocked ^ frozenset(sealed.item.observed))


def _gold_answer(sealed: Sealed) -> Sealed:
    """Another answer and plan, of an item that is called otherwise."""
    item = sealed.item
    return replace(
        sealed,
        item=replace(item, item_id=f"not {item.item_id}", answer=_falsified(item.answer), plan=_falsified(item.plan)),
    )


def _hidden_order(sealed: Sealed) -> Sealed:
    """All that the sealed part lists, listed backwards."""
    facts = Facts(
        tuple(replace(one, changes=one.changes[::-1]) for one in reversed(sealed.facts.exposures)),
        sealed.facts.outages[::-1],
    )
    return replace(sealed, facts=facts, item=_backwards(sealed.item))


LABELS: Final[Mapping[str, Callable[[Sealed], Sealed]]] = {
    "stress name": _stress_name,
    "reference action": _reference_action,
    "materiality flag": _materiality,
    "gold answer": _gold_answer,
    "hidden order": _hidden_order,
}
"""Kind of label → the same episode under another. `materiality flag`: which critical fields are said to be blocked."""


def label_mutations(subject: Subject, methods: Methods = METHODS) -> Check:
    """Every episode under every kind of `LABELS`, rendered anew: the view stays byte for byte, in its order of members.

    So does what each method asks and decides, with the sealed part as it is mutated beside the view: each episode under
    one kind in turn, or under all of them at once.
    """
    bench = Bench(methods)
    failures: list[str] = []
    turns = {**LABELS, "labels": _all_at_once}
    for case, kind_in_turn in zip(subject.cases, cycle(turns), strict=False):
        view = orjson.dumps(case.view)
        for kind, mutate in LABELS.items():
            if orjson.dumps(subject.render(mutate(case.sealed)).view) != view:
                failures.append(f"{case.episode_id}: its {kind} shows in the view")
        decided = bench.decide(case.view, case.sealed)
        mutated = turns[kind_in_turn](case.sealed)
        for name, found in bench.decide(subject.render(mutated).view, mutated).items():
            if found.prompts != decided[name].prompts:
                failures.append(f"{case.episode_id}: its {kind_in_turn} shows in a prompt of {name}")
            if found.bundle != decided[name].bundle:
                failures.append(f"{case.episode_id}: its {kind_in_turn} changes what {name} decides")
    views, decisions = len(LABELS) * len(subject.cases), len(methods) * len(subject.cases)
    return Check(
        "label-mutations",
        f"label-only mutations: {views} of {len(LABELS)} kinds, and {decisions} decisions of {len(methods)} methods "
        f"under one kind or all; {len(failures)} show in a view, a prompt or a decision",
        {"mutations": views, "decisions": decisions, "methods": len(methods), "shown": len(failures)},
        tuple(failures),
    )


def _all_at_once(sealed: Sealed) -> Sealed:
    for mutate in LABELS.values():
        sealed = mutate(sealed)
    return sealed


def _falsified(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _falsified(one) for key, one in value.items()}
    if isinstance(value, bool):
        return not value
    return 1.5 * value + 1 if isinstance(value, int | float) else f"not {value}"


def _backwards(item: BaseItem) -> BaseItem:
    return replace(
        item,
        observed=dict([*item.observed.items()][::-1]),
        lineage=dict([*item.lineage.items()][::-1]),
        plan=dict([*item.plan.items()][::-1]),
        answer=dict([*item.answer.items()][::-1]),
    )
