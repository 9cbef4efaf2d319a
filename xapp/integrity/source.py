"""Check 1: the source is one that the field lists, filled with the bindings."""

from xapp.contract import Member
from xapp.integrity.fault import Fault
from xapp.model import Observation


def check_source(observation: Observation, member: Member) -> Fault | None:
    if observation.source in member.sources:
        return None
    return Fault("unknown_source", f"'{observation.source}' is no source of {member.field.name}")
