"""Admission of requests and the limits that refuse them: token buckets with explicit time."""
