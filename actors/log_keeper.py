"""Trims the logs of tables: away goes what every follower has passed and no stream shows.

It belongs to the database's actor, which alone calls it.
"""

from __future__ import annotations

from actors.split_keeper import SplitKeeper
from actors.stream_keeper import StreamKeeper
from actors.surroundings import Surroundings
from actors.table import Table
from actors.tables import Tables
from storage import keys_layout


class LogKeeper:
    """Trims all logs now and then, and those of one table at once."""

    def __init__(
        self,
        surroundings: Surroundings,
        tables: Tables,
        streams: StreamKeeper,
        splits: SplitKeeper,
    ) -> None:
        self._store = surroundings.store
        self._supervisor = surroundings.supervisor
        self._tables = tables
        self._streams = streams
        self._splits = splits

    async def keep(self, now_epoch_seconds: float) -> None:
        """Roll shards that are old, forget what ended long ago, trim what nobody needs."""
        await self._streams.roll(now_epoch_seconds)
        await self._streams.expire(now_epoch_seconds)
        for table in list(self._tables.values()):
            numbers = table.record.log_numbers
            if not self._streams.attached(numbers):
                continue
            await self._trim(table, now_epoch_seconds)
            # What was recorded before the last follower went is gone with this.
            if not table.definition.records_changes and not self._streams.shows(numbers):
                self._streams.detach(numbers)

    async def give_back(self, table: Table, now_epoch_seconds: float) -> None:
        """Trim the logs of a table, and have the room that they took on the disk given back."""
        await self._trim(table, now_epoch_seconds)
        for number in table.record.log_numbers:
            start, end = keys_layout.change_range(number)
            self._supervisor.run_aside(self._store.reclaim, start, end)

    async def _trim(self, table: Table, now_epoch_seconds: float) -> None:
        for feed in await table.followers.feeds():
            floor = table.followers.floor(feed.partition_number, feed.tail)
            await self._streams.trim(feed, table.definition.table_id, floor, now_epoch_seconds)
            ended = table.record.ended_log(feed.partition_number)
            # Not before its parent's: an empty log between two others keeps their order.
            is_first = feed.parent is None
            if (
                ended
                and is_first
                and floor >= ended.last
                and not self._streams.shows([ended.number])
            ):
                await self._splits.release(table, ended)
