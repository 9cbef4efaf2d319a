"""The nouns of the engine: frozen values, no behaviour that needs a clock or a network.

Times are Unix milliseconds, UTC. Every class here is immutable; equal content is equal.
Source of the terms: `docs/concepts.md` (the rules of assurance, sections 1 and 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from xapp.contract import Contract
    from xapp.support.carried import Support, SupportVerdict

Scalar = float | int | str | bool
Action = Literal["APPLY", "HOLD", "RETRY", "ESCALATE", "ABSTAIN"]

QUALITIES: Final[tuple[str, ...]] = ("good", "suspect", "no_value", "incomplete")
ORIGINS: Final[tuple[str, ...]] = ("live", "memory", "operator")
ACTIONS: Final[tuple[str, ...]] = ("APPLY", "HOLD", "RETRY", "ESCALATE", "ABSTAIN")
SWITCH_MODES: Final[tuple[str, ...]] = ("hold", "shadow")
"""What a switch may say that is in force, the stricter first."""
OUTCOMES: Final[tuple[str, ...]] = ("granted", "unacknowledged", "refused", "applied", "no_effect", "effect")
"""What became of a control, each overriding those before it, in whatever order they are heard."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One value as a source exposed it (the raw view). Never rewritten.

    `event_time_ms`: when it was measured (window end for a windowed metric).
    `ingest_time_ms`: when it arrived, by the guard's clock.
    `version`: the source's state version; `parents`: ids it was computed from.
    """

    id: str
    name: str
    value: Scalar | None
    unit: str | None
    source: str
    event_time_ms: int
    ingest_time_ms: int
    version: int | None = None
    quality: str = "good"
    schema: str | None = None
    subject: str | None = None
    parents: tuple[str, ...] = ()
    origin: str = "live"


@dataclass(frozen=True, slots=True)
class SourceState:
    """What a source says of itself: `up`, or `outage` with its retry terms.

    `retry_after_ms` is None where no finite back-off was given; `retries_left` counts attempts that remain (≥ 0).
    """

    status: Literal["up", "outage"] = "up"
    retryable: bool = False
    retry_after_ms: int | None = None
    retries_left: int = 0


UP: Final = SourceState()


@dataclass(frozen=True, slots=True)
class Measurement:
    """One metric of a report. `subject`, `quality`, `event_time_ms` and `schema` of None mean: the report's own.

    `id` of None means: `"{report_id}#{index}"`.
    """

    name: str
    value: Scalar | None
    unit: str | None = None
    subject: str | None = None
    quality: str | None = None
    event_time_ms: int | None = None
    schema: str | None = None
    id: str | None = None
    parents: tuple[str, ...] = ()
    origin: str = "live"


@dataclass(frozen=True, slots=True)
class Report:
    """Many measurements of one source at one event time: what one telemetry message carries.

    `report_id` is unique per source (the idempotency key); `period_ms` is the source's declared reporting period.
    """

    report_id: str
    source: str
    event_time_ms: int
    measurements: tuple[Measurement, ...]
    version: int | None = None
    schema: str | None = None
    subject: str | None = None
    quality: str = "good"
    period_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """What an automation asks for. `raw` is the document as it arrived; the record embeds it.

    `plan`: field name as the proposer wrote it → its entry as written, `{"value": …, "unit": …}`.
    `bindings`: name → string, or tuple of distinct strings (a mapping over many subjects, eq. 3).
    """

    proposal_id: str
    proposer: str
    created_at_ms: int
    control_key: str
    plan: Mapping[str, Any]
    intent: str = "APPLY"
    deadline_ms: int | None = None
    contract_ref: str | None = None
    bindings: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    expected: Mapping[str, Any] | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Malformed:
    """A proposal that cannot be read: what is known of it, and where it is wrong (JSON path, reason)."""

    proposal_id: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class AppliedControl:
    """A control that was released, and what became of it (section 7): an item of an episode's `controls`.

    `values`: planned field → `{"value", "unit"}` as released; `granted_at_ms`: t of its decision; `lease_until_ms`:
    inclusive, None without a lease; `coupled`: keys that it moves too; `merged_with`: the proposal whose values it
    repeats; `applied_at_ms`: when the network acknowledged it; `ack_until_ms`: until when an acknowledgement is awaited
    (inclusive), None where none is; `effect_within_ms`: how long after it the effect is watched, None where it is not.
    """

    control_key: str
    decision_id: str
    proposal_id: str
    values: Mapping[str, Any]
    granted_at_ms: int
    proposer: str = ""
    contract_id: str = ""
    bindings: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    lease_until_ms: int | None = None
    coupled: tuple[str, ...] = ()
    merged_with: str | None = None
    ack_until_ms: int | None = None
    effect_within_ms: int | None = None
    applied_at_ms: int | None = None
    outcome: str = "granted"

    @property
    def acknowledged(self) -> bool:
        """Whether the network said that it applied it, or that its effect was looked for."""
        return self.applied_at_ms is not None or self.outcome in ("applied", "no_effect", "effect")

    @property
    def effect_until_ms(self) -> int | None:
        """Until when its effect is watched, inclusive; None where it is not, or not yet."""
        if self.applied_at_ms is None or self.effect_within_ms is None:
            return None
        return self.applied_at_ms + self.effect_within_ms


@dataclass(frozen=True, slots=True)
class Switch:
    """An operator's switch in force: it turns what would be APPLY into HOLD. `reason`: in the operator's words."""

    mode: Literal["hold", "shadow"]
    operator: str
    reason: str
    at_ms: int
    switch_id: str


@dataclass(frozen=True, slots=True)
class Episode:
    """Everything one decision depends on (section 1).

    `proposal_raw` is the proposal document as it arrived, whether or not it could be read.
    `sources` holds only sources that are not plainly up. `contract` is None only where the proposal names none that is
    known here; it is `Malformed` then. `switch` is None where nothing is switched; `support`: what the support gate
    decides on, None where there is no gate for the contract.
    """

    episode_id: str
    decided_at_ms: int
    contract: Contract | None
    observations: tuple[Observation, ...]
    proposal: Proposal | Malformed
    proposal_raw: Mapping[str, Any]
    sources: Mapping[str, SourceState] = field(default_factory=dict)
    controls: tuple[AppliedControl, ...] = ()
    switch: Switch | None = None
    support: Support | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """One typed fault (section 3 to 5). `blocking` says whether it kept the decision from APPLY."""

    code: str
    field: str | None
    constraint: str | None
    observations: tuple[str, ...]
    resolved: bool
    blocking: bool
    detail: str

    @property
    def told(self) -> str:
        """Code, place and detail, for a sentence."""
        place = self.field or self.constraint
        return f"{self.code}{f' of {place}' if place else ''}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Repair:
    """One accepted repair (eq. 7, 8). `before` and `after` are `from` and `to` in the decision document."""

    operator: Literal["rename", "convert_unit", "substitute_source", "recall", "recompute"]
    field: str
    before: Any
    after: Any
    support: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Retry:
    """Terms of a RETRY: which source to ask again, after how long, and how many attempts it has left."""

    source: str
    after_ms: int
    left: int


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer to one proposal (section 6). `xapp.authorization.decision_json` gives its JSON form.

    `record` is canonical JSON, digest included: what replay and audit need. `lease`: the control that an APPLY under a
    contract with `control` grants; it follows from the rest, and is no member of the document. `support`: the verdict
    of the support gate, None without one, or where the proposal could not be read.
    """

    decision_id: str
    episode_id: str
    proposal_id: str
    action: str
    control_key: str | None
    bindings: Mapping[str, Any]
    released: Mapping[str, Any] | None
    valid_until_ms: int | None
    violations: tuple[Violation, ...]
    repairs: tuple[Repair, ...]
    used: Mapping[str, tuple[str, ...]]
    blocked: tuple[str, ...]
    retry: Retry | None
    explanation: str
    record: bytes
    lease: AppliedControl | None = None
    support: SupportVerdict | None = None
