"""Creates, changes and deletes tables, in the catalog and then in memory.

A stream that starts or ends with its table is written in the same commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

from msgspec import structs

from dynactor.actors.catalog import definition_commit
from dynactor.actors.catalog.definition_commit import CommittedDefinition
from dynactor.actors.followers.stored_checkpoint import first_checkpoints
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.parts.phase_machine import PhaseMachine, table_subject
from dynactor.actors.phases import table_phases
from dynactor.actors.phases.cooldowns import Cooldowns
from dynactor.actors.phases.destination_phases import DestinationPhases
from dynactor.actors.phases.space_reclaim import LARGE_BYTES, SpaceReclaimer, reclaim_row
from dynactor.actors.phases.splits import Splitter
from dynactor.actors.phases.streams import StreamRegistry, stream_row
from dynactor.actors.runtime.randomness import random_uuid
from dynactor.actors.table.followers import subscribers_at_creation
from dynactor.actors.table.messages import CreateTable, UpdateTable
from dynactor.actors.table.state import IndexCounters, TableState, table_state
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import GlobalIndex, TableDefinition
from dynactor.model.errors import ResourceInUseException
from dynactor.model.tables import destination_rules
from dynactor.model.tables.table_edits import TableEdit, apply_edit
from dynactor.model.tables.table_rules import after_edit, in_use, settled
from dynactor.model.throttling.partition_count import partition_count
from dynactor.storage import key_layout, partition_map
from dynactor.storage.catalog import CatalogHead, TableRecord, new_head
from dynactor.storage.store import Row, StoreError, Unknown
from dynactor.streams.shard import Stream


class TableChanges(Part):
    """Creates, changes and deletes tables. Invariant: every table in memory is in the catalog."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._streams = parts[StreamRegistry]
        self._destinations = parts[DestinationPhases]
        self._space = parts[SpaceReclaimer]
        self._splits = parts[Splitter]
        self._cooldowns = Cooldowns(self._clock, is_on=parts.settings.control_plane_cooldowns)
        self._update_machine = PhaseMachine(
            "table settings",
            table_phases.updates(
                self._owner, parts.settings.table_transition_seconds, self._splits.grow
            ),
            find=parts.find_table,
            stored_phase=table_phases.stored_update,
            tell=parts.tell_later,
        )
        self.machines = [self._update_machine]
        self.handlers = {CreateTable: self._create, UpdateTable: self._update}

    def check_deletable(self, table: Table) -> None:
        """Refuse to delete a table whose policy just changed; raises ``ResourceInUseException``."""
        self._cooldowns.check_deletion(table.definition)

    async def _create(self, message: CreateTable) -> TableState:
        state = await self.create(message.definition)
        await self._parts.resume(self._tables[message.definition.name])
        return state

    async def create(
        self,
        wanted: TableDefinition,
        also: Callable[[TableDefinition], Sequence[Row]] = lambda _: (),
    ) -> TableState:
        """Create a table; its ids, times and status are filled in. The caller resumes it.

        ``also`` returns other rows to store in the same commit. Raises ``ResourceInUseException``
        if the name is in use. After ``StoreError``, nothing was changed.
        """
        present = self._tables.get(wanted.name)
        if present is not None and present.definition.status in ("CREATING", "DELETING"):
            raise in_use(present.definition)
        if present is not None or wanted.name in self._tables.elsewhere:
            raise ResourceInUseException(f"Table already exists: {wanted.name}")
        now = self._clock.now_epoch_seconds()
        definition = self._new_definition(wanted, now)
        number = self._owner.head.next_partition_number
        count = self._partition_count(definition, definition)
        record, head = self._with_index_partitions(
            TableRecord(definition, partition_map.divide_evenly(number, count)),
            CatalogHead(definition.table_id + 1, number + count),
        )
        positions = {partition.number: 0 for partition in record.partitions}
        stream = self._streams.enabled(definition, positions, now) if definition.stream else None
        await self._owner.put(
            record,
            head=head,
            heads=list(map(new_head, record.partition_numbers)),
            puts=[
                *([stream_row(stream)] if stream else ()),
                *also(definition),
                # Stored before the followers start: trimming reads these rows.
                *(
                    row
                    for subscriber_id in subscribers_at_creation(definition)
                    for row in first_checkpoints(subscriber_id, positions)
                ),
            ],
        )
        if stream is not None:
            self._streams.remember(stream)
        self._tables[definition.name] = Table(record, self._environment)
        names = [index.name for index in definition.indexes]
        return TableState(
            structs.replace(definition, status="CREATING"),
            indexes={name: IndexCounters(0, 0) for name in names},
        )

    def _new_definition(self, wanted: TableDefinition, now: float) -> TableDefinition:
        on_demand = wanted.billing_mode == "PAY_PER_REQUEST"
        definition = structs.replace(
            wanted,
            table_id=self._owner.head.next_table_id,
            uuid=str(random_uuid(self._environment.randomness)),
            created_epoch_seconds=now,
            on_demand_since_epoch_seconds=now if on_demand else None,
            status="CREATING" if self._takes_its_time(wanted) else "ACTIVE",
        )
        definition = self._labelled(definition, now)
        topic = self._destinations.wanted(definition)
        if topic is None:
            return definition
        return destination_rules.enabled(definition, topic, "MILLISECOND")

    def _takes_its_time(self, wanted: TableDefinition) -> bool:
        return bool(self._settings.table_transition_seconds) or wanted.restore_phase != "DONE"

    async def _update(self, message: UpdateTable) -> TableState:
        table = self._tables.settled(message.name)
        old = table.definition
        self._cooldowns.check_edit(old, message.edit)
        state = await self._change(table, message.edit)
        self._cooldowns.note(old, message.edit)
        if table.definition.changing != old.changing:
            # Earlier changes end together with the latest one.
            await self._update_machine.restart(table_subject(table))
        await self._parts.resume(table)
        self._splits.grow(table)
        return state

    async def _change(self, table: Table, edit: TableEdit) -> TableState:
        old = table.definition
        now = self._clock.now_epoch_seconds()
        new = apply_edit(old, edit, now, self._settings.throughput_decreases_per_day)
        if edit.stream is not None:
            new = self._labelled(new, now)
        answered = await table_state(table)
        stored = self._settled(new)
        if (old.global_indexes, old.stream) == (stored.global_indexes, stored.stream):
            await definition_commit.store(self._owner, table, stored)
        else:
            await self._redefine(table, stored, now)
        for index in stored.global_indexes:
            if index.status == "DELETING":
                await table.followers.stop_index(index.definition.index_id)
        return structs.replace(answered, definition=new)

    async def drop(
        self,
        table: Table,
        size_bytes: int,
        also: Sequence[Row] = (),
        *,
        keeps_items: bool = False,
    ) -> None:
        """Delete a table with all its rows, once its last write is answered.

        ``also`` are other rows to store in the same commit. With ``keeps_items`` the rows of the
        items stay.

        The stream remains readable for a day, so the logs are kept. After ``Unknown`` the table is
        closed until the catalog is loaded again. After another ``StoreError`` it still exists and
        accepts writes.
        """
        await self._parts.closing(table)
        try:
            await self._drop(table, size_bytes, also, keeps_items=keeps_items)
        except Unknown:
            raise
        except StoreError:
            # The deletion has stopped the followers, so start them again.
            await self._parts.restart(table)
            raise
        self._parts.forget(table.definition.table_id)

    async def _drop(
        self, table: Table, size_bytes: int, also: Sequence[Row], *, keeps_items: bool
    ) -> None:
        record = table.record
        table.record = structs.replace(
            record, definition=structs.replace(table.definition, status="DELETING")
        )
        await self._destinations.drain(table)
        await table.close(is_deleted=True)
        feeds = await table.followers.feeds()
        tails = {feed.partition_number: feed.tail for feed in feeds}
        stream = self._streams.disabled(record.definition, tails, self._clock.now_epoch_seconds())
        puts = [*also, *([stream_row(stream)] if stream else ())]
        rows = key_layout.table_range(record.definition.table_id)
        is_large = size_bytes >= LARGE_BYTES and not keeps_items
        if is_large:
            puts.append(reclaim_row(rows))
        try:
            await self._owner.delete(
                table.record,
                puts=puts,
                logs=[number for number in tails if not self._streams.shows([number])],
                keeps_items=keeps_items,
            )
        except Unknown:
            # The rows of the table may be deleted, so the table must not accept writes.
            raise
        except StoreError:
            table.reopen(record)
            raise
        if stream is not None:
            self._streams.remember(stream)
        self._streams.detach(tails)
        del self._tables[table.definition.name]
        if is_large:
            self._space.begin(rows)

    def _labelled(self, definition: TableDefinition, now: float) -> TableDefinition:
        """The definition, with a unique label for a stream that has just been enabled."""
        stream = definition.stream
        if stream is None or not stream.enabled:
            return definition
        # Labels are times, and a virtual clock may be stopped.
        label = self._streams.free_label(definition.name, now)
        return structs.replace(definition, stream=structs.replace(stream, label=label))

    def _settled(self, definition: TableDefinition) -> TableDefinition:
        """The definition after an update: ACTIVE at once if there is no transition time."""
        if self._settings.table_transition_seconds:
            return after_edit(definition)
        return settled(definition)

    def _with_index_partitions(
        self, record: TableRecord, head: CatalogHead
    ) -> tuple[TableRecord, CatalogHead]:
        """A record with partitions for new indexes, and the catalog's head after that."""
        definition = record.definition
        partitions = dict(record.index_partitions)
        for index in definition.global_indexes:
            if index.definition.index_id not in partitions:
                count = self._partition_count(definition, index)
                partitions[index.definition.index_id] = partition_map.divide_evenly(
                    head.next_partition_number, count
                )
                head = structs.replace(
                    head, next_partition_number=head.next_partition_number + count
                )
        return structs.replace(record, index_partitions=partitions), head

    def _partition_count(
        self, definition: TableDefinition, resource: TableDefinition | GlobalIndex
    ) -> int:
        """Number of partitions of a new table, or of a new index of it."""
        return self._settings.partitions_per_table or partition_count(
            definition.billing_mode, resource.throughput, resource.warm_throughput
        )

    async def _redefine(self, table: Table, new: TableDefinition, now: float) -> None:
        old, before = table.definition, set(table.record.partition_numbers)
        stream: Stream | None = None

        def storing(record: TableRecord, counters: Mapping[int, int]) -> CommittedDefinition:
            nonlocal stream
            record, head = self._with_index_partitions(record, self._owner.head)
            stream = self._changed_stream(old, new, counters, now)
            return CommittedDefinition(
                record,
                puts=[stream_row(stream)] if stream else [],
                catalog_head=head,
                heads=[new_head(each) for each in record.partition_numbers if each not in before],
                during=self._streams.ending(stream) if stream else nullcontext(),
            )

        await definition_commit.redefine(self._owner, table, new, storing)
        if stream is not None:
            self._streams.remember(stream)

    def _changed_stream(
        self, old: TableDefinition, new: TableDefinition, positions: Mapping[int, int], now: float
    ) -> Stream | None:
        if old.stream == new.stream:
            return None
        if new.stream is not None and new.stream.enabled:
            return self._streams.enabled(new, positions, now)
        return self._streams.disabled(old, positions, now)
