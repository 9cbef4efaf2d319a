"""The proposer's plan: what of it can be read, and what it says in the contract's terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from xapp.contract import Contract, normalise
from xapp.plan import PlanValue, plan_values


def readable_plan(plan: Mapping[str, Any], contract: Contract) -> dict[str, Any]:
    """The entries of a plan that the engine can read, as written; never raises.

    One entry that it would call malformed would turn the whole episode into ABSTAIN, whatever the evidence says. Such
    an entry says nothing of any field, so it is left out: a name that no field has, what is no object or no JSON value,
    a second name for a field (its own name goes before an alias, then the first written stands). Of an entry only value
    and unit are taken; a unit that is no text is none. What is then missing, or faulty in its value or unit, is for the
    engine to find.
    """
    found: dict[str, Any] = {}
    named: set[str] = set()
    for name in sorted(plan, key=lambda written: written not in contract.fields):
        entry = plan[name]
        fields = contract.by_name.get(normalise(name), ())
        if not fields or named.intersection(fields) or not isinstance(entry, Mapping):
            continue
        unit = entry.get("unit")
        read = {"value": entry.get("value"), "unit": unit if isinstance(unit, str) else None}
        try:
            orjson.dumps({name: read})
        except (TypeError, RecursionError):
            continue
        found[name] = read
        named.update(fields)
    return found


def written_plan(plan: Mapping[str, Any], contract: Contract) -> dict[str, PlanValue]:
    """Field → what a plan says of it, in the contract's unit where it has one."""
    return plan_values(contract, contract.resolve({}), readable_plan(plan, contract))


def normalised_plan(plan: Mapping[str, Any], contract: Contract) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A plan in the contract's names and units where its entries have such, and the renames and conversions done.

    Nothing is recomputed: what cannot be converted stays as written, under the field's name.
    """
    found: dict[str, Any] = {}
    repairs: list[dict[str, Any]] = []
    for name, said in written_plan(plan, contract).items():
        f = contract.fields[name]
        found[name] = dict(said.written) if said.value is None else {"value": said.value, "unit": f.unit}
        if said.name != name:
            repairs.append(_repair("rename", name, said.name, name))
        if said.converted:
            repairs.append(_repair("convert_unit", name, dict(said.written), found[name]))
    return found, repairs


def _repair(operator: str, name: str, before: Any, after: Any) -> dict[str, Any]:
    return {"operator": operator, "field": name, "from": before, "to": after, "support": []}
