"""`out_of_order`: an older event of a source that overwrites a newer value of it (section 3)."""

from __future__ import annotations

from collections.abc import Sequence

from xapp.contract import Member
from xapp.integrity.conflict import differ
from xapp.integrity.examination import Examination, remaining
from xapp.integrity.fault import Verdict
from xapp.model import Observation, Violation


def out_of_order(
    items: Sequence[Observation], head: Verdict, member: Member, examination: Examination
) -> list[tuple[Violation, Verdict]]:
    newest = head.observation
    assert newest.version is not None
    groups: dict[int, list[Observation]] = {}
    for o in items:
        if o.event_time_ms < newest.event_time_ms:
            groups.setdefault(o.event_time_ms, []).append(o)
    found: list[tuple[Violation, Verdict]] = []
    for event in sorted(groups):
        for o in remaining(groups[event]):
            if o.version is None or o.version <= newest.version:
                continue
            verdict = examination.examine(o, member)
            if verdict.fault is None:
                agrees = not differ(verdict.value, head.value, member.field)
                detail = f"'{o.id}' is older than '{newest.id}' but has the higher version {o.version}"
                ids = tuple(sorted((o.id, newest.id)))
                violation = Violation("out_of_order", member.field.name, None, ids, agrees, False, detail)
                found.append((violation, verdict))
    return found
