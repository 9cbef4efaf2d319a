"""One message of each kind, as it goes over the topics: a slice's bandwidth is asked for, decided and executed.

What a guard writes is made by the guard's own code from what it read, so that an example cannot say what no guard
would. Nothing here reads a clock or a key of anybody: the examples are signed with the key of 32 zero bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from streams.answering import answer, read_query
from streams.asking import Asked
from streams.deciding import Outcome, Read, RegionState, Resume, Stamp, read_proposal_bytes
from streams.guard_release import Release
from streams.headers import attributes, cloud_event
from streams.left_open import Left, LeftOpen
from streams.messages import AnswerMessage, Evidence, OutcomeMessage, SwitchMessage
from streams.publishing import Outgoing
from streams.settings import GuardSettings
from streams.status import PartitionStatus, SourceView
from streams.switching import Kept
from xapp.chain import Chain
from xapp.contracts import shipped
from xapp.signing import Signer

T_MS: Final = 1_790_000_000_000
REGION: Final = "north"
PARTITION: Final = 2
_SETTINGS: Final = {"bootstrap_servers": "localhost:9092", "guard_name": "w1"}
_GNB: Final = "e2:gnb-du-1"
_SLICE: Final = "cell:1/slice:1"

REPORT: Final[Mapping[str, Any]] = {
    "format": "wirelessops.telemetry/1",
    "report_id": f"{_GNB}/42",
    "source": _GNB,
    "event_time_ms": T_MS - 80,
    "version": 42,
    "schema": "kpm/3",
    "subject": _SLICE,
    "quality": "good",
    "period_ms": 100,
    "measurements": [
        {"name": "sinr", "value": 15.0, "unit": "dB", "subject": "cell:1/ue:7"},
        {"name": "capacity", "value": 30_000, "unit": "kHz"},
        {"name": "users", "value": 5},
    ],
}
POLICY: Final[Mapping[str, Any]] = {
    "format": "wirelessops.telemetry/1",
    "report_id": "a1:policy/3",
    "source": "a1:policy",
    "event_time_ms": T_MS - 900,
    "subject": _SLICE,
    "measurements": [{"name": "min_rate", "value": 5.0, "unit": "Mbit/s"}],
}
OUTAGE: Final[Mapping[str, Any]] = {
    "format": "wirelessops.source-status/1",
    "source": _GNB,
    "status": "outage",
    "event_time_ms": T_MS + 1_000,
    "retryable": True,
    "retry_after_ms": 200,
    "retries_left": 2,
}
PROPOSAL: Final[Mapping[str, Any]] = {
    "proposal_id": "p-9",
    "proposer": "xapp:slicing",
    "created_at_ms": T_MS - 20,
    "deadline_ms": T_MS + 3_000,
    "contract_ref": "slicing/1",
    "bindings": {"cell": "1", "slice": "1", "ue": "7"},
    "control_key": "cell:1/slice:1/ue:7/prb",
    "plan": {"bandwidth": {"value": 1.317, "unit": "MHz"}},
}
QUERY: Final[Mapping[str, Any]] = {
    "format": "wirelessops.query/1", "kind": "as_of", "query_id": "q-1", "name": "sinr", "subject": "cell:1/ue:7",
    "event_time_ms": T_MS, "ingest_time_ms": T_MS,
}  # fmt: skip
SWITCH: Final = SwitchMessage(
    switch_id="s-1", mode="hold", operator="alice", reason="maintenance of site 12", at_ms=T_MS + 500, region=REGION
)


class Example(NamedTuple):
    """A message: its topic by the field in `Topics`, the name of its schema, key, CloudEvents attributes, value."""

    topic: str
    schema: str
    key: str | None
    attributes: Mapping[str, str]
    value: Mapping[str, Any]


def examples() -> tuple[Example, ...]:
    """One message of each schema of `wirelessops schemas` that goes over a topic."""
    return tuple(_Story().messages())


class _Proposed(NamedTuple):
    """The message that the proposal came in: its key, and its headers, which carry no trace context here."""

    key: bytes
    headers: list[tuple[str, bytes]]


class _Story:
    """What the guard of one partition had read, and what it made of it."""

    def __init__(self) -> None:
        self._settings = GuardSettings.model_validate(_SETTINGS)
        self._release = Release(PARTITION, self._settings, lambda: T_MS, Signer.of_seed(bytes(32)))
        self._key = REGION.encode()
        self._state = RegionState(REGION, shipped())
        for report in (REPORT, POLICY):
            self._state.ingest(orjson.dumps(report), report["event_time_ms"] + 5)

    def messages(self) -> list[Example]:
        """In the order in which they would be written."""
        release, applied = self._release, self._decided(T_MS, 0)
        lease = applied.decision.lease
        assert lease is not None
        record, chain = release.record(self._key, applied, self._stamp(0), T_MS, Chain(PARTITION))
        outcome = OutcomeMessage(
            decision_id=applied.decision.decision_id, proposal_id="p-9", outcome="applied", at_ms=T_MS + 12
        )
        query = read_query(orjson.dumps(QUERY))
        evidence = Evidence(topic="wirelessops.telemetry", partition=PARTITION, offset=2)
        view = answer(self._state, query, T_MS, evidence)
        self._state.ingest(orjson.dumps(OUTAGE), OUTAGE["event_time_ms"] + 5)
        asked_again = self._decided(T_MS + 1_500, 1, Asked(_GNB, 1, T_MS + 2_000))
        message = _Proposed(self._key, [])
        (decision,) = release.decision(message, applied, self._stamp(0), T_MS)
        _, request = release.decision(message, asked_again, self._stamp(1), T_MS + 1_500)
        answered = AnswerMessage.model_validate({**_ANSWER, "decision_id": asked_again.decision.decision_id})
        letter = release.letter(
            topic="wirelessops.proposals", partition=PARTITION, offset=7, timestamp_ms=T_MS, key=self._key,
            value=b'{"proposal_id": 7}', reason="$.proposal_id: required, a string of 1 to 1000 characters",
        )  # fmt: skip
        return [
            self._told("telemetry", "wirelessops.telemetry/1", f"ran/{_GNB}", REPORT["report_id"], REPORT),
            self._told("telemetry", "wirelessops.source-status/1", f"ran/{_GNB}", f"{_GNB}/status/1", OUTAGE),
            self._told("proposals", "wirelessops.proposal/1", "client/xapp:slicing", "p-9", PROPOSAL),
            self._written("records", "wirelessops.record/1", record),
            self._written("control", "wirelessops.decision/1", decision),
            self._written("controls", "wirelessops.control/1", release.control(REGION, lease)),
            self._written("requests", "wirelessops.request/1", request),
            self._told("outcomes", outcome.format, f"ran/{_GNB}", f"{outcome.decision_id}/applied", _plain(outcome)),
            self._told("answers", answered.format, "operator/alice", answered.answer_id, _plain(answered)),
            self._told("answers", SWITCH.format, "operator/alice", SWITCH.switch_id, _plain(SWITCH)),
            self._written("controls", "wirelessops.switched/1", release.switched(Kept(REGION, 41, SWITCH))),
            self._written("controls", "wirelessops.open/1", release.left_open(LEFT_OPEN)),
            self._written("checkpoints", "wirelessops.checkpoint-envelope/1", release.checkpoint(chain)),
            self._written("dead_letters", "wirelessops.dead-letter/1", letter),
            self._told("queries", "wirelessops.query/1", "client/xapp:slicing", "q-1", QUERY),
            self._written("views", view.format, release.view(self._key, "q-1", orjson.dumps(view.model_dump()))),
            self._told("status", "wirelessops.status/1", "guard/w1", f"w1/2/{T_MS}", _status(), str(PARTITION)),
        ]  # fmt: skip

    def _decided(self, t_ms: int, number: int, asked: Asked | None = None) -> Outcome:
        proposal = read_proposal_bytes(orjson.dumps(PROPOSAL))
        return self._state.outcome(self._state.decide(proposal, t_ms), proposal, t_ms, self._stamp(number, asked))

    def _stamp(self, number: int, asked: Asked | None = None) -> Stamp:
        return Stamp(
            guard="w1",
            sequence=number,
            topic="wirelessops.telemetry",
            partition=PARTITION,
            read=Read(telemetry=2, outcomes=0, answers=0),
            proposal_offset=6,
            resume=Resume(6, 0),
            final=asked is None,
            until_ms=None if asked is None else PROPOSAL["deadline_ms"],
            asked=asked,
        )

    def _told(
        self, topic: str, schema: str, source: str, identity: str, value: Mapping[str, Any], key: str = REGION
    ) -> Example:
        """What others write."""
        headers = cloud_event(event_id=identity, source=f"/wirelessops/{source}", kind=schema, time_ms=T_MS)
        return Example(topic, schema, key, attributes(headers), value)

    def _written(self, topic: str, schema: str, message: Outgoing) -> Example:
        """What the guard writes."""
        assert message.topic == getattr(self._settings.topics, topic)
        key = None if message.key is None else message.key.decode()
        return Example(topic, schema, key, attributes(message.headers), orjson.loads(message.value))


LEFT_OPEN: Final = LeftOpen(12_043, 20_000, T_MS - 40, {1_041: Left(2, T_MS - 90_000)})
_ANSWER: Final[Mapping[str, Any]] = {
    "answer_id": "a-1",
    "proposal_id": "p-9",
    "verdict": "approve",
    "operator": "alice",
    "reason": "the drive test agrees with the second source",
    "at_ms": T_MS,
    "settles": [
        {"field": "sinr", "subject": "cell:1/ue:7", "value": 12.5, "unit": "dB", "observations": ["e2/41#0", "o1/7#0"]}
    ],
}


def _status() -> Mapping[str, Any]:
    source = SourceView(
        region=REGION, source=_GNB, state="up", event_time_ms=T_MS - 80, ingest_time_ms=T_MS - 75, limit_ms=800,
        period_ms=100,
    )  # fmt: skip
    status = PartitionStatus(
        guard="w1", partition=PARTITION, at_ms=T_MS, started_at_ms=T_MS - 60_000, warm=True, why_not_ready=None,
        open={"HOLD": 1, "RETRY": 0, "ESCALATE": 0, "ready": 0},
        behind={"telemetry": 0, "proposals": 0, "outcomes": 0, "answers": 0, "queries": 0},
        decisions=312, records=312, leases=4, sources=[source],
        source_counts={"up": 1, "outage": 0, "stale": 0}, omitted=0, switches=[],
    )  # fmt: skip
    return _read(status.value())


def _plain(message: Any) -> Mapping[str, Any]:
    return _read(orjson.dumps(message.model_dump()))


def _read(value: bytes) -> Mapping[str, Any]:
    found: Mapping[str, Any] = orjson.loads(value)
    return found
