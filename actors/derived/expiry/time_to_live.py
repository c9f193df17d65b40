"""Time to live at work on one table: who lists expiry times, and who deletes what is due."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct

from dynactor.actors.derived.expiry.expirer import Expirer, ExpiryRows, Listed
from dynactor.actors.derived.expiry.expiry_backfill import ExpiryBackfill
from dynactor.actors.derived.expiry.sweep_rate import SweepRate
from dynactor.actors.derived.expiry.sweeper import Sweeper, SweepMeans, SweptRange
from dynactor.actors.partition.change_feed import ChangeFeed
from dynactor.actors.partition.partition_map import PartitionMap
from dynactor.actors.table.environment import TableEnvironment
from dynactor.actors.table.table import Table
from dynactor.model.limits import TIME_TO_LIVE_CHANGE_SECONDS
from dynactor.storage import key_layout


class TimeToLiveSettings(Struct, frozen=True):
    """What may be set for time to live.

    ``delay_seconds`` is how long an expired item stays at least, in domain time;
    ``transition_seconds`` how long ENABLING and DISABLING take at least; 0 shows neither state.
    """

    delay_seconds: float = 1.0
    deletes_per_second: float = 4_000.0
    change_interval_seconds: float = TIME_TO_LIVE_CHANGE_SECONDS
    transition_seconds: float = 0.0


class TimeToLiveActors:
    """The actors of one table's time to live; they follow it as a whole (``Following``)."""

    def __init__(
        self,
        table: Table,
        environment: TableEnvironment,
        settings: TimeToLiveSettings,
        rate: SweepRate,
    ) -> None:
        definition = table.definition
        assert definition.time_to_live is not None
        self._table = table
        self._store = environment.store
        self._supervisor = environment.supervisor
        self._means = SweepMeans(environment.store, environment.clock, rate, settings.delay_seconds)
        self._attribute_name = definition.time_to_live.attribute_name
        self._rows = ExpiryRows(definition.table_id, definition.key_schema, self._attribute_name)
        self._backfill: ExpiryBackfill | None = None
        self._expirers: dict[int, Expirer] = {}
        self._sweepers: dict[int, Sweeper] = {}
        self._is_closing = False
        # Whether what was in the table at first is listed, and what changed meanwhile.
        self.is_read = False
        self.is_caught_up = False

    @property
    def is_followed(self) -> bool:
        """Whether the expirers have begun."""
        return bool(self._expirers)

    @property
    def lag_seconds(self) -> float:
        """For how long items have been expired that are to be deleted next; 0 for none."""
        return max((sweeper.lag_seconds for sweeper in self._sweepers.values()), default=0.0)

    def backfill(self, ended: Callable[[], None]) -> None:
        """Begin to list what is in the table, or go on with it."""

        def read() -> None:
            self.is_read = True
            ended()

        self._backfill = ExpiryBackfill(self._rows, self._store, ended=read)
        self._supervisor.start(self._backfill)

    def follow(self, feeds: Sequence[ChangeFeed]) -> None:
        """List what changes from now on; parents go before their children."""
        for feed in feeds:
            number = feed.partition_number
            parent = None if feed.parent is None else self._expirers.get(feed.parent)
            expirer = Expirer(
                self._rows,
                feed,
                partial(self._notice, number),
                after=None if parent is None else parent.ended,
            )
            self._expirers[number] = expirer
            self._supervisor.start(expirer)

    def sweep(self) -> None:
        """Delete what is due from now on."""
        self._sweep([partition.number for partition in self._table.record.partitions])

    def _sweep(self, partition_numbers: Sequence[int]) -> None:
        partitions = PartitionMap(self._table.record.partitions)
        for number in partition_numbers:
            swept = partitions.range_of(number)
            sweeper = Sweeper(
                SweptRange(self._rows.table_id, swept.start, swept.end),
                self._expirers[number],
                partial(self._table.expire, number, self._attribute_name),
                self._means,
            )
            self._sweepers[number] = sweeper
            self._supervisor.start(sweeper)

    def split(self, parent: int, children: Sequence[ChangeFeed]) -> None:
        """A partition was split: its expirer goes on to the end, then its children's begin.

        Their sweepers begin at once, and find all that is listed.
        """
        if parent not in self._expirers:
            return
        self._forget_gone()
        self.follow(children)
        sweeper = self._sweepers.pop(parent, None)
        if sweeper is not None:
            sweeper.mailbox.close()
            self._sweep([feed.partition_number for feed in children])

    def _forget_gone(self) -> None:
        """Forget who followed logs to their ends that are kept no longer."""
        kept = self._table.record.log_numbers
        for number in self._expirers.keys() - set(kept):
            del self._expirers[number]

    async def wait_caught_up(self) -> bool:
        """Wait until every change that is durable now is listed.

        Returns:
            False if time to live was switched off, or an expirer was given up, before.
        """
        tails = {expirer: expirer.feed.tail for expirer in self._expirers.values()}
        have_passed = [await expirer.wait_passed(tail) for expirer, tail in tails.items()]
        return all(have_passed) and not self._is_closing

    def floor(self, partition_number: int) -> int:
        """The counter up to which a log's records are not needed any more."""
        expirer = self._expirers.get(partition_number)
        return 0 if expirer is None else expirer.stored_position

    async def close(self) -> None:
        """Stop all, the sweepers first: nothing is deleted from then on."""
        self._is_closing = True
        await asyncio.gather(*map(self._supervisor.stop, self._sweepers.values()))
        if self._backfill is not None:
            await self._supervisor.stop(self._backfill)
        await asyncio.gather(*map(self._supervisor.stop, self._expirers.values()))
        self._sweepers.clear()
        self._expirers.clear()

    def _notice(self, partition_number: int, listed: list[Listed]) -> None:
        sweeper = self._sweepers.get(partition_number)
        if sweeper is not None:
            sweeper.notice(listed)
            return
        # Of a partition that was split.
        for sweeper in self._sweepers.values():
            own = [each for each in listed if each.position in sweeper.swept]
            if own:
                sweeper.notice(own)


def subscriber_id(table: Table) -> bytes:
    """What names a table's time to live among those who follow it."""
    return key_layout.expiry_subscriber(table.definition.table_id)
