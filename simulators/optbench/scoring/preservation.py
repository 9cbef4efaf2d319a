"""Clean-field preservation: what the proposer had right, and nothing had touched, must come out as it went in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulators.optbench.agents import Bundle
from simulators.optbench.model import Case
from simulators.optbench.scoring.feasibility import field_right
from simulators.optbench.scoring.terms import Terms, equal, terms


def clean_fields(case: Case) -> frozenset[str]:
    """The planned fields none of whose inputs was touched, however far up the expressions and the lineage.

    An observed field is touched where a change was made to what any source tells of it, a source of it is out, or a
    judge blocked it (eq. 7: what lies outside of the failed fields and their descendants is copied unchanged).
    """
    item, facts = case.sealed.item, case.sealed.facts
    fields = terms(item.contract)
    out = {outage.source for outage in facts.outages}
    touched = {exposure.field for exposure in facts.exposures if exposure.changes} | case.sealed.blocked
    touched |= {name for name, field in fields.items() if out & set(field.sources)}
    return frozenset(
        name
        for name, field in fields.items()
        if field.kind == "planned" and not touched & _ancestors(name, fields, item.lineage)
    )


def _ancestors(name: str, fields: Mapping[str, Terms], lineage: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    found: set[str] = set()
    ahead = [name]
    while ahead:
        for above in (*fields[(current := ahead.pop())].inputs, *lineage.get(current, ())):
            if above not in found:
                found.add(above)
                ahead.append(above)
    return frozenset(found)


def preserved(case: Case, bundle: Bundle) -> tuple[int, int]:
    """(kept, total): of the clean fields that the proposal had right, those that the bundle has with its value.

    Equal after unit conversion. (0, 0) where the method had no proposal.
    """
    if bundle.proposed is None:
        return 0, 0
    before, after, item = bundle.proposed.plan, bundle.plan, case.sealed.item
    fields = terms(item.contract)
    right = [name for name in sorted(clean_fields(case)) if field_right(item, name, before)]
    return sum(_kept(fields[name], before[name], after.get(name)) for name in right), len(right)


def _kept(field: Terms, before: Mapping[str, Any], after: Any) -> bool:
    if not isinstance(after, Mapping):
        return False
    old = field.read(before.get("value"), before.get("unit"))
    new = field.read(after.get("value"), after.get("unit"))
    return old is not None and new is not None and equal(old, new)
