"""The phases of global secondary indexes.

An added index is CREATING while its resources are allocated (Backfilling false), CREATING while it
is filled (Backfilling true), then ACTIVE (S182-S207). The commit that begins the filling stores the
positions from which changes are recorded, as its followers' first checkpoints. The followers start
when the filling has ended. They apply the changes since those positions, which corrects the index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, structs

from dynactor.actors.catalog import definition_commit
from dynactor.actors.catalog.definition_commit import CommittedDefinition
from dynactor.actors.followers.stored_checkpoint import first_checkpoints
from dynactor.actors.indexes.global_index import GlobalIndexActors
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.parts.phase_machine import GONE, Phase, PhaseMachine, Subject, update_phases
from dynactor.actors.phases.splits import Splitter
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import GlobalIndex, IndexStatus, TableDefinition
from dynactor.model.tables import global_index_changes
from dynactor.model.tables.table_rules import after_edit
from dynactor.storage import key_layout
from dynactor.storage.catalog import TableRecord, ended_heads
from dynactor.storage.subscriber_names import index_subscriber


class TableIndex(Struct, frozen=True):
    """A global index of a table, as stored."""

    table: Table
    index: GlobalIndex


def _stored_phase(thing: TableIndex) -> str:
    table, index = thing.table, thing.index
    if index.status == "DELETING":
        return "DELETING"
    if index.backfilling is False:
        is_restored = table.definition.restore_phase == "DONE"
        return "ALLOCATING" if is_restored else "WAITING"
    if index.backfilling:
        return "FILLING"
    return "FOLLOWED"


def _stored_update(thing: TableIndex) -> str:
    """The phase of an index's throughput, which may change during the filling."""
    index = thing.index
    is_updating = index.status == "UPDATING" and index.backfilling is not False
    return "UPDATING" if is_updating else "SETTLED"


