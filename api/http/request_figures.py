"""Counts of requests since the server started, for the metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from msgspec import Struct

from dynactor.model.latency_histogram import LatencyHistogram
from dynactor.storage.namespaces import Namespace


class Failure(Struct, frozen=True):
    """Requests that failed in the same way. ``operation`` is empty if it is unknown."""

    operation: str
    code: str
    http_status: int


class QueueLengths(Struct, frozen=True):
    """Lengths of the queues of all connections at one moment."""

    requests_waiting_for_memory: int = 0
    pipelined_requests_waiting: int = 0
    # Clients that have not read their answers, and the size of these answers.
    connections_behind: int = 0
    unsent_answer_bytes: int = 0


class TraceCounts(Struct, frozen=True):
    """Traces since the server started: exported, and dropped for one of two reasons."""

    exported: int
    dropped_full: int
    dropped_failed: int


class OperationFigures:
    """Counts of requests by operation; used in the event loop's thread only."""

    def __init__(self) -> None:
        # Latencies of successful requests by operation, from the complete request to the complete
        # answer, without the time on the network.
        self.latencies: dict[str, LatencyHistogram] = {}
        self.failures: Counter[Failure] = Counter()
        # Requests that were answered by a throttling error, by table and operation.
        self.throttled: Counter[tuple[str, str]] = Counter()
        self.injected_faults: Counter[tuple[str, str]] = Counter()

    def operation_latency(self, operation: str) -> LatencyHistogram:
        """The latencies of an operation, created on first use."""
        return self.latencies.setdefault(operation, LatencyHistogram())

    def copy(self) -> OperationFigures:
        """The present counts. The histograms go on counting."""
        copied = OperationFigures()
        copied.latencies = self.latencies.copy()
        copied.failures = self.failures.copy()
        copied.throttled = self.throttled.copy()
        copied.injected_faults = self.injected_faults.copy()
        return copied


class RequestFigures:
    """Counts of all requests of one server; used in the event loop's thread only."""

    def __init__(self) -> None:
        # With separate regions, None stands for requests that failed before their region was known.
        self.by_namespace: dict[Namespace | None, OperationFigures] = {None: OperationFigures()}
        # Connections that were closed at once, because too many were open.
        self.refused_connections = 0
        # The number of open connections, and their queues; set by ``dynactor.api.http.server``.
        self.connections: Callable[[], int] = lambda: 0
        self.queues: Callable[[], QueueLengths] = QueueLengths
        # The expiry of the server's certificate in epoch seconds; None without TLS.
        self.certificate_expiry: Callable[[], float | None] = lambda: None
        # None, unless traces are exported.
        self.traces: Callable[[], TraceCounts | None] = lambda: None

    def of(self, namespace: Namespace | None) -> OperationFigures:
        """The counts of a namespace; None is the server with shared regions."""
        figures = self.by_namespace.get(namespace)
        if figures is None:
            figures = self.by_namespace[namespace] = OperationFigures()
        return figures
