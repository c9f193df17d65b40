"""The catalog's owner: commits all changes of the catalog, under its head."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from msgspec import structs

from dynactor.actors.runtime.commit_retry import commit_past_stalls
from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import Catalog, CatalogHead, TableRecord
from dynactor.storage.store import Conflict, Group, Store, Unknown


class CatalogOwner:
    """Invariant: ``head`` is the catalog's head of the last commit that is known to be durable.

    ``is_in_doubt`` is set by a commit whose outcome is unknown.
    """

    def __init__(self, store: Store) -> None:
        self.head = CatalogHead()
        self.is_in_doubt = False
        self._store = store
        self._head_bytes: bytes | None = None

    def adopt(self, loaded: Catalog) -> None:
        """Adopt the stored head."""
        self.head, self._head_bytes = loaded.head, loaded.head_bytes

    async def settle(self) -> None:
        """Commit only the head; after that, a commit of unknown outcome can't be written any more.

        Raises:
            StoreError: see the store's ``commit``; the outcome is still unknown.
        """
        # A ``Conflict`` means that the commit of unknown outcome was written.
        with suppress(Conflict):
            await self.change()
        self.is_in_doubt = False

    async def put(
        self,
        record: TableRecord,
        *,
        head: CatalogHead | None = None,
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        range_deletes: Sequence[tuple[bytes, bytes]] = (),
        heads: Sequence[Group] = (),
    ) -> None:
        """Write a table's record with other rows; return once it is durable.

        ``heads`` begin or end partitions in the same commit.

        Raises:
            StoreError: see the store's ``commit``.
        """
        row = (key_layout.table_record(record.definition.name), catalog.encode_record(record))
        await self._commit(head or self.head, [row, *puts], deletes, range_deletes, heads)

    async def delete(
        self, record: TableRecord, *, puts: Sequence[tuple[bytes, bytes]], logs: Sequence[int]
    ) -> None:
        """Delete a table with all its rows, and the rows of these logs.

        Raises:
            StoreError: see the store's ``commit``.
        """
        deletes = [key_layout.table_record(record.definition.name)]
        heads = await catalog.ended_heads(self._store.latest, record.partition_numbers)
        range_deletes = [
            key_layout.table_range(record.definition.table_id),
            key_layout.checkpoint_range(record.definition.table_id),
            key_layout.expiry_range(record.definition.table_id),
            key_layout.balance_range(record.definition.table_id),
            # The streams store which parts of its logs are trimmed.
            key_layout.trim_range(record.definition.table_id),
        ]
        range_deletes += [key_layout.change_range(number) for number in logs]
        await self._commit(self.head, puts, deletes, range_deletes, heads)

    async def change(
        self,
        *,
        head: CatalogHead | None = None,
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        range_deletes: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """Change other rows of the catalog: streams, ends of logs, backups of tables.

        Raises:
            StoreError: see the store's ``commit``.
        """
        await self._commit(head or self.head, puts, deletes, range_deletes)

    async def _commit(
        self,
        head: CatalogHead,
        puts: Sequence[tuple[bytes, bytes]],
        deletes: Sequence[bytes],
        range_deletes: Sequence[tuple[bytes, bytes]],
        heads: Sequence[Group] = (),
    ) -> None:
        # The count makes each head unique. So if a commit of unknown outcome was written, the next
        # commit fails with ``Conflict``.
        head = structs.replace(head, commits=self.head.commits + 1)
        head_bytes = catalog.encode_head(head)
        group = Group(
            key_layout.CATALOG_HEAD,
            self._head_bytes,
            head_bytes,
            [*puts, catalog.version_row(head.commits)],
            deletes,
            range_deletes,
        )
        durable = await commit_past_stalls(self._store, [group, *heads])
        try:
            await durable
        except Unknown:
            self.is_in_doubt = True
            raise
        # Set these only after the commit is durable: a store that reopens after a full disk has
        # lost the failed commit.
        self.head, self._head_bytes = head, head_bytes
