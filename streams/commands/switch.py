"""`wirelessops switch`: an operator's switch, written to every partition that it is for."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Final
from uuid import uuid4

import orjson
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from pydantic import ValidationError

from streams.kafka_config import kafka_security
from streams.kafka_security import KafkaSecurity
from streams.lifecycle import stop_all
from streams.logs import log_to_stderr
from streams.messages import SwitchMessage
from streams.settings import SettingsError
from streams.switching import Written, write_switch
from streams.topics import NoRegion, Topics, region_of, topics
from xapp.contract_loading import document_errors

_CONNECT_S: Final = 15.0
_STOP_S: Final = 5.0


def switch(
    bootstrap_servers: str, mode: str, *, operator: str, reason: str, region: str | None, prefix: str,
    kafka_config: Path | None,
) -> int:  # fmt: skip
    """Write a switch, and print it with where it stands. Exit codes: 0 written to every partition that it is for; 1 not
    known to be written to all; 2 a bad option, or no Kafka.
    """
    try:
        names, security = topics(prefix), kafka_security(kafka_config)
        message = SwitchMessage.model_validate(
            {
                "switch_id": uuid4().hex,
                "mode": mode,
                "operator": operator,
                "reason": reason,
                "at_ms": time.time_ns() // 1_000_000,
                "region": None if region is None else region_of(region.encode()),
            }
        )
        log_to_stderr()
        written = asyncio.run(_write(bootstrap_servers, names, security, message))
    except ValidationError as error:
        return _complain("; ".join(f"{path}: {reason}" for path, reason in document_errors(error)), 2)
    except (SettingsError, NoRegion, ValueError, KafkaError, TimeoutError, OSError) as error:
        return _complain(str(error) or type(error).__name__, 2)
    told = {"switch": message.model_dump(), "partitions": written.partitions, "failed": written.failed}
    print(orjson.dumps(told).decode())
    if written.failed:
        where = ", ".join(map(str, written.failed))
        return _complain(f"not known to be written to partitions {where}: {written.why}", 1)
    return 0


async def _write(bootstrap_servers: str, names: Topics, security: KafkaSecurity, message: SwitchMessage) -> Written:
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap_servers, linger_ms=0, enable_idempotence=True, **security.aiokafka_options()
    )
    try:
        async with asyncio.timeout(_CONNECT_S):
            await producer.start()
            partitions = await producer.partitions_for(names.answers)
        return await write_switch(producer, names, sorted(partitions), message)
    finally:
        await stop_all(producer.stop(), timeout_s=_STOP_S)


def _complain(text: str, code: int) -> int:
    sys.stderr.write(text + "\n")
    return code
