"""Metrics that belong to no table: requests, connections, the store, the event loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from dynactor.api.admin.metrics.namespace_labels import namespace_labels
from dynactor.api.http.request_figures import (
    OperationFigures,
    QueueLengths,
    RequestFigures,
    TraceCounts,
)
from dynactor.api.nodes.node_figures import NodeFigures
from dynactor.model.latency_histogram import LatencyHistogram
from dynactor.storage.namespaces import Namespace
from dynactor.storage.store_figures import StoreFigures

_NANOSECONDS: Final = 1e-9
_SERVER_ERROR: Final = 500
_OPERATION_AND_CODE: Final = ("operation", "code")


class ServerFigures(Struct, frozen=True):
    """The figures of a scrape. The histograms may change while they are read."""

    # By namespace; None is the server with shared regions.
    requests: Mapping[Namespace | None, OperationFigures]
    connections: int
    refused_connections: int
    store: StoreFigures
    loop_lag: LatencyHistogram
    queues: QueueLengths = QueueLengths()
    # None, unless traces are exported.
    traces: TraceCounts | None = None
    # In epoch seconds; None without TLS.
    certificate_expiry: float | None = None
    # None, unless the server is a node of a cluster.
    node: NodeFigures | None = None


def server_figures(
    requests: RequestFigures,
    store: StoreFigures,
    loop_lag: LatencyHistogram,
    node: NodeFigures | None = None,
) -> ServerFigures:
    """Read the server's current figures."""
    return ServerFigures(
        {namespace: figures.copy() for namespace, figures in requests.by_namespace.items()},
        requests.connections(),
        requests.refused_connections,
        store,
        loop_lag,
        requests.queues(),
        requests.traces(),
        requests.certificate_expiry(),
        node,
    )


