"""Wire models of the topics other than telemetry, and the JSON Schemas of all of them.

Readers use these to validate at the boundary. The guard writes `control` and `records` from the engine's canonical
form; `tests/test_guard_blackbox.py` holds what it writes against these models. Times are Unix ms, UTC.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from streams.topics import MAX_REGION_LENGTH
from xapp.contract_document import contract_schema
from xapp.model import Action
from xapp.support.rule import State
from xapp.times import EARLIEST_MS, LATEST_MS

EpochMs = Annotated[int, Field(strict=True, ge=EARLIEST_MS, lt=LATEST_MS, description="Unix time in ms, UTC")]
"""A time that is neither in seconds nor in µs: the range of `decided_at_ms` in the rules of assurance, section 1."""

Text = Annotated[str, Field(strict=True, min_length=1)]
ShortText = Annotated[str, Field(strict=True, min_length=1, max_length=100)]
Count = Annotated[int, Field(strict=True, ge=0)]


class Wire(BaseModel):
    """A message. Unknown keys are kept out of the value and do no harm: writers may be newer than readers."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Quantity(Wire):
    """A value in a unit; the value of a field over many subjects is an object, subject binding to value."""

    value: JsonValue
    unit: str | None = None


class ProposalMessage(Wire):
    """`proposals`: what an automation asks for (rules of assurance, section 1), as the client writes it."""

    proposal_id: Text
    proposer: Text
    contract_ref: Text
    created_at_ms: EpochMs
    control_key: str
    plan: dict[str, Quantity]
    intent: Action = "APPLY"
    deadline_ms: EpochMs | None = None
    bindings: dict[str, str | list[str]] = {}
    expected: dict[str, Quantity] | None = None
    evidence: list[str] = []


class Evidence(Wire):
    """Up to where a partition's inputs had been read when a decision was made: all offsets below these.

    `topic` and `offset` are those of telemetry.
    """

    topic: str
    partition: Count
    offset: Count
    outcomes: Count = 0
    answers: Count = 0


class RecordDigest(Wire):
    """The address of the full record, which stands in `records`."""

    digest: str


class RetryTerms(Wire):
    """Which source to ask again, after how long, and how many attempts it has left."""

    source: str
    after_ms: Count
    left: Count


class Resume(Wire):
    """Where a new owner of the partition goes on: proposals below offset `proposals` have their final decision, and
    decisions on the others have at least `sequence` (docs/control-path.md).
    """

    proposals: Count
    sequence: Count


class AskedMessage(Wire):
    """The request of a RETRY: the `count`-th to `source` since it was last heard; an answer may come until then."""

    source: Text
    count: Annotated[int, Field(strict=True, ge=1)]
    until_ms: EpochMs


class SignatureMessage(Wire):
    """Ed25519 over the canonical JSON of the document without this member (docs/tamper-evidence.md)."""

    keyid: str
    sig: str


class ComponentMessage(Wire):
    """Where the network is when it is measured; an axis that nothing is known of is `any`."""

    place: str
    quarter: Annotated[int, Field(strict=True, ge=0, le=3)]
    load: Literal["low", "high", "any"]
    cqi: Literal["low", "middle", "high", "any"]


class ShortMessage(Wire):
    """What a field lacks in its component: so many partitions, and at least so many visits in all."""

    field: str
    subject: str | None
    component: ComponentMessage
    partitions: Count
    visits: Count


class MapMessage(Wire):
    """The reference map that a decision rests on."""

    map_id: str
    version: Annotated[int, Field(strict=True, ge=1)]
    digest: str


class SupportMessage(Wire):
    """What the support gate said (docs/support-gate.md). `earliest_ms`: the first end of a partition at which it could
    pass, null where no waiting is known to help.
    """

    state: State
    because: str
    map: MapMessage | None
    short: list[ShortMessage]
    earliest_ms: EpochMs | None


class DecisionMessage(Wire):
    """`control`: a decision (rules of assurance, section 6) without its full record. Only the guard writes it.

    The idempotency key is (`proposal_id`, `attempt`); a decision that is not `final` is followed by another one;
    `sequence` counts the decisions of one partition; `proposal_digest` is the SHA-256 of the proposal's content (its
    JSON with sorted keys). `lease`: what an APPLY granted (an item of an episode's `controls`); `asked`: the request
    of a RETRY; `until_ms`: when the final decision comes at the latest, unless the action changes; null: this is it.
    `proposer` and `contract_ref` are the proposal's, null where they are no strings of at most 1,000 characters.
    `signature` is absent where the guard runs unsigned, `support` where no support gate was asked.
    """

    format: Literal["wirelessops.decision/1"]
    decision_id: str
    episode_id: str
    proposal_id: str
    action: Action
    control_key: str | None
    bindings: dict[str, Any]
    released: dict[str, Quantity] | None
    valid_until_ms: int | None
    violations: list[dict[str, Any]]
    repairs: list[dict[str, Any]]
    used: dict[str, list[str]]
    blocked: list[str]
    retry: RetryTerms | None
    explanation: str
    record: RecordDigest
    attempt: Annotated[int, Field(strict=True, ge=1)]
    final: bool
    sequence: Count
    guard: str
    region: str
    decided_at_ms: EpochMs
    proposal_digest: str
    proposal_offset: Count
    resume: Resume
    evidence: Evidence
    lease: dict[str, Any] | None
    asked: AskedMessage | None
    proposer: str | None
    contract_ref: str | None
    until_ms: EpochMs | None
    support: SupportMessage | None = None
    signature: SignatureMessage | None = None


