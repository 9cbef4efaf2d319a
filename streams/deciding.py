"""The decision path of the stream: from a region's telemetry and a proposal's bytes to the bytes on `control`.

One pure function for the live guard and for replay: no Kafka, no clock. The same telemetry in the same order, the same
proposal bytes, the same t and the same stamp give the same bytes.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from streams.telemetry import SourceStatus, decode
from streams.wire import parse_object
from xapp.authorization import decision_json
from xapp.contract import Contract
from xapp.engine import assure, refuse
from xapp.episode import read_proposal
from xapp.evidence.store import EvidenceStore
from xapp.model import Decision, Episode, Malformed, Proposal

DEFAULT_HISTORY_MS: Final = 60_000
DEFAULT_HISTORY_COUNT: Final = 4096
ANSWERED_LIMIT: Final = 100_000
"""How many proposal ids a region remembers; a repeat of an older one is a new proposal."""

REQUEST_FORMAT: Final = "wirelessops.request/1"


class NotAProposal(ValueError):
    """The bytes are no proposal, or one that may not be answered: a dead letter, with the reason."""


@dataclass(frozen=True, slots=True)
class History:
    """Bounds of what a region's evidence store keeps: ms of event time, and versions of one field of one source."""

    ms: int = DEFAULT_HISTORY_MS
    count: int = DEFAULT_HISTORY_COUNT


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a decision on `control` carries beside the decision itself.

    `offset` is the next telemetry offset of `partition` of `topic` at the time of deciding: all before it was read.
    `sequence` counts the decisions of one control partition.
    """

    guard: str
    sequence: int
    topic: str
    partition: int
    offset: int
    attempt: int = 1
    final: bool = True


@dataclass(frozen=True, slots=True)
class ProposalDocument:
    """A proposal as it arrived: its id, its document, and the digest of its content (not of its spelling)."""

    proposal_id: str
    document: Mapping[str, Any]
    digest: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one decision publishes: the full record first, then the decision, then the request of a RETRY."""

    decision: Decision
    control_value: bytes
    record_value: bytes
    request_value: bytes | None


@dataclass(frozen=True, slots=True)
class Ingested:
    """What one telemetry message did. `duplicate`: a repeated report with the same content, dropped."""

    observations: int
    duplicate: bool
    unknown_keys: int


def read_proposal_bytes(value: bytes | None) -> ProposalDocument:
    """Read the bytes of a proposal. Raises NotAProposal where they are no JSON object with a `proposal_id`."""
    try:
        document = parse_object(value)
    except ValueError as error:
        raise NotAProposal(str(error)) from error
    proposal_id = document.get("proposal_id")
    if not isinstance(proposal_id, str) or not proposal_id:
        raise NotAProposal("$.proposal_id: required, a string that is not empty")
    canonical = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    return ProposalDocument(proposal_id, document, hashlib.sha256(canonical).hexdigest())


