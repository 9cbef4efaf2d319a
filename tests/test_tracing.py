"""Traces: one trace from the proposer through the guard to whoever reads the decision."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from guard_rig import REGION, Rig, contracts, guarded, proposal, report, running
from hypothesis import given
from hypothesis import strategies as st

from streams.broker import EmbeddedBroker
from streams.guard import Guard
from streams.settings import GuardSettings
from streams.trace_context import TraceParent, passed_on, span_of, trace_parent
from streams.tracing import start_tracing

TRACE, SPAN = 0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7
HEADER = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_the_example_of_the_recommendation_is_read() -> None:
    found = trace_parent([("ce_id", b"x"), ("traceparent", HEADER), ("tracestate", b"rojo=00f067aa0ba902b7")])
    assert found == TraceParent(TRACE, SPAN, 1, b"rojo=00f067aa0ba902b7")


@pytest.mark.parametrize(
    "header",
    [
        b"",
        HEADER[:-1],
        HEADER.upper(),
        b"ff" + HEADER[2:],
        HEADER + b"-more",
        b"00-" + b"0" * 32 + HEADER[35:],
        HEADER[:36] + b"0" * 16 + b"-01",
        b" " + HEADER,
        b"\xff\xfe",
    ],
)
def test_what_is_no_valid_trace_context_is_none(header: bytes) -> None:
    assert trace_parent([("traceparent", header)]) is None
    assert passed_on([("traceparent", header), ("tracestate", b"a=1")], span_id=7) == []


def test_a_later_version_may_say_more() -> None:
    assert trace_parent([("traceparent", b"01" + HEADER[2:] + b"-what-comes")]) == TraceParent(TRACE, SPAN, 1, b"")


@given(st.text())
def test_a_span_id_is_never_zero_and_fits_eight_bytes(event_id: str) -> None:
    assert 0 < span_of(event_id) < 2**64


def test_a_guard_that_makes_no_span_hands_the_context_on_as_it_came() -> None:
    headers: Sequence[tuple[str, bytes]] = [("traceparent", HEADER), ("tracestate", b"a=1")]
    assert passed_on(headers, span_id=None) == headers


@contextmanager
def collector() -> Iterator[tuple[str, list[Any]]]:
    """An OTLP/HTTP receiver on loopback: its address, and the spans that arrived, each with its resource."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse as Response

    spans: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                about = {a.key: a.value.string_value for a in resource.resource.attributes}
                spans.extend((span, about) for scope in resource.scope_spans for span in scope.spans)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(Response().SerializeToString())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", spans
        server.shutdown()


async def test_a_proposal_is_one_trace_from_its_proposer_to_the_reader_of_its_decision(monkeypatch: Any) -> None:
    with collector() as (address, spans), EmbeddedBroker() as broker:
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_RESOURCE_ATTRIBUTES": "site=lab"}
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        tracing = start_tracing(environ, "w1")
        assert tracing is not None
        settings = GuardSettings.embedded(broker.bootstrap_servers, guard_name="w1")
        guard, rig = Guard(settings, contracts(), tracing=tracing), Rig(broker.bootstrap_servers)
        async with running(guard):
            await rig.open()
            await rig.send("telemetry", report("r1", 9))
            headers = [("traceparent", HEADER), ("tracestate", b"rojo=1")]
            await rig.send("proposals", proposal("traced"), headers=headers)
            said = await rig.wait_for("control", lambda d: d["proposal_id"] == "traced")
            await rig.send("proposals", proposal("alone", control_key="other"))
            alone = await rig.wait_for("control", lambda d: d["proposal_id"] == "alone")
        await rig.close()
        await asyncio.to_thread(tracing.stop)
    named = {(span.name, span.trace_id): span for span, _ in spans}
    trace_id = TRACE.to_bytes(16, "big")
    root = named["proposal", trace_id]
    assert root.parent_span_id == SPAN.to_bytes(8, "big")
    attributes = {a.key: a.value for a in root.attributes}
    assert attributes["wirelessops.decision_id"].string_value == said["decision_id"]
    assert attributes["wirelessops.region"].string_value == REGION
    assert attributes["wirelessops.action"].string_value == said["action"] == "APPLY"
    stages = [named[name, trace_id] for name in ("waited", "decide", "publish")]
    assert all(stage.parent_span_id == root.span_id for stage in stages)
    assert all(0 <= stage.end_time_unix_nano - stage.start_time_unix_nano < 10**10 for stage in stages)
    passed = trace_parent(said["message"].headers)
    assert passed == TraceParent(TRACE, int.from_bytes(root.span_id, "big"), 1, b"rojo=1")
    assert trace_parent(alone["message"].headers) is None
    (other,) = {span.trace_id for span, _ in spans} - {trace_id}
    assert named["proposal", other].parent_span_id == b""
    assert all(about["service.name"] == "wirelessops" and about["site"] == "lab" for _, about in spans)
    assert {about["service.instance.id"] for _, about in spans} == {"w1"}


async def test_without_tracing_the_decision_still_carries_the_proposers_context() -> None:
    async with guarded(hold_ms=100) as (rig, _):
        await rig.send("proposals", proposal("traced"), headers=[("traceparent", HEADER)])
        said = await rig.wait_for("control", lambda d: d["final"])
    assert trace_parent(said["message"].headers) == TraceParent(TRACE, SPAN, 1, b"")


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
)
def test_no_traces_are_made_where_none_are_asked_for(environ: dict[str, str]) -> None:
    assert start_tracing(environ, "w1") is None


def test_the_guard_imports_no_tracing_library() -> None:
    program = "import sys, streams.commands.run; print(any(name.startswith('opentelemetry') for name in sys.modules))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_a_missing_extra_is_said_and_stops_nothing(capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert start_tracing({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "w1") is None
    assert "wirelessops[otel]" in capsys.readouterr().out