class RequestedField(Wire):
    """One field whose evidence is wanted: the contract's name of it, and the subject."""

    name: str
    subject: str | None = None


class RequestMessage(Wire):
    """`requests`: ask `source` again, once, not before `issued_at_ms` + `after_ms`, not after `deadline_ms`."""

    format: Literal["wirelessops.request/1"]
    request_id: str
    decision_id: str
    proposal_id: str
    source: str
    fields: list[RequestedField]
    after_ms: Count
    left: Count
    deadline_ms: int | None
    issued_at_ms: EpochMs


class OutcomeMessage(Wire):
    """`outcomes`: what the network's side did with a decision, or what was seen of it.

    The network's side writes `applied` or `refused`, and may write `effect` or `no_effect`. The guard writes
    `unacknowledged` where neither came within the contract's `ack_ms`, and `effect` or `no_effect` as the contract's
    `effect` shows in the evidence.
    """

    format: Literal["wirelessops.outcome/1"] = "wirelessops.outcome/1"
    decision_id: Text
    proposal_id: Text
    outcome: Literal["applied", "refused", "unacknowledged", "effect", "no_effect"]
    at_ms: EpochMs
    detail: str | None = None


Said = (
    Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
    | Annotated[float, Field(strict=True, allow_inf_nan=False)]
    | Annotated[bool, Field(strict=True)]
    | Annotated[str, Field(strict=True)]
)


class Seen(Wire):
    """An observation in dispute as the operator saw it: by the time of an answer the guard may no longer hold it."""

    id: Text
    source: Text
    name: Text
    subject: str | None = None
    value: Said | None = None
    unit: str | None = None


class Settled(Wire):
    """One field that an operator settles: the value to go by, and the observations whose dispute that ends.

    `seen`: those observations as they stood before the operator, so that what their sources still repeat is settled
    however long the operator took.
    """

    field: Text
    subject: str | None = None
    value: Said
    unit: str | None = None
    observations: Annotated[list[Text], Field(min_length=1)]
    seen: list[Seen] = []


class AnswerMessage(Wire):
    """`answers`: an operator's answer to an ESCALATE: who, when, why, and what it settles.

    `deny` ends the proposal. `approve` settles the ambiguities and conflicts that `settles` names, and only those;
    everything else is checked again, and the answer counts for as long as each field's `freshness_ms` says.
    """

    format: Literal["wirelessops.answer/1"] = "wirelessops.answer/1"
    answer_id: Text
    decision_id: Text
    proposal_id: Text
    verdict: Literal["approve", "deny"]
    operator: Text
    reason: Text
    at_ms: EpochMs
    settles: list[Settled] = []


SWITCH_FORMAT: Final = "wirelessops.switch/1"
SWITCHED_FORMAT: Final = "wirelessops.switched/1"


