"""The JSON form of a contract (rules, section 1), as pydantic models: unknown keys and wrong types are refused here."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Text = Annotated[str, StringConstraints(min_length=1)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Milliseconds = Annotated[int, Field(strict=True, ge=0, lt=2**53)]


class Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FieldDocument(Document):
    """One field. `unit` of none is `1`; `freshness_ms` and `sources` belong to observed fields, and those need them."""

    kind: Literal["observed", "planned", "derived"]
    type: Literal["number", "string", "boolean"] = "number"
    unit: str | None = None
    min: Number | None = None
    max: Number | None = None
    aliases: list[Text] = []
    subject: Text | None = None
    freshness_ms: Milliseconds | None = None
    sources: list[Text] = []
    tolerance: NonNegative = 0.0
    rel_tolerance: Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)] = 0.0
    critical: bool = True
    schemas: list[Text] | None = None
    moved_by_control: bool = False
    repairable: bool = False
    max_repair: NonNegative | None = None
    expr: Text | None = None


class ConstraintDocument(Document):
    """One constraint; with `window_ms` it is eq. (4)."""

    id: Text
    expr: Text
    window_ms: Milliseconds | None = None
    max_gap_ms: Milliseconds | None = None


class BudgetDocument(Document):
    """At most `changes` of a key per `per_ms`; `max_step`: field → largest step from the value last applied."""

    changes: Annotated[int, Field(strict=True, ge=0, le=1000)] | None = None
    per_ms: Annotated[int, Field(strict=True, ge=1, lt=2**53)] | None = None
    max_step: dict[Text, NonNegative] = {}


class EffectDocument(Document):
    """What must be seen within `within_ms` of an acknowledgement."""

    expr: Text
    within_ms: Milliseconds


class ControlDocument(Document):
    """What the action changes (section 7); `key` may name bindings."""

    key: Text | None = None
    lease_ms: Milliseconds | None = None
    on_conflict: Literal["HOLD", "ESCALATE"] = "HOLD"
    coupled: list[Text] = []
    budget: BudgetDocument | None = None
    ack_ms: Milliseconds | None = None
    effect: EffectDocument | None = None


class ContractDocument(Document):
    """A contract as written."""

    contract_id: Text
    fields: dict[Text, FieldDocument]
    constraints: list[ConstraintDocument] = []
    control: ControlDocument | None = None
    max_clock_skew_ms: Milliseconds = 0
    override_intent: bool = False


def contract_schema() -> dict[str, Any]:
    """The JSON Schema of a contract document."""
    return ContractDocument.model_json_schema()
