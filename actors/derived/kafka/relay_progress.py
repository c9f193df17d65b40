"""How far a Kafka relay has come."""

from __future__ import annotations

from msgspec import Struct


class RelayProgress(Struct, frozen=True):
    """A relay at one moment; lag is what its logs hold that is not published.

    ``oldest_unpublished_us`` is the domain time of the oldest such change in microseconds, None if
    there is none. Counts are since the server started.
    """

    state: str
    lag_records: int
    lag_bytes: int
    oldest_unpublished_us: int | None
    published_records: int
    published_bytes: int
    errors: int
    omitted_images: int
