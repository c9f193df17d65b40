"""The listed expiry times of a table, and a rebuild of the list from its items."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from dynactor.actors.database.database import Database
from dynactor.actors.derived.expiry.expiry_times import ExpiryTimes
from dynactor.actors.derived.expiry.time_to_live import TimeToLiveActors, subscriber_id
from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.followers.partition_follower import PartitionFollower
from dynactor.actors.followers.scan import TableScan
from dynactor.actors.table.messages import UpdateTimeToLive
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import TableDefinition, TimeToLiveStatus
from dynactor.model.tables.time_to_live import TimeToLiveChange
from dynactor.model.writes.expiry import ExpiryReader, expires_at_us
from dynactor.storage import codec, key_layout
from dynactor.storage.store import Row, Store
from dynactor.storage.subscriber_names import expiry_subscriber
from tests.support.environment.hanging import HANG_SECONDS

_PAGE_ROWS = 1_000
_PAGE_BYTES = 1024 * 1024


async def rows_of(store: Store, start: bytes, end: bytes) -> AsyncIterator[Row]:
    """All durable rows of a range."""
    view = store.durable()
    while rows := await view.page(start, end, max_rows=_PAGE_ROWS, max_bytes=_PAGE_BYTES):
        for row in rows:
            yield row
        start = rows[-1].key + b"\x00"


async def listed(store: Store, table_id: int) -> set[bytes]:
    """The keys of a table's expiry rows, without the permanent ones."""
    rows = {row.key async for row in rows_of(store, *key_layout.expiry_range(table_id))}
    return rows - set(key_layout.expiry_ends(table_id))


def expirer_of(times: ExpiryTimes, feed: ChangeFeed) -> PartitionFollower:
    """The follower that maintains the expiry rows for one log."""
    return PartitionFollower("expirer", expiry_subscriber(times.table_id), feed, times)


def expiry_scan(times: ExpiryTimes, store: Store, ended: Callable[[], None]) -> TableScan:
    """The scan that writes the expiry rows of existing items."""
    cursor_key = key_layout.expiry_cursor(times.table_id)
    return TableScan("expiry times", times.table_id, cursor_key, times, store, ended=ended)


async def until_nothing_is_listed(store: Store, table_id: int) -> None:
    """Wait until the expirers have processed all deletions."""
    async with asyncio.timeout(HANG_SECONDS):
        while await listed(store, table_id):
            await asyncio.sleep(0.001)


async def rebuilt(store: Store, definition: TableDefinition, attribute_name: str) -> set[bytes]:
    """The keys of the expiry rows that the table's items require."""
    prefix = key_layout.row_prefix(definition.table_id)
    reader = ExpiryReader(definition.key_schema, attribute_name)
    found = set()
    async for row in rows_of(store, prefix, key_layout.prefix_end(prefix)):
        at_us = expires_at_us(reader.time(codec.decode(row.value)))
        if at_us is not None:
            position = row.key[len(prefix) :]
            found.add(key_layout.expiry_row(definition.table_id, at_us, position))
    return found


async def switch(database: Database, name: str, attribute_name: str, *, enabled: bool) -> None:
    """Change time to live as UpdateTimeToLive does."""
    await database.ask(UpdateTimeToLive(name, TimeToLiveChange(enabled, attribute_name)))


async def until_status(table: Table, status: TimeToLiveStatus) -> None:
    """Wait until a table's time to live has that status."""
    async with asyncio.timeout(HANG_SECONDS):
        while (
            table.definition.time_to_live is None or table.definition.time_to_live.status != status
        ):
            await asyncio.sleep(0.001)


async def until_listed(table: Table) -> None:
    """Wait until the expirers have processed every change."""
    actors = table.followers.following(subscriber_id(table))
    assert isinstance(actors, TimeToLiveActors)
    async with asyncio.timeout(HANG_SECONDS):
        assert await actors.wait_caught_up()


async def until_expired(table: Table, count: int) -> None:
    """Wait until this many expired items are counted, shortly after their deletion."""
    async with asyncio.timeout(HANG_SECONDS):
        while table.expired_items < count:
            await asyncio.sleep(0.001)


async def until_items(database: Database, name: str, count: int) -> None:
    """Wait until this many items remain."""
    async with asyncio.timeout(HANG_SECONDS):
        while (await database.describe(name)).item_count != count:
            await asyncio.sleep(0.001)
