"""Capacity units: receipts, explanations, and the number of partitions for a throughput."""
