"""Wire models of what a guard keeps of itself: the control that holds a key, checkpoints, and the envelopes of both
records and checkpoints (docs/tamper-evidence.md).
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, JsonValue

from streams.messages import Count, EpochMs, Quantity, SignatureMessage, Text, Wire
from xapp.chain import CHECKPOINT_TYPE, RECORD_TYPE

Address = Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$", description="SHA-256 of canonical bytes")]
Base64 = Annotated[str, Field(json_schema_extra={"contentEncoding": "base64"})]


class AppliedControlMessage(Wire):
    """A control that was released, and what became of it: an item of an episode's `controls`."""

    control_key: str
    decision_id: str
    proposal_id: str
    values: dict[str, Quantity]
    granted_at_ms: EpochMs
    proposer: str
    contract_id: str
    bindings: dict[str, JsonValue]
    lease_until_ms: int | None
    coupled: list[str]
    merged_with: str | None
    ack_until_ms: int | None
    effect_within_ms: int | None
    applied_at_ms: int | None
    outcome: Literal["granted", "unacknowledged", "refused", "applied", "no_effect", "effect"]


class ControlMessage(Wire):
    """`controls`: the newest control of a key, as it stands. The key of the message is `[region, control_key]`."""

    format: Literal["wirelessops.control/1"]
    region: Text
    control: AppliedControlMessage
    signature: SignatureMessage | None = None


OPEN_FORMAT: Final = "wirelessops.open/1"


class OpenMessage(Wire):
    """`controls`: what a partition's owner keeps of it while an old proposal waits (docs/control-path.md).

    Before the decision of `sequence`, all proposals below offset `proposals` had their final decision but for those in
    `open`: offset, attempts so far, and when the first was made, Unix ms. `decided_at_ms` is that of the decision
    before. The key of the message is `{"open": partition}`.
    """

    format: Literal["wirelessops.open/1"]
    partition: Count
    proposals: Count
    sequence: Count
    decided_at_ms: EpochMs
    open: list[tuple[Count, Count, EpochMs]]
    signature: SignatureMessage | None = None


class CheckpointMessage(Wire):
    """The payload of an envelope on `checkpoints`: `head` is the address of the record at `index` of a partition."""

    format: Literal["wirelessops.checkpoint/1"]
    topic: Text
    partition: Count
    index: Count
    head: Address
    at_ms: EpochMs
    guard: Text


class EnvelopeSignature(Wire):
    """Ed25519 over the pre-authentication encoding of payload type and payload."""

    keyid: Text
    sig: Base64


class EnvelopeMessage(Wire):
    """A DSSE envelope (secure-systems-lab/dsse, protocol 1.0). Without signatures where the guard runs unsigned."""

    payloadType: Text
    payload: Base64
    signatures: list[EnvelopeSignature]


class RecordEnvelope(EnvelopeMessage):
    """`records`: around a `wirelessops.decision/1` with its full `record`, and its `chain`."""

    payloadType: Literal["application/vnd.wirelessops.decision+json"] = RECORD_TYPE


class CheckpointEnvelope(EnvelopeMessage):
    """`checkpoints`: around a `wirelessops.checkpoint/1`."""

    payloadType: Literal["application/vnd.wirelessops.checkpoint+json"] = CHECKPOINT_TYPE


MODELS: Final[dict[str, type[Wire]]] = {
    "wirelessops.control/1": ControlMessage,
    OPEN_FORMAT: OpenMessage,
    "wirelessops.checkpoint/1": CheckpointMessage,
    "wirelessops.record/1": RecordEnvelope,
    "wirelessops.checkpoint-envelope/1": CheckpointEnvelope,
}
"""Envelopes carry no `format`: `record/1` is what `ce_type` says of one on `records`."""


def sealed_schemas() -> dict[str, dict[str, Any]]:
    """JSON Schema of each, by its name."""
    return {name: model.model_json_schema() for name, model in MODELS.items()}
