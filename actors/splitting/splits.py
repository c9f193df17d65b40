"""Splits partitions of tables and of global indexes (S134, S137, S139).

A split changes the partition map, and copies nothing: two partitions with new numbers replace one.
The partition answers its accepted messages and stops. Then one commit writes the end of its log,
the new ranges, the children's heads and the shards of streams. New messages wait a few milliseconds
for the children. If the commit is refused, or the server dies before it, the partition is
unchanged.

Only the database's actor uses this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import structlog
from msgspec import structs

from dynactor.actors.catalog.catalog_owner import CatalogOwner
from dynactor.actors.catalog.streams import StreamRegistry, stream_row
from dynactor.actors.derived.indexes.global_index import GlobalIndexActors
from dynactor.actors.partition import partition_map
from dynactor.actors.partition.partition_map import PartitionMap
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.table import Table
from dynactor.model.capacity.partition_count import partition_count
from dynactor.model.errors import ResourceInUseException, ValidationException
from dynactor.model.keys.split_point import divides_collection, middle, width
from dynactor.model.tables.table import TABLE_INDEX_ID, GlobalIndex, TableDefinition
from dynactor.model.throttling.on_demand import OnDemandUnits
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.storage import key_layout
from dynactor.storage.catalog import (
    CatalogHead,
    EndedLog,
    PartitionHead,
    TableRecord,
    decode_partition_head,
    ended_heads,
    new_head,
)
from dynactor.storage.store import Conflict, Group, Row, Store
from dynactor.streams import change_log
from dynactor.streams.shard import Stream

# "throughput": the table has more units than its partitions can serve.
SplitReason: TypeAlias = Literal["size", "heat", "throughput", "asked for"]


_log = structlog.get_logger("actors")


class SplitPartition(Message[tuple[int, int]], frozen=True):
    """Split a partition of a table, or of one of its global indexes; the reply is its children.

    The second child starts at the position ``at``. ``share`` is the approximate part of the
    partition's bytes before ``at``; ``reason`` is for logs and metrics.
    """

    name: str
    number: int
    at: bytes
    share: float = 0.5
    index_id: int = TABLE_INDEX_ID
    reason: SplitReason = "asked for"


class GrowTable(Message[None], frozen=True):
    """A table or one of its indexes has fewer partitions than its throughput needs."""

    table_id: int
    name: str


def is_settled(definition: TableDefinition) -> bool:
    """Whether partitions may be split now: not while the table or a follower is in a transition."""
    settings = definition.time_to_live
    return (
        definition.status == "ACTIVE"
        and all(
            index.status == "ACTIVE" and index.backfilling is None
            for index in definition.global_indexes
        )
        and (settings is None or settings.status in ("ENABLED", "DISABLED"))
        and all(
            destination.status in ("ACTIVE", "DISABLED", "ENABLE_FAILED", "BROKEN")
            for destination in definition.destinations
        )
    )


class Splitter:
    """Carries out splits.

    ``splits`` is the number of splits since the server started, by reason.
    """

    def __init__(
        self,
        owner: CatalogOwner,
        store: Store,
        streams: StreamRegistry,
        clock: Clock,
        *,
        grows: bool,
    ) -> None:
        """``grows``: whether tables get partitions for their throughput."""
        self.splits: Counter[SplitReason] = Counter()
        self._grows = grows
        self._owner = owner
        self._store = store
        self._streams = streams
        self._clock = clock

    async def split(self, table: Table, message: SplitPartition) -> tuple[int, int]:
        """Split a partition; durable when this returns.

        Raises:
            ResourceInUseException: the table is not settled; the caller may try again.
            ValidationException: there is no such partition, or it can't be split there.
            StoreError: nothing was changed.
        """
        _check(table.record, message)
        if message.index_id == TABLE_INDEX_ID:
            async with table.split_gate.closed():
                children = await self._split_table(table, message)
        else:
            children = await self._split_index(table, message)
        self.splits[message.reason] += 1
        _log.info(
            "partition_split",
            table=message.name,
            index_id=message.index_id,
            reason=message.reason,
            partition=message.number,
            children=children,
        )
        return children

    def wanted(self, table: Table, index_id: int) -> int:
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
            if len(record.ranges(index_id)) < self.wanted(table, index_id)
        )

    async def grow(self, table: Table) -> bool:
        """Split the widest partition of a table or index that has too few for its throughput.

        Returns:
            False if all have enough, or the table is not settled.

        Raises:
            StoreError: nothing was changed.
        """
        if not is_settled(table.definition):
            return False
        for index_id in self.growing(table):
            ranges = PartitionMap(table.record.ranges(index_id))
            number = max(ranges.numbers, key=lambda each: width(ranges.range_of(each)))
            point = middle(ranges.range_of(number))
            if point is not None:
                name = table.definition.name
                split = SplitPartition(name, number, point.at, point.share, index_id, "throughput")
                await self.split(table, split)
                return True
        return False

    async def _split_table(self, table: Table, message: SplitPartition) -> tuple[int, int]:
        parent, record = message.number, table.record
        async with table.partitions.sealed(parent):
            head, end = await self._head(parent)
            children, catalog_head = self._children()
            kept = self._is_kept(table, parent)
            ended = EndedLog(
                parent, head.counter, head.logged_bytes, children, table.followers.subscriber_ids
            )
            new = structs.replace(
                record,
                partitions=partition_map.divide(record.partitions, parent, message.at, children),
                ended_logs=(*record.ended_logs, ended) if kept else record.ended_logs,
            )
            streams = self._streams.split(
                record.definition.table_id,
                parent,
                head.counter,
                children,
                self._clock.now_epoch_seconds(),
            )
            balances = table.throttle.rows_of_children(parent, children)
            split = _Split(parent, children, head, end, message.share, balances)
            # Stored before the children's followers start: trimming reads these rows.
            first = table.followers.first_checkpoints(children) if kept else []
            await self._commit(new, catalog_head, split, streams, first, has_log=kept)
        for stream in streams:
            self._streams.remember(stream)
        feeds = table.divide(new, parent, children)
        if kept:
            self._streams.attach(feeds)
        return children

    async def _split_index(self, table: Table, message: SplitPartition) -> tuple[int, int]:
        parent, record, index_id = message.number, table.record, message.index_id
        actors = table.followers.indexes.get(index_id)
        assert isinstance(actors, GlobalIndexActors), "an index of a settled table has actors"
        async with actors.partitions.sealed(parent):
            head, end = await self._head(parent)
            children, catalog_head = self._children()
            ranges = partition_map.divide(record.ranges(index_id), parent, message.at, children)
            new = structs.replace(
                record, index_partitions={**record.index_partitions, index_id: ranges}
            )
            balances = table.throttle.rows_of_children(parent, children, index_id)
            split = _Split(parent, children, head, end, message.share, balances)
            await self._commit(new, catalog_head, split, (), (), has_log=True)
        table.divide_index(new, index_id, parent, children)
        return children

    async def release(self, table: Table, ended: EndedLog) -> None:
        """Delete an ended log that has no readers any more.

        Raises:
            StoreError: nothing was changed.
        """
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

    async def _head(self, number: int) -> tuple[PartitionHead, Group]:
        """The head of a partition, and the group that deletes it."""
        (end,) = await ended_heads(self._store.latest, [number])
        if end.expected_head is None:
            raise Conflict("the partition has ended")
        return decode_partition_head(end.expected_head), end

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

    async def _commit(
        self,
        record: TableRecord,
        head: CatalogHead,
        split: _Split,
        streams: list[Stream] | tuple[()],
        checkpoints: Sequence[tuple[bytes, bytes]],
        *,
        has_log: bool,
    ) -> None:
        heads = split.head.divided(split.share)
        lost: list[tuple[bytes, bytes]] = []
        if not has_log and split.head.counter:
            now_us = int(self._clock.now_epoch_seconds() * MICROSECONDS_PER_SECOND)
            lost = [
                (
                    key_layout.trim(record.definition.table_id, number),
                    change_log.encode_trim(0, now_us),
                )
                for number in split.children
            ]
        await self._owner.put(
            record,
            head=head,
            heads=[split.end, *map(new_head, split.children, heads)],
            puts=[
                *map(stream_row, streams),
                *split.balances,
                *checkpoints,
                *lost,
            ],
            # Without a kept log, delete the records that were written for a follower that has
            # ended.
            discards=() if has_log else (key_layout.change_range(split.parent),),
        )


class _Split(NamedTuple):
    parent: int
    children: tuple[int, int]
    head: PartitionHead
    # The group that deletes the parent's head.
    end: Group
    share: float
    balances: list[Row]


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
    start, end = ranges.range_of(message.number)
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
