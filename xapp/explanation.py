"""Why an action was taken, in one or two sentences that an operator can act on (section 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from xapp.governor import SWITCHED, UNSUPPORTED, Findings, Rule, switched
from xapp.model import Repair, Retry, Switch, Violation

_NEXT: Final = {
    "ESCALATE": "An operator must settle it.",
    "HOLD": "Newer evidence would release it.",
    "ABSTAIN": "Nothing was executed; the proposal needs another plan or other terms.",
}
_SHOWN_MEMBERS: Final = 3


def explain(
    rule: Rule,
    findings: Findings,
    violations: Sequence[Violation],
    repairs: Sequence[Repair],
    valid_until_ms: int | None,
    retry: Retry | None,
    planned: Mapping[str, Any],
) -> str:
    """The explanation of a decision. `planned`: the rebuilt values of planned fields, `{"value", "unit"}` each."""
    if rule is SWITCHED and findings.switch is not None:
        return _held_back(findings.switch, planned)
    if rule is UNSUPPORTED and findings.support is not None:
        return f"The evidence is sound, but the network is not known well enough here: {findings.support.because}"
    if rule.action == "APPLY":
        done = ", ".join(dict.fromkeys(f"{r.operator} {r.field}" for r in repairs))
        repaired = f" after repair ({done})" if done else ""
        return f"Every field the action rests on is supported{repaired}. Authority ends at {valid_until_ms}."
    told = [v.told for v in violations if v.blocking][:2]
    if not told:
        told = ["the proposer itself does not ask for APPLY"] if not findings.intended else ["the record is incomplete"]
    if findings.mixed is not None and rule.action == "ESCALATE":
        told.append(f"{findings.mixed[0]} and {findings.mixed[1]} fail independently")
    follow = _NEXT.get(rule.action, "")
    if rule.action == "HOLD" and "HOLD" in findings.asked:
        follow = "It would be released once that has passed."
    if retry is not None:
        follow = f"Ask {retry.source} again after {retry.after_ms} ms ({retry.left} attempts left)."
    return f"{'; '.join(told)}. {follow}".strip()


def _held_back(switch: Switch, planned: Mapping[str, Any]) -> str:
    would = "APPLY would have been released: " + ", ".join(f"{name} = {_quantity(e)}" for name, e in planned.items())
    if switch.mode == "shadow":
        return f"Shadow mode: {would} ({switched(switch).detail})."
    follow = "What still waits is decided again when the switch is released."
    return f"Kill switch: {would} ({switched(switch).detail}). {follow}"


def _quantity(entry: Mapping[str, Any]) -> str:
    """A value and its unit; of one over many subjects the first members."""
    value, unit = entry["value"], f" {entry['unit']}" if entry["unit"] else ""
    if not isinstance(value, Mapping):
        return f"{_shown(value)}{unit}"
    members = [f"{member}: {_shown(one)}" for member, one in list(value.items())[:_SHOWN_MEMBERS]]
    if len(value) > _SHOWN_MEMBERS:
        members.append(f"and {len(value) - _SHOWN_MEMBERS} more")
    return f"{', '.join(members)}{unit}"


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
