"""Takes the time to live of tables through its states.

ENABLING: the positions from which changes are recorded are kept as the expirers' first
checkpoints, in the batch that begins it. What is in the table is listed first, then the expirers
start at those positions, and what they repeat makes the list right. ENABLED: they have caught
up, and expired items are deleted. DISABLING: nothing is deleted any more, the list goes.

It belongs to the database's actor, which alone calls it. After a crash each step goes on from
what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import anyio
from msgspec import structs

from dynactor.actors.catalog import definition_commit
from dynactor.actors.catalog.catalog_owner import CatalogOwner
from dynactor.actors.catalog.definition_commit import Stored
from dynactor.actors.derived.expiry.sweep_rate import SweepRate
from dynactor.actors.derived.expiry.time_to_live import (
    TimeToLiveActors,
    TimeToLiveSettings,
    subscriber_id,
)
from dynactor.actors.derived.stored_checkpoint import first_checkpoints
from dynactor.actors.table.environment import TableEnvironment
from dynactor.actors.table.table import Table
from dynactor.model.errors import DynamoDBError
from dynactor.model.tables.table import TimeToLive
from dynactor.model.tables.time_to_live import TimeToLiveChange, changed
from dynactor.storage import key_layout
from dynactor.storage.catalog import TableRecord


class TimeToLivePhases:
    """Moves a table's time to live to its next state whenever the present one is over.

    ``tell(table)`` has the database's actor call ``advance`` again.
    """

    def __init__(
        self,
        owner: CatalogOwner,
        environment: TableEnvironment,
        settings: TimeToLiveSettings,
        tell: Callable[[Table], None],
    ) -> None:
        self._owner = owner
        self._environment = environment
        self._settings = settings
        self._tell = tell
        self._rate = SweepRate(settings.deletes_per_second)
        # The ids of tables whose DISABLING lasts its time.
        self._ending: set[int] = set()

    async def change(self, table: Table, change: TimeToLiveChange) -> None:
        """Switch time to live on or off; it is begun when this returns, durably.

        Raises:
            ValidationException: as ``dynactor.model.tables.time_to_live.changed``.
            StoreError: nothing was changed.
        """
        now = self._environment.clock.now_epoch_seconds()
        current = table.definition.time_to_live
        settings = changed(
            current,
            change,
            now,
            self._settings.change_interval_seconds,
            self._settings.transition_seconds,
        )
        if change.enabled:
            if current is not None and current.status == "DISABLING":
                # The old list goes before a new one begins.
                await self._end(table, current)
            await self._begin(table, settings)
        else:
            await self._put(table, settings)
            # From the answer on nothing is deleted. What was recorded until now does no harm.
            await table.followers.detach(subscriber_id(table))
            # A partition that was given up deletes nothing either.
            with suppress(DynamoDBError):
                await table.redefine(table.definition)

    async def resume(self, table: Table) -> None:
        """Put the time to live of a table to work: at start, and when it was switched on."""
        settings = table.definition.time_to_live
        if settings is None or settings.status == "DISABLED":
            return
        if settings.status == "DISABLING":
            if table.definition.table_id not in self._ending:
                self._ending.add(table.definition.table_id)
                self._environment.supervisor.run_aside(self._tell_when_disabling_is_over, table)
            return
        if table.followers.following(subscriber_id(table)) is not None:
            return
        actors = TimeToLiveActors(table, self._environment, self._settings, self._rate)
        table.followers.attach(subscriber_id(table), actors)
        if settings.status == "ENABLED":
            actors.follow(await table.followers.feeds_for(subscriber_id(table)))
            actors.sweep()
        else:
            actors.backfill(lambda: self._tell(table))

    async def advance(self, table: Table) -> None:
        """The present state is over, or the first reading of the table; go on.

        A call that comes late, of a state that is no more, changes nothing.
        """
        self._ending.discard(table.definition.table_id)
        settings = table.definition.time_to_live
        if settings is None:
            return
        if settings.status == "DISABLING":
            await self._end(table, settings)
        elif settings.status == "ENABLING":
            actors = table.followers.following(subscriber_id(table))
            assert isinstance(actors, TimeToLiveActors)
            if actors.is_caught_up:
                await self._put(table, structs.replace(settings, status="ENABLED"))
                actors.sweep()
            elif actors.is_read and not actors.is_followed:
                actors.follow(await table.followers.feeds_for(subscriber_id(table)))
                self._environment.supervisor.run_aside(self._tell_when_caught_up, table, actors)

    async def _begin(self, table: Table, settings: TimeToLive) -> None:
        subscriber = subscriber_id(table)

        def storing(record: TableRecord, counters: Mapping[int, int]) -> Stored:
            ends = [(key, b"") for key in key_layout.expiry_ends(record.definition.table_id)]
            return Stored(
                # It may have been on before, and logs have ended that it followed then.
                definition_commit.without_followers(record, [subscriber]),
                puts=[*first_checkpoints(subscriber, counters), *ends],
            )

        definition = structs.replace(table.definition, time_to_live=settings)
        await definition_commit.redefine(self._owner, table, definition, storing)

    async def _end(self, table: Table, settings: TimeToLive) -> None:
        """Delete the list of expiry times, and the checkpoints of those who kept it."""
        table_id = table.definition.table_id
        await self._put(
            table,
            structs.replace(settings, status="DISABLED"),
            range_deletes=[
                key_layout.expiry_range(table_id),
                key_layout.expiry_checkpoint_range(table_id),
            ],
        )

    async def _put(
        self,
        table: Table,
        settings: TimeToLive,
        range_deletes: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        definition = structs.replace(table.definition, time_to_live=settings)
        await definition_commit.store(self._owner, table, definition, range_deletes=range_deletes)

    async def _tell_when_caught_up(self, table: Table, actors: TimeToLiveActors) -> None:
        if await actors.wait_caught_up():
            await anyio.sleep(self._settings.transition_seconds)
            actors.is_caught_up = True
            self._tell(table)

    async def _tell_when_disabling_is_over(self, table: Table) -> None:
        await anyio.sleep(self._settings.transition_seconds)
        self._tell(table)
