"""Reading a proposal (section 1) and its plan (section 4): which names mean which fields, what each entry says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from xapp import units
from xapp.contract import BindingError, Contract, Field, Resolution, normalise
from xapp.model import ACTIONS, Proposal
from xapp.times import time_fault

_REQUIRED: Final = ("proposal_id", "proposer", "created_at_ms", "control_key", "plan")
_OPTIONAL: Final = ("intent", "deadline_ms", "contract_ref", "bindings", "expected", "evidence")
_TYPES: Final[dict[str, tuple[type, ...]]] = {"number": (float, int), "string": (str,), "boolean": (bool,)}


class PlanError(ValueError):
    """A malformed proposal: `path` is the JSON path of the fault."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: {reason}")


@dataclass(frozen=True, slots=True)
class PlanValue:
    """What a plan says of one field. `value` is in the contract's unit, None where there is none.

    `name`: as written; `written`: the entry's value and unit; `fault` and `detail`: code and reason where it does not
    stand; `converted`: whether its unit was another than the contract's.
    """

    name: str
    written: Mapping[str, Any]
    value: Any
    fault: str | None = None
    detail: str = ""
    converted: bool = False


def read_proposal_document(raw: Mapping[str, Any], contract: Contract, now_ms: int) -> Proposal:
    """Read a proposal against its contract. Raises PlanError with the place."""
    for key in _REQUIRED:
        if key not in raw:
            raise PlanError(f"$.proposal.{key}", "is required")
    for key in raw:
        if key not in _REQUIRED and key not in _OPTIONAL:
            raise PlanError(f"$.proposal.{key}", "unknown key")
    for key in ("proposal_id", "proposer", "control_key"):
        if not isinstance(raw[key], str) or not raw[key]:
            raise PlanError(f"$.proposal.{key}", "must be a non-empty string")
    intent = raw.get("intent", "APPLY")
    if intent not in ACTIONS:
        raise PlanError("$.proposal.intent", "must be one of " + ", ".join(ACTIONS))
    created = _time(raw["created_at_ms"], "created_at_ms")
    if created > now_ms + contract.max_clock_skew_ms:
        raise PlanError("$.proposal.created_at_ms", f"lies {created - now_ms} ms after the decision")
    deadline = raw.get("deadline_ms")
    if deadline is not None:
        _time(deadline, "deadline_ms")
    reference = raw.get("contract_ref")
    if reference is not None and reference != contract.contract_id:
        raise PlanError("$.proposal.contract_ref", f"names {reference!r}, the contract is '{contract.contract_id}'")
    bindings = _bindings({} if raw.get("bindings") is None else raw["bindings"])
    try:
        resolution = contract.resolve(bindings)
    except BindingError as error:
        raise PlanError(f"$.proposal.bindings.{error.name}", str(error)) from error
    if resolution.control_key is not None and raw["control_key"] != resolution.control_key:
        raise PlanError("$.proposal.control_key", f"must be '{resolution.control_key}' under these bindings")
    _check_plan(raw["plan"], contract, resolution)
    expected = raw.get("expected")
    if expected is not None:
        _check_entries(expected, "expected")
    evidence = () if raw.get("evidence") is None else raw["evidence"]
    if not isinstance(evidence, (list, tuple)) or not all(isinstance(e, str) for e in evidence):
        raise PlanError("$.proposal.evidence", "must be a list of observation ids")
    return Proposal(
        proposal_id=raw["proposal_id"],
        proposer=raw["proposer"],
        created_at_ms=created,
        control_key=raw["control_key"],
        plan=raw["plan"],
        intent=intent,
        deadline_ms=deadline,
        contract_ref=reference,
        bindings=bindings,
        expected=expected,
        evidence=tuple(evidence),
    )


