"""`wirelessops answer`: an operator's answer to an ESCALATE."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import orjson
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from pydantic import ValidationError

from streams.commands.printing import printable
from streams.escalations import NotSettled, answer_to, write_answer
from streams.kafka_config import kafka_security
from streams.kafka_security import KafkaSecurity
from streams.lifecycle import stop_all
from streams.logs import log_to_stderr
from streams.messages import AnswerMessage
from streams.reading import read_to
from streams.settings import SettingsError
from streams.tailing import connect_at_end
from streams.topics import NoRegion, Topics, region_of, topics
from xapp.signing import EnvelopeError, open_envelope

_LOOK_BACK: Final = 20_000
_CONNECT_S: Final = 15.0
_FETCH_WAIT_MS: Final = 20


def answer(
    bootstrap_servers: str, proposal_id: str, verdict: str, *, region: str, operator: str, reason: str,
    settles: Sequence[str], prefix: str, kafka_config: Path | None,
) -> int:  # fmt: skip
    """Find the newest record of the proposal, and answer it. Exit codes: 0 answered; 1 nothing to answer (no record, or
    the proposal has its final decision), or the answer does not fit; 2 a bad option, or no Kafka.
    """
    log_to_stderr()
    try:
        names, security = topics(prefix), kafka_security(kafka_config)
        region_of(region.encode())
        said = asyncio.run(
            _answer(bootstrap_servers, names, security, region, proposal_id, {
                "answer_id": uuid4().hex, "verdict": verdict, "operator": operator, "reason": reason,
                "said": settles,
            })
        )  # fmt: skip
    except NotSettled as error:
        return _complain(str(error), 1)
    except ValidationError as error:
        return _complain("; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()), 2)
    except (SettingsError, NoRegion, ValueError, TypeError, KafkaError, TimeoutError, OSError) as error:
        return _complain(str(error) or type(error).__name__, 2)
    print(orjson.dumps(said.model_dump()).decode())
    return 0


async def _answer(
    bootstrap_servers: str, names: Topics, security: KafkaSecurity, region: str, proposal_id: str, given: dict[str, Any]
) -> AnswerMessage:
    async with asyncio.timeout(_CONNECT_S):
        producer, consumer, partition = await connect_at_end(
            bootstrap_servers, region, (names.answers,), (names.records, names.control), _FETCH_WAIT_MS, security
        )
    try:
        held = [TopicPartition(topic, partition) for topic in (names.records, names.control)]
        begins, ends = await consumer.beginning_offsets(held), await consumer.end_offsets(held)
        record = None
        async for message in read_to(consumer, ends, {tp: max(begins[tp], ends[tp] - _LOOK_BACK) for tp in held}):
            if message.key != region.encode():
                continue
            if message.topic == names.records:
                record = _of(_in_envelope(message.value), proposal_id) or record
            elif (decision := _of(message.value, proposal_id)) is not None and decision.get("final") is True:
                raise NotSettled(_final(decision))
        if record is None:
            raise NotSettled(_no_record(proposal_id, region, begins[held[0]]))
        answer = answer_to(record, at_ms=time.time_ns() // 1_000_000, **given)
        await write_answer(producer, names, region, partition, answer)
        return answer
    finally:
        await stop_all(consumer.stop(), producer.stop(), timeout_s=5.0)


def _in_envelope(value: bytes | None) -> bytes | None:
    try:
        return open_envelope(value or b"").payload
    except EnvelopeError:
        return None


def _of(value: bytes | None, proposal_id: str) -> dict[str, Any] | None:
    """The decision in a message, where it is one on the proposal."""
    try:
        found = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) and found.get("proposal_id") == proposal_id else None


def _no_record(proposal_id: str, region: str, first: int) -> str:
    """`first`: the offset of the first record that the broker holds."""
    said = f"no record of proposal {proposal_id!r} in region {region!r}"
    if not first:
        return said
    return (
        f"{said}: the broker holds none before offset {first}. The embedded broker keeps about 5 MB a partition, and "
        "there the guard's page (run --web-port) still answers what waits; a real Kafka keeps records as long as the "
        "topic's retention"
    )


def _final(decision: Mapping[str, Any]) -> str:
    action, explanation = decision.get("action"), decision.get("explanation")
    return f"it no longer waits for an answer: its final decision is {action}: {explanation}"


def _complain(text: str, code: int) -> int:
    sys.stderr.write("\n".join(map(printable, text.split("\n"))) + "\n")
    return code
