"""An operator's answer to an ESCALATE, made from its record: what is disputed, and what settles it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streams.messages import AnswerMessage, Settled
from xapp.integrity.operator import SETTLEABLE


class NotSettled(ValueError):
    """The answer does not fit the escalation; the text says why, and what is disputed."""


def disputes(record: Mapping[str, Any]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Of a decision with its full record: each disputed field, and the observations in dispute."""
    held = {o["id"]: o for o in record["record"]["episode"]["observations"]}
    found: dict[str, list[Mapping[str, Any]]] = {}
    for violation in record["violations"]:
        if violation["blocking"] and violation["field"] and violation["code"] in SETTLEABLE:
            ids = violation["observations"]
            found.setdefault(violation["field"], []).extend(held[i] for i in ids if i in held)
    return list(found.items())


def told(record: Mapping[str, Any]) -> str:
    """What is disputed, a line an observation."""
    return "\n".join(
        f"{field}: {o['value']} {o['unit'] or ''} from {o['source']} ({o['id']})"
        for field, observations in disputes(record)
        for o in observations
    )


def settle(record: Mapping[str, Any], said: Sequence[str]) -> list[Settled]:
    """What `FIELD=VALUE[:UNIT]` settles of an escalation. Raises NotSettled."""
    open_fields = dict(disputes(record))
    found = []
    for each in said:
        field, separator, given = each.partition("=")
        text, _, unit = given.partition(":")
        if not separator or not text:
            raise NotSettled(f"{each!r}: a field is settled as FIELD=VALUE or FIELD=VALUE:UNIT")
        if field not in open_fields:
            raise NotSettled(f"{field!r} is not disputed; disputed: {', '.join(open_fields) or 'nothing to settle'}")
        by_subject: dict[str | None, list[str]] = {}
        for observation in open_fields[field]:
            by_subject.setdefault(observation["subject"], []).append(observation["id"])
        for subject, ids in by_subject.items():
            observations = list(dict.fromkeys(ids))
            of = {o["unit"] for o in open_fields[field] if o["id"] in observations}
            said_in = unit or (of.pop() if len(of) == 1 else None)  # the unit that all in dispute share
            found.append(
                Settled(field=field, subject=subject, value=_value(text), unit=said_in, observations=observations)
            )
    return found


def answer_to(
    record: Mapping[str, Any], *, answer_id: str, verdict: str, operator: str, reason: str, at_ms: int,
    said: Sequence[str],
) -> AnswerMessage:  # fmt: skip
    """The answer. Raises NotSettled where an approval settles nothing, or a denial settles something."""
    if record["action"] != "ESCALATE":
        raise NotSettled(f"the guard said {record['action']}: only an ESCALATE waits for an operator")
    if verdict == "deny" and said:
        raise NotSettled("a denial settles nothing")
    if verdict == "approve" and not disputes(record):
        raise NotSettled(f"nothing here is for an operator to settle, only to deny: {record['explanation']}")
    if verdict == "approve" and not said:
        raise NotSettled(f"an approval says which value holds, --settle FIELD=VALUE[:UNIT]:\n{told(record)}")
    return AnswerMessage.model_validate(
        {
            "answer_id": answer_id,
            "decision_id": record["decision_id"],
            "proposal_id": record["proposal_id"],
            "verdict": verdict,
            "operator": operator,
            "reason": reason,
            "at_ms": at_ms,
            "settles": [settled.model_dump() for settled in settle(record, said)],
        }
    )


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
