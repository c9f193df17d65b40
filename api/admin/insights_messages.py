"""The answers of the admin listener's paths for insights."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dynactor.model.advice.key_traffic import IndexUse, Kind, Recording
from dynactor.model.values.item import Item

INSIGHTS_PATH: Final = "/insights"
USE_PATH: Final = "/insights/use"
SAMPLE_PATH: Final = "/insights/sample"


class KeyWeight(Struct, frozen=True):
    """A key in DynamoDB's JSON, and its units or requests."""

    key: Item
    weight: float


class Counted(Struct, frozen=True):
    """The keys that were counted most; see ``heavy_hitters.Summary``."""

    total: float
    error: float
    unlisted: float
    keys: list[KeyWeight]


class Minute(Struct, frozen=True):
    """A minute: its start in epoch seconds, what came in each of its seconds, and of which keys."""

    start: float
    seconds: dict[Kind, list[float]]
    partitions: dict[Kind, Counted]
    items: dict[Kind, Counted]


class InsightsAnswer(Struct, frozen=True):
    """What was counted of a table, or of the index; times are epoch seconds.

    ``recording`` is all while Contributor Insights counts every access, some while a few are
    counted for advice, or none. ``status`` and ``mode`` are those of DescribeContributorInsights.
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
    """An item collection, and how it was when it was first and last counted since the start."""

    key: Item
    size_bytes: int
    first: float | None = None
    first_bytes: int | None = None


class BusyKey(Struct, frozen=True):
    """How much a busy partition key holds; at least, where it is more than is counted."""

    key: Item
    size_bytes: int
    is_whole: bool


class Units(Struct, frozen=True):
    """What was consumed since the server started."""

    read: float
    write: float


class ThrottleCount(Struct, frozen=True):
    """How often a limit refused, or would have refused, something since the server started."""

    reason: str
    index: str
    count: int
    observed: bool


class UseAnswer(Struct, frozen=True):
    """How a table was used, its indexes by their names and itself by an empty one.

    ``collections`` are the largest of a table with local indexes. ``written`` has, for each write
    of the last that were counted, the attribute that was asked for as its item has it now.
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
    """Some of a table's items, evenly spread."""

    items: list[Item]
