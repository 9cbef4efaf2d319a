"""Why an action was taken, in one or two sentences that an operator can act on (section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from xapp.governor import Findings, Rule
from xapp.model import Repair, Retry, Violation

_NEXT: Final = {
    "ESCALATE": "An operator must settle it.",
    "HOLD": "Newer evidence may release it.",
    "ABSTAIN": "Nothing was executed; the proposal needs another plan or other terms.",
}


def explain(
    rule: Rule,
    findings: Findings,
    violations: Sequence[Violation],
    repairs: Sequence[Repair],
    valid_until_ms: int | None,
    retry: Retry | None,
) -> str:
    """The explanation of a decision."""
    if rule.action == "APPLY":
        done = ", ".join(dict.fromkeys(f"{r.operator} {r.field}" for r in repairs))
        repaired = f" after repair ({done})" if done else ""
        return f"Every field the action rests on is supported{repaired}. Authority ends at {valid_until_ms}."
    told = [_told(v) for v in violations if v.blocking][:2]
    if not told:
        told = ["the proposer itself does not ask for APPLY"] if not findings.intended else ["the record is incomplete"]
    if findings.mixed is not None and rule.action == "ESCALATE":
        told.append(f"{findings.mixed[0]} and {findings.mixed[1]} fail independently")
    follow = _NEXT.get(rule.action, "")
    if rule.action == "HOLD" and "HOLD" in findings.asked:
        follow = "It may be released when that has passed."
    if retry is not None:
        follow = f"Ask {retry.source} again after {retry.after_ms} ms ({retry.left} attempts left)."
    return f"{'; '.join(told)}. {follow}".strip()


def _told(violation: Violation) -> str:
    place = violation.field or violation.constraint
    return f"{violation.code}{f' of {place}' if place else ''}: {violation.detail}"
