"""Splits partitions of tables and of global indexes (S134, S137, S139).

A split changes the partition map, and copies nothing: two partitions with new numbers replace one.
One commit deletes the parent's head and writes the end of its log, the new ranges, the children's
heads and the shards of streams. The parent works until its next commit, which is refused. If the
commit of the split is refused, or the server dies before it, the partition is unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import structlog
from msgspec import structs

from dynactor.actors.indexes.global_index import GlobalIndexActors
from dynactor.actors.partition.partition_actors import PartitionActors
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.phases.streams import StreamRegistry, stream_row
from dynactor.actors.splitting.messages import GrowTable, SplitPartition, SplitReason, is_settled
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import TABLE_INDEX_ID, GlobalIndex, TableDefinition
from dynactor.model.errors import ResourceInUseException, ValidationException
from dynactor.model.key_conditions.split_point import divides_collection, middle, width
from dynactor.model.throttling.on_demand import OnDemandUnits
from dynactor.model.throttling.partition_count import partition_count
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.storage import key_layout, partition_map
from dynactor.storage.catalog import (
    CatalogHead,
    EndedLog,
    PartitionHead,
    TableRecord,
    decode_partition_head,
    ended_head,
    new_head,
)
from dynactor.storage.partition_map import PartitionMap
from dynactor.storage.store import Row
from dynactor.streams import change_log
from dynactor.streams.shard import Stream

_log = structlog.get_logger("actors")


class Splitter(Part):
    """Carries out splits."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._splits: Counter[SplitReason] = Counter()
        # A fixed number of partitions disables growth for throughput.
        self._grows = parts.settings.partitions_per_table is None
        self._streams = parts[StreamRegistry]
        self.handlers = {SplitPartition: self._split_named, GrowTable: self._grow}

    @property
    def splits(self) -> Mapping[SplitReason, int]:
        """Number of partitions that were split since the server started, by reason."""
        return dict(self._splits)

    def grow(self, table: Table) -> None:
        """Split a table's partitions soon, if its throughput needs more of them."""
        self._parts.tell(GrowTable(table.definition.table_id, table.definition.name))

    async def _grow(self, message: GrowTable) -> None:
        table = self._tables.same(message.name, message.table_id)
        # Split once per message, so that other messages are handled in between.
        if table is not None and await self._split_widest(table):
            self._parts.tell(message)

    async def _split_named(self, message: SplitPartition) -> tuple[int, int]:
        return await self._split(self._tables.settled(message.name), message)

    async def _split(self, table: Table, message: SplitPartition) -> tuple[int, int]:
        """Split a partition; durable when this returns.

        Raises ``ResourceInUseException`` if the table is not settled, so the caller may try again;
        ``ValidationException`` if there is no such partition, or it can't be split there. After
        ``StoreError``, nothing was changed, or the outcome is ``Unknown``.
        """
        _check(table.record, message)
        parent, index_id = message.number, message.index_id
        partitions: PartitionActors[Any] = table.partitions
        if index_id:
            actors = table.followers.indexes.get(index_id)
            assert isinstance(actors, GlobalIndexActors), "an index of a settled table has actors"
            partitions = actors.partitions
        async with partitions.splitting(parent):
            split = await self._commit(table, message)
        # No await from here on: the children start when memory matches the commit.
        if index_id:
            table.divide_index(split.record, index_id, parent, split.children)
        else:
            for stream in split.streams:
                self._streams.remember(stream)
            feeds = table.divide(split.record, parent, split.children)
            if split.is_log_kept:
                self._streams.attach(feeds)
        self._splits[message.reason] += 1
        _log.info(
            "partition_split",
            table=message.name,
            index_id=index_id,
            reason=message.reason,
            partition=parent,
            children=split.children,
        )
        return split.children

    def _wanted(self, table: Table, index_id: int) -> int:
        """Number of partitions that a table or global index needs for its throughput."""
        if not self._grows:
            return 0
        definition = table.definition
        resource: TableDefinition | GlobalIndex = definition
        if index_id:
            resource = next(
                index
                for index in definition.global_indexes
                if index.definition.index_id == index_id
            )
        wanted = partition_count(
            definition.billing_mode, resource.throughput, resource.warm_throughput
        )
        limits = table.throttle.limits(index_id)
        for units in (limits.reads, limits.writes) if limits else ():
            if isinstance(units, OnDemandUnits):
                wanted = max(wanted, units.partitions_wanted)
        return wanted

    def growing(self, table: Table) -> tuple[int, ...]:
        """The ids of the table (0) and indexes with too few partitions for their throughput."""
        record = table.record
        return tuple(
            index_id
            for index_id in (TABLE_INDEX_ID, *record.index_partitions)
            if len(record.ranges(index_id)) < self._wanted(table, index_id)
        )

    async def _split_widest(self, table: Table) -> bool:
        """Split the widest partition of a table or index that has too few for its throughput.

        False if all have enough, or the table is not settled. ``StoreError`` changes nothing.
        """
        if not is_settled(table.definition):
            return False
        for index_id in self.growing(table):
            ranges = PartitionMap(table.record.ranges(index_id))
            number = max(ranges.numbers, key=lambda each: width(ranges.partition_range(each)))
            point = middle(ranges.partition_range(number))
            if point is not None:
                name = table.definition.name
                split = SplitPartition(name, number, point.at, point.share, index_id, "throughput")
                await self._split(table, split)
                return True
        return False

    async def release(self, table: Table, ended: EndedLog) -> None:
        """Delete an ended log without readers; after ``StoreError``, nothing was changed."""
        record = structs.replace(
            table.record,
            ended_logs=tuple(
                other for other in table.record.ended_logs if other.number != ended.number
            ),
        )
        table_id = record.definition.table_id
        await self._owner.put(
            record,
            puts=await self._lost(table_id, ended),
            deletes=[
                key_layout.trim(table_id, ended.number),
                *(key_layout.checkpoint(each, ended.number) for each in ended.subscribers),
            ],
            discards=[key_layout.change_range(ended.number)],
        )
        table.record = record
        table.followers.forget(ended.number)
        self._streams.detach([ended.number])

    async def _lost(self, table_id: int, ended: EndedLog) -> list[tuple[bytes, bytes]]:
        """Rows that mark the children's logs as incomplete at their beginning."""
        keys = [key_layout.trim(table_id, number) for number in (ended.number, *ended.children)]
        parent_value, *values = await self._store.latest.load(keys)
        time_us = change_log.decode_trim(parent_value).time_us
        if time_us is None:
            return []
        return [
            (key, change_log.encode_trim(0, time_us))
            for key, value in zip(keys[1:], values, strict=True)
            if value is None
        ]

    # -- parts ------------------------------------------------------------------------------

    async def _commit(self, table: Table, message: SplitPartition) -> _Split:
        """Commit a split while the partition writes.

        The commit compares the parent's head. So the counter in the head is that of the last change
        in the parent's log.
        """
        parent = message.number

        async def commit(heads: dict[int, bytes]) -> _Split:
            head = decode_partition_head(heads[parent])
            split = (self._split_index if message.index_id else self._split_table)(
                table, message, head
            )
            await self._owner.put(
                split.record,
                head=split.catalog_head,
                heads=[
                    ended_head(parent, heads[parent]),
                    *map(new_head, split.children, head.divided(message.share)),
                ],
                puts=[*map(stream_row, split.streams), *split.rows],
                discards=split.discards,
            )
            return split

        return await self._owner.past_conflicts(table.record, [parent], commit)

    def _split_table(self, table: Table, message: SplitPartition, head: PartitionHead) -> _Split:
        parent, record = message.number, table.record
        table_id = record.definition.table_id
        children, catalog_head = self._children()
        now = self._clock.now_epoch_seconds()
        rows = table.throttle.rows_of_children(parent, children)
        ended_logs = record.ended_logs
        is_log_kept = self._is_kept(table, parent)
        if is_log_kept:
            subscribers = table.followers.subscriber_ids
            ended_logs += (
                EndedLog(parent, head.counter, head.logged_bytes, children, subscribers),
            )
            # Stored before the children's followers start: trimming reads these rows.
            rows += [Row(*each) for each in table.followers.first_checkpoints(children)]
        elif head.counter:
            lost = change_log.encode_trim(0, int(now * MICROSECONDS_PER_SECOND))
            rows += [Row(key_layout.trim(table_id, number), lost) for number in children]
        return _Split(
            structs.replace(
                record,
                partitions=partition_map.divide(record.partitions, parent, message.at, children),
                ended_logs=ended_logs,
            ),
            children,
            catalog_head,
            rows,
            self._streams.split(table_id, parent, head.counter, children, now),
            is_log_kept,
            # Without a kept log, delete the records that were written for an ended follower.
            () if is_log_kept else (key_layout.change_range(parent),),
        )

    def _split_index(self, table: Table, message: SplitPartition, _head: PartitionHead) -> _Split:
        parent, record, index_id = message.number, table.record, message.index_id
        children, catalog_head = self._children()
        ranges = partition_map.divide(record.ranges(index_id), parent, message.at, children)
        return _Split(
            structs.replace(record, index_partitions={**record.index_partitions, index_id: ranges}),
            children,
            catalog_head,
            table.throttle.rows_of_children(parent, children, index_id),
        )

    def _children(self) -> tuple[tuple[int, int], CatalogHead]:
        """The numbers of two new partitions, and the catalog's head after that."""
        head = self._owner.head
        number = head.next_partition_number
        return (number, number + 1), structs.replace(head, next_partition_number=number + 2)

    def _is_kept(self, table: Table, number: int) -> bool:
        """Whether a partition's log may still be needed."""
        return (
            table.definition.records_changes
            or self._streams.attached([number])
            or self._streams.shows([number])
        )


class _Split(NamedTuple):
    """The changes of a split besides the heads of the parent and the children."""

    record: TableRecord
    children: tuple[int, int]
    catalog_head: CatalogHead
    rows: Sequence[Row]
    streams: Sequence[Stream] = ()
    is_log_kept: bool = False
    discards: Sequence[tuple[bytes, bytes]] = ()


def _check(record: TableRecord, message: SplitPartition) -> None:
    definition = record.definition
    if not is_settled(definition):
        raise ResourceInUseException(
            f"The partitions of {definition.name} can't be split now: it is being changed"
        )
    if message.index_id and message.index_id not in record.index_partitions:
        raise ValidationException(f"{definition.name} has no such global index")
    ranges = PartitionMap(record.ranges(message.index_id))
    if message.number not in ranges:
        raise ValidationException(f"{definition.name} has no partition {message.number}")
    start, end = ranges.partition_range(message.number)
    if not start < message.at or (end is not None and message.at >= end):
        raise ValidationException("A partition is split at a position within it")
    if (
        message.index_id == TABLE_INDEX_ID
        and definition.local_indexes
        and divides_collection(message.at)
    ):
        raise ValidationException(
            "An item collection of a table with local secondary indexes can't be split"
        )
