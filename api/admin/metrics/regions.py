"""Metrics of tables with a label for the region, for servers with separate regions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from dynactor.actors.database.virtual_clock import ClockState
from dynactor.api.admin.metrics.namespace_labels import namespace_labels
from dynactor.api.admin.metrics.tables import (
    MOST_TABLES,
    TableCollector,
    TableFigures,
    virtual_clock,
)
from dynactor.storage.namespaces import Namespace


class RegionalTableCollector(Collector):
    """Collects the figures of all regions, with each metric once."""

    def __init__(
        self,
        clock: ClockState | None,
        figures: Mapping[Namespace, TableFigures],
        throttled_requests: Mapping[Namespace, Mapping[tuple[str, str], int]],
    ) -> None:
        self._clock = clock
        self._figures = figures
        self._throttled_requests = throttled_requests

    def collect(self) -> Iterator[Metric]:
        """Yield each metric. Over all regions together, a limited number of tables has labels."""
        merged: dict[str, Metric] = {}
        most_tables = MOST_TABLES
        labels = namespace_labels(self._figures)
        for namespace, figures in self._figures.items():
            throttled = self._throttled_requests.get(namespace, {})
            for metric in TableCollector(figures, throttled, most_tables).collect():
                samples = [
                    sample._replace(labels={**labels[namespace], **sample.labels})
                    for sample in metric.samples
                ]
                merged.setdefault(metric.name, metric)
                if merged[metric.name] is metric:
                    metric.samples = samples
                else:
                    merged[metric.name].samples += samples
            most_tables = max(0, most_tables - len(figures.names))
        yield from merged.values()
        if self._clock is not None:
            yield from virtual_clock(self._clock)
