"""Capacity units: receipts, explanations, and how many partitions serve a throughput."""
