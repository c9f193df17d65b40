"""The protocol of a database, with the checks of callers, and traces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from dynactor.actors.database.database import Database
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.request_log import RequestLog
from dynactor.api.options.server_settings import ServerSettings
from dynactor.api.registry import NOT_IMPLEMENTED, OPERATIONS
from dynactor.api.serve.security import Security


@asynccontextmanager
async def open_protocol(
    settings: ServerSettings, database: Database | None, checks: Security
) -> AsyncIterator[Protocol]:
    """The protocol of a database, which exports traces if they have an endpoint."""
    traces, export = settings.traces, None
    kind: Callable[..., Protocol] = Protocol
    if traces.endpoint is not None:
        # Only a server that exports traces imports the libraries for that.
        from dynactor.api.tracing.trace_export import TraceExport, trace_exporter  # noqa: PLC0415
        from dynactor.api.tracing.traced_protocol import Sampling, TracedProtocol  # noqa: PLC0415

        export = TraceExport(trace_exporter(traces.endpoint))
        kind = partial(TracedProtocol, sink=export, sampling=Sampling(traces.sampled))
    protocol = kind(
        database,
        OPERATIONS.values(),
        NOT_IMPLEMENTED,
        checks.signatures,
        RequestLog(logs_answers=settings.logs.level == "debug"),
        access_control=checks.access_control,
        key_limits=checks.limits,
        # Given at once, because a node copies the protocol.
        token_service=checks.token_service,
    )
    if export is None:
        yield protocol
        return
    try:
        protocol.figures.traces = lambda: export.counts
        yield protocol
    finally:
        await export.close()
