"""The JSON form of a control: an item of an episode's `controls`, a decision's `lease` (section 7)."""

from __future__ import annotations

from typing import Any, Final

from xapp.model import OUTCOMES, AppliedControl
from xapp.times import time_fault

_KEYS: Final = frozenset(AppliedControl.__dataclass_fields__)
_TEXTS: Final = ("control_key", "decision_id", "proposal_id")


class ControlError(ValueError):
    """A document that is no control: `path` is the JSON path of the fault."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: {reason}")


def read_control(item: Any, path: str = "$") -> AppliedControl:
    """A control from its JSON form. Raises ControlError with the place.

    `control_key`, `values`, `granted_at_ms`, and one of `decision_id` and `proposal_id` are required.
    """
    if not isinstance(item, dict):
        raise ControlError(path, "must be an object")
    for key in item:
        if key not in _KEYS:
            raise ControlError(f"{path}.{key}", "unknown key")
    given = {key: value for key, value in item.items() if value is not None or key not in ("decision_id", "bindings")}
    for key in _TEXTS:
        if not isinstance(given.get(key, "-"), str) or not given.get(key, "-"):
            raise ControlError(f"{path}.{key}", "must be a non-empty string")
    if "proposal_id" in given:
        given.setdefault("decision_id", given["proposal_id"])
    elif "decision_id" in given:
        given["proposal_id"] = given["decision_id"]
    for key in (*_TEXTS, "values", "granted_at_ms"):
        if key not in given:
            raise ControlError(f"{path}.{key}", "is required")
    for key in ("proposer", "contract_id"):
        if not isinstance(given.get(key, ""), str):
            raise ControlError(f"{path}.{key}", "must be a string")
    if not isinstance(given.get("merged_with"), (str, type(None))):
        raise ControlError(f"{path}.merged_with", "must be a string or null")
    given.setdefault("outcome", "granted" if given.get("applied_at_ms") is None else "applied")
    if given["outcome"] not in OUTCOMES:
        raise ControlError(f"{path}.outcome", "must be one of " + ", ".join(OUTCOMES))
    _time(given["granted_at_ms"], f"{path}.granted_at_ms")
    for key in ("lease_until_ms", "ack_until_ms", "applied_at_ms"):
        if given.get(key) is not None:
            _time(given[key], f"{path}.{key}")
    if given["outcome"] in ("granted", "unacknowledged", "refused") and given.get("applied_at_ms") is not None:
        raise ControlError(f"{path}.outcome", "is that of a control which was not applied, but it has an applied_at_ms")
    within = given.get("effect_within_ms")
    if within is not None and (isinstance(within, bool) or not isinstance(within, int) or not 0 <= within < 2**53):
        raise ControlError(f"{path}.effect_within_ms", "must be an integer, not negative, or null")
    coupled = given.get("coupled", [])
    if not isinstance(coupled, list) or not all(isinstance(key, str) for key in coupled):
        raise ControlError(f"{path}.coupled", "must be a list of control keys")
    return AppliedControl(
        **{
            **given,
            "values": _values(given["values"], f"{path}.values"),
            "bindings": _bindings(given.get("bindings", {}), f"{path}.bindings"),
            "coupled": tuple(coupled),
        }
    )


def _time(value: Any, path: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ControlError(path, "must be an integer")
    fault = time_fault(value)
    if fault is not None:
        raise ControlError(path, fault)


def _values(items: Any, path: str) -> dict[str, Any]:
    if not isinstance(items, dict):
        raise ControlError(path, "must be an object")
    for name, entry in items.items():
        if not isinstance(entry, dict) or "value" not in entry:
            raise ControlError(f"{path}.{name}", "must be an object with value and unit")
        for key in entry:
            if key not in ("value", "unit"):
                raise ControlError(f"{path}.{name}.{key}", "unknown key")
        if not isinstance(entry.get("unit"), (str, type(None))):
            raise ControlError(f"{path}.{name}.unit", "must be a string")
        value = entry["value"]
        for part in value.values() if isinstance(value, dict) and value else (value,):
            if not isinstance(part, (float, int, str, bool)):
                raise ControlError(
                    f"{path}.{name}.value", "must be a number, a string, a boolean, or a mapping of them"
                )
    return {name: {"value": entry["value"], "unit": entry.get("unit")} for name, entry in items.items()}


def _bindings(items: Any, path: str) -> dict[str, str | tuple[str, ...]]:
    if not isinstance(items, dict):
        raise ControlError(path, "must be an object")
    found: dict[str, str | tuple[str, ...]] = {}
    for name, value in items.items():
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            found[name] = tuple(value)
        elif isinstance(value, str):
            found[name] = value
        else:
            raise ControlError(f"{path}.{name}", "must be a string or a list of strings")
    return found
