"""Metrics if there are more tables than the limit for names of tables."""

from __future__ import annotations

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from dynactor.api.admin.metrics.table_limit import limited


def gauge(name: str, samples: dict[tuple[str, ...], float]) -> Metric:
    family = GaugeMetricFamily(name, name, labels=("table", "index"))
    for labels, value in samples.items():
        family.add_metric(labels, value)
    return family


def shown(metric: Metric) -> dict[tuple[str, ...], float]:
    (limited_metric,) = limited([metric], {"a"})
    return {tuple(each.labels.values()): each.value for each in limited_metric.samples}


def test_the_metrics_of_tables_beyond_the_limit_are_summed() -> None:
    samples = {("a", ""): 1.0, ("b", ""): 2.0, ("b", "i"): 3.0, ("c", "j"): 4.0}
    assert shown(gauge("lag_records", samples)) == {("a", ""): 1.0, ("other", ""): 9.0}


def test_the_largest_of_several_ages_is_shown() -> None:
    samples = {("a", ""): 9.0, ("b", ""): 2.0, ("c", ""): 4.0}
    assert shown(gauge("lag_seconds", samples)) == {("a", ""): 9.0, ("other", ""): 4.0}


def test_nothing_changes_if_all_tables_are_named() -> None:
    assert shown(gauge("lag_records", {("a", "i"): 1.0})) == {("a", "i"): 1.0}


def test_metrics_without_table_names_are_unchanged() -> None:
    splits = CounterMetricFamily("splits", "splits", labels=("reason",))
    splits.add_metric(("size",), 3)
    assert shown(splits) == {("size",): 3}
