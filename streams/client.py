"""A client for xApps: propose and await the decision, ask for views and as-of reads. Plain Kafka underneath."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self
from uuid import uuid4

import orjson
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from streams.headers import cloud_event
from streams.kafka_config import PLAINTEXT
from streams.kafka_security import KafkaSecurity
from streams.lifecycle import stop_all
from streams.tailing import connect_at_end
from streams.topics import DEFAULT_PREFIX, topics

PROPOSAL_FORMAT: Final = "wirelessops.proposal/1"
QUERY_FORMAT: Final = "wirelessops.query/1"
FETCH_WAIT_MS: Final = 5
_STOP_S: Final = 5.0

Answer = dict[str, Any]
Binding = str | Sequence[str]

_WAITS: Final[Mapping[str, str]] = {"ESCALATE": "waits for a person", "RETRY": "waits for a source"}
"""Action of an interim decision → what happens then; a HOLD waits for what its explanation says."""

class NoAnswer(TimeoutError):
    """The guard gave no answer in time: nothing may be executed. The text says what it said last, if anything.

    `interim`: the newest decision on the way, None where there was none.
    """

    def __init__(self, text: str, interim: Answer | None = None) -> None:
        super().__init__(text)
        self.interim = interim


class QueryRefused(ValueError):
    """The guard answered that the question does not fit its contracts; the text has the place and the reason."""


class GuardClient:
    """One proposer in one region. Use as an async context manager; safe for many concurrent calls of one event loop.

    `name` goes into proposals as `proposer`; `clock` gives Unix ms; `fetch_wait_ms`: how long a fetch waits at the
    broker. Entering raises `aiokafka.errors.KafkaError` or TimeoutError where Kafka does not answer within
    `connect_timeout_s`.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        region: str,
        name: str,
        prefix: str = DEFAULT_PREFIX,
        clock: Callable[[], int] | None = None,
        connect_timeout_s: float = 15.0,
        fetch_wait_ms: int = FETCH_WAIT_MS,
        security: KafkaSecurity = PLAINTEXT,
    ) -> None:
        self.region = region
        self.name = name
        self._topics = topics(prefix)
        self._clock = clock or (lambda: time.time_ns() // 1_000_000)
        self._connect_timeout_s = connect_timeout_s
        self._fetch_wait_ms = fetch_wait_ms
        self._bootstrap_servers = bootstrap_servers
        self._security = security
        self._key = region.encode()
        self._partition = 0
        self._waiting: dict[tuple[str, str], asyncio.Future[Answer]] = {}
        self._interim: dict[str, Callable[[Answer], None]] = {}
        self._said: dict[str, Answer] = {}
        self._producer: AIOKafkaProducer | None = None
        self._consumer: AIOKafkaConsumer | None = None
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                await self._connect()
        except BaseException:
            await self._close()
            raise
        self._reading = asyncio.create_task(self._read(), name=f"decisions for {self.name}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._close()

    async def propose(
        self,
        *,
        contract_ref: str,
        control_key: str,
        plan: Mapping[str, Any],
        bindings: Mapping[str, Binding] | None = None,
        deadline_ms: int | None = None,
        timeout_s: float = 5.0,
        intent: str = "APPLY",
        expected: Mapping[str, Any] | None = None,
        evidence: Sequence[str] = (),
        proposal_id: str | None = None,
        created_at_ms: int | None = None,
        interim: Callable[[Answer], None] | None = None,
    ) -> Answer:
        """Propose, and await the final decision (`wirelessops.decision/1` as it stands on `control`).

        `deadline_ms` and `created_at_ms` are Unix ms, `plan` maps fields to `{"value", "unit"}`. While evidence is
        missing or an operator is asked, the guard waits until the deadline; where there is none, about 2 s for evidence
        and ten minutes for the operator (its settings `hold_ms` and `escalation_ms`). `interim` is told of each
        decision on the way. Raises NoAnswer after `timeout_s`; the guard may still decide, so treat that as a refusal
        and let the deadline end it.
        """
        identity = proposal_id or uuid4().hex
        document: dict[str, Any] = {
            "proposal_id": identity,
            "proposer": self.name,
            "contract_ref": contract_ref,
            "created_at_ms": self._clock() if created_at_ms is None else created_at_ms,
            "control_key": control_key,
            "intent": intent,
            "deadline_ms": deadline_ms,
            "bindings": _written(bindings),
            "plan": plan,
            "evidence": list(evidence),
        }
        if expected is not None:
            document["expected"] = expected
        if interim is not None:
            self._interim[identity] = interim
        try:
            return await self._ask(
                self._topics.proposals, self._topics.control, PROPOSAL_FORMAT, identity, document, timeout_s
            )
        finally:
            self._interim.pop(identity, None)

    async def as_of(
        self,
        *,
        name: str,
        subject: str | None = None,
        source: str | None = None,
        event_time_ms: int | None = None,
        ingest_time_ms: int | None = None,
        timeout_s: float = 5.0,
    ) -> list[Answer]:
        """The newest observation of each source at `event_time_ms`, as it was known at `ingest_time_ms`.

        A time of None means now. Raises NoAnswer, QueryRefused.
        """
        query = {
            "kind": "as_of",
            "name": name,
            "subject": subject,
            "source": source,
            "event_time_ms": event_time_ms,
            "ingest_time_ms": ingest_time_ms,
        }
        found: list[Answer] = (await self._query(query, timeout_s))["observations"]
        return found

    async def view(
        self, *, contract_ref: str, bindings: Mapping[str, Binding] | None = None, timeout_s: float = 5.0
    ) -> Answer:
        """The normalised view of a contract now: per field what would be admitted. Raises NoAnswer, QueryRefused."""
        filled = _written(bindings)
        query = {"kind": "view", "contract_ref": contract_ref, "bindings": filled}
        view: Answer = (await self._query(query, timeout_s))["view"]
        return view

    async def _query(self, query: Mapping[str, Any], timeout_s: float) -> Answer:
        identity = uuid4().hex
        document = {"format": QUERY_FORMAT, "query_id": identity, **query}
        found = await self._ask(self._topics.queries, self._topics.views, QUERY_FORMAT, identity, document, timeout_s)
        if found["error"] is not None:
            raise QueryRefused(found["error"])
        return found

    async def _ask(
        self, topic: str, answers: str, kind: str, identity: str, document: Mapping[str, Any], timeout_s: float
    ) -> Answer:
        if self._producer is None or self._reading is None:
            raise RuntimeError("the client is not open: use `async with`")
        if self._reading.done():
            raise RuntimeError("the client lost its connection") from self._reading.exception()
        if (answers, identity) in self._waiting:
            raise ValueError(f"{identity!r} is being asked already")
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[answers, identity] = future
        headers = cloud_event(
            event_id=identity, source=f"/wirelessops/client/{self.name}", kind=kind, time_ms=self._clock()
        )
        try:
            async with asyncio.timeout(timeout_s):
                await self._producer.send_and_wait(
                    topic, orjson.dumps(document), key=self._key, partition=self._partition, headers=headers
                )
                return await future
        except TimeoutError as error:
            said = self._said.get(identity)
            text = f"no answer on {answers} to {identity} within {timeout_s:g} s{_last_word(said)}"
            raise NoAnswer(text, said) from error
        finally:
            del self._waiting[answers, identity]
            self._said.pop(identity, None)

    async def _connect(self) -> None:
        names = self._topics
        self._producer, self._consumer, self._partition = await connect_at_end(
            self._bootstrap_servers,
            self.region,
            (names.proposals, names.queries),
            (names.control, names.views),
            self._fetch_wait_ms,
            self._security,
        )

    async def _read(self) -> None:
        assert self._consumer is not None
        try:
            async for message in self._consumer:
                self._settle(message.topic, message.value)
        except BaseException as error:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(RuntimeError(f"the client lost its connection: {error}"))
            raise

    def _settle(self, topic: str, value: bytes | None) -> None:
        identity_key = "proposal_id" if topic == self._topics.control else "query_id"
        try:
            document = orjson.loads(value or b"")
            identity = str(document[identity_key])
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return
        if topic == self._topics.control and document.get("final") is False:
            if (topic, identity) in self._waiting and document.get("region") == self.region:
                self._said[identity] = document
                if identity in self._interim:
                    self._interim[identity](document)
            return
        future = self._waiting.get((topic, identity))
        if future is not None and not future.done() and document.get("region") == self.region:
            future.set_result(document)

    async def _close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        consumer, producer = self._consumer, self._producer
        self._consumer = self._producer = None
        await stop_all(*(client.stop() for client in (consumer, producer) if client is not None), timeout_s=_STOP_S)


def _written(bindings: Mapping[str, Binding] | None) -> dict[str, Any]:
    """Bindings as JSON; what is neither a string nor a list goes as it is, for the guard to name the place."""
    return {name: list(to) if isinstance(to, (list, tuple)) else to for name, to in (bindings or {}).items()}


def _last_word(said: Answer | None) -> str:
    """What an interim decision says, as the end of a sentence."""
    if said is None:
        return ""
    action, until_ms = str(said.get("action")), said.get("until_ms")
    ends = ""
    if isinstance(until_ms, int):
        ends = f" until {datetime.fromtimestamp(until_ms / 1000, UTC).isoformat(timespec='seconds')}"
    return f"; its last word: {action}, {_WAITS.get(action, 'waits')}{ends}: {said.get('explanation')}"
