"""Reading what a backbone says. A reply is untrusted text: whatever it holds, reading it never raises."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from simulators.optbench.agents import RawProposal
from simulators.optbench.model import REFERENCES

ACTIONS: Final = (*REFERENCES, "ABSTAIN")
"""What a proposal may name."""
MAX_CHARACTERS: Final = 65_536
MAX_DEPTH: Final = 12
_MAX_OBJECTS: Final = 128
"""How many places are tried: each costs at most one pass over the rest of the text."""

_ACTION: Final = re.compile(rf"\b(?:{'|'.join(ACTIONS)})\b", re.IGNORECASE)
_BEFORE_ACTION: Final = re.compile(r"\W*(?:action\W+)?", re.IGNORECASE)
_OBJECT: Final = re.compile(r'\{\s*"')
_NUMBER: Final = r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+|\d\.)?(?:[eE][+-]?\d{1,3})?"
_QUANTITY: Final = re.compile(rf"\s*(?P<number>{_NUMBER})(?:\s*(?P<unit>[A-Za-z%µμΩ°]\S{{0,15}}))?\s*")
_PROPOSAL_KEYS: Final = frozenset({"action", "plan"})
_MAX_NUMBER: Final = 1e300


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A reply that holds no proposal, and why."""

    reason: str


class _Refused(ValueError):
    """What is JSON by its looks, but must not be taken for a proposal."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Refused("a key is there twice")
    return found


def _constant(name: str) -> Any:
    raise _Refused(f"{name} is no number")


def _bounded_float(text: str) -> float:
    value = float(text)
    if not abs(value) <= _MAX_NUMBER:
        raise _Refused("a number is too large")
    return value


def _bounded_int(text: str) -> int:
    if len(text) > 300:
        raise _Refused("a number is too large")
    return int(text)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_float=_bounded_float, parse_int=_bounded_int
)


def _depth(value: Any) -> int:
    """Levels of nesting, without recursion."""
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return depth


def _proposals(text: str) -> list[dict[str, Any]]:
    """The JSON objects in `text` that name an action or a plan, in order. Raises _Refused, RecursionError."""
    found: list[dict[str, Any]] = []
    end = tried = 0
    for match in _OBJECT.finditer(text):
        if match.start() < end:
            continue
        tried += 1
        if tried > _MAX_OBJECTS:
            raise _Refused("too many braces")
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except json.JSONDecodeError:
            continue
        if _depth(value) > MAX_DEPTH:
            raise _Refused("nested too deep")
        if value.keys() & _PROPOSAL_KEYS:
            found.append(value)
    return found


def _action(value: Any) -> str | None:
    """The action that `value` starts with, if it names no other."""
    if not isinstance(value, str):
        return None
    before = _BEFORE_ACTION.match(value)
    first = _ACTION.match(value, before.end() if before else 0)
    named = {name.upper() for name in _ACTION.findall(value)}
    return first.group().upper() if first and len(named) == 1 else None


def _quantity(text: str) -> tuple[float | int, str | None] | None:
    """The number, and the unit behind it, that `text` is; None where it is anything else."""
    match = _QUANTITY.fullmatch(text) if len(text) <= 64 else None
    if match is None:
        return None
    digits = match["number"].replace(",", "")
    try:
        value = float(digits)
    except ValueError:  # the pattern lets an empty mantissa through
        return None
    if not math.isfinite(value) or abs(value) > _MAX_NUMBER:
        return None
    return (int(digits) if re.fullmatch(r"[+-]?\d+", digits) else value), match["unit"]


def _unit(value: Any) -> str | None:
    if isinstance(value, str):
        return value.strip() or None
    return "1" if value == 1 and not isinstance(value, bool) else None


def _entry(written: Any) -> dict[str, Any]:
    """`{"value", "unit"}` of a plan entry: an object, or a single value such as 18 or "18 MHz"."""
    value, unit = (
        (written.get("value"), _unit(written.get("unit"))) if isinstance(written, dict) else (written, None)
    )
    if isinstance(value, str):
        quantity = _quantity(value)
        # a unit in the text that contradicts the one beside it is nothing to choose from
        if quantity is not None and (quantity[1] is None or unit in (None, quantity[1])):
            value, unit = quantity[0], quantity[1] or unit
    return {"value": None if isinstance(value, dict | list) else value, "unit": unit}


def _answer(written: Any) -> Any:
    """The answer with numbers for numbers written as text; free text stays text."""
    if not isinstance(written, dict):
        return written
    if "value" in written:
        return {**written, **_entry(written)}
    return {key: _number(value) if isinstance(value, str) else _answer(value) for key, value in written.items()}


def _number(text: str) -> Any:
    quantity = _quantity(text)
    return quantity[0] if quantity is not None and quantity[1] is None else text


def _claim(written: Any) -> dict[str, Any] | None:
    """`{"state", "observation"}` as claimed; None where no state is."""
    state = written.get("state") if isinstance(written, dict) else written
    state = state.strip().lower() if isinstance(state, str) else None
    if state not in ("supported", "blocked"):
        return None
    observation = written.get("observation") if isinstance(written, dict) else None
    return {"state": state, "observation": observation if isinstance(observation, str) else None}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def read_reply(text: str) -> RawProposal | Unreadable:
    """The proposal in a backbone's reply. Never raises.

    The JSON object may stand alone, in a code fence or amid prose; what a model thinks aloud up to `</think>` is not
    read. Of several objects the last is the proposal; if they name different actions, or one names several, its
    action is None. A plan entry may be a single value ("18 MHz", 18), a number may be written as text; unknown keys
    are ignored. NaN, Infinity, doubled keys, and input beyond `MAX_CHARACTERS` or `MAX_DEPTH` are refused whole.
    """
    if len(text) > MAX_CHARACTERS:
        return Unreadable("too long")
    try:
        proposals = _proposals(text.rpartition("</think>")[2])
    except RecursionError:
        return Unreadable("nested too deep")
    except _Refused as refusal:
        return Unreadable(str(refusal))
    if not proposals:
        return Unreadable("no JSON object with an action or a plan")
    last = proposals[-1]
    actions = {_action(p["action"]) for p in proposals if "action" in p}
    return RawProposal(
        action=actions.pop() if len(actions) == 1 else None,
        answer=_answer(last.get("answer")),
        plan={field: _entry(written) for field, written in _mapping(last.get("plan")).items()},
        fields={
            field: claim
            for field, written in _mapping(last.get("fields")).items()
            if (claim := _claim(written)) is not None
        },
    )
