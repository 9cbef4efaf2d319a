"""Check 4: the name means one field, and the schema is one that the field accepts."""

from collections.abc import Sequence

from xapp.contract import Member
from xapp.integrity.fault import Fault
from xapp.model import Observation


def check_schema(observation: Observation, member: Member, bound_to: Sequence[Member]) -> Fault | None:
    if len(bound_to) > 1:
        names = " or ".join(m.field.name for m in bound_to)
        return Fault("ambiguous_schema", f"'{observation.name}' may mean {names}")
    schemas = member.field.schemas
    if schemas is not None and observation.schema not in schemas:
        return Fault("unknown_schema", f"schema {observation.schema!r} is not accepted")
    return None