class IndexPhases(Part):
    """Starts and ends the phases of indexes."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._splits = parts[Splitter]
        self._machine = PhaseMachine(
            "index",
            self._phases(),
            find=self._find,
            stored_phase=_stored_phase,
            tell=parts.tell_later,
            part_ids=_index_ids,
        )
        updates = PhaseMachine(
            "index throughput",
            update_phases(parts.settings.table_transition_seconds, self._end_update),
            find=self._find,
            stored_phase=_stored_update,
            tell=parts.tell_later,
            part_ids=_index_ids,
        )
        self.machines = [self._machine, updates]

    def is_stuck(self, table: Table) -> bool:
        """Whether an index can't be filled: the store refuses it, or its actor was abandoned."""
        return self._machine.is_refused(table.definition.table_id) or any(
            actors.is_stuck for actors in table.followers.indexes.values()
        )

    def _phases(self) -> Mapping[str, Phase[TableIndex]]:
        allocation_seconds = self._settings.index_allocation_seconds
        transition_seconds = self._settings.table_transition_seconds
        return {
            # The index waits until the table has the items of its backup.
            "WAITING": Phase(),
            "ALLOCATING": Phase(
                ("FILLING",), seconds=allocation_seconds, leave=self._begin_backfill
            ),
            "FILLING": Phase(("CATCHING_UP",), self._fill, leave=_end_backfill),
            "CATCHING_UP": Phase(
                ("FILLED",), self._catch_up, leave=_end_catching_up, stored_as="FILLING"
            ),
            # The index of an empty table is shown in its backfill for as long as other transitions.
            "FILLED": Phase(
                ("FOLLOWED",),
                seconds=transition_seconds,
                leave=self._activate,
                stored_as="FILLING",
            ),
            "FOLLOWED": Phase(start=self._follow),
            "DELETING": Phase((GONE,), seconds=transition_seconds, leave=self._delete),
        }

    def _find(self, subject: Subject) -> TableIndex | None:
        table = self._parts.find_table(subject)
        if table is None:
            return None
        for index in table.definition.global_indexes:
            if index.definition.index_id == subject.part_id:
                return TableIndex(table, index)
        return None

    async def _begin_backfill(self, thing: TableIndex) -> str:
        table, index = thing.table, thing.index
        filling = structs.replace(index, backfilling=True)
        # The table was UPDATING while the index's resources were allocated.
        definition = after_edit(_with_index(table.definition, filling))
        subscriber = index_subscriber(definition.table_id, index.definition.index_id)

        def storing(record: TableRecord, counters: Mapping[int, int]) -> CommittedDefinition:
            return CommittedDefinition(record, puts=first_checkpoints(subscriber, counters))

        await definition_commit.redefine(self._owner, table, definition, storing)
        # The index may have a higher throughput now than its partitions can serve.
        self._splits.grow(table)
        return "FILLING"

    async def _fill(self, thing: TableIndex, over: Callable[[], None]) -> None:
        table, index = thing.table, thing.index
        table.followers.start_index(index).backfill(over)

    async def _catch_up(self, thing: TableIndex, over: Callable[[], None]) -> None:
        """Apply the changes since the filling started."""
        await self._follow_logs(thing)
        actors = thing.table.followers.indexes[thing.index.definition.index_id]
        self._supervisor.run_in_background(_wait_caught_up, actors, over)

    async def _activate(self, thing: TableIndex) -> str:
        # An index whose throughput is being changed becomes ACTIVE after that change.
        status: IndexStatus = "UPDATING" if thing.index.status == "UPDATING" else "ACTIVE"
        await self._put(thing.table, structs.replace(thing.index, status=status, backfilling=None))
        return "FOLLOWED"

    async def _follow(self, thing: TableIndex, _over: Callable[[], None]) -> None:
        if thing.index.definition.index_id not in thing.table.followers.indexes:
            await self._follow_logs(thing)

    async def _follow_logs(self, thing: TableIndex) -> None:
        followers, index = thing.table.followers, thing.index
        actors = followers.indexes.get(index.definition.index_id) or followers.start_index(index)
        for feed in await followers.feeds_for(actors.subscriber_id):
            actors.follow(feed)

    async def _end_update(self, thing: TableIndex) -> str:
        await self._put(thing.table, global_index_changes.after_update(thing.index))
        self._splits.grow(thing.table)
        return "SETTLED"

    async def _delete(self, thing: TableIndex) -> None:
        await self._remove(thing.table, thing.index)
        self._splits.grow(thing.table)

    async def _remove(self, table: Table, index: GlobalIndex) -> None:
        """Delete an index's entries, its partitions and its followers' checkpoints."""
        index_id = index.definition.index_id
        await table.followers.stop_index(index_id)
        old = table.record
        numbers = [partition.number for partition in old.index_partitions[index_id]]
        ends = await ended_heads(self._store.latest, numbers)
        table_id = old.definition.table_id
        definition = structs.replace(
            old.definition,
            global_indexes=tuple(
                other
                for other in old.definition.global_indexes
                if other.definition.index_id != index_id
            ),
        )

        def storing(record: TableRecord, _counters: Mapping[int, int]) -> CommittedDefinition:
            others = {
                other: ranges
                for other, ranges in record.index_partitions.items()
                if other != index_id
            }
            return CommittedDefinition(
                structs.replace(record, index_partitions=others),
                range_deletes=[key_layout.index_checkpoint_range(table_id, index_id)],
                discards=[key_layout.index_range(table_id, index_id)],
                heads=ends,
            )

        await definition_commit.redefine(self._owner, table, definition, storing)

    async def _put(self, table: Table, index: GlobalIndex) -> None:
        await definition_commit.redefine(self._owner, table, _with_index(table.definition, index))


async def _end_backfill(_thing: TableIndex) -> str:
    return "CATCHING_UP"


async def _end_catching_up(_thing: TableIndex) -> str:
    return "FILLED"


async def _wait_caught_up(actors: GlobalIndexActors, over: Callable[[], None]) -> None:
    await actors.wait_caught_up()
    # Don't end the phase if a follower was stopped or abandoned, because its changes are missing.
    if actors.follows_all:
        over()


def _index_ids(table: Table) -> list[int]:
    return [index.definition.index_id for index in table.definition.global_indexes]


def _with_index(definition: TableDefinition, index: GlobalIndex) -> TableDefinition:
    return structs.replace(
        definition,
        global_indexes=tuple(
            index if other.definition.index_id == index.definition.index_id else other
            for other in definition.global_indexes
        ),
    )