class RegionState:
    """All that decisions in one region depend on: its evidence store, and which proposals were answered."""

    def __init__(self, region: str, contracts: Mapping[str, Contract], history: History = History()) -> None:
        self.region = region
        self.contracts = contracts
        self.store = EvidenceStore(
            history_ms=history.ms, history_count=history.count, known_names=known_names(contracts)
        )
        self._answered: OrderedDict[str, str] = OrderedDict()

    def ingest(self, value: bytes | None, ingest_time_ms: int) -> Ingested:
        """Take in one telemetry message.

        Raises `streams.telemetry.Undecodable` for one that cannot be read and `xapp.evidence.store.Contradiction` for
        a repeated report id with other content; the state is then as before.
        """
        decoded = decode(value)
        message = decoded.message
        if isinstance(message, SourceStatus):
            self.store.set_source(message.source, message.state, message.event_time_ms, ingest_time_ms)
            return Ingested(0, False, decoded.unknown_keys)
        appended = self.store.append(message, ingest_time_ms)
        return Ingested(appended.stored, appended.duplicate, decoded.unknown_keys)

    def is_repeat(self, proposal: ProposalDocument) -> bool:
        """Whether this proposal was answered already. Raises NotAProposal where its id was, with other content."""
        known = self._answered.get(proposal.proposal_id)
        if known is not None and known != proposal.digest:
            raise NotAProposal(f"$.proposal_id: {proposal.proposal_id!r} was answered with other content")
        return known is not None

    def remember(self, proposal_id: str, digest: str) -> None:
        """Note that a proposal was answered, here or by this guard's former run."""
        self._answered[proposal_id] = digest
        self._answered.move_to_end(proposal_id)
        if len(self._answered) > ANSWERED_LIMIT:
            self._answered.popitem(last=False)

    def decide(self, proposal: ProposalDocument, t_ms: int, stamp: Stamp) -> Outcome:
        """Decide one proposal at t. Exceptions are bugs of ours: nothing may be released then."""
        decision = self._decision(proposal, t_ms)
        extra = {
            "attempt": stamp.attempt,
            "final": stamp.final,
            "sequence": stamp.sequence,
            "guard": stamp.guard,
            "region": self.region,
            "decided_at_ms": t_ms,
            "proposal_digest": proposal.digest,
            "evidence": {"topic": stamp.topic, "partition": stamp.partition, "offset": stamp.offset},
        }
        return Outcome(
            decision=decision,
            control_value=decision_json(decision, record=False, extra=extra),
            record_value=decision_json(decision),
            request_value=self._request(decision, proposal, t_ms) if decision.retry is not None else None,
        )

    def episode(self, contract: Contract, proposal: Proposal, raw: Mapping[str, Any], t_ms: int) -> Episode:
        """The episode of a proposal that could be read, built from the evidence it touches."""
        resolution = contract.resolve(proposal.bindings)
        return Episode(
            episode_id=f"{self.region}/{proposal.proposal_id}",
            decided_at_ms=t_ms,
            contract=contract,
            observations=self.store.episode_observations(resolution, t_ms),
            proposal=proposal,
            proposal_raw=raw,
            sources=self.store.sources(t_ms, resolution.sources),
        )

    def _decision(self, proposal: ProposalDocument, t_ms: int) -> Decision:
        ref = proposal.document.get("contract_ref")
        contract = self.contracts.get(ref) if isinstance(ref, str) else None
        episode_id = f"{self.region}/{proposal.proposal_id}"
        if contract is None:
            return refuse(episode_id, t_ms, proposal.document)
        read = read_proposal(proposal.document, contract, t_ms)
        if isinstance(read, Malformed):
            return assure(Episode(episode_id, t_ms, contract, (), read, proposal.document))
        return assure(self.episode(contract, read, proposal.document, t_ms))

    def _request(self, decision: Decision, proposal: ProposalDocument, t_ms: int) -> bytes:
        assert decision.retry is not None
        contract = self.contracts[proposal.document["contract_ref"]]
        bindings = {k: tuple(v) if isinstance(v, list | tuple) else v for k, v in decision.bindings.items()}
        out = {violation.field for violation in decision.violations if violation.code == "outage"}
        wanted = [
            {"name": member.field.name, "subject": member.subject}
            for member in contract.resolve(bindings).members
            if member.field.name in out and decision.retry.source in member.sources
        ]
        request = {
            "format": REQUEST_FORMAT,
            "request_id": f"{decision.decision_id}/1",
            "decision_id": decision.decision_id,
            "proposal_id": decision.proposal_id,
            "source": decision.retry.source,
            "fields": wanted,
            "after_ms": decision.retry.after_ms,
            "left": decision.retry.left,
            "deadline_ms": proposal.document.get("deadline_ms"),
            "issued_at_ms": t_ms,
        }
        return orjson.dumps(request)


def known_names(contracts: Mapping[str, Contract]) -> frozenset[str]:
    """Names that fields of the contracts go by: the metric registry need not have them too."""
    return frozenset(
        name for contract in contracts.values() for field in contract.fields.values() for name in field.names
    )
