"""An operator's answer to an ESCALATE: made from its record (pure: what is disputed, and what settles it), written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson
from aiokafka import AIOKafkaProducer

from streams.headers import cloud_event
from streams.messages import AnswerMessage, Seen, Settled
from streams.topics import Topics
from xapp.integrity.operator import SETTLEABLE

_FORM: Final = "a field is settled as FIELD=VALUE or FIELD@SUBJECT=VALUE:UNIT"


class NotSettled(ValueError):
    """The answer does not fit the escalation; the text says why, and what is disputed."""


class Dispute(NamedTuple):
    """What one answer settles: a field of one subject, and its observations in dispute, each once."""

    field: str
    subject: str | None
    observations: tuple[Mapping[str, Any], ...]

    @property
    def name(self) -> str:
        """How an answer names it: FIELD@SUBJECT."""
        return self.field if self.subject is None else f"{self.field}@{self.subject}"


def disputes(record: Mapping[str, Any]) -> list[Dispute]:
    """What is disputed in a decision with its full record. A field of several subjects is a dispute of each."""
    held = {o["id"]: o for o in record["record"]["episode"]["observations"]}
    found: dict[tuple[str, str | None], dict[str, Mapping[str, Any]]] = {}
    for violation in record["violations"]:
        if violation["blocking"] and violation["field"] and violation["code"] in SETTLEABLE:
            for observation in (held[i] for i in violation["observations"] if i in held):
                of = (violation["field"], observation["subject"])
                found.setdefault(of, {})[observation["id"]] = observation
    return [Dispute(*of, tuple(each.values())) for of, each in found.items()]


def told(record: Mapping[str, Any]) -> str:
    """What is disputed, a line an observation."""
    return "\n".join(
        f"{dispute.name}: {o['value']} {o['unit'] or ''} from {o['source']} ({o['id']})"
        for dispute in disputes(record)
        for o in dispute.observations
    )


def settle(record: Mapping[str, Any], said: Sequence[str]) -> list[Settled]:
    """What `FIELD[@SUBJECT]=VALUE[:UNIT]` settles of an escalation. Raises NotSettled.

    Without a subject the field must be disputed of one alone: what holds of one is nothing said of another.
    """
    found = []
    for each in said:
        dispute, given = _aimed(disputes(record), each)
        text, _, unit = given.partition(":")
        if not text:
            raise NotSettled(f"{each!r}: {_FORM}")
        units = {o["unit"] for o in dispute.observations}
        said_in = unit or (units.pop() if len(units) == 1 else None)  # the unit that all in dispute share
        named = [o["id"] for o in dispute.observations]
        seen = [Seen.model_validate(o) for o in dispute.observations]
        found.append(
            Settled(
                field=dispute.field, subject=dispute.subject, value=_value(text), unit=said_in, observations=named,
                seen=seen,
            )
        )  # fmt: skip
    return found


def _aimed(open_: Sequence[Dispute], said: str) -> tuple[Dispute, str]:
    """The dispute that a text names, and what it says of it."""
    for dispute in open_:
        if said.startswith(f"{dispute.name}="):
            return dispute, said[len(dispute.name) + 1 :]
    field, separator, given = said.partition("=")
    if not separator:
        raise NotSettled(f"{said!r}: {_FORM}")
    of_field = [dispute for dispute in open_ if dispute.field == field]
    if not of_field:
        names = ", ".join(dispute.name for dispute in open_)
        raise NotSettled(f"{field!r} is not disputed; disputed: {names or 'nothing to settle'}")
    if len(of_field) > 1:
        raise NotSettled(f"{field!r} is disputed of several, say of which: {', '.join(d.name for d in of_field)}")
    return of_field[0], given


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
        raise NotSettled(f"an approval says which value holds, --settle FIELD[@SUBJECT]=VALUE[:UNIT]:\n{told(record)}")
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


async def write_answer(
    producer: AIOKafkaProducer, topics: Topics, region: str, partition: int, message: AnswerMessage
) -> None:
    """Write an answer to `answers`, where proposals of its region are; done once Kafka has it.

    `partition`: the region's. Raises `aiokafka.errors.KafkaError`; a write that is cancelled may stand all the same.
    """
    headers = cloud_event(
        event_id=message.answer_id, source=f"/wirelessops/operator/{message.operator}", kind=message.format,
        time_ms=message.at_ms,
    )  # fmt: skip
    value = orjson.dumps(message.model_dump())
    await producer.send_and_wait(topics.answers, value, key=region.encode(), partition=partition, headers=headers)


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
