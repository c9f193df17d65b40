"""Receives and decodes traces, which are sent as OTLP over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

_DEADLINE_SECONDS = 60


class Received(NamedTuple):
    """A received span with the attributes of its resource; the ids are hexadecimal."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    state: str
    began: int
    ended: int
    attributes: dict[str, Any]
    events: list[tuple[str, int]]
    is_error: bool
    is_server: bool
    resource: dict[str, Any]


class Receiver:
    """The received spans, and the bodies of the requests that contained them."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self.status = 200
        self.bodies: list[bytes] = []
        self._spans: SimpleQueue[Received] = SimpleQueue()

    def take(self, body: bytes) -> None:
        """Decode a request and queue its spans."""
        self.bodies.append(body)
        request = ExportTraceServiceRequest.FromString(body)
        for of_resource in request.resource_spans:
            resource = _attributes(of_resource.resource.attributes)
            for of_scope in of_resource.scope_spans:
                for span in of_scope.spans:
                    self._spans.put(_received(span, resource))

    def next(self) -> Received:
        """Wait for the next span."""
        return self._spans.get(timeout=_DEADLINE_SECONDS)

    def next_trace(self) -> tuple[Received, list[Received]]:
        """Wait for the span of a request, and return it with the spans of its steps."""
        whole = self.next()
        assert whole.is_server
        steps: list[Received] = []
        # The spans of the steps arrive in the same body as the span of their request.
        while not self._spans.empty():
            steps.append(self.next())
        return whole, steps


@contextmanager
def otlp_receiver() -> Iterator[Receiver]:
    """A receiver on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            assert self.headers["Content-Type"] == "application/x-protobuf"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(receiver.status)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
            if receiver.status == 200:
                receiver.take(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(server.server_address[1])
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()


def _received(span: Span, resource: dict[str, Any]) -> Received:
    return Received(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.trace_state,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        _attributes(span.attributes),
        [(event.name, event.time_unix_nano) for event in span.events],
        span.status.code == span.status.STATUS_CODE_ERROR,
        span.kind == Span.SPAN_KIND_SERVER,
        resource,
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind)
