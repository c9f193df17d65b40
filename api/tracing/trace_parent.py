"""The trace of a caller, from the headers of W3C Trace Context."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

TRACEPARENT: Final = "traceparent"
_FIELDS: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?\Z")
_INVALID_VERSION: Final = "ff"
_VERSION: Final = "00"
_SAMPLED: Final = 1


class TraceParent(Struct, frozen=True):
    """The caller's span, and whether the caller samples its trace."""

    trace_id: int
    span_id: int
    is_sampled: bool
    # The header ``tracestate`` as it came.
    state: str = ""


def trace_parent(headers: Mapping[str, str]) -> TraceParent | None:
    """The caller's trace; None if there is no valid header. Names of headers are in lower case.

    Source: W3C Trace Context, level 1, section 3.2.
    """
    found = _FIELDS.match(headers.get(TRACEPARENT, ""))
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == _INVALID_VERSION or (version == _VERSION and more):
        return None
    if not int(trace_id, 16) or not int(span_id, 16):
        return None
    is_sampled = bool(int(flags, 16) & _SAMPLED)
    return TraceParent(
        int(trace_id, 16), int(span_id, 16), is_sampled, headers.get("tracestate", "")
    )
