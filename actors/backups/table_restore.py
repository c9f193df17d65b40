"""The sink that puts the items of a backup into a table.

The table's partitions, which alone write its rows, put each item where there is none. So an item
that is sent again after a crash does no harm.
"""

from __future__ import annotations

from asyncio import Future
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from dynactor.actors.derived.sink import FillSink, Send, Step, Turn
from dynactor.actors.partition.messages import RestoreItems
from dynactor.actors.table.table import Table
from dynactor.storage.store import Row

# A write of this kind takes a multiple of what it takes to read its row: a message has few of them.
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
            by_partition[self._table.number_of(row.key)].append(row)
        for part in by_partition.values():
            for at in range(0, len(part), _MESSAGE_ROWS):
                some = part[at : at + _MESSAGE_ROWS]
                yield Send(partial(self._put, some), len(some) / len(rows))
                # The partition carries out the message, then others have their turn.
                yield Turn()

    def _put(self, rows: Sequence[Row]) -> Future[None]:
        message = RestoreItems(tuple(row.key for row in rows), tuple(row.value for row in rows))
        size_bytes = sum(len(row.value) for row in rows)
        return self._table.send(rows[0].key, message, size_bytes, always=True)
