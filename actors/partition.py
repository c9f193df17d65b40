"""A partition: the one owner of a range of items and their local index entries.

Its mailbox serialises writes. All that waits is taken as one batch: the old items are loaded
in one call, each write is decided on what the earlier ones of its batch leave, and one atomic
group holds the items, the index rows and the partition's head. A reply goes out when the group
is durable; a reply without a write, when everything it saw is.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final, NamedTuple

import anyio
from msgspec import Struct

from actors.runtime.mailbox import Envelope, Mailbox, Message
from model import key as keys
from model.capacity import Receipt
from model.change import Change
from model.errors import (
    DynamoDBError,
    InternalServerError,
    ItemCollectionSizeLimitExceededException,
)
from model.item import Item
from model.limits import INDEX_ENTRY_OVERHEAD_BYTES
from model.stored_item import StoredItem
from model.table import TABLE_INDEX_ID, TableDefinition
from model.write import Write, decide
from storage import catalog, codec, keys_layout
from storage.catalog import PartitionHead
from storage.store import Conflict, Damaged, Full, Group, Retry, Store, StoreError

MAILBOX_MESSAGES: Final = 10_000
BATCH_MESSAGES: Final = 256
BATCH_BYTES: Final = 1024 * 1024

# A sequence number is the partition's number above this many bits of its own counter: 67
# million partitions in a store's life, 274 thousand million changes in each one's.
COUNTER_BITS: Final = 38

UNKNOWN: Final = "Whether this was written is unknown"

_STALL_SECONDS: Final = 0.002
_SIZE_BYTES: Final = 8


class PartitionSettings(Struct, frozen=True):
    """What may be set for partitions; see ``DatabaseSettings``."""

    item_collection_limit_bytes: int
    copy_messages: bool = False


class Written(Struct, frozen=True):
    """The reply to a write.

    ``collection_size_bytes`` is the size of the item's collection, None on a table without
    local indexes.
    """

    attributes: Item | None
    receipt: Receipt
    collection_size_bytes: int | None


class WriteItem(Message[Written], frozen=True):
    """Carry out a write on the item whose encoded key is ``partition_key + sort_key``."""

    partition_key: bytes
    sort_key: bytes
    write: Write


class _Outcome(NamedTuple):
    envelope: Envelope
    result: Written | DynamoDBError


class _Batch:
    """The state that the writes of one batch see and leave, over what is stored."""

    def __init__(self, head: PartitionHead) -> None:
        self.items: dict[bytes, StoredItem | None] = {}
        self.collections: dict[bytes, int] = {}
        self.rows: dict[bytes, bytes | None] = {}
        self.counter = head.counter
        self.item_counts = dict(head.item_counts)
        self.sizes_bytes = dict(head.sizes_bytes)

    def head(self) -> PartitionHead:
        return PartitionHead(self.counter, self.item_counts, self.sizes_bytes)

    def count(
        self, index_id: int, old: StoredItem | None, new: StoredItem | None, overhead_bytes: int = 0
    ) -> int:
        """Count an item or entry in and out; returns by how many bytes the storage grew."""
        grown_items = (new is not None) - (old is not None)
        grown_bytes = (new.size_bytes if new else 0) - (old.size_bytes if old else 0)
        grown_bytes += grown_items * overhead_bytes
        self.item_counts[index_id] = self.item_counts.get(index_id, 0) + grown_items
        self.sizes_bytes[index_id] = self.sizes_bytes.get(index_id, 0) + grown_bytes
        return grown_bytes


class Partition:
    """The actor. Invariant: ``_head`` is the head of the last accepted group."""

    def __init__(
        self,
        number: int,
        table: TableDefinition,
        store: Store,
        settings: PartitionSettings,
    ) -> None:
        self.name = f"partition {number} of {table.name}"
        self.mailbox = Mailbox(MAILBOX_MESSAGES, copy_messages=settings.copy_messages)
        self.in_hand: list[Envelope] = []
        self._number = number
        self._table = table
        self._store = store
        self._item_collection_limit_bytes = settings.item_collection_limit_bytes
        self._head_key = keys_layout.partition_head(number)
        self._head_bytes: bytes | None = None
        self._head = PartitionHead()
        self._row_prefix = keys_layout.row_prefix(table.table_id)
        self._index_prefixes = {
            index.index_id: keys_layout.row_prefix(table.table_id, index.index_id)
            for index in table.local_indexes
        }
        self._last_commit: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Load the head, then work through the mailbox until it is closed and drained."""
        await self._load_head()
        while batch := await self.mailbox.take(BATCH_MESSAGES, BATCH_BYTES):
            self.in_hand = batch
            await self._work(batch)
            self.in_hand = []
        if self._last_commit is not None and not self._last_commit.done():
            await asyncio.wait([self._last_commit])

    async def _load_head(self) -> None:
        (self._head_bytes,) = await self._store.latest.load([self._head_key])
        self._head = catalog.decode_partition_head(self._head_bytes)

    async def _work(self, envelopes: list[Envelope]) -> None:
        try:
            outcomes = await self._decide_and_commit(envelopes)
        except _Refused as refusal:
            _refuse(envelopes, refusal.error)
        except Damaged as error:
            if len(envelopes) == 1:
                _refuse(envelopes, InternalServerError(f"Nothing was written: {error}"))
            else:
                # One damaged item must not refuse the others of its batch.
                for envelope in envelopes:
                    await self._work([envelope])
        else:
            commit = self._last_commit
            if commit is None or commit.done():
                _settle(outcomes, commit)
            else:
                commit.add_done_callback(partial(_settle, outcomes))

    async def _decide_and_commit(self, envelopes: list[Envelope]) -> list[_Outcome]:
        while True:
            batch = await self._load(envelopes)
            outcomes = [_Outcome(envelope, self._decide(batch, envelope)) for envelope in envelopes]
            # What is decided after a commit that failed has seen what may never be durable.
            # Only another commit tells whether the store goes on, so there is one in any case.
            if batch.rows or self._is_store_in_doubt():
                try:
                    await self._commit(batch)
                except Conflict:
                    # The store was opened again, without the commit that had failed.
                    await self._load_head()
                    continue
            return outcomes

    def _is_store_in_doubt(self) -> bool:
        """Whether this partition's last commit failed, or it has made none to know better."""
        commit = self._last_commit
        return commit is None or (commit.done() and commit.exception() is not None)

    async def _load(self, envelopes: list[Envelope]) -> _Batch:
        batch = _Batch(self._head)
        positions = []
        for envelope in envelopes:
            message = envelope.message
            assert isinstance(message, WriteItem)
            positions.append(message.partition_key + message.sort_key)
            batch.collections[message.partition_key] = 0
        row_keys = [self._row_prefix + position for position in positions]
        collections = list(batch.collections) if self._table.local_indexes else []
        row_keys += [
            keys_layout.collection_row(self._table.table_id, partition_key)
            for partition_key in collections
        ]
        values = await self._store.latest.load(row_keys)
        for position, value in zip(positions, values, strict=False):
            batch.items[position] = None if value is None else codec.decode(value)
        for partition_key, value in zip(collections, values[len(positions) :], strict=True):
            batch.collections[partition_key] = int.from_bytes(value or b"", "big")
        return batch

    def _decide(self, batch: _Batch, envelope: Envelope) -> Written | DynamoDBError:
        message = envelope.message
        assert isinstance(message, WriteItem)
        position = message.partition_key + message.sort_key
        version = self._number << COUNTER_BITS | batch.counter + 1
        try:
            change = decide(self._table, batch.items[position], message.write, version)
            self._check_collection(batch, message.partition_key, change)
        except DynamoDBError as error:
            return error
        if change.old is not None or change.new is not None:
            self._apply(batch, message, change)
        return Written(
            change.attributes,
            change.receipt,
            batch.collections[message.partition_key] if self._table.local_indexes else None,
        )

    def _check_collection(self, batch: _Batch, partition_key: bytes, change: Change) -> None:
        """Refuse to let a full item collection grow (S66, S67)."""
        if not self._table.local_indexes:
            return
        grown_bytes = _grown_bytes(change)
        size_bytes = batch.collections[partition_key] + grown_bytes
        if grown_bytes > 0 and size_bytes > self._item_collection_limit_bytes:
            raise ItemCollectionSizeLimitExceededException(
                "Collection size exceeded. Attempting to grow an item collection beyond its "
                f"limit of {self._item_collection_limit_bytes} bytes"
            )

    def _apply(self, batch: _Batch, message: WriteItem, change: Change) -> None:
        position = message.partition_key + message.sort_key
        batch.counter += 1
        batch.items[position] = change.new
        batch.rows[self._row_prefix + position] = (
            None if change.new is None else codec.encode(change.new)
        )
        grown_bytes = batch.count(TABLE_INDEX_ID, change.old, change.new)
        for index, old, new in change.index_changes:
            prefix = self._index_prefixes[index.index_id] + message.partition_key
            if old is not None:
                sort = keys.encode_sort(index.key_schema, old.item)
                batch.rows[prefix + sort + message.sort_key] = None
            if new is not None:
                sort = keys.encode_sort(index.key_schema, new.item)
                batch.rows[prefix + sort + message.sort_key] = codec.encode(new)
            grown_bytes += batch.count(index.index_id, old, new, INDEX_ENTRY_OVERHEAD_BYTES)
        if self._table.local_indexes:
            size_bytes = batch.collections[message.partition_key] + grown_bytes
            batch.collections[message.partition_key] = size_bytes
            row = keys_layout.collection_row(self._table.table_id, message.partition_key)
            batch.rows[row] = size_bytes.to_bytes(_SIZE_BYTES, "big") if size_bytes else None

    async def _commit(self, batch: _Batch) -> None:
        """Commit a batch.

        Raises:
            _Refused: the store takes no writes; nothing was written.
            Conflict: the head is not the stored one; nothing was written.
        """
        head = batch.head()
        head_bytes = catalog.encode_partition_head(head)
        group = Group(
            head_key=self._head_key,
            expected_head=self._head_bytes,
            head=head_bytes,
            puts=[(key, value) for key, value in batch.rows.items() if value is not None],
            deletes=[key for key, value in batch.rows.items() if value is None],
        )
        while True:
            try:
                self._last_commit = await self._store.commit([group])
            except Retry:
                await anyio.sleep(_STALL_SECONDS)
            except Conflict:
                raise
            except Full as error:
                raise _Refused(f"Nothing was written, the disk is full: {error}") from error
            except StoreError as error:
                raise _Refused(f"Nothing was written: {error}") from error
            else:
                self._head, self._head_bytes = head, head_bytes
                return


