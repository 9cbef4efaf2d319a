"""Check 7: the value lies within the field's domain."""

from typing import Any

from xapp.contract import Field
from xapp.integrity.fault import Fault


def check_domain(value: Any, field: Field) -> Fault | None:
    """`value` in the field's unit, a mapping of them included; the bounds are inclusive."""
    if field.type != "number":
        return None
    for number in value.values() if type(value) is dict else (value,):
        if field.min is not None and number < field.min:
            return Fault("out_of_range", f"{number:g} is below {field.min:g} {field.unit}")
        if field.max is not None and number > field.max:
            return Fault("out_of_range", f"{number:g} is above {field.max:g} {field.unit}")
    return None