class ServerCollector(Collector):
    """Collects the figures of the server."""

    def __init__(self, figures: ServerFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        """Yield each metric, named as in CloudWatch if CloudWatch has it."""
        yield from self._requests()
        yield from self._store()
        yield from self._queues()
        if self._figures.node is not None:
            yield from _node(self._figures.node)
        if self._figures.traces is not None:
            yield from _traces(self._figures.traces)
        if self._figures.certificate_expiry is not None:
            yield GaugeMetricFamily(
                "dynactor_tls_certificate_expiry_timestamp_seconds",
                "Time at which the server's certificate expires, in epoch seconds.",
                value=self._figures.certificate_expiry,
            )
        lag = HistogramMetricFamily(
            "dynactor_event_loop_lag_seconds",
            "Delay of a timer of the event loop, measured once a second.",
        )
        _add(lag, (), self._figures.loop_lag)
        yield lag

    def _requests(self) -> Iterator[Metric]:
        # Label values come before the figures of a namespace.
        labels = namespace_labels(self._figures.requests)
        names = next(iter(labels.values())).keys()
        latency = HistogramMetricFamily(
            "dynactor_successful_request_latency_seconds",
            "SuccessfulRequestLatency: time from the last byte of a request to its answer, without "
            "the time on the network.",
            labels=(*names, "operation"),
        )
        user = CounterMetricFamily(
            "dynactor_user_errors",
            "UserErrors: requests answered with HTTP status 4xx, by the error's name.",
            labels=(*names, *_OPERATION_AND_CODE),
        )
        system = CounterMetricFamily(
            "dynactor_system_errors",
            "SystemErrors: requests answered with HTTP status 5xx, by the error's name.",
            labels=(*names, *_OPERATION_AND_CODE),
        )
        faults = CounterMetricFamily(
            "dynactor_injected_faults",
            "Faults that were injected by rules of the admin port, by fault and operation.",
            labels=(*names, "fault", "operation"),
        )
        for namespace, figures in self._figures.requests.items():
            values = tuple(labels[namespace].values())
            for operation, histogram in sorted(figures.latencies.items()):
                if histogram.count:
                    _add(latency, (*values, operation), histogram)
            for failure, count in sorted(
                figures.failures.items(), key=lambda item: (item[0].operation, item[0].code)
            ):
                family = system if failure.http_status >= _SERVER_ERROR else user
                family.add_metric((*values, failure.operation, failure.code), count)
            for fault, count in sorted(figures.injected_faults.items()):
                faults.add_metric((*values, *fault), count)
        yield from (latency, user, system, faults)
        yield GaugeMetricFamily(
            "dynactor_connections", "Open connections of clients.", value=self._figures.connections
        )
        yield CounterMetricFamily(
            "dynactor_refused_connections",
            "Connections that were closed at once, because too many were open.",
            value=self._figures.refused_connections,
        )

    def _queues(self) -> Iterator[Metric]:
        queues, store = self._figures.queues, self._figures.store
        lengths = {
            "requests_waiting_for_memory": (
                "Large requests that wait for memory for their bodies.",
                queues.requests_waiting_for_memory,
            ),
            "pipelined_requests_waiting": (
                "Connections with pipelined requests that wait for the request before them.",
                queues.pipelined_requests_waiting,
            ),
            "connections_behind": (
                "Connections with answers that the client has not read.",
                queues.connections_behind,
            ),
            "unsent_answer_bytes": (
                "Size of the answers that clients have not read.",
                queues.unsent_answer_bytes,
            ),
            "reads_waiting_for_thread": (
                "Reads from disk that wait for a thread.",
                store.waiting_reads,
            ),
        }
        if store.waiting_commits is not None:
            lengths["commits_waiting_for_sync"] = (
                "Commits that are accepted and not durable yet.",
                store.waiting_commits,
            )
        for name, (text, length) in lengths.items():
            yield GaugeMetricFamily(f"dynactor_{name}", text, value=length)

    def _store(self) -> Iterator[Metric]:
        store = self._figures.store
        engine = store.engine
        sizes = GaugeMetricFamily(
            "dynactor_store_bytes",
            "Size of the store: tables and logs on disk, memtables and cache in memory.",
            labels=("kind",),
        )
        for kind in ("table", "log", "memtable", "cache"):
            sizes.add_metric((kind,), getattr(engine, f"{kind}_bytes"))
        yield sizes
        if engine.free_bytes is not None:
            yield GaugeMetricFamily(
                "dynactor_disk_free_bytes",
                "Free space of the disk that holds the data.",
                value=engine.free_bytes,
            )
        yield CounterMetricFamily(
            "dynactor_full_disk_refusals",
            "Commits that were refused because the disk is full.",
            value=store.full_disk_refusals,
        )
        yield GaugeMetricFamily(
            "dynactor_commits_in_doubt",
            "Commits of unknown outcome that PostgreSQL may still write. Meanwhile no table moves "
            "from this node to another one.",
            value=store.commits_in_doubt,
        )
        # Without a standby they have no samples.
        read_store = store.read_store
        yield GaugeMetricFamily(
            "dynactor_read_store_used",
            "1 if the standby of --read-store answers eventually consistent reads, 0 if the "
            "primary does.",
            value=None if read_store is None else read_store.is_used,
        )
        yield CounterMetricFamily(
            "dynactor_read_store_fallbacks",
            "Eventually consistent reads that the primary answered, because the standby could not.",
            value=None if read_store is None else read_store.fallbacks,
        )
        refusing = GaugeMetricFamily(
            "dynactor_store_refuses_writes",
            "1 for the reason why the store refuses all writes: Full, Retry or Closed.",
            labels=("reason",),
        )
        if store.refusal:
            refusing.add_metric((store.refusal,), 1)
        yield refusing
        syncs = HistogramMetricFamily(
            "dynactor_sync_seconds", "Time that the disk took to make the log durable."
        )
        _add(syncs, (), store.syncs)
        yield syncs


def _node(figures: NodeFigures) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "dynactor_node_is_home",
        "1 if this node is the leader, which gives tables to the other nodes.",
        value=figures.is_leader,
    )
    yield GaugeMetricFamily(
        "dynactor_node_members",
        "Number of nodes in the cluster, as this node sees it.",
        value=figures.members,
    )
    yield GaugeMetricFamily(
        "dynactor_node_clock_ahead_seconds",
        "How far this node's clock is ahead of PostgreSQL's; negative if it is behind.",
        value=figures.clock_ahead_seconds,
    )
    yield CounterMetricFamily(
        "dynactor_node_homes_taken",
        "How many times this node has become the leader.",
        value=figures.times_leader,
    )
    yield CounterMetricFamily(
        "dynactor_forwarded_requests",
        "Requests that this node forwarded to a home, and that the home answered.",
        value=figures.forwarding.forwarded,
    )
    failures = CounterMetricFamily(
        "dynactor_forwarding_failures",
        "Requests that could not be forwarded: the outcome is unknown, there was no home in time, "
        "or too many requests waited.",
        labels=("reason",),
    )
    for reason, count in figures.forwarding.failures.items():
        failures.add_metric((reason,), count)
    yield failures


def _traces(counts: TraceCounts) -> Iterator[Metric]:
    yield CounterMetricFamily(
        "dynactor_traces_exported",
        "Traces that the receiver has accepted.",
        value=counts.exported,
    )
    dropped = CounterMetricFamily(
        "dynactor_traces_dropped",
        "Traces that were dropped because too many waited (queue_full) or because the receiver "
        "did not accept them (export_failed).",
        labels=("reason",),
    )
    dropped.add_metric(("queue_full",), counts.dropped_full)
    dropped.add_metric(("export_failed",), counts.dropped_failed)
    yield dropped


def _add(
    family: HistogramMetricFamily, labels: tuple[str, ...], histogram: LatencyHistogram
) -> None:
    buckets = [(str(bound), count) for bound, count in histogram.cumulative()]
    buckets.append(("+Inf", histogram.count))
    family.add_metric(labels, buckets, histogram.total_nanoseconds * _NANOSECONDS)
