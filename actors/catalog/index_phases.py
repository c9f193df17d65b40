"""Takes global secondary indexes through their phases.

An added index is CREATING while its resources are allocated (Backfilling false), CREATING while
it is filled (Backfilling true), then ACTIVE (S182-S207). The positions from which its changes
are recorded are kept as its followers' first checkpoints, in the batch that begins the filling:
the followers start when the filling has ended, and what they repeat makes the end right.

It belongs to the database's actor, which alone calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import structs

from dynactor.actors.catalog import definition_commit
from dynactor.actors.catalog.catalog_owner import CatalogOwner
from dynactor.actors.catalog.definition_commit import Stored
from dynactor.actors.derived.stored_checkpoint import first_checkpoints
from dynactor.actors.runtime.supervisor import Supervisor
from dynactor.actors.table.table import Table
from dynactor.model.indexes import global_index_changes
from dynactor.model.tables.table import GlobalIndex, TableDefinition
from dynactor.model.tables.table_rules import after_update
from dynactor.storage import key_layout
from dynactor.storage.catalog import TableRecord


class IndexPhases:
    """Moves an index to its next phase whenever the present one is over.

    ``tell(table, index)`` has the database's actor call ``advance`` again.
    """

    def __init__(
        self,
        owner: CatalogOwner,
        supervisor: Supervisor,
        tell: Callable[[Table, GlobalIndex], None],
    ) -> None:
        self._owner = owner
        self._supervisor = supervisor
        self._tell = tell

    async def resume(self, table: Table) -> None:
        """Put the indexes of a table to work, at start and after it was made."""
        for index in table.definition.global_indexes:
            if index.definition.index_id in table.followers.indexes or not index.holds_entries:
                continue
            if index.backfilling:
                self._backfill(table, index)
            else:
                await self._follow(table, index)

    async def advance(self, table: Table, index_id: int) -> None:
        """The present phase of an index is over, as far as is known; begin the next one if so.

        It may be told of a phase more than once: each change of the table tells of it anew.
        """
        index = _index(table.definition, index_id)
        if index is None:
            return
        if index.status == "DELETING":
            await self._remove(table, index)
        elif index.backfilling is False:
            await self._begin_backfill(table, index)
        elif index.status == "UPDATING":
            await self._put(table, global_index_changes.after_update(index))
        elif index.backfilling:
            await self._finish_backfill(table, index)

    async def _begin_backfill(self, table: Table, index: GlobalIndex) -> None:
        filling = structs.replace(index, backfilling=True)
        # While its resources were allocated the table itself was UPDATING.
        definition = after_update(_with_index(table.definition, filling))
        subscriber = key_layout.index_subscriber(definition.table_id, index.definition.index_id)

        def storing(record: TableRecord, counters: Mapping[int, int]) -> Stored:
            return Stored(record, puts=first_checkpoints(subscriber, counters))

        await definition_commit.redefine(self._owner, table, definition, storing)
        self._backfill(table, filling)

    def _backfill(self, table: Table, index: GlobalIndex) -> None:
        actors = table.followers.start_index(index)
        actors.backfill(lambda: self._tell(table, index))

    async def _finish_backfill(self, table: Table, index: GlobalIndex) -> None:
        """If the items are in, apply the changes since; when they are in too, it is ACTIVE."""
        actors = table.followers.indexes.get(index.definition.index_id)
        assert actors is not None
        if actors.follows_all:
            await self._put(table, structs.replace(index, status="ACTIVE", backfilling=None))
        elif actors.is_filled and not actors.is_followed:
            await self._follow(table, index)
            self._supervisor.run_aside(self._tell_when_caught_up, table, index)

    async def _tell_when_caught_up(self, table: Table, index: GlobalIndex) -> None:
        actors = table.followers.indexes.get(index.definition.index_id)
        if actors is not None:
            await actors.wait_caught_up()
            self._tell(table, index)

    async def _follow(self, table: Table, index: GlobalIndex) -> None:
        followers = table.followers
        actors = followers.indexes.get(index.definition.index_id) or followers.start_index(index)
        for feed in await followers.feeds_for(actors.subscriber_id):
            actors.follow(feed)

    async def _remove(self, table: Table, index: GlobalIndex) -> None:
        """Delete an index's entries, its partitions and its followers' checkpoints."""
        index_id = index.definition.index_id
        await table.followers.stop_index(index_id)
        old = table.record
        definition = structs.replace(
            old.definition,
            global_indexes=tuple(
                other
                for other in old.definition.global_indexes
                if other.definition.index_id != index_id
            ),
        )
        record = structs.replace(
            old,
            definition=definition,
            index_partitions={
                other: ranges for other, ranges in old.index_partitions.items() if other != index_id
            },
        )
        await table.redefine(definition)
        table_id = definition.table_id
        await self._owner.put(
            record,
            deletes=[
                key_layout.partition_head(partition.number)
                for partition in old.index_partitions[index_id]
            ],
            range_deletes=[
                key_layout.index_range(table_id, index_id),
                key_layout.index_checkpoint_range(table_id, index_id),
            ],
        )
        table.record = record

    async def _put(self, table: Table, index: GlobalIndex) -> None:
        await definition_commit.redefine(self._owner, table, _with_index(table.definition, index))


def _index(definition: TableDefinition, index_id: int) -> GlobalIndex | None:
    for index in definition.global_indexes:
        if index.definition.index_id == index_id:
            return index
    return None


def _with_index(definition: TableDefinition, index: GlobalIndex) -> TableDefinition:
    """A definition in which the index is in this state."""
    return structs.replace(
        definition,
        global_indexes=tuple(
            index if other.definition.index_id == index.definition.index_id else other
            for other in definition.global_indexes
        ),
    )
