"""The telemetry topic on the wire: one report with many measurements, or the status of a source.

The pydantic models say what is valid. `Decoder` reads bytes into columns for the evidence store: a message is compared
with the last of its kind, and what differs only in values is checked by hand; everything else goes through the models.
Unknown keys are ignored and counted. A JSON object that repeats a key counts with the last one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import orjson
from pydantic import ValidationError

from streams.telemetry_messages import (
    REPORT_FORMAT,
    STATUS_FORMAT,
    MeasurementMessage,
    ReportHeader,
    ReportMessage,
    StatusMessage,
    faults,
    wire_schemas,
)
from streams.wire import MAX_BYTES, parse_object
from xapp.evidence.series import Key, ReportColumns, Shape, make_columns
from xapp.model import Measurement, Report, SourceState
from xapp.times import EARLIEST_MS, LATEST_MS

__all__ = [
    "REPORT_FORMAT",
    "STATUS_FORMAT",
    "Decoded",
    "Decoder",
    "SourceStatus",
    "Undecodable",
    "decode",
    "encode_report",
    "encode_status",
    "wire_schemas",
]

_SHAPE_LIMIT: Final = 100_000
"""Measurements of remembered shapes, all together (some 20 MB)."""
_VALUE_TYPES: Final = frozenset((float, int, str, bool, type(None)))
_MISSING: Final = object()


class Undecodable(ValueError):
    """A telemetry message that cannot be read: a dead letter. The text has the JSON path and the reason."""


_REPORT_KEYS: Final = frozenset(f.alias or n for n, f in ReportMessage.model_fields.items())
_STATUS_KEYS: Final = frozenset(StatusMessage.model_fields)
_MEASUREMENT_KEYS: Final = frozenset(f.alias or n for n, f in MeasurementMessage.model_fields.items())
_OWN_KEYS: Final = frozenset(("event_time_ms", "id", "parents"))
_VARYING_KEYS: Final = _OWN_KEYS | {"value"}


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """A source's status, as of `event_time_ms`."""

    source: str
    state: SourceState
    event_time_ms: int


@dataclass(frozen=True, slots=True)
class Decoded:
    """One telemetry message, and how many keys in it nobody knows."""

    message: ReportColumns | SourceStatus
    unknown_keys: int = 0


@dataclass(frozen=True, slots=True)
class _Remembered:
    """A report's measurements without what changes from report to report: one that equals them is as valid.

    `own`: whether some had a time, an id or parents of their own.
    """

    measurements: list[dict[str, Any]]
    shape: Shape
    unknown_keys: int
    own: bool


class Decoder:
    """Bytes of the telemetry topic to columns. Remembers the shapes of reports, within a bound; else without state."""

    def __init__(self) -> None:
        self._remembered: dict[tuple[object, ...], _Remembered] = {}
        self._size = 0

    def decode(self, value: bytes | None) -> Decoded:
        """Read one message. Raises Undecodable."""
        if value is not None and len(value) <= MAX_BYTES:
            try:
                decoded = self._decode_known(orjson.loads(value))
            except (orjson.JSONDecodeError, ValidationError):
                decoded = None  # the slow way says what is wrong
            if decoded is not None:
                return decoded
        return self._decode_any(value)

    def _decode_known(self, document: Any) -> Decoded | None:
        """A report that differs only in values from one remembered; None for any other."""
        if type(document) is not dict:
            return None
        measurements = document.pop("measurements", None)
        if type(measurements) is not list or not measurements or type(measurements[0]) is not dict:
            return None
        header = ReportHeader.model_validate(document)
        known = self._remembered.get(_memory_key(header, measurements))
        if known is None:
            return None
        unknown_keys = known.unknown_keys
        if not document.keys() <= _REPORT_KEYS:
            unknown = [document[key] for key in document.keys() - _REPORT_KEYS]
            if any(type(v) is dict or type(v) is list for v in unknown):
                return None
            unknown_keys += len(unknown)
        times: list[Any] = []
        ids: list[Any] = []
        parents: list[Any] = []
        try:
            values = tuple([m.pop("value", _MISSING) for m in measurements])
            if known.own:
                times = [m.pop("event_time_ms", None) for m in measurements]
                ids = [m.pop("id", None) for m in measurements]
                parents = [m.pop("parents", []) for m in measurements]
        except (AttributeError, TypeError):
            return None
        if measurements != known.measurements or not _VALUE_TYPES.issuperset(map(type, values)):
            return None
        if any(type(v) is float and not -9.2e18 < v < 9.2e18 for v in values):
            return None
        if not (all(map(_is_time, times)) and all(map(_is_id, ids)) and all(map(_is_id_list, parents))):
            return None
        columns = make_columns(
            header.report_id,
            header.event_time_ms,
            known.shape,
            values=values,
            version=header.version,
            period_ms=header.period_ms,
            times=times,
            ids=ids,
            parents=[tuple(cited) for cited in parents],
        )
        return Decoded(columns, unknown_keys)

    def _decode_any(self, value: bytes | None) -> Decoded:
        try:
            document = parse_object(value)
        except ValueError as error:
            raise Undecodable(f"$: {error}") from error
        assert value is not None
        kind = document.get("format")
        try:
            if kind == REPORT_FORMAT:
                return self._decode_report(document, value)
            if kind == STATUS_FORMAT:
                return _decode_status(document)
        except ValidationError as error:
            (path, reason), *others = faults(error).items()
            raise Undecodable(f"{path}: {reason}" + (f" (and {len(others)} more)" if others else "")) from error
        raise Undecodable(f"$.format: {REPORT_FORMAT!r} or {STATUS_FORMAT!r} is required")

    def _decode_report(self, document: dict[str, Any], value: bytes) -> Decoded:
        report = ReportMessage.model_validate(document)
        _check_wide_integers(report, value)
        raw: list[dict[str, Any]] = document["measurements"]
        shape = Shape(report.source, tuple(_key(report, m) for m in report.measurements))
        unknown = sum(len(m.keys() - _MEASUREMENT_KEYS) for m in raw)
        if raw:
            self._remember(_memory_key(report, raw), raw, shape, unknown)
        unknown += len(document.keys() - _REPORT_KEYS)
        return Decoded(_columns(report, shape), unknown)

    def _remember(self, key: tuple[object, ...], raw: list[dict[str, Any]], shape: Shape, unknown_keys: int) -> None:
        if key not in self._remembered:  # one that is replaced has as many measurements: their number is in the key
            if self._size + len(raw) > _SHAPE_LIMIT:
                self._remembered.clear()
                self._size = 0
            self._size += len(raw)
        lasting = [{k: v for k, v in m.items() if k not in _VARYING_KEYS} for m in raw]
        own = not all(_OWN_KEYS.isdisjoint(m) for m in raw)
        self._remembered[key] = _Remembered(lasting, shape, unknown_keys, own)


