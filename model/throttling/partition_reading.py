"""The use of a partition's limits, as input for the decision to split it."""

from __future__ import annotations

from msgspec import Struct


class PartitionReading(Struct, frozen=True):
    """Counts since the limits were created, and the remaining units.

    ``refusals`` counts requests to this partition that were refused, or would have been.
    ``ceiling_refusals`` counts those that a split in two might have avoided. ``balance_units`` is
    None on demand, where no units are saved.
    """

    taken_units: float
    refusals: int
    ceiling_refusals: int
    units_per_second: float
    balance_units: float | None = None