class SwitchMessage(Wire):
    """`answers`: an operator's switch. `hold` (the kill switch) and `shadow` turn what would be APPLY into HOLD.

    The key is `region`; without a key (`region` null) it is for all regions of its partition, and is written to every
    partition. Of one scope the newest in the log counts, of both the stricter: `hold`, `shadow`, `live`. The form is
    closed: one that says more than these members is refused as a whole, for what it would not loosen is unknown.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["wirelessops.switch/1"] = "wirelessops.switch/1"
    switch_id: ShortText
    mode: Literal["live", "hold", "shadow"]
    operator: ShortText
    reason: Annotated[str, Field(strict=True, min_length=1, max_length=500)]
    at_ms: EpochMs
    region: Annotated[str, Field(strict=True, min_length=1, max_length=MAX_REGION_LENGTH)] | None = None


class SwitchedMessage(Wire):
    """`controls`: the newest switch of a scope, kept by the partition's owner; `offset`: where it stood on `answers`.

    Its key is `{"switch": region}`, region null for the switch for all regions.
    """

    format: Literal["wirelessops.switched/1"] = "wirelessops.switched/1"
    partition: Count
    region: str | None
    offset: Count
    switch: SwitchMessage
    signature: SignatureMessage | None = None


class DeadLetterMessage(Wire):
    """`dead-letters`: a message that could not be used, where it stood, why, and its bytes.

    `key` and `value` are base64; the value is null where it was null, or where it was too large to carry or no longer
    held: `value_bytes` and `value_sha256` then say what is known of it. `last_offset` closes a range of
    offsets that were lost.
    """

    format: Literal["wirelessops.dead-letter/1"] = "wirelessops.dead-letter/1"
    topic: str
    partition: Count
    offset: Count
    last_offset: Count | None = None
    timestamp_ms: int | None
    key: str | None
    value: str | None
    value_bytes: Count | None = None
    value_sha256: str | None = None
    reason: str


class AsOfQuery(Wire):
    """`queries`, kind `as_of`: what was known at `ingest_time_ms` of one name of one subject at `event_time_ms`.

    A time of none means the time of answering.
    """

    format: Literal["wirelessops.query/1"] = "wirelessops.query/1"
    kind: Literal["as_of"] = "as_of"
    query_id: Text
    name: Text
    subject: str | None = None
    source: str | None = None
    event_time_ms: EpochMs | None = None
    ingest_time_ms: EpochMs | None = None


class ViewQuery(Wire):
    """`queries`, kind `view`: the normalised view of a contract at given bindings, at the time of answering."""

    format: Literal["wirelessops.query/1"] = "wirelessops.query/1"
    kind: Literal["view"] = "view"
    query_id: Text
    contract_ref: Text
    bindings: dict[str, str | list[str]] = {}


QUERY: Final[TypeAdapter[AsOfQuery | ViewQuery]] = TypeAdapter(
    Annotated[AsOfQuery | ViewQuery, Field(discriminator="kind")]
)


class ViewMessage(Wire):
    """`views`: the answer to one query. Exactly one of `observations`, `view` and `error` is not null."""

    format: Literal["wirelessops.view/1"] = "wirelessops.view/1"
    query_id: str
    region: str
    answered_at_ms: EpochMs
    evidence: Evidence | None
    observations: list[dict[str, Any]] | None = None
    view: dict[str, Any] | None = None
    error: str | None = None


class SourceStatusItem(Wire):
    """One source of a region that some contract lists: whether it is up, and when it was heard.

    `event_time_ms`, `ingest_time_ms`: of the newest report or status; null: nothing held. `limit_ms`: the tightest
    `freshness_ms` of any contract's field that lists it; `period_ms`: the period that it declared.
    """

    region: str
    source: str
    state: Literal["up", "outage"]
    event_time_ms: int | None
    ingest_time_ms: int | None
    limit_ms: Count
    period_ms: Count | None


class SwitchInForce(Wire):
    """A switch that is in force in the partition; `region` null: for all its regions."""

    region: str | None
    mode: Literal["hold", "shadow"]
    operator: str
    reason: str
    at_ms: EpochMs
    switch_id: str


class OpenCounts(Wire):
    """Proposals without a final decision: how many wait under which action, and how many are to be decided."""

    HOLD: Count
    RETRY: Count
    ESCALATE: Count
    ready: Count


class StatusMessage(Wire):
    """`status`: what the owner of a partition says of it, once a second; the key is the partition's number.

    `started_at_ms`: of the guard; `why_not_ready`: null where the guard is ready; `behind`: messages of each topic that
    were not taken in yet, by the topic's name without the prefix; `decisions`: of the partition, as `sequence` counts
    them; `records`: the index of the next record in the chain; `leases` held now. `sources`: worst first (outage, then
    age against its limit), at most 500, `omitted` more are held; `source_counts`: of all, `stale` are up, and older
    than their limit.
    """

    format: Literal["wirelessops.status/1"] = "wirelessops.status/1"
    guard: str
    partition: Count
    at_ms: EpochMs
    started_at_ms: EpochMs
    warm: bool
    why_not_ready: str | None
    open: OpenCounts
    behind: dict[str, Count]
    decisions: Count
    records: Count
    leases: Count
    sources: list[SourceStatusItem]
    source_counts: dict[Literal["up", "outage", "stale"], Count]
    omitted: Count
    switches: list[SwitchInForce]


MODELS: Final[dict[str, type[Wire]]] = {
    "wirelessops.proposal/1": ProposalMessage,
    "wirelessops.decision/1": DecisionMessage,
    "wirelessops.request/1": RequestMessage,
    "wirelessops.outcome/1": OutcomeMessage,
    "wirelessops.answer/1": AnswerMessage,
    "wirelessops.switch/1": SwitchMessage,
    "wirelessops.switched/1": SwitchedMessage,
    "wirelessops.dead-letter/1": DeadLetterMessage,
    "wirelessops.view/1": ViewMessage,
    "wirelessops.status/1": StatusMessage,
}


def schemas() -> dict[str, dict[str, Any]]:
    """JSON Schema (draft 2020-12) of every message, and of the documents of folders, by its `format`."""
    from streams import sealed_messages, telemetry
    from xapp.support import reference_map, terms

    found = {name: model.model_json_schema() for name, model in MODELS.items()}
    found["wirelessops.query/1"] = QUERY.json_schema()
    found["wirelessops.contract/1"] = contract_schema()
    found[terms.FORMAT] = terms.TermsDocument.model_json_schema()
    found[reference_map.FORMAT] = reference_map.MapDocument.model_json_schema()
    return {**found, **telemetry.wire_schemas(), **sealed_messages.sealed_schemas()}