class _Refused(Exception):
    """The store refused a batch as a whole."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.error = InternalServerError(message)


def _grown_bytes(change: Change) -> int:
    def size_bytes(stored: StoredItem | None, overhead_bytes: int = 0) -> int:
        return 0 if stored is None else stored.size_bytes + overhead_bytes

    overhead_bytes = INDEX_ENTRY_OVERHEAD_BYTES
    return (
        size_bytes(change.new)
        - size_bytes(change.old)
        + sum(
            size_bytes(new, overhead_bytes) - size_bytes(old, overhead_bytes)
            for _, old, new in change.index_changes
        )
    )


def _refuse(envelopes: list[Envelope], error: DynamoDBError) -> None:
    for envelope in envelopes:
        envelope.refuse(error)


def _settle(outcomes: list[_Outcome], commit: asyncio.Future[None] | None) -> None:
    """Send the replies of a batch, once everything it wrote and saw is durable."""
    failure = None if commit is None else commit.exception()
    for envelope, result in outcomes:
        if failure is not None:
            wrote_nothing = isinstance(result, DynamoDBError)
            known = "Nothing was written" if wrote_nothing else UNKNOWN
            envelope.refuse(InternalServerError(f"{known}: {failure}"))
        elif isinstance(result, DynamoDBError):
            envelope.refuse(result)
        else:
            envelope.answer(result)
