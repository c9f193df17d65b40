"""Trims the logs of tables: records that all followers have passed and no stream shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from math import inf
from typing import Final, NamedTuple

from msgspec import structs

from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.followers.log_positions import TRANSACTION_US
from dynactor.actors.parts.long_work import Pieces, chained
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.phases.space_reclaim import SpaceReclaimer, reclaim_row
from dynactor.actors.phases.splits import Splitter
from dynactor.actors.phases.streams import StreamRegistry
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.limits import DAY_SECONDS
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.storage import key_layout
from dynactor.storage.catalog import TableRecord

# The heads of all their partitions are read together.
_TABLES_AT_ONCE: Final = 200


class _LogState(NamedTuple):
    """The record of a table, the ends of its logs, and whether a stream shows any of them."""

    record: TableRecord
    tails: tuple[int, ...]
    is_shown: bool


class _TrimWindow(NamedTuple):
    """The times before which changes of a table are no longer needed.

    ``oldest_us`` is for records in logs, None without point-in-time recovery; ``listed_us`` is for
    changes listed by key. The window moves after ``moves_after_seconds``.
    """

    now_epoch_seconds: float
    oldest_us: int | None
    listed_us: int
    moves_after_seconds: float


class _Rest(NamedTuple):
    """A state in which nothing can be trimmed until a time."""

    state: _LogState
    until: float


class LogTrimmer(Part):
    """Trims all logs periodically, and the logs of one table immediately."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._streams = parts[StreamRegistry]
        self._splits = parts[Splitter]
        self._space = parts[SpaceReclaimer]
        # By table id: states of tables in which nothing can be trimmed for some time.
        self._resting: dict[int, _Rest] = {}

    async def keep(self, now_epoch_seconds: float) -> Pieces:
        """Trim records without readers."""
        tables = [
            table
            for table in self._tables.values()
            if self._streams.attached(table.record.log_numbers)
        ]
        ids = {table.definition.table_id for table in tables}
        self._resting = {key: rest for key, rest in self._resting.items() if key in ids}
        for start in range(0, len(tables), _TABLES_AT_ONCE):
            chunk = tables[start : start + _TABLES_AT_ONCE]
            # The store reads the heads of several tables together.
            feeds = await asyncio.gather(*(table.followers.feeds() for table in chunk))
            yield
            for table, table_feeds in zip(chunk, feeds, strict=True):
                if self._is_due(table, table_feeds, now_epoch_seconds):
                    async for _ in chained(self._keep(table, table_feeds, now_epoch_seconds)):
                        yield

    def _is_due(self, table: Table, feeds: Sequence[ChangeFeed], now_epoch_seconds: float) -> bool:
        """Whether there may be something to trim."""
        rest = self._resting.get(table.definition.table_id)
        return (
            rest is None
            or rest.state != self._state(table, feeds)
            or now_epoch_seconds >= rest.until
        )

    def _state(self, table: Table, feeds: Sequence[ChangeFeed]) -> _LogState:
        """The state that decides, besides the time, whether there is something to trim."""
        tails = tuple(feed.tail for feed in feeds)
        return _LogState(table.record, tails, self._streams.shows(table.record.log_numbers))

    async def _keep(
        self, table: Table, feeds: Sequence[ChangeFeed], now_epoch_seconds: float
    ) -> Pieces:
        """Trim the logs of a table, and note for how long nothing more can be trimmed."""
        state = self._state(table, feeds)
        numbers = table.record.log_numbers
        seconds = inf
        async with aclosing(self._trim(table, now_epoch_seconds)) as trimmed:
            async for log_seconds in trimmed:
                seconds = min(seconds, log_seconds)
                yield
        if not self._tables.has(table):
            return
        # The trim above has deleted the records that were written for the last follower. Changes
        # listed by key are deleted later.
        if (
            not table.definition.records_changes
            and not self._streams.shows(numbers)
            and seconds == inf
        ):
            self._streams.detach(numbers)
        self._resting[table.definition.table_id] = _Rest(state, now_epoch_seconds + seconds)

    async def give_back(self, table: Table, now_epoch_seconds: float) -> Pieces:
        """Trim the logs of a table, and reclaim their disk space."""
        async with aclosing(self._trim(table, now_epoch_seconds, gives_back=True)) as trimmed:
            async for _ in trimmed:
                yield

    async def _trim(
        self, table: Table, now_epoch_seconds: float, *, gives_back: bool = False
    ) -> AsyncGenerator[float, None]:
        """Trim the logs of a table, one after another.

        Yields the seconds for which nothing more of a log can be trimmed, unless the table changes.
        """
        window = _window(table.definition, now_epoch_seconds)
        floors = await table.followers.floors()
        record, subscribers = table.record, table.followers.subscriber_ids
        numbers = set(record.log_numbers)
        for feed in await table.followers.feeds():
            if (
                not self._tables.has(table)
                or not _differs_by_released_logs(table.record, record)
                or table.followers.subscriber_ids != subscribers
            ):
                # A new subscriber may need records below the floors, so begin again later.
                yield 0.0
                return
            if table.record is not record:
                record, numbers = table.record, set(table.record.log_numbers)
            if feed.partition_number not in numbers:
                # Another trim of the same table has released the log.
                continue
            floor, rest_seconds = await self._trim_log(
                table, feed, floors[feed.partition_number], window, gives_back=gives_back
            )
            ended = table.record.ended_log(feed.partition_number)
            if ended:
                rest_seconds = 0.0
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
            yield rest_seconds

    async def _trim_log(
        self,
        table: Table,
        feed: ChangeFeed,
        floor: int,
        window: _TrimWindow,
        *,
        gives_back: bool,
    ) -> tuple[int, float]:
        """Trim a log up to a floor of its followers.

        Returns the floor that also point-in-time recovery allows, and the seconds for which nothing
        more can be trimmed.
        """
        number, table_id = feed.partition_number, table.definition.table_id
        # A follower may be behind.
        rest_seconds = 0.0 if floor < feed.tail else inf
        if window.oldest_us is not None:
            aged, seconds = await self._streams.aged(feed, table_id, window.oldest_us)
            floor = min(floor, aged)
            rest_seconds = min(rest_seconds, window.moves_after_seconds + seconds)
        seconds = await self._streams.trim_listed(number, window.listed_us)
        rest_seconds = min(rest_seconds, window.moves_after_seconds + seconds)
        log = key_layout.change_range(number)
        puts = [reclaim_row(log)] if gives_back else ()
        seconds = await self._streams.trim(
            feed, table_id, floor, window.now_epoch_seconds, puts=puts
        )
        if gives_back:
            self._space.begin(log)
        return floor, min(rest_seconds, seconds)


def _window(definition: TableDefinition, now_epoch_seconds: float) -> _TrimWindow:
    recovery = definition.point_in_time_recovery
    # No change will have an earlier time.
    listed_us = round(now_epoch_seconds * MICROSECONDS_PER_SECOND) - 2 * TRANSACTION_US
    if recovery is None:
        return _TrimWindow(now_epoch_seconds, None, listed_us, 0.0)
    earliest = recovery.earliest_epoch_seconds(now_epoch_seconds)
    # A past state also needs the changes of transactions a moment before it.
    oldest_us = round(earliest * MICROSECONDS_PER_SECOND) - 2 * TRANSACTION_US
    moves_after_seconds = earliest - (now_epoch_seconds - recovery.period_days * DAY_SECONDS)
    return _TrimWindow(now_epoch_seconds, oldest_us, oldest_us, moves_after_seconds)


def _differs_by_released_logs(new: TableRecord, old: TableRecord) -> bool:
    """Whether trims released ended logs, at most, so that the floors of the others still hold."""
    return new is old or (
        structs.replace(old, ended_logs=new.ended_logs) == new
        and all(log in old.ended_logs for log in new.ended_logs)
    )
