"""A table in use: its reads, its state and its followers.

A page of a Query or Scan crosses the partitions in order, in one view (``pages.py``).
"""
