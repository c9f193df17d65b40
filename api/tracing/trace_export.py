"""The thread that exports traces by OTLP over HTTP. No request waits for the thread."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from random import getrandbits
from threading import Event, Thread
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event as SpanEvent
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from dynactor import __version__
from dynactor.api.http.request_figures import TraceCounts
from dynactor.api.tracing.request_trace import RequestTrace, TraceStep

_TRACES_PATH: Final = "/v1/traces"
_MOST_WAITING: Final = 2_048
_MOST_AT_ONCE: Final = 256
# The time for which traces are gathered for one batch.
_GATHER_SECONDS: Final = 1.0
_STOP_SECONDS: Final = 2.0
_LOG_AGAIN_SECONDS: Final = 60.0
_SERVER_ERROR: Final = 500
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_SCOPE: Final = InstrumentationScope("dynactor", __version__)

_log = structlog.get_logger(__name__)


class TraceExport:
    """Takes traces on the event loop, and exports them in batches in a separate thread.

    A trace is dropped if too many wait, or if the receiver does not accept its batch.
    """

    def __init__(
        self,
        exporter: SpanExporter,
        *,
        most_waiting: int = _MOST_WAITING,
        gather_seconds: float = _GATHER_SECONDS,
    ) -> None:
        self._exporter = exporter
        self._most_waiting = most_waiting
        self._gather_seconds = gather_seconds
        self._resource = _resource()
        self._queue: SimpleQueue[RequestTrace | None] = SimpleQueue()
        # Set when a whole batch waits, and at the end.
        self._gathered = Event()
        # The event loop changes the first counter; the thread changes the others.
        self._dropped_full = 0
        self._dropped_failed = 0
        self._exported = 0
        self._logged_at = float("-inf")
        self._problem = _LastProblem()
        self._thread = Thread(target=self._work, name="trace-export", daemon=True)
        self._thread.start()

    @property
    def counts(self) -> TraceCounts:
        """How many traces were exported and dropped."""
        return TraceCounts(self._exported, self._dropped_full, self._dropped_failed)

    def offer(self, trace: RequestTrace) -> None:
        """Take a trace or drop it; never wait."""
        waiting_count = self._queue.qsize()
        if waiting_count >= self._most_waiting:
            self._dropped_full += 1
            return
        self._queue.put(trace)
        if waiting_count == _MOST_AT_ONCE:
            self._gathered.set()

    async def close(self) -> None:
        """Export waiting traces for at most 2 seconds, then drop the rest."""
        self._queue.put(None)
        self._gathered.set()
        await asyncio.to_thread(self._thread.join, _STOP_SECONDS)
        # Shutdown ends an export that is still running.
        await asyncio.to_thread(self._exporter.shutdown)
        await asyncio.to_thread(self._thread.join, _STOP_SECONDS)
        self._problem.close()

    def _work(self) -> None:
        while self._export_next():
            pass

    def _export_next(self) -> bool:
        """Export one batch; returns whether there may be another one."""
        batch = [self._queue.get()]
        # Each wake-up of this thread costs the event loop more than a get.
        self._gathered.wait(self._gather_seconds)
        self._gathered.clear()
        with suppress(Empty):
            while batch[-1] is not None and len(batch) < _MOST_AT_ONCE:
                batch.append(self._queue.get_nowait())
        traces = [trace for trace in batch if trace is not None]
        if traces:
            self._export(traces)
        return len(traces) == len(batch)

    def _export(self, batch: list[RequestTrace]) -> None:
        spans = [span for trace in batch for span in trace_spans(trace, self._resource)]
        if self._exporter.export(spans) is SpanExportResult.SUCCESS:
            self._exported += len(batch)
            return
        self._dropped_failed += len(batch)
        if monotonic() - self._logged_at >= _LOG_AGAIN_SECONDS:
            self._logged_at = monotonic()
            _log.warning(
                "traces_not_exported", dropped=self._dropped_failed, reason=self._problem.text
            )


class _LastProblem(logging.Handler):
    """Keeps the library's last message, because the library logs one for each retry."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self._library = logging.getLogger("opentelemetry")
        self._library.addHandler(self)
        self._library.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message."""
        self.text = record.getMessage()

    def close(self) -> None:
        """Let the library log again."""
        self._library.removeHandler(self)
        self._library.propagate = True
        super().close()


def trace_exporter(endpoint: str) -> SpanExporter:
    """The exporter to a receiver. ``/v1/traces`` is added to a URL without a path.

    The variables ``OTEL_EXPORTER_OTLP_*`` set headers, certificates, compression and time-out.
    """
    if urlsplit(endpoint).path in ("", "/"):
        endpoint = endpoint.rstrip("/") + _TRACES_PATH
    exporter: SpanExporter = OTLPSpanExporter(endpoint=endpoint)
    return exporter


def _resource() -> Resource:
    """Return the server as a resource. Variables such as ``OTEL_SERVICE_NAME`` override it."""
    own = Resource({"service.name": "dynactor", "service.version": __version__})
    given = Resource.create()
    if str(given.attributes.get("service.name", "")).startswith("unknown_service"):
        return given.merge(own)
    return own.merge(given)


def trace_spans(trace: RequestTrace, resource: Resource) -> Iterator[ReadableSpan]:
    """The span of a request, and one for each of its steps."""
    parent = trace.parent
    state = TraceState.from_header([parent.state]) if parent is not None else TraceState()

    def context(span_id: int, *, is_remote: bool = False) -> SpanContext:
        return SpanContext(trace_id, span_id, is_remote, _SAMPLED, state)

    def span(step: TraceStep, span_id: int, of: SpanContext | None, **more: Any) -> ReadableSpan:
        return ReadableSpan(
            step.name,
            context(span_id),
            of,
            resource,
            start_time=step.began,
            end_time=step.ended,
            instrumentation_scope=_SCOPE,
            **more,
        )

    trace_id = _new_id(128) if parent is None else parent.trace_id
    whole_id = _new_id(64)
    caller = None if parent is None else context(parent.span_id, is_remote=True)
    is_failed = trace.status >= _SERVER_ERROR
    yield span(
        trace.whole(),
        whole_id,
        caller,
        attributes=_attributes(trace),
        events=[SpanEvent(moment.name, timestamp=moment.at) for moment in trace.moments()],
        kind=SpanKind.SERVER,
        status=Status(StatusCode.ERROR if is_failed else StatusCode.UNSET),
    )
    for step in trace.steps():
        yield span(step, _new_id(64), context(whole_id))


def _attributes(trace: RequestTrace) -> dict[str, str | int | tuple[str, ...]]:
    """OpenTelemetry's semantic conventions for requests to DynamoDB."""
    attributes: dict[str, str | int | tuple[str, ...]] = {
        "rpc.system": "aws-api",
        "rpc.service": "DynamoDB",
        "http.response.status_code": trace.status,
        "aws.request_id": trace.request_id,
    }
    if trace.operation:
        attributes["rpc.method"] = trace.operation
    if trace.tables:
        attributes["aws.dynamodb.table_names"] = trace.tables
    if trace.error_code:
        attributes["error.type"] = trace.error_code
    return attributes


def _new_id(bits: int) -> int:
    """A random id; 0 would be invalid."""
    return getrandbits(bits) or 1
