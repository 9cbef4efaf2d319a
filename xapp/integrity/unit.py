"""Check 6: the unit converts to the contract's. Gives the value in that unit."""

from typing import Any

from xapp.contract import Field
from xapp.integrity.fault import Fault
from xapp.model import Observation
from xapp.plan import convert, unit_fault


def check_unit(observation: Observation, field: Field) -> tuple[Fault | None, Any]:
    """(fault, value): a number as float in the field's unit; other types as they are."""
    code, detail = unit_fault(observation.unit, field.unit)
    if code is not None:
        return Fault(code, detail), None
    value: Any = observation.value
    if field.type != "number":
        return None, value
    try:
        return None, convert(value, observation.unit, field.unit)
    except (ArithmeticError, ValueError) as error:
        return Fault("ambiguous_unit", f"{value} {observation.unit} has no value in {field.unit}: {error}"), None
