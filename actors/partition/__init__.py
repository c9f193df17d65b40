"""Partitions: the loop that owns a range of rows, its cores and effects, and their change feeds."""
