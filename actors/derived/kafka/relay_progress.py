"""The progress of a Kafka relay."""

from __future__ import annotations

from msgspec import Struct


class RelayProgress(Struct, frozen=True):
    """A relay at one moment; its lag is the unpublished part of its logs.

    ``oldest_unpublished_us`` is the domain time of the oldest unpublished change in microseconds,
    None if all are published. Counts are since the server started.
    """

    state: str
    lag_records: int
    lag_bytes: int
    oldest_unpublished_us: int | None
    published_records: int
    published_bytes: int
    errors: int
    omitted_images: int