def _time(value: Any, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise PlanError(f"$.proposal.{key}", "must be an integer")
    fault = time_fault(value)
    if fault is not None:
        raise PlanError(f"$.proposal.{key}", fault)
    return value


def _bindings(raw: Any) -> dict[str, str | tuple[str, ...]]:
    if not isinstance(raw, dict):
        raise PlanError("$.proposal.bindings", "must be an object")
    found: dict[str, str | tuple[str, ...]] = {}
    for name, value in raw.items():
        if isinstance(value, list):
            if not value or not all(isinstance(v, str) for v in value) or len(set(value)) < len(value):
                raise PlanError(f"$.proposal.bindings.{name}", "must be a non-empty list of distinct strings")
            found[name] = tuple(value)
        elif isinstance(value, str):
            found[name] = value
        else:
            raise PlanError(f"$.proposal.bindings.{name}", "must be a string or a list of strings")
    return found


def _check_entries(entries: Any, key: str) -> None:
    if not isinstance(entries, dict):
        raise PlanError(f"$.proposal.{key}", "must be an object")
    for name, entry in entries.items():
        path = f"$.proposal.{key}.{name}"
        if not isinstance(entry, dict):
            raise PlanError(path, "must be an object with value and unit")
        for part in entry:
            if part not in ("value", "unit"):
                raise PlanError(f"{path}.{part}", "unknown key")
        if not isinstance(entry.get("unit"), (str, type(None))):
            raise PlanError(f"{path}.unit", "must be a string")


def _check_plan(plan: Any, contract: Contract, resolution: Resolution) -> None:
    _check_entries(plan, "plan")
    written: dict[str, str] = {}
    for name, entry in plan.items():
        fields = contract.by_name.get(normalise(name), ())
        if not fields:
            raise PlanError(f"$.proposal.plan.{name}", "no field of the contract has this name")
        for field in fields:
            if field in written:
                raise PlanError(f"$.proposal.plan.{name}", f"names '{field}', and so does '{written[field]}'")
            written[field] = name
            members, value = resolution.keys.get(field), entry.get("value")
            if members is not None and isinstance(value, dict) and (strangers := value.keys() - set(members)):
                raise PlanError(f"$.proposal.plan.{name}.value.{min(strangers)}", "is no member of the bindings")


def plan_values(contract: Contract, resolution: Resolution, plan: Mapping[str, Any]) -> dict[str, PlanValue]:
    """Field → what the plan says of it, for every field that the plan names."""
    found: dict[str, PlanValue] = {}
    for name, entry in plan.items():
        fields = contract.by_name[normalise(name)]
        for field in fields:
            if len(fields) > 1:
                detail = f"'{name}' may mean " + " or ".join(fields)
                found[field] = PlanValue(name, entry, None, "ambiguous_schema", detail)
                continue
            try:
                found[field] = entry_value(name, entry, contract.fields[field], resolution.keys.get(field))
            except Exception as error:  # an error inside a check blocks like a failure of that check
                found[field] = PlanValue(name, entry, None, "incomplete_plan", f"error inside the check: {error!r}")
    return found


def entry_value(name: str, entry: Mapping[str, Any], field: Field, members: tuple[str, ...] | None) -> PlanValue:
    """One entry in the field's unit; a mapping where the field is one over `members`."""
    raw, unit = entry.get("value"), entry.get("unit") or None
    if raw is None:
        return PlanValue(name, entry, None, "incomplete_plan", "has no value")
    if (members is not None) != isinstance(raw, dict):
        wanted = "a mapping over the bindings" if members is not None else f"a {field.type}"
        return PlanValue(name, entry, None, "incomplete_plan", f"is not {wanted}")
    for value in raw.values() if members is not None else (raw,):
        if not of_type(value, field.type):
            return PlanValue(name, entry, None, "incomplete_plan", f"is not a {field.type}")
    if members is not None and (missing := [m for m in members if m not in raw]):
        return PlanValue(name, entry, None, "incomplete_plan", f"has no value for '{missing[0]}'")
    fault, detail = unit_fault(unit, field.unit)
    if fault:
        return PlanValue(name, entry, None, fault, detail)
    converted = unit is not None and unit != field.unit
    try:
        value = {m: _converted(raw[m], unit, field) for m in members} if members else _converted(raw, unit, field)
    except (ArithmeticError, ValueError) as error:
        return PlanValue(name, entry, None, "ambiguous_unit", f"does not convert to {field.unit}: {error}")
    return PlanValue(name, entry, value, converted=converted)


def of_type(value: Any, kind: str) -> bool:
    """True where a JSON value is of the contract's type: a boolean is no number."""
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def unit_fault(unit: str | None, wanted: str) -> tuple[str | None, str]:
    """Section 3, check 6, for a value exposed in `unit` where the contract says `wanted`: (code or None, detail)."""
    if unit == wanted or (unit is None and wanted == units.DIMENSIONLESS):
        return None, ""
    if unit is None:
        return "ambiguous_unit", f"has no unit, {wanted} is needed"
    if not units.known(unit):
        return "unknown_unit", f"has the unknown unit '{unit}'"
    if units.converter(unit, wanted) is None:
        return "ambiguous_unit", f"is in {unit}, which is no {wanted}"
    return None, ""


def _converted(value: Any, unit: str | None, field: Field) -> Any:
    return convert(value, unit, field.unit) if field.type == "number" else value


def convert(value: float, unit: str | None, wanted: str) -> float:
    """A number in the contract's unit. Raises ValueError or ArithmeticError where it has none."""
    if unit is None or unit == wanted:
        return float(value)
    function = units.converter(unit, wanted)
    assert function is not None
    result = function(value)
    if result - result != 0.0:
        raise ValueError("not finite")
    return result
