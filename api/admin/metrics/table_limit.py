"""Limits the number of tables in the metrics, because each name adds time series."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

OTHER: Final = "other"
"""The name that all other tables share."""


def limited(metrics: Iterable[Metric], shown: Collection[str]) -> Iterator[Metric]:
    """Add up the samples of all tables that are not shown.

    Metrics in seconds or percent keep the largest sample, because a sum of ages means nothing.
    """
    for metric in metrics:
        if any(sample.labels.get("table", OTHER) not in shown for sample in metric.samples):
            metric.samples = list(_merged(metric, shown))
        yield metric


def _merged(metric: Metric, shown: Collection[str]) -> Iterator[Sample]:
    is_sum = not metric.name.endswith(("_seconds", "_progress", "_state"))
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for sample in metric.samples:
        labels = dict(sample.labels)
        if "table" in labels and labels["table"] not in shown:
            labels |= {name: "" for name in ("index", "topic") if name in labels}
            labels["table"] = OTHER
        key = sample.name, tuple(labels.items())
        before = found.get(key)
        if before is None:
            found[key] = sample.value
        else:
            found[key] = before + sample.value if is_sum else max(before, sample.value)
    for (name, label_values), value in found.items():
        yield Sample(name, dict(label_values), value)
