"""Metrics for Prometheus: a module for each kind of metric, and the exposition."""
