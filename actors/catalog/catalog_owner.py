"""The catalog's owner: commits all changes of the catalog that one node makes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from itertools import count
from typing import Final, TypeVar

from dynactor.actors.partition.partition import CONFLICTS_BEFORE_LOCK
from dynactor.actors.runtime.commit_retry import commit_past_stalls
from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import Catalog, CatalogHead, TableRecord
from dynactor.storage.store import Conflict, Fenced, Group, Locked, Store, Unknown

DoneT = TypeVar("DoneT")

_COUNT_BYTES: Final = 8
# Number of conflicts before the catalog is loaded again.
_MOST_CONFLICTS: Final = 10


class CatalogOwner:
    """Commits one node's changes of the catalog.

    A table's record is a head of its own, so changes of two tables don't conflict. Only a commit
    that assigns new numbers compares the catalog's head. Each commit also compares and increments
    the count of this node's commits. So a commit of unknown outcome can't be written after the next
    one.

    Invariant: ``head`` is the catalog's head of the last commit that is known to be durable.

    Tables that are opened at the same time may commit at the same time. Their commits follow one
    another, because each compares the count of the one before. They neither lock heads nor assign
    numbers: a commit of another table would release the locks, or assign the same numbers.

    ``is_in_doubt`` is set by a commit whose outcome is unknown. ``is_behind`` is set if the stored
    catalog may differ from memory for another reason.
    """

    def __init__(self, store: Store, node: str = "") -> None:
        self.head = CatalogHead()
        self.is_in_doubt = False
        self.is_behind = False
        self._store = store
        self._node = node
        self._writer_bytes: bytes | None = None
        self._head_bytes: bytes | None = None
        self._records: dict[str, bytes] = {}
        self._turn = asyncio.Lock()
        # The locked heads of a table, and their keys; None while none are locked.
        self._locked: Locked | None = None
        self._locked_keys: Sequence[bytes] = ()

    def adopt(self, loaded: Catalog) -> None:
        """Use the loaded heads in the next commit."""
        self._writer_bytes = loaded.writer_bytes
        self.head, self._head_bytes = loaded.head, loaded.head_bytes
        self._records = dict(loaded.records)

    def note_record(self, name: str, stored: bytes) -> None:
        """Use the loaded record of a table in the next commit."""
        self._records[name] = stored

    @property
    def is_current(self) -> bool:
        """Whether memory is known to match the stored catalog."""
        return not self.is_behind and not self.is_in_doubt

    async def refresh_head(self) -> bool:
        """Load the catalog's head; return whether another node has assigned numbers."""
        (stored,) = await self._store.latest.load([key_layout.CATALOG_HEAD])
        if stored is None or stored == self._head_bytes:
            return False
        self.head, self._head_bytes = catalog.decode_head(stored), stored
        return True

    async def settle(self) -> None:
        """Commit only the count; a commit of unknown outcome can't be written after that.

        Raises as the store's ``commit``; the outcome is still unknown.
        """
        # A ``Conflict`` means that the commit of unknown outcome was written.
        with suppress(Conflict):
            await self._commit([], raises_version=False)
        self.is_in_doubt = False

    async def put(
        self,
        record: TableRecord,
        *,
        head: CatalogHead | None = None,
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        range_deletes: Sequence[tuple[bytes, bytes]] = (),
        discards: Sequence[tuple[bytes, bytes]] = (),
        heads: Sequence[Group] = (),
    ) -> None:
        """Write a table's record with other rows; return once it is durable.

        ``head`` is the catalog's head after new numbers were assigned. ``heads`` begin or end
        partitions in the same commit. Raises as the store's ``commit``.
        """
        name, value = record.definition.name, catalog.encode_record(record)
        group = Group(key_layout.table_record(name), self._records.get(name), value)
        await self._commit(
            [group, *heads], puts, deletes, range_deletes, discards=discards, head=head
        )
        self._records[name] = value

    async def delete(
        self,
        record: TableRecord,
        *,
        puts: Sequence[tuple[bytes, bytes]],
        logs: Sequence[int],
        keeps_items: bool = False,
    ) -> None:
        """Delete a table with all its rows, and the rows of these logs.

        With ``keeps_items`` the rows of the items stay, without those of indexes. Raises as the
        store's ``commit``.
        """
        name, table_id = record.definition.name, record.definition.table_id
        group = Group(key_layout.table_record(name), self._records.get(name), None)
        heads = await catalog.ended_heads(self._store.latest, record.partition_numbers)
        range_deletes = [
            key_layout.checkpoint_range(table_id),
            key_layout.balance_range(table_id),
            # These rows say which parts of its logs were trimmed.
            key_layout.trim_range(table_id),
        ]
        discards = [
            (key_layout.range_without_items if keeps_items else key_layout.table_range)(table_id),
            key_layout.expiry_range(table_id),
            *map(key_layout.change_range, logs),
        ]
        await self._commit([group, *heads], puts, (), range_deletes, discards=discards)
        del self._records[name]

    async def past_conflicts(
        self,
        record: TableRecord,
        numbers: Sequence[int],
        commit: Callable[[dict[int, bytes]], Awaitable[DoneT]],
    ) -> DoneT:
        """Commit a change of a table that compares the heads of these partitions.

        ``commit`` gets the stored heads by number. After a ``Conflict`` it is called again. Raises
        ``Conflict`` if another node has changed the table, or after too many of them; else as the
        store's ``commit`` and ``locked``.
        """
        for conflicts in count():
            # A partition that writes all the time changes its head all the time.
            is_busy = conflicts >= CONFLICTS_BEFORE_LOCK
            async with self._lock(record, numbers) if is_busy else nullcontext():
                heads = await self._heads(record, numbers)
                try:
                    return await commit(heads)
                except Fenced:
                    raise
                except Conflict:
                    if conflicts == _MOST_CONFLICTS:
                        raise
                    await self.refresh_head()
        raise AssertionError

    @asynccontextmanager
    async def _lock(self, record: TableRecord, numbers: Sequence[int]) -> AsyncIterator[None]:
        """Lock a table's record and the heads of these partitions until the next commit."""
        keys = [key_layout.table_record(record.definition.name)]
        keys += map(key_layout.partition_head, numbers)
        async with self._store.locked(keys) as locked:
            assert self._locked is None, "one change at a time locks heads"
            self._locked, self._locked_keys = locked, keys
            try:
                yield
            finally:
                self._locked = None

    async def _heads(self, record: TableRecord, numbers: Sequence[int]) -> dict[int, bytes]:
        name = record.definition.name
        rows = self._locked or self._store.latest
        stored, *values = await rows.load(
            [key_layout.table_record(name), *map(key_layout.partition_head, numbers)]
        )
        heads = {number: value for number, value in zip(numbers, values, strict=True) if value}
        if stored != self._records.get(name) or len(heads) < len(numbers):
            raise Conflict(f"another node has changed table {name}")
        return heads

    async def change(
        self,
        *,
        head: CatalogHead | None = None,
        heads: Sequence[Group] = (),
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        discards: Sequence[tuple[bytes, bytes]] = (),
        raises_version: bool = True,
    ) -> None:
        """Change other rows of the catalog: streams, ends of logs, backups of tables.

        ``raises_version``: whether other nodes must load the changed rows again. Raises as the
        store's ``commit``.
        """
        await self._commit(
            heads, puts, deletes, discards=discards, head=head, raises_version=raises_version
        )

    async def _commit(
        self,
        groups: Sequence[Group],
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        range_deletes: Sequence[tuple[bytes, bytes]] = (),
        *,
        discards: Sequence[tuple[bytes, bytes]] = (),
        head: CatalogHead | None = None,
        raises_version: bool = True,
    ) -> None:
        before = self.head
        async with self._turn:
            assert self._locked is None or any(
                group.head_key in self._locked_keys for group in groups
            ), "a commit of another table would release the locks"
            count = int.from_bytes(self._writer_bytes or b"", "big") + 1
            writer_bytes = count.to_bytes(_COUNT_BYTES, "big")
            own = Group(
                key_layout.catalog_writer(self._node),
                self._writer_bytes,
                writer_bytes,
                puts,
                deletes,
                range_deletes,
                raises=[key_layout.CATALOG_VERSION] if raises_version else (),
                discards=discards,
            )
            head_bytes = self._head_bytes
            if head is not None and head != self.head:
                assert self.head is before, "one change at a time assigns numbers"
                assert head.next_table_id >= self.head.next_table_id, "a number is assigned once"
                assert head.next_partition_number >= self.head.next_partition_number
                head_bytes = catalog.encode_head(head)
                groups = [Group(key_layout.CATALOG_HEAD, self._head_bytes, head_bytes), *groups]
            durable = await commit_past_stalls(self._locked or self._store, [own, *groups])
            try:
                await durable
            except Unknown:
                self.is_in_doubt = True
                raise
            # Set these only after the commit is durable: a store that reopens after a full disk has
            # lost the failed commit.
            self._writer_bytes = writer_bytes
            self.head, self._head_bytes = head or self.head, head_bytes
