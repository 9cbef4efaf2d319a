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


class Named(Protocol):
    """What was said by an observation that an answer names."""

    @property
    def value(self) -> Scalar | None: ...

    @property
    def unit(self) -> str | None: ...


def repeats(named: Named, head: Observation, field: Field) -> bool:
    """Whether a source still says what an answer names: in the same unit, within the field's tolerance."""
    if named.value is None or head.value is None or type(named.value) is not type(head.value):
        return named.value is None and head.value is None
    return named.unit == head.unit and not differ(head.value, named.value, field)
