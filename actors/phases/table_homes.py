"""Opens the tables whose home this database is, and moves tables between homes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from dynactor.actors.catalog.homes import (
    GroupTables,
    MoveGuard,
    MoveTables,
    RecallTables,
    TakeTables,
)
from dynactor.actors.parts.long_work import Pieces
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.phases.streams import StreamRegistry
from dynactor.actors.runtime.cancellation import together
from dynactor.actors.splitting.messages import is_settled
from dynactor.actors.table.table import Table
from dynactor.model.errors import DynamoDBError
from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import Catalog, TableRecord
from dynactor.storage.store import StoreError

T = TypeVar("T")

# Maximum number of tables that are opened at the same time.
_MOST_OPENED_AT_ONCE: Final = 16


class TableHomes(Part):
    """Opens and closes tables. Other parts start and stop the work on them.

    ``guard`` holds the requests to tables that move; None if this database shares no tables.
    """

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.guard: MoveGuard | None = None
        self._homes = parts.homes
        self._streams = parts[StreamRegistry]
        self.handlers = {
            TakeTables: self._take,
            MoveTables: self._move,
            RecallTables: self._recall,
            GroupTables: self._group,
        }

    async def adopt(self, loaded: Catalog) -> None:
        """Open the stored tables; close those that are gone."""
        here = [each for each in loaded.tables if self._homes.is_here(each.definition.name)]
        gone = self._tables.keys() - {record.definition.name for record in here}
        await asyncio.gather(*(self._tables.pop(name).close() for name in gone))
        for some in _portions(here):
            await together(map(self._reopen, some))

    def may_move(self, table: Table) -> bool:
        """Whether the table is in no transition."""
        return is_settled(table.definition)

    def movable(self) -> list[str]:
        """The tables that may get another home now, sorted."""
        return [name for name in sorted(self._tables) if self._parts.may_move(self._tables[name])]

    async def close(self) -> None:
        """Close the tables, after their accepted writes are answered."""
        await asyncio.gather(*(table.close() for table in self._tables.values()))

    async def _reopen(self, record: TableRecord) -> None:
        """Start a stored table again, if it is open."""
        table = self._tables.get(record.definition.name)
        if table is not None:
            # The table may be half deleted, or another table may have its name by now.
            await self._parts.closing(table)
            await table.close()
        await self._open(record)

    async def _open(self, record: TableRecord) -> None:
        """Start a stored table; several are started at the same time."""
        name = record.definition.name
        table = Table(record, self._environment, is_stored=True)
        await self._parts.opening(table)
        self._tables[name] = table
        self._homes.opened(name)
        if self.guard is not None:
            # Requests don't need its followers, nor the other tables.
            self.guard.opened()
        await self._parts.resume(table)
        await self._parts.opened(table)

    async def _take(self, message: TakeTables) -> Pieces:
        """Open the tables that this database has become the home of.

        Raises:
            StoreError, DynamoDBError: some of them are not open; the caller repeats the message.
        """
        names = [name for name in message.names if name not in self._tables]
        await self._homes.reload(names)
        claims = {name: self._homes.claim(name) for name in names}
        ended = [name for name, claim in claims.items() if claim and claim.epoch in message.ended]
        await self._homes.end(ended)
        for some in _portions(names):
            # A table may have been opened since the last piece.
            await self._take_some([name for name in some if name not in self._tables])
            yield

    async def _take_some(self, names: Sequence[str]) -> None:
        """Open those of these tables whose home this is, all at the same time."""
        here = [name for name in names if self._homes.is_here(name)]
        for name in names:
            if name not in here:
                self._homes.note(name)
        if not here:
            return
        rows = await self._store.latest.load(list(map(key_layout.table_record, here)))
        records = []
        for name, stored in zip(here, rows, strict=True):
            if stored is None:
                self._homes.opened(name)
            else:
                self._owner.note_record(name, stored)
                records.append(catalog.decode_record(stored))
        try:
            await together(map(self._open_moved, records))
        except (StoreError, DynamoDBError):
            # A table may have started in part, so start all again.
            self._owner.is_behind = True
            raise

    async def _open_moved(self, record: TableRecord) -> None:
        await self._streams.load_table(record.definition.table_id)
        await self._open(record)

    async def _move(self, message: MoveTables) -> None:
        """Give tables to another share, unless they can't move now.

        Requests to the tables wait only meanwhile.

        Raises:
            StoreError: the tables may be closed; ``TakeTables`` opens them again.
        """
        guard, epoch = self.guard, message.epoch
        # Another share would run the next table that gets the name of a deleted one.
        names = [
            name
            for name in message.names
            if (self._parts.may_move(table) if (table := self._tables.get(name)) else epoch == 0)
        ]
        if guard is None or not guard.may_give(epoch):
            return
        async with guard.holding(names) as are_idle:
            if not are_idle:
                return
            await asyncio.gather(
                *(self._close(self._tables[name]) for name in names if name in self._tables)
            )
            # The other node may have ended meanwhile.
            if guard.may_give(epoch):
                await self._homes.reload(names)
                await self._homes.give(list(filter(self._homes.is_here, names)), epoch)
            # Open again what was not given.
            await self._take_some(list(filter(self._homes.is_here, names)))

    async def _close(self, table: Table) -> None:
        """Close a table that is about to get another home."""
        name, table_id = table.definition.name, table.definition.table_id
        await self._parts.closing(table)
        await table.close()
        self._parts.forget(table_id)
        self._streams.detach(table.record.log_numbers)
        self._streams.forget_table(table_id)
        self._homes.closed(name)
        del self._tables[name]

    async def _recall(self, message: RecallTables) -> None:
        await self._homes.recall(message.names)

    async def _group(self, message: GroupTables) -> None:
        await self._homes.group(message.names)


def _portions(things: Sequence[T]) -> Iterator[Sequence[T]]:
    """These in portions of as many as are opened at the same time."""
    for start in range(0, len(things), _MOST_OPENED_AT_ONCE):
        yield things[start : start + _MOST_OPENED_AT_ONCE]
