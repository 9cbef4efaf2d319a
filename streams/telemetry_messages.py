"""Wire models of the telemetry topic: what a report and the status of a source may say, and their JSON Schemas."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, ValidationError
from pydantic_core import PydanticCustomError

from xapp.contract_loading import document_errors
from xapp.times import EARLIEST_MS, LATEST_MS, time_fault

REPORT_FORMAT: Final = "wirelessops.telemetry/1"
STATUS_FORMAT: Final = "wirelessops.source-status/1"
INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**64 - 1
"""Integers fit 64 bits, signed or unsigned."""


def _time(value: int) -> int:
    fault = time_fault(value)
    if fault is None:
        return value
    raise PydanticCustomError("time_ms", "{fault}", {"fault": fault})


TimeMs = Annotated[
    StrictInt,
    AfterValidator(_time),
    Field(json_schema_extra={"minimum": EARLIEST_MS, "exclusiveMaximum": LATEST_MS}),
]
Integer = Annotated[StrictInt, Field(ge=INT_MIN, le=INT_MAX)]
Count = Annotated[StrictInt, Field(ge=0, le=INT_MAX)]
Text = Annotated[str, Field(strict=True)]
Name = Annotated[str, Field(strict=True, min_length=1)]
Value = Annotated[
    StrictBool | Integer | Annotated[StrictFloat, Field(allow_inf_nan=False)] | Text | None,
    Field(union_mode="left_to_right"),
]
QualityName = Literal["good", "suspect", "no_value", "incomplete"]
OriginName = Literal["live", "memory"]
"""An operator speaks on `answers`, where only operators may write; telemetry cannot speak for one."""


class MeasurementMessage(BaseModel):
    """One metric of a report. What is null or absent, of subject to schema, is the report's own."""

    model_config = ConfigDict(frozen=True, extra="ignore", title="Measurement")

    name: Name = Field(description="the field's name as the source exposes it")
    value: Value = Field(description="null where there is none; integers fit 64 bits")
    unit: Text | None = Field(default=None, description="as exposed; null: the source gave none")
    subject: Name | None = None
    quality: QualityName | None = None
    event_time_ms: TimeMs | None = None
    schema_: Text | None = Field(default=None, alias="schema")
    id: Name | None = Field(default=None, description='null: "{report_id}#{index}"')
    parents: list[Name] = Field(default=[], description="ids of the observations it was computed from")
    origin: OriginName = "live"


class ReportHeader(BaseModel):
    """All of a report but its measurements."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    format: Literal["wirelessops.telemetry/1"]
    report_id: Name = Field(description="unique; the idempotency key together with the source")
    source: Name
    event_time_ms: TimeMs = Field(description="Unix time in ms, UTC, of the measurement (of a window: its end)")
    version: Integer | None = Field(default=None, description="the source's state version")
    schema_: Text | None = Field(default=None, alias="schema")
    subject: Name | None = Field(default=None, description="what it is about, e.g. cell:12/ue:7")
    quality: QualityName = "good"
    period_ms: Annotated[StrictInt, Field(gt=0, lt=LATEST_MS)] | None = Field(
        default=None, description="reporting period that the source declares; three silent ones count as an outage"
    )


class ReportMessage(ReportHeader):
    """One report of one source at one event time."""

    model_config = ConfigDict(title="wirelessops.telemetry/1")

    measurements: list[MeasurementMessage]


class StatusMessage(BaseModel):
    """What a source says of itself."""

    model_config = ConfigDict(frozen=True, extra="ignore", title="wirelessops.source-status/1")

    format: Literal["wirelessops.source-status/1"]
    source: Name
    status: Literal["up", "outage"]
    event_time_ms: TimeMs
    retryable: StrictBool = False
    retry_after_ms: Count | None = Field(default=None, description="null: no finite back-off is known")
    retries_left: Count = 0


def faults(error: ValidationError) -> dict[str, str]:
    """JSON path → what is wrong there, in the order found."""
    found: dict[str, str] = {}
    for (path, reason), detail in zip(document_errors(error), error.errors(), strict=True):
        if "value" in detail["loc"][:-1]:  # one of the types that a value may have; the others are as wrong
            path, reason = (
                path.partition(".value")[0] + ".value",
                "a finite number, string, boolean or null is required",
            )
        elif detail["type"] == "model_type":
            reason = "an object is required"
        found.setdefault(path, reason)
    return found


def wire_schemas() -> dict[str, dict[str, Any]]:
    """Format → JSON Schema of the messages of this topic."""
    return {REPORT_FORMAT: ReportMessage.model_json_schema(), STATUS_FORMAT: StatusMessage.model_json_schema()}
