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


class RequestFigures:
    """Counts of all requests of one server; used in the event loop's thread only."""

    def __init__(self) -> None:
        # Latencies of successful requests by operation, from the complete request to the complete
        # answer, without the time on the network.
        self.latencies: dict[str, LatencyHistogram] = {}
        self.failures: Counter[Failure] = Counter()
        # Requests that were answered by a throttling error, by table and operation.
        self.throttled: Counter[tuple[str, str]] = Counter()
        # The same for each namespace, if regions are separate.
        self.throttled_in: dict[Namespace, Counter[tuple[str, str]]] = {}
        # Injected faults, by fault and operation.
        self.injected_faults: Counter[tuple[str, str]] = Counter()
        # The number of open connections, and their queues; set by ``dynactor.api.http.server``.
        self.connections: Callable[[], int] = lambda: 0
        self.queues: Callable[[], QueueLengths] = QueueLengths
        # None, unless traces are exported.
        self.traces: Callable[[], TraceCounts | None] = lambda: None

    def latency_of(self, operation: str) -> LatencyHistogram:
        """The latencies of an operation, created on first use."""
        return self.latencies.setdefault(operation, LatencyHistogram())

    def throttled_of(self, namespace: Namespace | None) -> Counter[tuple[str, str]]:
        """The throttled requests of a namespace; None is the server with shared regions."""
        if namespace is None:
            return self.throttled
        return self.throttled_in.setdefault(namespace, Counter())
