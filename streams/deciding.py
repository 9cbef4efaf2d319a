"""The decision path of the stream: from a region's evidence and a proposal's bytes to the bytes on `control`.

One pure path for the live guard, for taking up after a restart, and for replay: no Kafka, no clock. The same messages
in the same order, the same proposal bytes, the same t and the same stamp give the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from streams.asking import Asked, Asks
from streams.messages import AnswerMessage, OutcomeMessage, Settled
from streams.telemetry import SourceStatus, decode
from streams.wire import parse_object
from xapp.authorization import decision_json
from xapp.contract import BindingError, Contract, Resolution
from xapp.effect import judge_effect
from xapp.engine import assure, refuse
from xapp.episode import PROPOSAL_KEY, RECORD_BYTES_KEY, read_proposal
from xapp.evidence.series import ReportColumns
from xapp.evidence.store import Appended, EvidenceStore
from xapp.integrity.operator import VERDICT, Looked, repeats
from xapp.leases import ControlBook
from xapp.model import AppliedControl, Decision, Episode, Malformed, Measurement, Observation, Proposal, Report, Switch
from xapp.support.book import SupportBook
from xapp.support.gate import Support, SupportGate
from xapp.support.reference_map import ReferenceMap
from xapp.support.terms import Terms

DEFAULT_HISTORY_MS: Final = 60_000
DEFAULT_HISTORY_COUNT: Final = 4096
DEFAULT_SPACING_MS: Final = 200
"""Least time between two requests to one source."""

NEVER_MS: Final = 2**62

SEEN_LIMIT: Final = 4_096
"""Observations that operators looked at, of a region: of the oldest no repetition is settled any more."""

MAX_ID_LENGTH: Final = 1_000
"""Of a proposal's id: what refers to a proposal must fit into any message."""

REQUEST_FORMAT: Final = "wirelessops.request/1"

Maps = Mapping[str, ReferenceMap | None]
"""By contract id the reference map that decisions under it are gated by; where there is none, its gate abstains."""
NO_MAPS: Final[Maps] = {}


class NotAProposal(ValueError):
    """The bytes are no proposal, or one that may not be answered: a dead letter, with the reason."""


@dataclass(frozen=True, slots=True)
class History:
    """Bounds of what a region's evidence store keeps: ms of event time, and versions of one field of one source."""

    ms: int = DEFAULT_HISTORY_MS
    count: int = DEFAULT_HISTORY_COUNT


@dataclass(frozen=True, slots=True)
class Read:
    """How far the inputs of a partition had been read: the next offset of each."""

    telemetry: int
    outcomes: int
    answers: int


@dataclass(frozen=True, slots=True)
class Resume:
    """Where a new owner goes on: see docs/control-path.md."""

    proposals: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a decision on `control` carries beside the decision itself.

    `sequence` counts the decisions of one control partition; `attempt` those on one proposal, from 1; `until_ms`: when
    its final decision comes at the latest, None where this is it.
    """

    guard: str
    sequence: int
    topic: str
    partition: int
    read: Read
    attempt: int = 1
    final: bool = True
    proposal_offset: int = 0
    resume: Resume = Resume(0, 0)
    asked: Asked | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ProposalDocument:
    """A proposal as it arrived: its id, its document, and the digest of its content (not of its spelling)."""

    proposal_id: str
    document: Mapping[str, Any]
    digest: str

    @property
    def deadline_ms(self) -> int | None:
        """Its deadline, where it has one that is an integer."""
        said = self.document.get("deadline_ms")
        return said if isinstance(said, int) and not isinstance(said, bool) else None

    def named(self, member: str) -> str | None:
        """A member that names something; None where it is no string, or one too long to be repeated in a message."""
        said = self.document.get(member)
        return said if isinstance(said, str) and len(said) <= MAX_ID_LENGTH else None


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

    message: ReportColumns | SourceStatus
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
    if not isinstance(proposal_id, str) or not 0 < len(proposal_id) <= MAX_ID_LENGTH:
        raise NotAProposal(f"$.proposal_id: required, a string of 1 to {MAX_ID_LENGTH} characters")
    canonical = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    return ProposalDocument(proposal_id, document, hashlib.sha256(canonical).hexdigest())


@dataclass(frozen=True, slots=True)
class Gated:
    """What one contract's support gate has in a region."""

    gate: SupportGate
    book: SupportBook


