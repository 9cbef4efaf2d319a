"""WCHW, wireless knowledge and calculation: a question that a formula tool answers."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final, Literal

from simulators.optbench.base.channel import cell_load
from simulators.optbench.base.formula import Formula, Parameter
from simulators.optbench.base.formulas import FORMULAS
from simulators.optbench.base.lookup import Lookup, compute
from simulators.optbench.contracts import wchw_contract
from simulators.optbench.model import BaseItem

ANSWER_DIGITS: Final = 4
"""Significant digits of a generated item's reference answer."""


def wchw_item(
    item_id: str, origin: Literal["file", "generated"], question: str, found: Lookup, answer: float
) -> BaseItem:
    """The item whose question `found` answers; `answer` is the reference, in the formula's unit, as rounded.

    The plan's reference is the tool's own value: the contract states that the answer is the result.
    """
    return BaseItem(
        task="WCHW",
        item_id=item_id,
        origin=origin,
        question=question,
        input={},
        contract=wchw_contract(found.formula),
        observed={**found.parameters, "result": found.result, "load": cell_load(item_id)},
        lineage={"result": tuple(found.parameters)},
        plan={"answer": found.result},
        answer={"value": answer, "unit": found.formula.unit},
    )


def generate_wchw(rng: random.Random, number: int) -> BaseItem:
    """A drawn item, named `generated-NUMBER`; drawn again where the values have no result other than 0."""
    result = None
    while result is None:
        formula = rng.choice(_TABLE)
        parameters = {p.name: rng.choice(p.draws) for p in formula.parameters}
        result = compute(formula, parameters)
    question = worded(formula, parameters)
    answer = float(f"{result:.{ANSWER_DIGITS}g}")
    return wchw_item(f"generated-{number}", "generated", question, Lookup(formula, parameters, result), answer)


_TABLE: Final = tuple(FORMULAS.values())


def worded(formula: Formula, parameters: Mapping[str, float]) -> str:
    """Our own wording of the question, with these values."""
    return formula.question.format(**{p.name: _quantity(p, parameters[p.name]) for p in formula.parameters})


def _quantity(parameter: Parameter, value: float) -> str:
    unit = parameter.spoken or ("" if parameter.unit == "1" else parameter.unit)
    return f"{value:.10g} {unit}".rstrip()
