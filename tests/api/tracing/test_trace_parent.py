"""The headers of W3C Trace Context."""

from __future__ import annotations

import pytest

from dynactor.api.tracing.trace_parent import TraceParent, trace_parent

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN_ID = "00f067aa0ba902b7"


def test_a_header_names_the_trace_and_the_span():
    headers = {"traceparent": f"00-{TRACE_ID}-{SPAN_ID}-01", "tracestate": "a=1"}
    expected = TraceParent(int(TRACE_ID, 16), int(SPAN_ID, 16), is_sampled=True, state="a=1")
    assert trace_parent(headers) == expected


@pytest.mark.parametrize(("flags", "is_sampled"), [("00", False), ("02", False), ("03", True)])
def test_the_last_bit_of_the_flags_shows_whether_it_is_sampled(flags: str, is_sampled: bool):
    parent = trace_parent({"traceparent": f"00-{TRACE_ID}-{SPAN_ID}-{flags}"})
    assert parent is not None
    assert parent.is_sampled == is_sampled


def test_a_later_version_may_have_more_fields():
    parent = trace_parent({"traceparent": f"cc-{TRACE_ID}-{SPAN_ID}-01-what-comes"})
    assert parent is not None
    assert parent.is_sampled


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"00-{TRACE_ID}-{SPAN_ID}",
        f"00-{TRACE_ID}-{SPAN_ID}-01-more",
        f"ff-{TRACE_ID}-{SPAN_ID}-01",
        f"00-{'0' * 32}-{SPAN_ID}-01",
        f"00-{TRACE_ID}-{'0' * 16}-01",
        f"00-{TRACE_ID.upper()}-{SPAN_ID}-01",
        f"00-{TRACE_ID}-{SPAN_ID}-01\n",
    ],
)
def test_an_invalid_header_is_ignored(text: str):
    assert trace_parent({"traceparent": text}) is None
