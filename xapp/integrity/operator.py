"""What an operator's answer settles (section 7): the ambiguities and disagreements that it names, and only those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from xapp.contract import Field, Member, normalise
from xapp.evidence.ledger import Ledger
from xapp.integrity.conflict import differ, disagreeing
from xapp.integrity.examination import Examination, remaining
from xapp.integrity.fault import Verdict
from xapp.model import Observation, Scalar, Violation
from xapp.plan import convert, unit_fault

SETTLEABLE: Final = frozenset({"ambiguous_schema", "ambiguous_unit", "conflict", "out_of_order"})
VERDICT: Final = "operator_verdict"  # the name of an answer about a whole proposal
DENIAL: Final = "deny"


def settling(
    member: Member,
    violations: Sequence[Violation],
    supported: bool,
    answers: Sequence[Observation],
    examination: Examination,
    limit_ms: int,
) -> Verdict | None:
    """The answer that stands in for a blocked member, if one names everything that blocks it.

    `supported`: whether some source does support it, so that only a disagreement blocks. Of each operator the newest
    word counts, as of a source, and one that fails a check settles nothing; of those the newest. Two of one event time
    that differ settle nothing. `limit_ms`: t + skew.
    """
    blocking = [v for v in violations if v.blocking and (not supported or v.code in SETTLEABLE)]
    if not blocking or any(v.code not in SETTLEABLE for v in blocking):
        return None
    said: dict[str, list[Observation]] = {}
    for o in answers:
        if o.event_time_ms <= limit_ms:
            said.setdefault(o.source, []).append(o)
    candidates: list[Verdict] = []
    for items in said.values():
        newest = max(o.event_time_ms for o in items)
        group = remaining([o for o in items if o.event_time_ms == newest])
        latest = max(o.ingest_time_ms for o in group)
        word = [examination.answer(o, member) for o in group if o.ingest_time_ms == latest]
        if all(v.fault is None for v in word):
            candidates += word
    if not candidates:
        return None
    newest = max(v.observation.event_time_ms for v in candidates)
    candidates = [v for v in candidates if v.observation.event_time_ms == newest]
    if disagreeing([(v.observation.id, v.value) for v in candidates], member.field):
        return None
    open_ids = {i for v in blocking for i in v.observations}
    naming = [v for v in candidates if open_ids and open_ids.issubset(v.observation.parents)]
    return min(naming, key=lambda v: v.observation.id, default=None)


def denial(ledger: Ledger, proposal_id: str) -> Observation | None:
    """An operator's denial of a proposal, the one with the smallest id. Whoever denies need prove nothing."""
    subject = f"proposal:{proposal_id}"
    found = (
        o
        for o in ledger.answers.values()
        if o.subject == subject and o.value == DENIAL and normalise(o.name) == VERDICT
    )
    return min(found, key=lambda o: o.id, default=None)


class Looked(Protocol):
    """An observation as an operator looked at it."""

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def subject(self) -> str | None: ...

    @property
    def value(self) -> Scalar | None: ...

    @property
    def unit(self) -> str | None: ...


def repeats(named: Looked, head: Observation, field: Field) -> bool:
    """Whether a source still says what an operator looked at: of the same, in the same unit, within the tolerance of
    the field, which is in the unit of the field.
    """
    if (named.source, named.subject, named.name, named.unit) != (head.source, head.subject, head.name, head.unit):
        return False
    if named.value is None or head.value is None or _kind(named.value) is not _kind(head.value):
        return named.value is None and head.value is None
    if field.type != "number" or _kind(head.value) is not float:
        return head.value == named.value
    said, seen = (_in_field(float(value), head.unit, field) for value in (head.value, named.value))
    if said is None or seen is None:
        return head.value == named.value  # what the tolerance is in this unit is not known
    return not differ(said, seen, field)


def _in_field(value: float, unit: str | None, field: Field) -> float | None:
    """The value in the field's unit; None where it has none."""
    if unit_fault(unit, field.unit)[0] is not None:
        return None
    try:
        return convert(value, unit, field.unit)
    except (ArithmeticError, ValueError):
        return None


def _kind(value: Scalar) -> type:
    """Numbers are of one kind: a source may say 12 and then 12.5."""
    return float if type(value) is int else type(value)
