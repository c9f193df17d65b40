"""The sink that puts the items of a backup into a table.

The table's partitions put each item only where no item exists, because only they write its rows. So
a repetition after a crash has no effect.
"""

from __future__ import annotations

from asyncio import Future
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from dynactor.actors.followers.sink import FillSink, Send, Step, Turn
from dynactor.actors.partition.messages import RestoreItems
from dynactor.actors.table.table import Table
from dynactor.storage.store import Row

# A write costs several times as much as reading its row, so a message has few items.
_MESSAGE_ROWS: Final = 16


class RestoredItems(FillSink):
    """Sends stored items to the partitions of a table."""

    pages_in_flight = 1
    pages_per_cursor = 32

    def __init__(self, table: Table) -> None:
        self._table = table

    def steps(self, rows: Sequence[Row]) -> Iterator[Step]:
        """Send messages of a few items, each to one partition."""
        by_partition: defaultdict[int, list[Row]] = defaultdict(list)
        for row in rows:
            by_partition[self._table.number_at(row.key)].append(row)
        for part in by_partition.values():
            for at in range(0, len(part), _MESSAGE_ROWS):
                some = part[at : at + _MESSAGE_ROWS]
                yield Send(partial(self._put, some), len(some) / len(rows))
                # Let the partition carry out the message, and other tasks run.
                yield Turn()

    def _put(self, rows: Sequence[Row]) -> Future[None]:
        message = RestoreItems(tuple(row.key for row in rows), tuple(row.value for row in rows))
        size_bytes = sum(len(row.value) for row in rows)
        return self._table.send(rows[0].key, message, size_bytes, always=True)
