"""Check 5: there is a value, the source vouches for it, and it is of the field's type."""

from xapp.contract import Field
from xapp.integrity.fault import Fault
from xapp.model import Observation
from xapp.plan import of_type


def check_quality(observation: Observation) -> Fault | None:
    if observation.quality != "good":
        return Fault("no_value", f"quality is {observation.quality}")
    return Fault("no_value", "the source gave no value") if observation.value is None else None


def check_type(observation: Observation, field: Field) -> Fault | None:
    if of_type(observation.value, field.type):
        return None
    return Fault("unknown_schema", f"{observation.value!r} is no {field.type}")
