"""The use of a table's partitions, once a second, as server-sent events.

The state is read only while a page listens. Counts are those since the limits were created, so a
page computes rates from two events.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import Final

import msgspec
from aiohttp import web
from msgspec import Struct

from dynactor.actors.database.database import Database
from dynactor.actors.table.table import Table
from dynactor.api.admin.metrics.tables import TableFigures, table_figures
from dynactor.api.console.files import HEADERS
from dynactor.model.advice.heavy_hitters import heaviest
from dynactor.model.advice.key_traffic import Kind
from dynactor.model.definitions.index import IndexDefinition
from dynactor.model.definitions.table import TABLE_INDEX_ID
from dynactor.model.errors import ThrottlingReason
from dynactor.model.keys.key import KeySchema
from dynactor.model.keys.key_decoding import partition_values
from dynactor.model.values.value_types import Item
from dynactor.storage.store import StoreError

_SECONDS: Final = 1.0
# A page that does not read its events for this time is disconnected. aiohttp buffers 64 KB.
_WRITE_SECONDS: Final = 20.0
_HASH_BYTES: Final = 8
_HASH_SPACE: Final = float(1 << (8 * _HASH_BYTES))
_MOST_PARTITIONS: Final = 500
_KEYS: Final = 8
# Minutes of traffic that the list of keys covers.
_KEY_MINUTES: Final = 5
_KINDS: Final[tuple[Kind, ...]] = (
    *("reads", "writes", "throttled_reads", "throttled_writes"),
    "conflicts",
)

_encode = msgspec.json.Encoder().encode


class PartitionUse(Struct, frozen=True):
    """A partition: the start of its range as a share of the hash space, and its counts.

    ``read_limit`` and ``write_limit`` are units per second, 0 before the first request.
    """

    number: int
    start: float
    items: int
    size_bytes: int
    read_units: float = 0.0
    write_units: float = 0.0
    read_refusals: int = 0
    write_refusals: int = 0
    read_limit: float = 0.0
    write_limit: float = 0.0


class LiveKey(Struct, frozen=True):
    """A partition key with its units or requests of the last minutes."""

    key: Item
    weight: float


class ResourceUse(Struct, frozen=True):
    """The table (without a name) or one of its global indexes."""

    name: str
    partition_count: int
    partitions: list[PartitionUse]
    read_units: float
    write_units: float
    keys: dict[Kind, list[LiveKey]]
    lag_records: int = 0
    lag_seconds: float | None = None
    backfill_percentage: float | None = None


class TopicUse(Struct, frozen=True):
    """A Kafka topic of the table."""

    topic: str
    state: str
    lag_records: int
    lag_seconds: float
    published_records: int


class TableUse(Struct, frozen=True):
    """The state of a table at one moment. ``seconds`` is a clock for rates."""

    seconds: float
    now_epoch_seconds: float
    throttling: str
    recording: str
    resources: list[ResourceUse]
    throttles: dict[str, int]
    would_throttle: dict[str, int]
    conflicts: int
    expired_items: int
    time_to_live_lag_seconds: float | None
    topics: list[TopicUse]


async def stream(
    request: web.BaseRequest, database: Callable[[], Database | None], name: str
) -> web.StreamResponse:
    """Send the use of a table once a second, until the page is closed or the table is deleted."""
    response = web.StreamResponse(
        headers={**HEADERS, "Content-Type": "text/event-stream", "Cache-Control": "no-store"}
    )
    await response.prepare(request)
    try:
        while True:
            found = database()
            use = None if found is None else await table_use(found, name)
            async with asyncio.timeout(_WRITE_SECONDS):
                await response.write(b"data: %b\n\n" % _encode(use))
            if use is None:
                break
            await asyncio.sleep(_SECONDS)
    except (TimeoutError, ConnectionError, StoreError):
        # The page connects again, unless it is closed.
        if request.transport is not None:
            request.transport.abort()
    return response


async def table_use(database: Database, name: str) -> TableUse | None:
    """The use of a table; None if there is no such table. Raises ``StoreError``."""
    table = next((each for each in database.tables if each.definition.name == name), None)
    if table is None:
        return None
    figures = await table_figures(database, [table])
    now = database.clock.now_epoch_seconds()
    throttle = table.throttle
    traffic = throttle.traffic
    (expiry,) = figures.expiry
    return TableUse(
        seconds=monotonic(),
        now_epoch_seconds=now,
        throttling=throttle.mode,
        recording="none" if traffic is None else traffic.recording(TABLE_INDEX_ID),
        resources=[
            _resource(table, now, figures),
            *(
                _resource(table, now, figures, index.definition)
                for index in table.definition.global_indexes
                if index.definition.index_id in table.record.index_partitions
            ),
        ],
        throttles=_by_reason(throttle.throttle_events),
        would_throttle=_by_reason(throttle.observed_events),
        conflicts=throttle.transaction_conflicts,
        expired_items=expiry.deleted_items,
        time_to_live_lag_seconds=expiry.lag_seconds,
        topics=[
            TopicUse(
                each.labels[1],
                each.state,
                each.lag_records,
                each.lag_seconds,
                each.published_records,
            )
            for each in figures.destinations
        ],
    )


def _resource(
    table: Table, now: float, figures: TableFigures, index: IndexDefinition | None = None
) -> ResourceUse:
    throttle = table.throttle
    if index is None:
        name, index_id, schema = "", TABLE_INDEX_ID, table.definition.key_schema
        consumed = throttle.consumed
    else:
        name, index_id, schema = index.name, index.index_id, index.key_schema
        consumed = throttle.consumed_by_index[name]
    progress = next((each for each in figures.indexes if each.labels[1] == name), None)
    return ResourceUse(
        name,
        len(table.record.ranges(index_id)),
        _partitions(table, now, index_id),
        consumed.read_units,
        consumed.write_units,
        _keys(table, index_id, schema),
        lag_records=0 if progress is None else progress.lag_records,
        lag_seconds=None if progress is None else progress.lag_seconds,
        backfill_percentage=None if progress is None else progress.percentage_progress,
    )


def _partitions(table: Table, now: float, index_id: int) -> list[PartitionUse]:
    limits = table.throttle.limits(index_id)
    reads = {} if limits is None else limits.reads.readings(now)
    writes = {} if limits is None else limits.writes.readings(now)
    found = []
    for partition in table.record.ranges(index_id)[:_MOST_PARTITIONS]:
        number = partition.number
        head = table.head(number, index_id)
        read, write = reads.get(number), writes.get(number)
        found.append(
            PartitionUse(
                number,
                _share(partition.start),
                0 if head is None else head.item_counts.get(index_id, 0),
                0 if head is None else head.sizes_bytes.get(index_id, 0),
                0.0 if read is None else read.taken_units,
                0.0 if write is None else write.taken_units,
                0 if read is None else read.refusals,
                0 if write is None else write.refusals,
                0.0 if read is None else read.units_per_second,
                0.0 if write is None else write.units_per_second,
            )
        )
    return found


def _share(start: bytes) -> float:
    """The place of a position in the hash space, from 0 to 1."""
    return int.from_bytes(start[:_HASH_BYTES].ljust(_HASH_BYTES, b"\0"), "big") / _HASH_SPACE


def _keys(table: Table, index_id: int, schema: KeySchema) -> dict[Kind, list[LiveKey]]:
    """The partition keys with the highest use in the last minutes, by kind of use."""
    traffic = table.throttle.traffic
    if traffic is None:
        return {}
    windows = traffic.windows(index_id)[-_KEY_MINUTES:]
    found: dict[Kind, list[LiveKey]] = {}
    for kind in _KINDS:
        summaries = [window.partitions[kind] for window in windows if kind in window.partitions]
        if summaries:
            found[kind] = [
                LiveKey(partition_values(schema, heavy.key), heavy.least)
                for heavy in heaviest(summaries, _KEYS)
            ]
    return found


def _by_reason(events: Counter[ThrottlingReason]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for reason, count in events.items():
        counts[reason.reason] += count
    return dict(counts)
