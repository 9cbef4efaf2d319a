"""`wirelessops answer`: an operator's answer to an ESCALATE."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import orjson
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from pydantic import ValidationError

from streams.escalations import NotSettled, answer_to
from streams.headers import cloud_event
from streams.kafka_config import kafka_security
from streams.lifecycle import stop_all
from streams.logs import log_to_stderr
from streams.messages import AnswerMessage
from streams.reading import read_to
from streams.settings import SettingsError
from streams.tailing import connect_at_end
from streams.topics import NoRegion, region_of, topics
from xapp.signing import EnvelopeError, open_envelope

_LOOK_BACK: Final = 20_000
_CONNECT_S: Final = 15.0
_FETCH_WAIT_MS: Final = 20


def answer(
    bootstrap_servers: str, proposal_id: str, verdict: str, *, region: str, operator: str, reason: str,
    settles: Sequence[str], prefix: str, kafka_config: Path | None,
) -> int:  # fmt: skip
    """Find the newest record of the proposal, and answer it. Exit codes: 0 answered; 1 nothing to answer, or the answer
    does not fit; 2 a bad option, or no Kafka.
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
    bootstrap_servers: str, names: Any, security: Any, region: str, proposal_id: str, given: dict[str, Any]
) -> AnswerMessage:
    async with asyncio.timeout(_CONNECT_S):
        producer, consumer, partition = await connect_at_end(
            bootstrap_servers, region, (names.answers,), (names.records,), _FETCH_WAIT_MS, security
        )
    try:
        tp = TopicPartition(names.records, partition)
        begin = (await consumer.beginning_offsets([tp]))[tp]
        end = (await consumer.end_offsets([tp]))[tp]
        record = None
        async for message in read_to(consumer, {tp: end}, {tp: max(begin, end - _LOOK_BACK)}):
            if message.key == region.encode():
                record = _record_of(message.value, proposal_id) or record
        if record is None:
            raise NotSettled(f"no record of proposal {proposal_id!r} in region {region!r}")
        message = answer_to(record, at_ms=time.time_ns() // 1_000_000, **given)
        headers = cloud_event(
            event_id=message.answer_id, source=f"/wirelessops/operator/{message.operator}", kind=message.format,
            time_ms=message.at_ms,
        )  # fmt: skip
        value = orjson.dumps(message.model_dump())
        await producer.send_and_wait(names.answers, value, key=region.encode(), partition=partition, headers=headers)
        return message
    finally:
        await stop_all(consumer.stop(), producer.stop(), timeout_s=5.0)


def _record_of(value: bytes | None, proposal_id: str) -> dict[str, Any] | None:
    try:
        found = orjson.loads(open_envelope(value or b"").payload)
    except (EnvelopeError, orjson.JSONDecodeError):
        return None
    return found if isinstance(found, dict) and found.get("proposal_id") == proposal_id else None


def _complain(text: str, code: int) -> int:
    sys.stderr.write(text + "\n")
    return code
