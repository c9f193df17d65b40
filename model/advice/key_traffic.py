"""The kinds of traffic that are counted by key and by index, and how they are sampled."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

# The counts of a key: read and write units, throttled requests, and requests for an
# item that a transaction has locked.
Kind: TypeAlias = Literal["reads", "writes", "throttled_reads", "throttled_writes", "conflicts"]
Recording: TypeAlias = Literal["all", "some", "none"]

MINUTE_SECONDS: Final = 60
MINUTES: Final = 60
# How many keys are kept of a minute that is over.
KEPT_KEYS: Final = 32

# Where requests are sampled: so many are counted in each minute, then one in so many.
WHOLE_REQUESTS: Final = 1_000
EVERY: Final = 32


class IndexUse(Struct):
    """How queries and scans have used an index, or the table itself.

    ``asked_names`` counts, by attribute, those that named what they want; ``asked_all`` is how many
    wanted every attribute. ``scanned_for`` are the units of scans, by each attribute that their
    filters want to be equal to a value. ``write_units`` are those of a local index.
    """

    queries: float = 0.0
    scans: float = 0.0
    read_units: float = 0.0
    scan_units: float = 0.0
    entries: float = 0.0
    fetches: float = 0.0
    fetch_units: float = 0.0
    asked_all: float = 0.0
    asked_names: dict[str, float] = field(default_factory=dict)
    scanned_for: dict[str, float] = field(default_factory=dict)
    write_units: float = 0.0