class RegionState:
    """All that decisions in one region depend on: evidence, controls applied lately, requests made, and how often the
    network was where (`terms` of support, by contract id; none: nothing is counted).

    It changes by `ingest`, `take_outcome` and `take_answer` (messages that were read) and by `note` (decisions that
    were made); the same of them in the same order give the same state.
    """

    def __init__(
        self,
        region: str,
        contracts: Mapping[str, Contract],
        history: History = History(),
        spacing_ms: int = DEFAULT_SPACING_MS,
        terms: Mapping[str, Terms] | None = None,
    ) -> None:
        self.region = region
        self.contracts = contracts
        self.store = EvidenceStore(
            history_ms=history.ms, history_count=history.count, known_names=known_names(contracts)
        )
        self.controls = ControlBook(history_ms=longest_budget_ms(contracts))
        self.asks = Asks(spacing_ms)
        self.gated = {
            contract_id: Gated(SupportGate(one), SupportBook(contracts[contract_id], one))
            for contract_id, one in (terms or {}).items()
        }
        self._seen: dict[tuple[str, str], Looked] = {}  # by operator and observation id

    def ingest(self, value: bytes | None, ingest_time_ms: int) -> Ingested:
        """Take in one telemetry message.

        Raises `streams.telemetry.Undecodable` for one that cannot be read and `xapp.evidence.store.Contradiction` for
        a repeated report id with other content; the state is then as before.
        """
        decoded = decode(value)
        message = decoded.message
        if isinstance(message, SourceStatus):
            self.store.set_source(message.source, message.state, message.event_time_ms, ingest_time_ms)
            self.asks.heard(message.source)
            return Ingested(message, 0, False, decoded.unknown_keys)
        appended = self.take_report(message, ingest_time_ms)
        if not appended.duplicate:
            self.asks.heard(message.source)
        return Ingested(message, appended.stored, appended.duplicate, decoded.unknown_keys)

    def take_report(self, report: Report | ReportColumns, ingest_time_ms: int) -> Appended:
        """Keep one report as evidence, and count it as visits. Raises Contradiction as `ingest` does."""
        appended = self.store.append(report, ingest_time_ms)
        if self.gated and not appended.duplicate:
            for one in self.gated.values():
                one.book.observe(report, ingest_time_ms)
        return appended

    def take_outcome(self, outcome: OutcomeMessage, ingest_time_ms: int) -> AppliedControl | None:
        """Note what became of a control, at the latest when it was told: nobody makes evidence stale in advance.

        Gives the control as it stands then; None where none of this region's is held under that id.
        """
        return self.controls.outcome(outcome.decision_id, outcome.outcome, min(outcome.at_ms, ingest_time_ms))

    def is_newest(self, control: AppliedControl, t_ms: int) -> bool:
        """Whether nothing was granted on its key after it."""
        held = self.controls.controls_for(control.control_key, None, t_ms)
        same = (other for other in held if other.control_key == control.control_key)
        return all(other.granted_at_ms <= control.granted_at_ms for other in same)

    def take_answer(self, answer: AnswerMessage, ingest_time_ms: int) -> None:
        """Take in an operator's answer: evidence of origin `operator`. Raises Contradiction as `ingest` does."""
        verdict = Measurement(VERDICT, answer.verdict, subject=f"proposal:{answer.proposal_id}", origin="operator")
        settled = [
            Measurement(
                s.field, s.value, s.unit, subject=s.subject, origin="operator", parents=tuple(s.observations)
            )
            for s in answer.settles
        ]  # fmt: skip
        source = f"operator:{answer.operator}"
        report = Report(f"answer/{answer.answer_id}", source, answer.at_ms, (verdict, *settled))
        self.store.append(report, ingest_time_ms)
        for each in answer.settles:
            self._note_seen(source, each)

    def _note_seen(self, operator: str, settled: Settled) -> None:
        """What an operator looked at: as it is held, else as the answer says, for reports are held for a while only."""
        said: dict[str, Looked] = {each.id: each for each in settled.seen}
        for identity in settled.observations:
            slot = self.store.find(identity)
            looked = said.get(identity) if slot is None else self.store.observation(slot)
            if looked is not None:
                self._seen[operator, identity] = looked
        while len(self._seen) > SEEN_LIMIT:
            del self._seen[next(iter(self._seen))]

    def note(self, lease: AppliedControl | None, asked: Asked | None) -> None:
        """Note what a decision that was made granted or asked."""
        if lease is not None:
            self.controls.grant(lease)
        if asked is not None:
            self.asks.note(asked)

    def decide(
        self, proposal: ProposalDocument, t_ms: int, switch: Switch | None = None, maps: Maps | None = NO_MAPS
    ) -> Decision:
        """Decide one proposal at t, under the switch and the reference maps in force; `maps` None: no gate is asked.

        Exceptions are bugs: nothing may be released then.
        """
        ref = proposal.document.get("contract_ref")
        contract = self.contracts.get(ref) if isinstance(ref, str) else None
        episode_id = f"{self.region}/{proposal.proposal_id}"
        if contract is None:
            return refuse(episode_id, t_ms, proposal.document)
        read = read_proposal(proposal.document, contract, t_ms)
        if isinstance(read, Malformed):
            return assure(Episode(episode_id, t_ms, contract, (), read, proposal.document))
        return assure(self.episode(contract, read, proposal.document, t_ms, switch, maps))

    def outcome(self, decision: Decision, proposal: ProposalDocument, t_ms: int, stamp: Stamp) -> Outcome:
        """The bytes of a decision under its stamp."""
        read, asked = stamp.read, stamp.asked
        extra = {
            "attempt": stamp.attempt,
            "final": stamp.final,
            "sequence": stamp.sequence,
            "guard": stamp.guard,
            "region": self.region,
            "decided_at_ms": t_ms,
            "proposal_digest": proposal.digest,
            "proposal_offset": stamp.proposal_offset,
            "resume": {"proposals": stamp.resume.proposals, "sequence": stamp.resume.sequence},
            "evidence": {
                "topic": stamp.topic,
                "partition": stamp.partition,
                "offset": read.telemetry,
                "outcomes": read.outcomes,
                "answers": read.answers,
            },
            "lease": decision.lease,
            "asked": None if asked is None else asked.document(),
            "proposer": proposal.named("proposer"),
            "contract_ref": proposal.named("contract_ref"),
            "until_ms": stamp.until_ms,
        }
        return Outcome(
            decision=decision,
            control_value=decision_json(decision, record=False, extra=extra),
            record_value=decision_json(decision),
            # Of a replay that differs, no RETRY may have asked
            request_value=None
            if asked is None or decision.retry is None
            else self._request(decision, proposal, t_ms, asked),
        )

    def episode(
        self,
        contract: Contract,
        proposal: Proposal,
        raw: Mapping[str, Any],
        t_ms: int,
        switch: Switch | None = None,
        maps: Maps | None = NO_MAPS,
    ) -> Episode:
        """The episode of a proposal that could be read, built from the evidence it touches."""
        resolution = contract.resolve(proposal.bindings)
        return Episode(
            episode_id=f"{self.region}/{proposal.proposal_id}",
            decided_at_ms=t_ms,
            contract=contract,
            observations=self._evidence(contract, resolution, t_ms, proposal.proposal_id),
            proposal=proposal,
            proposal_raw=raw,
            sources=self.asks.terms(self.store.sources(t_ms, resolution.sources), t_ms),
            controls=self.controls.controls_for(proposal.control_key, resolution, t_ms),
            switch=switch,
            support=self._support(contract, resolution, t_ms, maps),
        )

    def _support(self, contract: Contract, resolution: Resolution, t_ms: int, maps: Maps | None) -> Support | None:
        """What the contract's gate decides on; None where it has none."""
        one = self.gated.get(contract.contract_id)
        if one is None or maps is None:
            return None
        window = one.book.window(resolution.members, t_ms)
        return one.gate.carried(contract, maps.get(contract.contract_id), window, resolution, t_ms)

    def drifted(self, reference_map: ReferenceMap, t_ms: int) -> int:
        """How many partitions of the window at t lie beyond the drift limit of a map of a gated contract."""
        one = self.gated[reference_map.contract_id]
        claim = one.gate.drift(reference_map, one.book.window((), t_ms), t_ms)
        return 0 if claim is None else claim.exceeded

    def _evidence(
        self, contract: Contract, resolution: Resolution, t_ms: int, proposal_id: str | None = None
    ) -> tuple[Observation, ...]:
        """The evidence that a decision at t can depend on; of answers, with what they settle at t.

        On a live network the reports that an operator looked at are no longer the newest when the answer arrives: what
        the same sources repeat of them, within the field's tolerance, is settled as they are.
        """
        found = self.store.episode_observations(resolution, t_ms, proposal_id)
        if not self._seen:
            return found
        return tuple(self._settling(o, found, contract) if o.origin == "operator" and o.parents else o for o in found)

    def _settling(self, answer: Observation, found: Sequence[Observation], contract: Contract) -> Observation:
        field, named = contract.fields.get(answer.name), frozenset(answer.parents)
        looked = [self._seen[answer.source, i] for i in answer.parents if (answer.source, i) in self._seen]

        def settled(o: Observation) -> bool:
            return o.id in named or (field is not None and any(repeats(each, o, field) for each in looked))

        return replace(answer, parents=tuple(o.id for o in found if o.origin != "operator" and settled(o)))

    def effect(self, control: AppliedControl, t_ms: int) -> bool | None:
        """Whether what a control was applied for shows in the evidence; None while that is not known."""
        contract = self.contracts.get(control.contract_id)
        if contract is None:
            return None
        try:
            resolution = contract.resolve(control.bindings)
        except BindingError:  # the contract was changed under its id since
            return None
        observations = self._evidence(contract, resolution, t_ms)
        return judge_effect(contract, control, observations, self.store.sources(t_ms, resolution.sources), t_ms)

    def next_lease_end_ms(self, decision: Decision, contract: Contract, t_ms: int) -> int:
        """When the first lease ends that may stand in the way of a decision, and one ms more; far ahead without one."""
        if decision.control_key is None or not any(v.code == "lease_conflict" for v in decision.violations):
            return NEVER_MS
        held = self.controls.controls_for(decision.control_key, contract.resolve(decision.bindings), t_ms)
        ends = (c.lease_until_ms for c in held if c.lease_until_ms is not None and c.lease_until_ms >= t_ms)
        return min(ends, default=NEVER_MS - 1) + 1

    def _request(self, decision: Decision, proposal: ProposalDocument, t_ms: int, asked: Asked) -> bytes:
        assert decision.retry is not None
        contract = self.contracts[proposal.document["contract_ref"]]
        out = {violation.field for violation in decision.violations if violation.code == "outage"}
        wanted = [
            {"name": member.field.name, "subject": member.subject}
            for member in contract.resolve(decision.bindings).members
            if member.field.name in out and decision.retry.source in member.sources
        ]
        request = {
            "format": REQUEST_FORMAT,
            "request_id": f"{decision.decision_id}/{asked.times}",
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


def unrecordable(region: str, proposal: ProposalDocument, t_ms: int, size: int) -> Decision:
    """The decision on a proposal whose record of `size` bytes no message carries: refused, naming it by its digest."""
    known = {PROPOSAL_KEY: proposal.digest, RECORD_BYTES_KEY: size, "proposal_id": proposal.proposal_id}
    return refuse(f"{region}/{proposal.proposal_id}", t_ms, known)


def longest_budget_ms(contracts: Mapping[str, Contract]) -> int:
    """For how long changes must be remembered, ms."""
    budgets = [c.control.budget for c in contracts.values() if c.control is not None and c.control.budget is not None]
    return max((budget.per_ms or 0 for budget in budgets), default=0)


def known_names(contracts: Mapping[str, Contract]) -> frozenset[str]:
    """Names that fields of the contracts go by: the metric registry need not have them too."""
    names = {name for contract in contracts.values() for field in contract.fields.values() for name in field.names}
    return frozenset(names | {VERDICT})
