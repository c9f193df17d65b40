"""What a partition's limits tell of its use: what a decision to split it looks at."""

from __future__ import annotations

from msgspec import Struct


class PartitionReading(Struct, frozen=True):
    """Counts since the limits were made, and what is left.

    ``refusals`` are requests to this partition that were refused, or would have been;
    ``ceiling_refusals`` those among them that two partitions in its place might have admitted.
    ``balance_units`` is None where nothing is saved, on demand.
    """

    taken_units: float
    refusals: int
    ceiling_refusals: int
    units_per_second: float
    balance_units: float | None = None
