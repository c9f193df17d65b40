"""Partition actors: the single owners of ranges of rows, and what they share."""
