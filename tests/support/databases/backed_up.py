"""Databases in the test's process whose tables are backed up, and stores that fail meanwhile."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Sequence
from random import Random
from typing import Final

import anyio
from msgspec import structs

from dynactor.actors.backups.messages import CreateTableBackup
from dynactor.actors.backups.table_backups import TableBackups
from dynactor.actors.database.database import Database
from dynactor.actors.restores.restore_phases import RestoreTable
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import GlobalIndex, TableDefinition
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.tables.restore_rules import RestoreOverrides, restored
from dynactor.model.tables.table_backup import TableBackup, TableBackupId
from dynactor.model.writes.write import Delete
from dynactor.storage import key_layout
from dynactor.storage.store import Closed, Full, Group, Store
from tests.support.databases.databases import put, table_definition, thread
from tests.support.stores.faulty_store import FaultyStore

_DEADLINE_SECONDS: Final = 60
_TABLE_ID_END: Final = 9
_COLLECTIONS: Final = b"\xff\xff\xff\xff"
# The prefix of the keys of partition heads and of cursors, which identify copies.
CURSORS: Final = b"\x05"
_HEADS: Final = (b"\x02", CURSORS)
# The ARN occurs only in error messages.
ARN: Final = "arn:aws:dynamodb:us-east-1:000000000000:table/Thread/backup/1-a"
_VOTES = KeyAttribute("votes", "N")


class CutStore(FaultyStore):
    """A store that refuses commits after ``commits_left`` more, as if the server had died."""

    commits_left: int | None = None

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        if self.commits_left is not None:
            if not self.commits_left:
                self.refuse_commits(Closed("cut off by a test"))
            self.commits_left -= 1
        return await super().commit(groups)

    @property
    def was_cut(self) -> bool:
        """Whether a commit was refused."""
        return self.commits_left is not None and self.commits_left < 0


class WithoutCursors(FaultyStore):
    """A store that refuses to write cursors, so scans and copies make no progress."""

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        if any(group.head_key[:1] == CURSORS for group in groups):
            raise Closed("cut off by a test")
        return await super().commit(groups)


class HoldingCopies(FaultyStore):
    """A store without space for copies of tables and restored items while ``is_holding``.

    Like a store on a full disk, it accepts commits that free space.
    """

    is_holding = True

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        if self.is_holding and any(
            group.head_key[:1] in _HEADS and group.puts and not group.ranges for group in groups
        ):
            raise Full("the disk is full")
        return await super().commit(groups)


def indexed_definition(name: str = "Thread") -> TableDefinition:
    """A table with a local index on posts, and on votes two global ones."""
    definition = table_definition(name, local_sort_keys=("posts",))
    projections = (Projection("ALL"), Projection("KEYS_ONLY"))
    return structs.replace(
        definition,
        attribute_definitions=(*definition.attribute_definitions, _VOTES),
        global_indexes=tuple(
            GlobalIndex(IndexDefinition(at, f"by_votes_{at}", KeySchema((_VOTES,), ()), projection))
            for at, projection in enumerate(projections, 2)
        ),
        next_index_id=4,
    )


async def write_something(table: Table, source: Random) -> None:
    """Put or delete an item, with or without entries in each index."""
    key = thread(f"f{source.randrange(40)}", f"s{source.randrange(40)}")
    if source.randrange(5) == 0:
        await table.write(Delete(key))
        return
    item = {**key, "text": {"S": "x" * source.randrange(200)}}
    for name in ("posts", "votes"):
        if source.randrange(3):
            item[name] = {"N": str(source.randrange(50))}
    await table.write(put(item))


async def filled_table(
    database: Database, writes: int = 900, seed: int = 1, definition: TableDefinition | None = None
) -> Table:
    """The table Thread after random writes, once its global indexes have applied them."""
    await database.ask(CreateTable(definition or indexed_definition()))
    table = database.table("Thread")
    source = Random(seed)
    for _ in range(writes):
        await write_something(table, source)
    await wait_followed(table)
    return table


async def wait_followed(table: Table) -> None:
    """Wait until a table's global indexes have applied all changes."""
    for actors in table.followers.indexes.values():
        await actors.wait_caught_up()


async def rows_of(store: Store, table_id: int) -> dict[bytes, bytes]:
    """All rows of a table, its indexes and the sizes of its item collections, without versions."""
    start, end = key_layout.table_range(table_id)
    # PostgreSQL deletes the rows of a deleted table later.
    await store.reclaim(start, end)
    found = {}
    while page := await store.durable().page(start, end, max_rows=1_000, max_bytes=1 << 24):
        for key, value in page:
            place = key[_TABLE_ID_END:]
            is_size = place.startswith(_COLLECTIONS)
            # Remove the item's version, which differs between a table and its copy: the number of
            # the change that wrote the item.
            found[place] = value if is_size else value[:1] + value[9:]
        start = page[-1].key + b"\x00"
    return found


async def counts_of(database: Database, name: str) -> dict[str, tuple[int, int]]:
    """The numbers of items and bytes of a table and its indexes."""
    state = await database.describe(name)
    return {"": (state.item_count, state.size_bytes)} | {
        index: (counters.item_count, counters.size_bytes)
        for index, counters in state.indexes.items()
    }


async def wait_available(database: Database, backup_id: TableBackupId) -> TableBackup:
    """Wait until a backup is AVAILABLE."""
    with anyio.fail_after(_DEADLINE_SECONDS):
        while True:
            backup = database.part(TableBackups).find(backup_id)
            assert backup is not None
            if backup.status == "AVAILABLE":
                return backup
            await asyncio.sleep(0)


async def back_up(database: Database, name: str = "Thread") -> TableBackup:
    """Back up a table, and wait until the backup is AVAILABLE."""
    backup = await database.ask(CreateTableBackup(name, "nightly"))
    return await wait_available(database, backup.backup_id)


async def begin_restore(
    database: Database, backup: TableBackup, name: str = "Restored", **overrides: object
) -> None:
    """Start restoring a table from a backup."""
    definition = restored(backup.definition, name, RestoreOverrides(**overrides))  # type: ignore[arg-type]
    await database.ask(RestoreTable(definition, backup.backup_id, ARN))


async def wait_restored(database: Database, name: str = "Restored") -> Table:
    """Wait until a restored table is ACTIVE."""
    with anyio.fail_after(_DEADLINE_SECONDS):
        while database.table_in_any_state(name).definition.status != "ACTIVE":
            await asyncio.sleep(0)
    return database.table(name)
