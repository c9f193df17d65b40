"""Fills a table with millions of items in minutes, without HTTP, through the store's port.

The result equals that of the same number of puts, because the same code makes the rows. ``model``
checks and encodes the item, ``dynactor.storage.codec`` makes the row's value, and
``dynactor.storage.key_layout`` its key. Each item goes to the partition of its key in the catalog's
map, and gets that partition's next sequence number as its version. A commit writes the partition's
head, too, with the new counter, item count and size. One commit has thousands of items, far more
than a commit of the server. The engine makes its files with normal flushes and compactions, and the
filler waits for their end. A test compares the rows with those of PutItem.

The filler supports only tables without indexes and followers, because a put to such a table writes
only the item's row and the head. No server may use the directory meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import psutil

from dynactor.load.work.plan import Plan
from dynactor.load.work.records import Records
from dynactor.model.definitions.table import TABLE_INDEX_ID
from dynactor.model.keys import key as keys
from dynactor.model.values import item as items
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import catalog, codec, key_layout
from dynactor.storage.catalog import PartitionHead, TableRecord
from dynactor.storage.partition_map import PartitionMap
from dynactor.storage.rocks.options import MIB, RocksOptions
from dynactor.storage.rocks.store import open_rocks
from dynactor.storage.store import Group, Retry, Store
from dynactor.streams.sequence_number import SequenceNumber

_ITEMS_TO_A_COMMIT: Final = 2_000
# Fewer and larger files at first, which merge into the same result with less work.
_MEMTABLE_BYTES: Final = 256 * MIB
_STALL_SECONDS: Final = 0.05
_QUIET_SECONDS: Final = 3.0
_QUIET_BYTES: Final = MIB

_decode = msgspec.json.Decoder().decode


class _Partition:
    """A partition's head during the fill."""

    def __init__(self, number: int, head: bytes | None) -> None:
        self.number = number
        self._head = head
        self._count = 0
        self._size_bytes = 0
        self._puts: list[tuple[bytes, bytes]] = []

    def put(self, row_prefix: bytes, position: bytes, item: items.Item, size_bytes: int) -> None:
        self._count += 1
        self._size_bytes += size_bytes
        version = SequenceNumber(self.number, self._count).packed()
        stored = StoredItem.of(item, version, size_bytes)
        self._puts.append((row_prefix + position, codec.encode(stored)))

    def group(self) -> Group | None:
        """The items put since the last group."""
        if not self._puts:
            return None
        head = catalog.encode_partition_head(
            PartitionHead(
                self._count,
                {TABLE_INDEX_ID: self._count},
                {TABLE_INDEX_ID: self._size_bytes},
            )
        )
        group = Group(key_layout.partition_head(self.number), self._head, head, self._puts)
        self._head, self._puts = head, []
        return group


async def fill(
    directory: Path,
    plan: Plan,
    report: Callable[[int], None],
    *,
    quiet_seconds: float = _QUIET_SECONDS,
) -> None:
    """Put the plan's items in the order of their numbers into its existing, empty table.

    ``report`` is called with the number of written items after each commit. The function returns
    when the engine has written nothing for a while.
    """
    store = await open_rocks(directory, RocksOptions(memtable_bytes=_MEMTABLE_BYTES))
    try:
        found = await catalog.load(store.latest)
        (table,) = (each for each in found.tables if each.definition.name == plan.table)
        await _fill(store, table, plan, report)
        await _wait_quiet(quiet_seconds)
    finally:
        await store.close()


async def _fill(
    store: Store, table: TableRecord, plan: Plan, report: Callable[[int], None]
) -> None:
    definition = table.definition
    assert not definition.local_indexes, "a put would write their entries"
    assert not definition.records_changes, "a put would write a change record"
    records = Records(plan)
    stamps = (0,) * plan.fields
    row_prefix = key_layout.row_prefix(definition.table_id)
    partition_map = PartitionMap(table.partitions)
    numbers = partition_map.numbers
    heads = await store.latest.load(list(map(key_layout.partition_head, numbers)))
    partitions = {number: _Partition(number, heads[at]) for at, number in enumerate(numbers)}
    for start in range(0, plan.keys, _ITEMS_TO_A_COMMIT):
        end = min(start + _ITEMS_TO_A_COMMIT, plan.keys)
        for number in range(start, end):
            item = _decode(records.item(number, 0, stamps))
            size_bytes = items.check(item)
            position = keys.encode(definition.key_schema, item)
            owner = partitions[partition_map.number_at(position)]
            owner.put(row_prefix, position, item, size_bytes)
        groups = [group for each in partitions.values() if (group := each.group())]
        await _commit(store, groups)
        report(end)


async def _commit(store: Store, groups: list[Group]) -> None:
    while True:
        try:
            await (await store.commit(groups))
        except Retry:
            await asyncio.sleep(_STALL_SECONDS)
        else:
            return


async def _wait_quiet(seconds: float) -> None:
    """Wait for the end of the engine's background writes."""
    process = psutil.Process()
    before = -_QUIET_BYTES
    while (now := process.io_counters().write_bytes) - before >= _QUIET_BYTES:
        before = now
        await asyncio.sleep(seconds)
