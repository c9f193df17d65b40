"""A table in use: reads, throttling, traffic counts, and its followers.

A page of a Query or Scan crosses the partitions in order, in one view (``pages.py``).
"""
