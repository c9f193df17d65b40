"""The figures from which a server computes its metrics, built without a server."""

from __future__ import annotations

from dynactor.api.admin.metrics.server import ServerFigures
from dynactor.api.http.request_figures import RequestFigures
from dynactor.model.latency_histogram import LatencyHistogram
from dynactor.storage.store_figures import EngineFigures, StoreFigures

_EMPTY_STORE = StoreFigures(EngineFigures(0, 0, 0, 0, None), LatencyHistogram(), "")


def figures_of(requests: RequestFigures) -> ServerFigures:
    """These figures of requests, with the figures of an empty store."""
    return ServerFigures(requests.by_namespace, 0, 0, _EMPTY_STORE, LatencyHistogram())
