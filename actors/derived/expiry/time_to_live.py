"""The actors of one table's time to live: expirers list expiry times, sweepers delete."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from dynactor.actors.derived.expiry.expiry_times import ExpiryTimes, Listed
from dynactor.actors.derived.expiry.sweeper import SweepEnvironment, Sweeper, SweptRange
from dynactor.actors.derived.expiry.time_to_live_settings import TimeToLiveSettings
from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.followers.follower_group import FollowerGroup
from dynactor.actors.followers.scan import TableScan
from dynactor.actors.table.environment import TableEnvironment
from dynactor.actors.table.followers import Subscription
from dynactor.actors.table.table import Table
from dynactor.model.throttling.steady_rate import SteadyRate
from dynactor.storage import key_layout
from dynactor.storage.partition_map import PartitionMap
from dynactor.storage.subscriber_names import expiry_subscriber


class TimeToLiveActors:
    """The actors of one table's time to live; they follow the whole table (``Following``)."""

    subscription = Subscription.ALL
    contract = ExpiryTimes.contract

    def __init__(
        self,
        table: Table,
        environment: TableEnvironment,
        settings: TimeToLiveSettings,
        rate: SteadyRate,
    ) -> None:
        definition = table.definition
        assert definition.time_to_live is not None
        self._table = table
        self._store = environment.store
        self._supervisor = environment.supervisor
        self._shared = SweepEnvironment(
            environment.store, environment.clock, rate, settings.delay_seconds
        )
        self._attribute_name = definition.time_to_live.attribute_name
        self._table_id = definition.table_id
        self._scan: TableScan | None = None
        self._expirers = FollowerGroup(
            "expirer",
            expiry_subscriber(self._table_id),
            self._feed_times,
            environment.supervisor,
        )
        self._sweepers: dict[int, Sweeper] = {}
        self._is_closing = False

    @property
    def lag_seconds(self) -> float:
        """How long the oldest undeleted item has been expired; 0 if there is none."""
        return max((sweeper.lag_seconds for sweeper in self._sweepers.values()), default=0.0)

    def backfill(self, ended: Callable[[], None]) -> None:
        """Start or continue listing the expiry times of the items in the table."""
        self._scan = TableScan(
            f"expiry times of table {self._table_id}",
            self._table_id,
            key_layout.expiry_cursor(self._table_id),
            self._times(),
            self._store,
            ended=ended,
        )
        self._supervisor.start(self._scan)

    def _times(self, noticed: Callable[[list[Listed]], None] | None = None) -> ExpiryTimes:
        key_schema = self._table.definition.key_schema
        return ExpiryTimes(self._table_id, key_schema, self._attribute_name, noticed)

    def _feed_times(self, feed: ChangeFeed) -> ExpiryTimes:
        return self._times(partial(self._notice, feed.partition_number))

    def follow(self, feeds: Sequence[ChangeFeed]) -> None:
        """List changes from now on; parents come before their children."""
        self._expirers.follow(feeds)

    def sweep(self) -> None:
        """Delete due items from now on."""
        self._sweep([partition.number for partition in self._table.record.partitions])

    def _sweep(self, partition_numbers: Sequence[int]) -> None:
        partitions = PartitionMap(self._table.record.partitions)
        for number in partition_numbers:
            swept = partitions.partition_range(number)
            sweeper = Sweeper(
                SweptRange(self._table_id, swept.start, swept.end),
                self._expirers[number],
                partial(self._table.expire, number, self._attribute_name),
                self._shared,
            )
            self._sweepers[number] = sweeper
            self._supervisor.start(sweeper)

    def split(self, parent: int, children: Sequence[ChangeFeed]) -> None:
        """Follow a split: the parent's expirer reads to the log's end, then the children's start.

        The children's sweepers start at once, and read everything that is listed.
        """
        # Expirers of logs that are no longer kept have reached the ends of these logs.
        self._expirers.forget_all_but(self._table.record.log_numbers)
        if not self._expirers.split(parent, children):
            return
        sweeper = self._sweepers.pop(parent, None)
        if sweeper is not None:
            sweeper.mailbox.close()
            self._sweep([feed.partition_number for feed in children])

    async def wait_caught_up(self) -> bool:
        """Wait until the changes durable now are listed; False if an expirer ends first."""
        have_passed = await self._expirers.wait_caught_up()
        return have_passed and not self._is_closing

    async def close(self) -> None:
        """Stop all actors, sweepers first, so that no further item is deleted."""
        self._is_closing = True
        await asyncio.gather(*map(self._supervisor.stop, self._sweepers.values()))
        if self._scan is not None:
            await self._supervisor.stop(self._scan)
        await self._expirers.close()
        self._sweepers.clear()

    def _notice(self, partition_number: int, listed: list[Listed]) -> None:
        sweeper = self._sweepers.get(partition_number)
        if sweeper is not None:
            sweeper.notice(listed)
            return
        # The partition was split, so its children's sweepers need the times.
        for sweeper in self._sweepers.values():
            own = [each for each in listed if each.position in sweeper.swept]
            if own:
                sweeper.notice(own)


def subscriber_id(table: Table) -> bytes:
    """The id of a table's time to live among the table's followers."""
    return expiry_subscriber(table.definition.table_id)
