"""The sink that fills a new global secondary index with the items of its table.

Entries may be out of date. Every change since the index was added is in the logs, and the followers
that start after the scan apply all of these changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from dynactor.actors.followers.sink import FillSink, Send, Step, TakeUnits, Turn
from dynactor.actors.indexes.index_changes import IndexWriter
from dynactor.actors.limits.backfill_units import BackfillUnits
from dynactor.actors.partition.index_partition import Backfill
from dynactor.model.capacity import write_units
from dynactor.model.definitions.index import IndexDefinition, entry_position, global_entry
from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeySchema
from dynactor.model.values.item import decode, part_decoder
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import codec
from dynactor.storage.store import Row

# Number of rows of a page that become entries in one turn of the loop. Turns must be short, because
# a write takes several turns, and its sync's thread runs between turns.
_TURN_ROWS: Final = 32


class _Entry(NamedTuple):
    """An entry to put, its write units, and its item's position in the table."""

    position: bytes
    value: bytes
    units: int
    item: bytes


class IndexBackfill(FillSink):
    """Sends the entries of items to the partitions of an index, limited by the index's units."""

    # While one page becomes durable, the next one is read.
    pages_in_flight = 2
    pages_per_cursor = 64

    def __init__(
        self,
        index: IndexDefinition,
        table_key: KeySchema,
        writer: IndexWriter,
        units: BackfillUnits,
    ) -> None:
        # The units consumed since the server started; an entry that is put again counts again.
        self.write_units = 0
        # How often entries had to wait for units of the index.
        self.throttle_events = 0
        self._index = index
        self._table_key = table_key
        self._holds_whole_items = index.projection.type == "ALL"
        # Whole items are used as stored: only their keys are decoded.
        self._decode = (
            part_decoder([attribute.name for attribute in index.key_schema.attributes])
            if self._holds_whole_items
            else decode
        )
        self._writer = writer
        self._units = units

    def steps(self, rows: Sequence[Row]) -> Iterator[Step]:
        """Make the entries, and send them by partition before each wait and at the end."""
        by_partition: dict[int, list[_Entry]] = {}
        for at in range(0, len(rows), _TURN_ROWS):
            for row in rows[at : at + _TURN_ROWS]:
                self._add_entry(by_partition, row)
            yield Turn()
        total = sum(map(len, by_partition.values()))
        take = self._units.take
        for number, entries in by_partition.items():
            begin = 0
            for at, entry in enumerate(entries):
                refused = take(number, entry.units)
                if refused is not None:
                    self.throttle_events += 1
                    yield from self._sends(number, entries[begin:at], total)
                    yield TakeUnits(refused, partial(take, number, entry.units))
                    begin = at
                self.write_units += entry.units
            yield from self._sends(number, entries[begin:], total)

    def _add_entry(self, by_partition: dict[int, list[_Entry]], row: Row) -> None:
        stored = codec.decode(row.value)
        entry = global_entry(self._index, self._table_key, self._decode(stored.data))
        if entry is None:
            return
        position = entry_position(self._index, entry, keys.without_hash(row.key))
        value = row.value
        if not self._holds_whole_items:
            stored = StoredItem.of(entry, stored.version)
            value = codec.encode(stored)
        put = _Entry(position, value, write_units(stored.size_bytes), row.key)
        by_partition.setdefault(self._writer.number_at(position), []).append(put)

    def _sends(self, number: int, entries: Sequence[_Entry], total: int) -> Iterator[Send]:
        if entries:
            message = Backfill(
                tuple([(entry.position, entry.value) for entry in entries]),
                (entries[0].item, entries[-1].item),
            )
            yield Send(partial(self._writer.ask, number, message), len(entries) / total)
