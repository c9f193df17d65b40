"""Trims the logs of tables: records that all followers have passed and no stream shows.

Only the database's actor uses this module.
"""

from __future__ import annotations

from dynactor.actors.catalog.space_reclaim import SpaceReclaimer, reclaim_row
from dynactor.actors.catalog.streams import StreamRegistry
from dynactor.actors.catalog.tables import Tables
from dynactor.actors.derived.log_positions import TRANSACTION_US
from dynactor.actors.splitting.splits import Splitter
from dynactor.actors.table.table import Table
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.storage import key_layout


class LogTrimmer:
    """Trims all logs periodically, and the logs of one table immediately."""

    def __init__(
        self,
        tables: Tables,
        streams: StreamRegistry,
        splits: Splitter,
        space: SpaceReclaimer,
    ) -> None:
        self._tables = tables
        self._streams = streams
        self._splits = splits
        self._space = space

    async def keep(self, now_epoch_seconds: float) -> None:
        """Roll old shards, forget old streams, and trim records without readers.

        Also retry the reclaims that failed on a full disk.
        """
        self._space.begin_again()
        await self._streams.roll(now_epoch_seconds)
        await self._streams.expire(now_epoch_seconds)
        for table in list(self._tables.values()):
            numbers = table.record.log_numbers
            if not self._streams.attached(numbers):
                continue
            await self._trim(table, now_epoch_seconds)
            # The trim above has deleted the records that were written for the last follower.
            if not table.definition.records_changes and not self._streams.shows(numbers):
                self._streams.detach(numbers)

    async def give_back(self, table: Table, now_epoch_seconds: float) -> None:
        """Trim the logs of a table, and reclaim their disk space."""
        await self._trim(table, now_epoch_seconds, gives_back=True)

    async def _trim(
        self, table: Table, now_epoch_seconds: float, *, gives_back: bool = False
    ) -> None:
        recovery = table.definition.point_in_time_recovery
        oldest = None
        if recovery is not None:
            earliest = recovery.earliest_epoch_seconds(now_epoch_seconds)
            # A past state also needs the changes of transactions a moment before it.
            oldest = round(earliest * MICROSECONDS_PER_SECOND) - 2 * TRANSACTION_US
        floors = await table.followers.floors()
        for feed in await table.followers.feeds():
            floor = floors[feed.partition_number]
            if oldest is not None:
                floor = min(
                    floor, await self._streams.aged(feed, table.definition.table_id, oldest)
                )
            log = key_layout.change_range(feed.partition_number)
            await self._streams.trim(
                feed,
                table.definition.table_id,
                floor,
                now_epoch_seconds,
                puts=[reclaim_row(log)] if gives_back else (),
            )
            if gives_back:
                self._space.begin(log)
            ended = table.record.ended_log(feed.partition_number)
            # Remove a log only after its parent's log: even an empty log keeps its parent's log
            # before its children's logs.
            is_first = feed.parent is None
            if (
                ended
                and is_first
                and floor >= ended.last
                and not self._streams.shows([ended.number])
            ):
                await self._splits.release(table, ended)
