"""The thread that exports traces: which traces are sent, and which are dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import Event

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from structlog.testing import capture_logs

from dynactor.api.tracing.request_trace import RequestTrace
from dynactor.api.tracing.trace_export import TraceExport, trace_exporter
from dynactor.api.tracing.trace_parent import TraceParent
from tests.support.servers.otlp_receiver import otlp_receiver

OWN = {"gather_seconds": 0.0}


def finished(parent: TraceParent | None = None, status: int = 200) -> RequestTrace:
    trace = RequestTrace(parent)
    trace.operation, trace.status, trace.request_id = "GetItem", status, "ABC"
    trace.tables = ("Thread",)
    trace.decoded()
    times = trace.begin_message()
    assert times is not None
    times.taken = times.entered + 100
    times.replied = times.taken + 1_000
    trace.end()
    return trace


class HeldExporter(SpanExporter):
    """An exporter that waits for its receiver until the test releases it."""

    def __init__(self) -> None:
        self.began, self.goes_on = Event(), Event()
        self.count = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.began.set()
        self.goes_on.wait()
        self.count += sum(span.parent is None for span in spans)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self.goes_on.set()


async def test_the_receiver_gets_a_span_of_the_request_and_of_each_step():
    parent = TraceParent(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0xF067AA0BA902B7, True, "a=1,b=2")
    with otlp_receiver() as receiver:
        export = TraceExport(trace_exporter(receiver.endpoint), **OWN)
        export.offer(finished(parent))
        await export.close()
        whole, steps = receiver.next_trace()
    assert (whole.name, whole.is_error) == ("DynamoDB.GetItem", False)
    assert whole.trace_id == f"{parent.trace_id:032x}"
    assert whole.parent_id == f"{parent.span_id:016x}"
    assert whole.state == "a=1,b=2"
    assert whole.attributes == {
        "rpc.system": "aws-api",
        "rpc.service": "DynamoDB",
        "rpc.method": "GetItem",
        "http.response.status_code": 200,
        "aws.request_id": "ABC",
        "aws.dynamodb.table_names": ["Thread"],
    }
    assert whole.resource["service.name"] == "dynactor"
    assert [step.name for step in steps] == ["wait for mailbox", "partition"]
    assert {step.trace_id for step in steps} == {whole.trace_id}
    assert {step.parent_id for step in steps} == {whole.span_id}
    decoded, validated = whole.events
    assert (decoded[0], validated[0]) == ("decoded", "validated")
    assert whole.began <= decoded[1] <= validated[1] == steps[0].began
    assert [step.ended - step.began for step in steps] == [100, 1_000]


async def test_a_request_without_a_callers_trace_starts_a_trace():
    with otlp_receiver() as receiver:
        export = TraceExport(trace_exporter(receiver.endpoint), **OWN)
        export.offer(finished(status=500))
        await export.close()
        whole, _ = receiver.next_trace()
    assert whole.parent_id == ""
    assert int(whole.trace_id, 16)
    assert whole.is_error


@pytest.mark.parametrize("path", ["", "/", "/v1/traces"])
async def test_the_path_of_the_receiver_may_be_omitted(path: str):
    with otlp_receiver() as receiver:
        export = TraceExport(trace_exporter(receiver.endpoint + path), **OWN)
        export.offer(finished())
        await export.close()
        assert receiver.next().name == "DynamoDB.GetItem"


async def test_the_environment_names_the_service(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_SERVICE_NAME", "orders")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    with otlp_receiver() as receiver:
        export = TraceExport(trace_exporter(receiver.endpoint), **OWN)
        export.offer(finished())
        await export.close()
        resource = receiver.next().resource
    assert resource["service.name"] == "orders"
    assert resource["deployment.environment.name"] == "test"


async def test_traces_are_dropped_and_counted_while_the_receiver_is_slow():
    exporter = HeldExporter()
    export = TraceExport(exporter, most_waiting=2, **OWN)
    export.offer(finished())
    await asyncio.to_thread(exporter.began.wait)
    for _ in range(5):
        # This returns immediately although the exporter waits.
        export.offer(finished())
    assert export.counts.dropped_full == 3
    exporter.goes_on.set()
    await export.close()
    assert exporter.count == 3
    assert export.counts.exported == 3


async def test_traces_that_the_receiver_refuses_are_counted_and_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture,
):
    with otlp_receiver() as receiver, capture_logs() as lines:
        receiver.status = 400
        export = TraceExport(trace_exporter(receiver.endpoint), **OWN)
        for dropped in (1, 2):
            export.offer(finished())
            while export.counts.dropped_failed < dropped:
                await asyncio.sleep(0)
        await export.close()
    assert export.counts.dropped_failed == 2
    assert export.counts.exported == 0
    [line] = lines
    assert (line["event"], line["dropped"]) == ("traces_not_exported", 1)
    assert "400" in line["reason"]
    # The log lines of the OpenTelemetry library are suppressed.
    assert not caplog.records


async def test_closing_aborts_an_export_in_progress(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dynactor.api.tracing.trace_export._STOP_SECONDS", 0.01)
    exporter = HeldExporter()
    export = TraceExport(exporter, **OWN)
    export.offer(finished())
    await asyncio.to_thread(exporter.began.wait)
    await export.close()
    assert exporter.goes_on.is_set()
