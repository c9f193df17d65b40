"""The answers of the admin listener's paths for insights."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dynactor.model.advice.key_traffic import IndexUse, Kind, Recording
from dynactor.model.values.value_types import Item

INSIGHTS_PATH: Final = "/insights"
USE_PATH: Final = "/insights/use"
SAMPLE_PATH: Final = "/insights/sample"


class KeyWeight(Struct, frozen=True):
    """A key in DynamoDB's JSON, and its units or requests."""

    key: Item
    weight: float


class Counted(Struct, frozen=True):
    """The most used keys; see ``heavy_hitters.Summary``."""

    total: float
    error: float
    unlisted: float
    keys: list[KeyWeight]


class Minute(Struct, frozen=True):
    """A minute: its start in epoch seconds, the requests in each second, and their keys."""

    start: float
    seconds: dict[Kind, list[float]]
    partitions: dict[Kind, Counted]
    items: dict[Kind, Counted]


class InsightsAnswer(Struct, frozen=True):
    """The counts of a table or an index; times are epoch seconds.

    ``recording`` is all while Contributor Insights counts every access, some while a sample is
    counted for advice, or none. ``status`` and ``mode`` are as in DescribeContributorInsights.
    """

    table: str
    index: str | None
    status: str
    mode: str | None
    recording: Recording
    since: float
    now: float
    minutes: list[Minute]


class CollectionSize(Struct, frozen=True):
    """An item collection, with the first and the last size that was counted since the start."""

    key: Item
    size_bytes: int
    first: float | None = None
    first_bytes: int | None = None


class BusyKey(Struct, frozen=True):
    """The size of a busy partition key's items; a lower bound if counting stopped at its limit."""

    key: Item
    size_bytes: int
    is_whole: bool


class Units(Struct, frozen=True):
    """Units consumed since the server started."""

    read: float
    write: float


class ThrottleCount(Struct, frozen=True):
    """Number of requests that a limit refused, or would have refused, since the server started."""

    reason: str
    index: str
    count: int
    observed: bool


class UseAnswer(Struct, frozen=True):
    """The use of a table and its indexes, by index name; the table's own name is empty.

    ``collections`` are the largest item collections of a table with local indexes. ``written`` has
    the current value of the requested attribute for each of the last counted writes.
    """

    table: str
    since: float
    now: float
    throttling: str
    item_collection_limit_bytes: int
    partitions: dict[str, int]
    consumed: dict[str, Units]
    throttles: list[ThrottleCount]
    uses: dict[str, IndexUse]
    collections: list[CollectionSize]
    busy_keys: list[BusyKey]
    written: list[Item]


class SampleAnswer(Struct, frozen=True):
    """A sample of a table's items, evenly spread."""

    items: list[Item]
