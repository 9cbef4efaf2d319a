"""Whether a released plan is complete and feasible (paper, section III-C): the plan's part of S.

WCNS and WCMSA need a plan that complies with the contract, WCHW the reference answer alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from simulators.optbench.model import BaseItem
from simulators.optbench.scoring.answers import same_calculation
from simulators.optbench.scoring.quantities import convert, number
from simulators.optbench.scoring.terms import Terms, terms

Reason = Literal[
    "missing",  # no entry under the field's own name
    "unreadable",  # no value of the field's type in a unit of its dimension
    "out_of_range",  # outside the contract's min or max
    "mismatch",  # further from the reference plan than the contract's tolerance
    "wrong_answer",  # of WCHW: 1 % or more off the reference answer
]
ANSWER: Final = "answer"
"""The planned field of WCHW, and the name under which a shortfall of the bundle's answer is told."""
_ANSWER_SHARE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What keeps a plan from being complete and feasible, and in which field."""

    reason: Reason
    field: str


def shortfalls(item: BaseItem, plan: Mapping[str, Any], answer: Any = None) -> tuple[Shortfall, ...]:
    """All that is wrong with `plan` (field → `{"value", "unit"}`) as a release for `item`; empty where it may go out.

    Names are the contract's own: what is released is addressed to the network. Any unit of the field's dimension is
    read. For WCHW a plan without `answer` is judged by the bundle's `answer`. Never raises for what a plan holds.
    """
    fields = terms(item.contract)
    if item.task == "WCHW":
        if ANSWER in plan and ANSWER in fields:
            found = _calculation(item, fields[ANSWER], plan[ANSWER])
        else:
            found = None if same_calculation(answer, item.answer) else "wrong_answer"
        return () if found is None else (Shortfall(found, ANSWER),)
    planned = {name: _planned(item, name, field, plan) for name, field in fields.items() if field.kind == "planned"}
    return tuple(Shortfall(reason, name) for name, reason in planned.items() if reason is not None)


def field_right(item: BaseItem, name: str, plan: Mapping[str, Any]) -> bool:
    """Whether the planned field `name` of `plan` is one that may go out for `item`, whatever the other fields are."""
    field = terms(item.contract)[name]
    if item.task == "WCHW" and name == ANSWER:
        return name in plan and _calculation(item, field, plan[name]) is None
    return _planned(item, name, field, plan) is None


def _planned(item: BaseItem, name: str, field: Terms, plan: Mapping[str, Any]) -> Reason | None:
    if name not in plan:
        return "missing"
    entry = plan[name]
    value = field.read(entry.get("value"), entry.get("unit")) if isinstance(entry, Mapping) else None
    if value is None:
        return "unreadable"
    if not field.within(value):
        return "out_of_range"
    return None if field.near(value, item.plan[name]) else "mismatch"


def _calculation(item: BaseItem, field: Terms, entry: Any) -> Reason | None:
    """As a planned field is judged, but against the reference answer, and by WirelessBench's 1 %."""
    value = field.read(entry.get("value"), entry.get("unit")) if isinstance(entry, Mapping) else None
    if not isinstance(value, int | float):
        return "unreadable"
    expected = number(item.answer.get("value"))
    in_terms = None if expected is None else convert(expected, item.answer.get("unit") or "1", field.unit)
    if in_terms is None:  # the contract counts in a unit that the answer's text does not give: the same value there
        in_terms = float(item.plan[ANSWER])
    return None if value == in_terms or abs(value - in_terms) < _ANSWER_SHARE * abs(in_terms) else "wrong_answer"
