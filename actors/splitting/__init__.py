"""Splits of partitions: which one, when, and how its range is handed over."""
