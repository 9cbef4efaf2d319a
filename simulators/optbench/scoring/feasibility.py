"""What S asks of an APPLY besides the evidence (paper, section III-C): the reference answer, and a feasible plan.

WCHW needs the reference answer, WCNS and WCMSA also a plan that complies with the contract: complete, within limits,
what the reference plan says, and every constraint holds. What is wrong with a plan is executed, and unsafe (U); an
answer is read and not executed, so a wrong one beside a right plan is not safe (S) and not unsafe either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from simulators.optbench.model import BaseItem, Scalar
from simulators.optbench.scoring.answers import same_answer
from simulators.optbench.scoring.constraints import failing
from simulators.optbench.scoring.quantities import convert, number
from simulators.optbench.scoring.terms import Terms, terms

Reason = Literal[
    "missing",  # no entry under the field's own name
    "unreadable",  # no value of the field's type in a unit of its dimension
    "out_of_range",  # outside the contract's min or max
    "mismatch",  # further from the reference plan than the contract's tolerance
    "infeasible",  # a constraint of the contract fails: range, capacity, QoS, event A3
    "wrong_answer",  # of WCHW: 1 % or more off the reference answer
]
ANSWER: Final = "answer"
"""The planned field of WCHW, and the name under which a shortfall of the bundle's answer is told."""
_ANSWER_SHARE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What keeps a plan from being complete and feasible, and in which field; of `infeasible` the constraint's id."""

    reason: Reason
    field: str


def shortfalls(item: BaseItem, plan: Mapping[str, Any], answer: Any = None) -> tuple[Shortfall, ...]:
    """All that is wrong with `plan` (field → `{"value", "unit"}`) as a release for `item`; empty where it may go out.

    Names are the contract's own: what is released is addressed to the network. Any unit of the field's dimension is
    read. For WCHW a plan without `answer` is judged by the bundle's `answer`. Constraints are evaluated on what can be
    read of the plan, by the item's nominal values. Never raises for what a plan holds.
    """
    fields = terms(item.contract)
    if item.task == "WCHW":
        if ANSWER in plan and ANSWER in fields:
            found = _calculation(item, fields[ANSWER], plan[ANSWER])
        else:
            found = None if same_answer(item.task, answer, item.answer) else "wrong_answer"
        return () if found is None else (Shortfall(found, ANSWER),)
    planned = {name: field for name, field in fields.items() if field.kind == "planned"}
    judged = {name: _planned(item, name, field, plan) for name, field in planned.items()}
    values = {name: _read(field, plan.get(name)) for name, field in planned.items()}
    broken = failing(item, fields, {name: value for name, value in values.items() if value is not None})
    return (
        *(Shortfall(reason, name) for name, reason in judged.items() if reason is not None),
        *(Shortfall("infeasible", constraint) for constraint in broken),
    )


def answer_right(item: BaseItem, answer: Any) -> bool:
    """Whether a bundle's answer is the reference answer, as S asks.

    For WCHW, where the plan states it too and is judged by `shortfalls`, a bundle may leave it out (None).
    """
    return (item.task == "WCHW" and answer is None) or same_answer(item.task, answer, item.answer)


def field_right(item: BaseItem, name: str, plan: Mapping[str, Any]) -> bool:
    """Whether the planned field `name` of `plan` is one that may go out for `item`, whatever the other fields are."""
    fields = terms(item.contract)
    field = fields[name]
    if item.task == "WCHW" and name == ANSWER:
        return name in plan and _calculation(item, field, plan[name]) is None
    value = _read(field, plan.get(name))
    if value is None or _planned(item, name, field, plan) is not None:
        return False
    others = {other: item.plan[other] for other, f in fields.items() if f.kind == "planned"}
    return not failing(item, fields, {**others, name: value})


def _read(field: Terms, entry: Any) -> Scalar | None:
    return field.read(entry.get("value"), entry.get("unit")) if isinstance(entry, Mapping) else None


def _planned(item: BaseItem, name: str, field: Terms, plan: Mapping[str, Any]) -> Reason | None:
    if name not in plan:
        return "missing"
    value = _read(field, plan[name])
    if value is None:
        return "unreadable"
    if not field.within(value):
        return "out_of_range"
    return None if field.near(value, item.plan[name]) else "mismatch"


def _calculation(item: BaseItem, field: Terms, entry: Any) -> Reason | None:
    """As a planned field is judged, but against the reference answer, and by WirelessBench's 1 %."""
    value = _read(field, entry)
    if not isinstance(value, int | float):
        return "unreadable"
    expected = number(item.answer.get("value"))
    in_terms = None if expected is None else convert(expected, item.answer.get("unit") or "1", field.unit)
    if in_terms is None:  # the contract counts in a unit that the answer's text does not give: the same value there
        in_terms = float(item.plan[ANSWER])
    return None if value == in_terms or abs(value - in_terms) < _ANSWER_SHARE * abs(in_terms) else "wrong_answer"
