"""Traces of proposals by OpenTelemetry, the extra `wirelessops[otel]`: OTLP over HTTP, set by the standard variables.

One span `proposal` for each published decision, under the proposer's span where the proposal carries W3C trace
context, and under it `waited`, `decide` and `publish`. Spans are made after the fact, so a slow collector slows no
decision; they leave in a thread of the library, which drops what it cannot send. Nothing is imported unless an endpoint
is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

import structlog

from streams.observing import Published
from streams.trace_context import span_of, trace_parent

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

SERVICE: Final = "wirelessops"
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_HTTP: Final = "http/protobuf"
_NS_PER_MS: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000
_FLUSH_S: Final = 1.0

log = structlog.get_logger(__name__)


def start_tracing(environ: Mapping[str, str], guard_name: str) -> Tracing | None:
    """Traces to where OTEL_EXPORTER_OTLP_ENDPOINT (or its TRACES variant) says; None without one, and where
    OTEL_SDK_DISABLED is true or OTEL_TRACES_EXPORTER is none. A missing extra is a warning.
    """
    off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none"
    if off or not any(environ.get(name) for name in _ENDPOINTS):
        return None
    protocol = next((environ[name] for name in _PROTOCOLS if environ.get(name)), _HTTP)
    if protocol != _HTTP:
        log.warning("no traces: only OTLP over HTTP is spoken", asked_for=protocol, spoken=_HTTP)
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        log.warning("no traces: install wirelessops[otel]", why=str(error))
        return None
    return Tracing(OTLPSpanExporter(), environ, guard_name)


class Tracing:
    """An observer (streams.observing) that makes spans; `exporter` sends them. Needs the extra."""

    def __init__(self, exporter: SpanExporter, environ: Mapping[str, str], guard_name: str) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

        class Ids(RandomIdGenerator):
            """Random ones, but for the next span where that is known before."""

            next_span: int | None = None

            def generate_span_id(self) -> int:
                own, self.next_span = self.next_span, None
                return super().generate_span_id() if own is None else own

        attributes: dict[str, str] = {"service.instance.id": guard_name, "service.version": version(SERVICE)}
        named = environ.get("OTEL_SERVICE_NAME") or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        if not named:
            attributes["service.name"] = SERVICE
        self._ids = Ids()
        self._provider: TracerProvider = TracerProvider(
            resource=Resource.create(attributes), id_generator=self._ids, shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer(SERVICE, version(SERVICE))

    def published(self, published: Published) -> None:
        """A decision stands: its spans."""
        from opentelemetry.trace import SpanKind, set_span_in_context

        decision = published.decision
        end_ns = published.published_at_ms * _NS_PER_MS
        begin_ns = min(published.appended_at_ms * _NS_PER_MS, end_ns)
        self._ids.next_span = span_of(published.event_id)
        proposal = self._tracer.start_span(
            "proposal",
            context=_context(published),
            kind=SpanKind.CONSUMER,
            start_time=begin_ns,
            attributes={
                "wirelessops.decision_id": decision.decision_id,
                "wirelessops.proposal_id": decision.proposal_id,
                "wirelessops.region": published.region,
                "wirelessops.partition": published.partition,
                "wirelessops.attempt": published.attempt,
                "wirelessops.final": published.final,
                "wirelessops.action": decision.action,
                "wirelessops.reason": published.reason,
            },
        )
        if proposal.is_recording():
            under = set_span_in_context(proposal)
            decided_ns = published.decided_at_ms * _NS_PER_MS
            publish_ns = round(published.publish_s * _NS_PER_S)
            self._stage("waited", under, begin_ns, decided_ns)
            self._stage("decide", under, decided_ns, decided_ns + round(published.decide_s * _NS_PER_S))
            self._stage("publish", under, end_ns - publish_ns, end_ns)
        proposal.end(end_ns)

    def stop(self) -> None:
        """Send what is left, for at most a second: a collector that is gone keeps nobody from stopping. Blocks."""
        flushing = Thread(target=self._provider.force_flush, name="spans", daemon=True)
        flushing.start()
        flushing.join(_FLUSH_S)

    def _stage(self, name: str, under: Context, begin_ns: int, end_ns: int) -> None:
        span = self._tracer.start_span(name, context=under, start_time=min(begin_ns, end_ns))
        span.end(end_ns)


def _context(published: Published) -> Any:
    """That of the proposer, remote; an empty one where the proposal carries none: a new trace begins."""
    from opentelemetry.context import Context
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState, set_span_in_context

    parent = trace_parent(published.headers)
    if parent is None:
        return Context()
    state = TraceState.from_header([parent.state.decode("latin-1")])
    remote = SpanContext(parent.trace_id, parent.span_id, True, TraceFlags(parent.flags), state)
    return set_span_in_context(NonRecordingSpan(remote), Context())
