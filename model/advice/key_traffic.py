"""The kinds of traffic that are counted by key and by index, and their sampling."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

# The counts of a key: read and write units, throttled requests, and requests for an
# item that a transaction has locked.
Kind: TypeAlias = Literal["reads", "writes", "throttled_reads", "throttled_writes", "conflicts"]
Recording: TypeAlias = Literal["all", "some", "none"]

MINUTE_SECONDS: Final = 60
MINUTES: Final = 60
# The number of keys kept from a finished minute.
KEPT_KEYS: Final = 32

# With sampling, this many requests are counted in each minute, then one of every 32.
WHOLE_REQUESTS: Final = 1_000
EVERY: Final = 32


class IndexUse(Struct):
    """The use of an index, or of the table itself, by queries and scans.

    ``asked_names`` counts requests by the attributes they name; ``asked_all`` counts requests for
    every attribute. ``scanned_for`` maps each attribute that a scan's filter compares for equality
    to the units of such scans. ``write_units`` are counted for local indexes only.
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