def _is_time(value: Any) -> bool:
    return value is None or (type(value) is int and EARLIEST_MS <= value < LATEST_MS)


def _is_id(value: Any) -> bool:
    return value is None or (type(value) is str and value != "")


def _is_id_list(value: Any) -> bool:
    return type(value) is list and all(type(v) is str and v != "" for v in value)


def _memory_key(header: ReportHeader, measurements: list[dict[str, Any]]) -> tuple[object, ...]:
    first = measurements[0]
    marks = tuple(v if type(v) is str else None for v in (first.get("name"), first.get("subject")))
    return (header.source, header.subject, header.quality, header.schema_, len(measurements), *marks)


def _key(report: ReportHeader, m: MeasurementMessage) -> Key:
    return Key(
        report.subject if m.subject is None else m.subject,
        m.name,
        m.unit,
        report.quality if m.quality is None else m.quality,
        report.schema_ if m.schema_ is None else m.schema_,
        m.origin,
    )


def _columns(report: ReportMessage, shape: Shape) -> ReportColumns:
    own = report.measurements
    return make_columns(
        report.report_id,
        report.event_time_ms,
        shape,
        values=tuple([m.value for m in own]),
        version=report.version,
        period_ms=report.period_ms,
        times=[m.event_time_ms for m in own],
        ids=[m.id for m in own],
        parents=[tuple(m.parents) for m in own],
    )


def _check_wide_integers(report: ReportMessage, value: bytes) -> None:
    """Refuse integers beyond 64 bits, which the parser turns into floats of the same look."""
    suspects = [
        i for i, m in enumerate(report.measurements) if type(m.value) is float and not -9.2e18 < m.value < 9.2e18
    ]
    if suspects:
        exact = json.loads(value, parse_int=str)
        for i in suspects:
            if type(exact["measurements"][i]["value"]) is str:
                raise Undecodable(f"$.measurements[{i}].value: an integer beyond 64 bits")


def _decode_status(document: dict[str, Any]) -> Decoded:
    m = StatusMessage.model_validate(document)
    state = SourceState(m.status, m.retryable, m.retry_after_ms, m.retries_left)
    return Decoded(SourceStatus(m.source, state, m.event_time_ms), len(document.keys() - _STATUS_KEYS))


_DECODER: Final = Decoder()
decode = _DECODER.decode
"""`Decoder.decode` with one memory of shapes for the process."""


def encode_report(report: Report) -> bytes:
    """The wire form of a report; keys at their default are left out of measurements."""
    return orjson.dumps(
        {
            "format": REPORT_FORMAT,
            "report_id": report.report_id,
            "source": report.source,
            "event_time_ms": report.event_time_ms,
            "version": report.version,
            "schema": report.schema,
            "subject": report.subject,
            "quality": report.quality,
            "period_ms": report.period_ms,
            "measurements": [_encode_measurement(m) for m in report.measurements],
        }
    )


def _encode_measurement(m: Measurement) -> dict[str, Any]:
    document: dict[str, Any] = {"name": m.name, "value": m.value, "unit": m.unit}
    for key in ("subject", "quality", "event_time_ms", "schema", "id"):
        if (own := getattr(m, key)) is not None:
            document[key] = own
    if m.parents:
        document["parents"] = m.parents
    if m.origin != "live":
        document["origin"] = m.origin
    return document


def encode_status(status: SourceStatus) -> bytes:
    """The wire form of a source's status."""
    return orjson.dumps(
        {
            "format": STATUS_FORMAT,
            "source": status.source,
            "status": status.state.status,
            "retryable": status.state.retryable,
            "retry_after_ms": status.state.retry_after_ms,
            "retries_left": status.state.retries_left,
            "event_time_ms": status.event_time_ms,
        }
    )
