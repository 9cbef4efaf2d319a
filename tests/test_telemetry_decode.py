"""The telemetry decoder: what it accepts is what the models accept, whichever way a message takes."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.bench_store import measure_store, messages
from streams.telemetry import Decoded, Decoder, SourceStatus, Undecodable, encode_report, encode_status, wire_schemas
from streams.telemetry_messages import INT_MAX, INT_MIN, ReportMessage
from xapp.evidence.series import ReportColumns
from xapp.model import Measurement, Report, SourceState

T = 1_790_000_000_000
REPORT: dict[str, Any] = {
    "format": "wirelessops.telemetry/1",
    "report_id": "r1",
    "source": "e2:gnb-1",
    "event_time_ms": T,
    "version": 3,
    "schema": "kpm/3",
    "subject": "cell:1",
    "quality": "good",
    "period_ms": 100,
    "measurements": [
        {"name": "CQI", "value": 11, "unit": "1", "subject": "cell:1/ue:1"},
        {"name": "DRB.UEThpDl", "value": 2.5, "unit": "kbit/s"},
        {"name": "state", "value": "open", "quality": "suspect"},
    ],
}
OWN: dict[str, Any] = copy.deepcopy(REPORT)  # the same shape, with what a measurement may have of its own
OWN["measurements"][0] |= {"event_time_ms": T - 3, "id": "x", "parents": ["y"]}
STATUS: dict[str, Any] = {
    "format": "wirelessops.source-status/1",
    "source": "rt:north",
    "status": "outage",
    "retryable": True,
    "retry_after_ms": 200,
    "retries_left": 2,
    "event_time_ms": T,
}


def decoder_that_knows(*documents: dict[str, Any]) -> Decoder:
    decoder = Decoder()
    for document in documents:
        decoder.decode(orjson.dumps(document))
    return decoder


def columns(decoded: Decoded) -> ReportColumns:
    assert isinstance(decoded.message, ReportColumns)
    return decoded.message


def outcome(decoder: Decoder, value: bytes) -> tuple[Any, ...]:
    """What decoding gives, in a form that compares: 1, 1.0 and True are three things."""
    try:
        decoded = decoder.decode(value)
    except Undecodable as error:
        return ("undecodable", str(error))
    if isinstance(decoded.message, SourceStatus):
        return (decoded.message, decoded.unknown_keys)
    message = decoded.message
    own = (message.times, message.ids, message.parents, [type(v) for v in message.values])
    return (message.report(), own, decoded.unknown_keys)


def changed(document: dict[str, Any], path: tuple[str | int, ...], value: Any) -> bytes:
    document = copy.deepcopy(document)
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(document).encode()


# ── what a message says ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_report_is_read_with_its_defaults_filled_in() -> None:
    read = columns(Decoder().decode(orjson.dumps(REPORT))).report()
    assert read == Report(
        "r1", "e2:gnb-1", T, version=3, period_ms=100,
        measurements=(
            Measurement("CQI", 11, "1", "cell:1/ue:1", "good", schema="kpm/3"),
            Measurement("DRB.UEThpDl", 2.5, "kbit/s", "cell:1", "good", schema="kpm/3"),
            Measurement("state", "open", None, "cell:1", "suspect", schema="kpm/3"),
        ),
    )  # fmt: skip


def test_a_status_is_read() -> None:
    state = SourceState("outage", retryable=True, retry_after_ms=200, retries_left=2)
    assert Decoder().decode(orjson.dumps(STATUS)).message == SourceStatus("rt:north", state, T)
    short = {key: STATUS[key] for key in ("format", "source", "event_time_ms")} | {"status": "up"}
    assert Decoder().decode(orjson.dumps(short)).message == SourceStatus("rt:north", SourceState("up"), T)


@pytest.mark.parametrize(
    ("key", "value"), [("source", "e2:gnb-2"), ("subject", "cell:2"), ("quality", "suspect"), ("schema", None)]
)
def test_what_a_header_says_reaches_every_measurement(key: str, value: Any) -> None:
    other = REPORT | {key: value, "report_id": "r2"}
    decoder = decoder_that_knows(REPORT)
    read = columns(decoder.decode(orjson.dumps(other))).report()
    assert read == columns(Decoder().decode(orjson.dumps(other))).report()
    assert read != columns(decoder.decode(orjson.dumps(REPORT | {"report_id": "r2"}))).report()


def test_unknown_keys_are_ignored_and_counted() -> None:
    more = copy.deepcopy(REPORT) | {"vendor": {"x": [1]}, "note": 1}
    more["measurements"][1]["label"] = "a"
    decoder = Decoder()
    for _ in range(3):
        decoded = decoder.decode(orjson.dumps(more))
        assert decoded.unknown_keys == 3
        assert columns(decoded).report() == columns(Decoder().decode(orjson.dumps(REPORT))).report()
    assert Decoder().decode(orjson.dumps(STATUS | {"vendor": 1})).unknown_keys == 1


@pytest.mark.parametrize("known", [(), (REPORT,), (OWN,)], ids=["first", "known shape", "known with times of its own"])
@pytest.mark.parametrize(
    ("path", "value", "place", "reason"),
    [
        (("format",), "wirelessops.telemetry/2", "$.format", "required"),
        (("format",), ["x"], "$.format", "required"),
        (("report_id",), "", "$.report_id", "at least 1"),
        (("report_id",), 5, "$.report_id", "string"),
        (("source",), None, "$.source", "string"),
        (("event_time_ms",), T // 1000, "$.event_time_ms", "looks like seconds"),
        (("event_time_ms",), T * 1000, "$.event_time_ms", "looks like microseconds"),
        (("event_time_ms",), T * 10**6, "$.event_time_ms", "looks like nanoseconds"),
        (("event_time_ms",), -T, "$.event_time_ms", "no time in milliseconds"),
        (("event_time_ms",), float(T), "$.event_time_ms", "integer"),
        (("event_time_ms",), True, "$.event_time_ms", "integer"),
        (("event_time_ms",), str(T), "$.event_time_ms", "integer"),
        (("version",), True, "$.version", "integer"),
        (("version",), 2**64, "$.version", "integer"),
        (("period_ms",), 0, "$.period_ms", "greater than 0"),
        (("subject",), "", "$.subject", "at least 1"),
        (("quality",), "fine", "$.quality", "good"),
        (("measurements",), {}, "$.measurements", "list"),
        (("measurements", 1), 7, "$.measurements[1]", "object"),
        (("measurements", 0), [], "$.measurements[0]", "object"),
        (("measurements", 1, "name"), "", "$.measurements[1].name", "at least 1"),
        (("measurements", 1, "value"), [1], "$.measurements[1].value", "required"),
        (("measurements", 1, "value"), {}, "$.measurements[1].value", "required"),
        (("measurements", 1, "value"), 2**64, "$.measurements[1].value", "beyond 64 bits"),
        (("measurements", 1, "value"), -(2**63) - 1, "$.measurements[1].value", "beyond 64 bits"),
        (("measurements", 1, "value"), 10**300, "$.measurements[1].value", "beyond 64 bits"),
        (("measurements", 1, "unit"), 1, "$.measurements[1].unit", "string"),
        (("measurements", 1, "id"), "", "$.measurements[1].id", "at least 1"),
        (("measurements", 1, "parents"), None, "$.measurements[1].parents", "list"),
        (("measurements", 1, "parents"), ["a", 1], "$.measurements[1].parents[1]", "string"),
        (("measurements", 1, "parents"), ["a", ""], "$.measurements[1].parents[1]", "at least 1"),
        (("measurements", 1, "parents"), "ab", "$.measurements[1].parents", "list"),
        (("measurements", 1, "id"), 1, "$.measurements[1].id", "string"),
        (("measurements", 1, "event_time_ms"), float(T), "$.measurements[1].event_time_ms", "integer"),
        (("measurements", 1, "event_time_ms"), 17, "$.measurements[1].event_time_ms", "milliseconds"),
        (("measurements", 1, "origin"), "rumour", "$.measurements[1].origin", "live"),
        (("measurements", 1, "quality"), True, "$.measurements[1].quality", "good"),
    ],
)
def test_a_fault_is_named_with_its_place(
    known: tuple[dict[str, Any], ...], path: tuple[str | int, ...], value: Any, place: str, reason: str
) -> None:
    with pytest.raises(Undecodable) as caught:
        decoder_that_knows(*known).decode(changed(REPORT, path, value))
    told, _, why = str(caught.value).partition(": ")
    assert told == place
    assert reason in why


@pytest.mark.parametrize("key", ["report_id", "source", "event_time_ms", "measurements"])
def test_what_a_report_needs_is_required(key: str) -> None:
    document = {k: v for k, v in REPORT.items() if k != key}
    with pytest.raises(Undecodable, match=rf"^\$\.{key}: is required"):
        decoder_that_knows(REPORT).decode(orjson.dumps(document))


@pytest.mark.parametrize("key", ["name", "value"])
def test_what_a_measurement_needs_is_required(key: str) -> None:
    document = copy.deepcopy(REPORT)
    del document["measurements"][2][key]
    with pytest.raises(Undecodable, match=rf"^\$\.measurements\[2\]\.{key}: is required"):
        decoder_that_knows(REPORT).decode(orjson.dumps(document))


@pytest.mark.parametrize(
    ("key", "value"),
    [("status", "down"), ("retryable", 1), ("retry_after_ms", -1), ("retries_left", None), ("event_time_ms", 5)],
)
def test_a_status_with_a_fault_is_refused(key: str, value: Any) -> None:
    with pytest.raises(Undecodable, match=rf"^\$\.{key}: "):
        Decoder().decode(orjson.dumps(STATUS | {key: value}))


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        changed(REPORT, ("source",), "lone").replace(b"lone", rb"\ud800"),
        changed(REPORT, ("source",), "latin").replace(b"latin", b"\xe9"),
        changed(REPORT, ("measurements", 1, "value"), float("nan")),
        changed(REPORT, ("measurements", 1, "value"), float("-inf")),
        changed(REPORT, ("measurements", 1, "value"), 12321).replace(b"12321", b"1e999"),
        changed(REPORT, ("vendor",), 12321).replace(b"12321", b"[" * 10_000 + b"]" * 10_000),
        changed(REPORT, ("vendor",), 12321).replace(b"12321", b"[" * 200 + b"]" * 200),
        changed(REPORT, ("measurements", 1, "vendor"), 12321).replace(b"12321", b"[" * 200 + b"]" * 200),
        changed(REPORT, ("vendor",), "x" * 10_000_000),
    ],
    ids=lambda value: f"{len(value or b'')} bytes",
)
def test_what_is_no_message_is_refused_with_a_reason(value: bytes | None) -> None:
    for decoder in (Decoder(), decoder_that_knows(REPORT)):
        with pytest.raises(Undecodable, match=r"^\$: \S"):
            decoder.decode(value)


@pytest.mark.parametrize("value", [INT_MIN, INT_MAX, 1e19, -9.3e18, 2.0**64, 1e300, 0, -0.0, True, False, "", None])
def test_a_value_arrives_as_it_was_sent(value: Any) -> None:
    for decoder in (Decoder(), decoder_that_knows(REPORT)):
        (_, read, _) = columns(decoder.decode(changed(REPORT, ("measurements", 1, "value"), value))).values
        assert read == value
        assert type(read) is type(value)


# ── the fast way and the slow way ────────────────────────────────────────────────────────────────────────────────────

TEXT = st.sampled_from(["", "a", "CQI", "cell:1/ue:1", "Ä"])
ODD = st.sampled_from([None, True, 0, 1, -1, 1.0, 1.5, T, float(T), 2**63, 2**64, 1e19, 10**30, "", "x", [], ["a"],
                       ["a", ""], {}, {"a": 1}, "good", "suspect", "live", "memory", "r1#1"])  # fmt: skip
PLACES: list[tuple[str | int, ...]] = [
    *[(key,) for key in REPORT],
    ("vendor",),
    *[("measurements", i, key) for i in range(3)
      for key in ("name", "value", "unit", "subject", "quality", "event_time_ms", "schema", "id", "parents", "origin",
                  "vendor")],
    ("measurements", 0),
]  # fmt: skip


@settings(max_examples=600, deadline=None)
@given(
    st.sampled_from([REPORT, OWN]),
    st.lists(st.tuples(st.sampled_from(PLACES), ODD), max_size=3),
    st.lists(st.tuples(st.sampled_from(PLACES), ODD), max_size=3),
)
def test_a_decoder_with_memory_decodes_as_one_without(
    start: dict[str, Any],
    first: list[tuple[tuple[str | int, ...], Any]],
    second: list[tuple[tuple[str | int, ...], Any]],
) -> None:
    values = []
    for changes in ([], first, second):
        document = copy.deepcopy(start)
        for path, value in sorted(changes, key=lambda change: -len(change[0])):
            document = json.loads(changed(document, path, value))
        values.append(json.dumps(document).encode())
    decoder = Decoder()
    for value in values + values[::-1] + values:
        assert outcome(decoder, value) == outcome(Decoder(), value)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PLACES), ODD)
def test_what_the_decoder_accepts_its_json_schema_accepts(path: tuple[str | int, ...], value: Any) -> None:
    sent = changed(REPORT, path, value)
    accepted = outcome(decoder_that_knows(REPORT), sent)[0] != "undecodable"
    # the parser of the schema's validator takes 1.0 for an integer; on the wire it is none
    integral = isinstance(value, float) and value.is_integer() and path[-1] in ("event_time_ms", "version", "period_ms")
    # and knows no bound of integers where any number may stand
    wide = isinstance(value, int) and not INT_MIN <= value <= INT_MAX and path[-1] == "value"
    valid = jsonschema.Draft202012Validator(wire_schemas()["wirelessops.telemetry/1"]).is_valid(json.loads(sent))
    assert accepted == (valid and not integral and not wide)


@given(
    st.builds(
        Report,
        report_id=st.sampled_from(["r1", "r2"]),
        source=st.sampled_from(["a", "b"]),
        event_time_ms=st.integers(T, T + 5),
        version=st.none() | st.integers(INT_MIN, INT_MAX),
        schema=st.none() | TEXT,
        subject=st.none() | st.sampled_from(["cell:1", "cell:2"]),
        quality=st.sampled_from(["good", "suspect"]),
        period_ms=st.none() | st.integers(1, 9),
        measurements=st.lists(
            st.builds(
                Measurement,
                name=st.sampled_from(["CQI", "x y"]),
                value=st.none() | st.booleans() | st.integers(INT_MIN, INT_MAX) | TEXT
                | st.floats(allow_nan=False, allow_infinity=False),
                unit=st.none() | TEXT,
                subject=st.none() | st.just("ue:1"),
                quality=st.none() | st.just("no_value"),
                event_time_ms=st.none() | st.integers(T, T + 5),
                schema=st.none() | TEXT,
                id=st.none() | st.sampled_from(["own", "r1#0"]),
                parents=st.just(()) | st.just(("p", "q")),
                origin=st.sampled_from(["live", "memory"]),
            ),
            max_size=3,
        ).map(tuple),
    )
)  # fmt: skip
def test_what_is_encoded_is_decoded_again(report: Report) -> None:
    decoder = Decoder()
    for _ in range(2):  # the second time it is a known shape
        read = columns(decoder.decode(encode_report(report))).report()
        assert (read.report_id, read.source, read.event_time_ms) == (
            report.report_id,
            report.source,
            report.event_time_ms,
        )
        assert (read.version, read.period_ms) == (report.version, report.period_ms)
        for index, (got, sent) in enumerate(zip(read.measurements, report.measurements, strict=True)):
            assert (got.name, got.value, type(got.value)) == (sent.name, sent.value, type(sent.value))
            assert (got.unit, got.parents, got.origin) == (sent.unit, sent.parents, sent.origin)
            assert got.subject == (report.subject if sent.subject is None else sent.subject)
            assert got.quality == (report.quality if sent.quality is None else sent.quality)
            assert got.schema == (report.schema if sent.schema is None else sent.schema)
            derived = f"{report.report_id}#{index}"
            assert (got.id or derived) == (sent.id or derived)
            assert (got.event_time_ms or report.event_time_ms) == (sent.event_time_ms or report.event_time_ms)


def test_an_encoded_status_is_decoded_again() -> None:
    status = SourceStatus("s", SourceState("outage", retryable=True, retry_after_ms=None, retries_left=3), T)
    assert Decoder().decode(encode_status(status)).message == status


def test_reports_of_a_known_shape_do_not_go_through_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    again = copy.deepcopy(OWN) | {"report_id": "r2", "event_time_ms": T + 100}
    again["measurements"][0] |= {"value": None, "event_time_ms": T + 97, "id": "z", "parents": []}
    expected = columns(Decoder().decode(orjson.dumps(again))).report()
    decoder = decoder_that_knows(OWN)

    def slow(*_: Any, **__: Any) -> Any:
        raise AssertionError("the slow way was taken")

    monkeypatch.setattr(ReportMessage, "model_validate", slow)
    assert columns(decoder.decode(orjson.dumps(again))).report() == expected


def test_remembered_shapes_are_bounded() -> None:
    decoder = Decoder()
    wide = [{"name": f"m{i}", "value": i} for i in range(2000)]
    for n in range(120):
        decoder.decode(orjson.dumps(REPORT | {"source": f"s{n}", "measurements": wide}))
        assert sum(len(known.measurements) for known in decoder._remembered.values()) <= 100_000
    assert decoder._remembered


# ── speed and weight ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_storing_keeps_within_the_budget_of_memory_and_of_time() -> None:
    assert len(orjson.loads(messages(1)[0])["measurements"]) == 60
    measured = measure_store(observations=60_000, rounds=2)
    assert measured["bytes_per_observation"] <= 250
    # the aim is a tenth; measured is a fifth, so that a busy machine does not fail this
    assert measured["store_observations_per_s"] >= measured["decode_only_observations_per_s"] / 10
