"""The effect of messages on a table's partition: items, local index entries, change records.

Each write is decided on the present item, and writes rows, a change record and counts into its
batch. This file does no I/O: the loop (``partition``) loads, charges and commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from dynactor.actors.partition.batch import TableBatch
from dynactor.actors.partition.item_locks import (
    ItemLocks,
    LockedPart,
    Prepare,
    Release,
    Transact,
)
from dynactor.actors.partition.messages import (
    Expired,
    ExpireItems,
    RestoreItems,
    WriteItem,
    Written,
)
from dynactor.actors.partition.transaction_parts import TransactionParts
from dynactor.actors.runtime.mailbox import Message
from dynactor.model.definitions.table import TABLE_INDEX_ID, TableDefinition
from dynactor.model.errors import (
    DynamoDBError,
    ItemCollectionSizeLimitExceededException,
    TransactionConflictException,
)
from dynactor.model.keys import key as keys
from dynactor.model.limits import INDEX_ENTRY_OVERHEAD_BYTES, ITEM_SIZE_BYTES
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.model.values import item as items
from dynactor.model.writes.change import Change, restoration
from dynactor.model.writes.expiry import ExpiryReader, expire
from dynactor.model.writes.transaction import Action
from dynactor.model.writes.write import Delete, Put, decide
from dynactor.storage import codec, key_layout
from dynactor.storage.catalog import PartitionHead
from dynactor.streams import change_log, change_record, changes_by_key
from dynactor.streams.change_record import ChangeRecord, Origin, TransactionPlace
from dynactor.streams.changes_by_key import Listing
from dynactor.streams.entry_change import EntryChange, ItemRow, entry_changes
from dynactor.streams.sequence_number import SequenceNumber

_SIZE_BYTES: Final = 8
# Number of item collections whose sizes are cached.
_KNOWN_COLLECTIONS: Final = 1_024


class ItemChange(NamedTuple):
    """A change that the server itself makes, and a write with the same effect."""

    write: WriteItem
    change: Change


class ExpiryDecision(NamedTuple):
    """The deletions of expired items, and the positions that are locked by transactions."""

    deletions: list[ItemChange]
    locked: tuple[bytes, ...]


class TableCore:
    """The core of a table's partition.

    Invariants: a locked position is written only by the transaction that has locked it.
    ``_collections`` are the stored sizes of item collections under ``_collections_head``; they are
    not used once anything but a batch has changed the head. ``_listing`` is that of the last
    accepted batch; None after a start, or if commits may be lost.
    """

    def __init__(
        self, partition_number: int, definition: TableDefinition, collection_limit_bytes: int
    ) -> None:
        """``collection_limit_bytes``: maximum size of an item collection with local indexes."""
        table_id = definition.table_id
        self.locks = ItemLocks()
        self._partition_number = partition_number
        self._collection_limit_bytes = collection_limit_bytes
        self._versions = SequenceNumber(partition_number, 0).packed()
        self._row_prefix = key_layout.row_prefix(table_id)
        self._index_prefixes = {
            index.index_id: key_layout.row_prefix(table_id, index.index_id)
            for index in definition.local_indexes
        }
        self._collections: dict[bytes, int] = {}
        self._collections_head: PartitionHead | None = None
        # The key of the last change, until its time is loaded with the rows of the first batch.
        self._last_change: bytes | None = None
        self._last_change_us = 0
        self._parts = TransactionParts(self)
        self._listing: Listing | None = None
        self.use(definition)

    def use(self, definition: TableDefinition) -> None:
        """Use this definition; values that each write needs are computed once."""
        self.definition = definition
        self.has_local_indexes = bool(definition.local_indexes)
        # Up to this size no single write can exceed the limit of an item collection.
        written_bytes = (1 + len(definition.local_indexes)) * (
            ITEM_SIZE_BYTES + INDEX_ENTRY_OVERHEAD_BYTES
        )
        self._far_below_limit_bytes = self._collection_limit_bytes - written_bytes
        self.records_changes = definition.records_changes
        recovery = definition.point_in_time_recovery
        self._lists_changes = recovery is not None and recovery.lists_changes
        self._listing = None
        # The ids of the global indexes whose entry changes are computed with the write.
        self._held_indexes = [
            index.definition.index_id for index in definition.global_indexes if index.holds_entries
        ]
        self._expiry = _expiry_reader(definition)

    # -- the loop's calls -------------------------------------------------------------------

    def begin(self, head: PartitionHead) -> None:
        """Load the time of the last change with the first batch.

        Another node may have made the change, and its clock may be ahead of this one's. Times in a
        log never go back, because readers search for them.
        """
        if head.counter and self.records_changes:
            self._last_change = key_layout.change_row(self._partition_number, head.counter)

    def forget(self) -> None:
        """Release all locks: their transactions were decided on rows that may be gone."""
        self.locks.clear()
        self._listing = None

    def open(self, head: PartitionHead, messages: Sequence[Message[Any]]) -> TableBatch:
        """Return a batch that lists the items and collection sizes that these messages need."""
        batch = TableBatch(head)
        positions, collections = batch.positions, batch.collections
        has_local_indexes = self.has_local_indexes
        for message in messages:
            if isinstance(message, WriteItem):
                positions.append(message.position)
                if has_local_indexes:
                    collections[message.partition_key] = 0
            elif isinstance(message, (Prepare, Transact)):
                for action in message.part.actions:
                    positions.append(action.position)
                    if has_local_indexes:
                        collections[action.partition_key] = 0
            elif isinstance(message, ExpireItems | RestoreItems):
                positions += message.positions
                if has_local_indexes:
                    schema = self.definition.key_schema
                    for position in message.positions:
                        collections[keys.split(schema, position)[0]] = 0
        if has_local_indexes:
            self._add_cached_collections(batch, head)
        return batch

    def open_round(self, head: PartitionHead, locked: Iterable[LockedPart]) -> TableBatch:
        """Return a batch for prepared transactions, which a round commits.

        Their items are locked, so nothing has changed them since; other writes may have changed the
        sizes of their item collections.
        """
        batch = TableBatch(head)
        if self.has_local_indexes:
            batch.unknown_collections = list(
                dict.fromkeys(
                    action.partition_key for each in locked for action in each.part.actions
                )
            )
        return batch

    def _add_cached_collections(self, batch: TableBatch, head: PartitionHead) -> None:
        """Add the cached sizes to a batch, and list the collections whose sizes are not cached."""
        if self._collections_head is not head:
            self._collections.clear()
            batch.unknown_collections = list(batch.collections)
            return
        known = self._collections
        for partition_key in batch.collections:
            size_bytes = known.get(partition_key)
            if size_bytes is None:
                batch.unknown_collections.append(partition_key)
            else:
                batch.collections[partition_key] = size_bytes

    def row_keys(self, batch: TableBatch) -> list[bytes]:
        """Return the keys of the items that a batch needs, then of the collection sizes.

        The first batch also needs the last change.
        """
        prefix = self._row_prefix
        row_keys = [prefix + position for position in batch.positions]
        if batch.unknown_collections:
            table_id = self.definition.table_id
            row_keys += [
                key_layout.collection_row(table_id, partition_key)
                for partition_key in batch.unknown_collections
            ]
        if self._last_change is not None:
            row_keys.append(self._last_change)
        return row_keys

    def fill(self, batch: TableBatch, values: Sequence[bytes | None]) -> None:
        """Add the loaded items and collection sizes to a batch."""
        if self._last_change is not None:
            *values, last_change = values
            self._last_change = None
            if last_change is not None:
                self._last_change_us = change_record.time_us(last_change)
        positions, collections = batch.positions, batch.unknown_collections
        for position, value in zip(positions, values, strict=False):
            batch.items[position] = None if value is None else codec.decode(value)
        for partition_key, value in zip(collections, values[len(positions) :], strict=True):
            batch.collections[partition_key] = int.from_bytes(value or b"", "big")

    def accepted(self, batch: TableBatch, head: PartitionHead) -> None:
        """Cache the sizes of collections that are likely to be written again."""
        if self.has_local_indexes:
            if len(self._collections) > _KNOWN_COLLECTIONS:
                self._collections.clear()
            self._collections.update(batch.collections)
        self._collections_head = head
        if batch.listing is not None:
            self._listing = batch.listing

    def rejected(self, batch: TableBatch) -> None:
        """Release the locks of a batch that the store has refused."""
        for transaction_id in batch.prepared:
            self.locks.drop(transaction_id)

    # -- decide -----------------------------------------------------------------------------

    def decide(self, batch: TableBatch, message: Message[Any]) -> Any:
        """Decide one message on the results of the messages before it in the batch.

        Returns a write's change, or the error that refuses it; else a value for ``_apply_other``.
        """
        if not isinstance(message, WriteItem):
            return self._decide_other(batch, message)
        position = message.position
        if position in self.locks.positions:
            return TransactionConflictException()
        try:
            change = decide(
                self.definition,
                batch.items[position],
                message.write,
                self._versions + batch.counter + 1,
            )
            if (
                self.has_local_indexes
                and batch.collections[message.partition_key] > self._far_below_limit_bytes
            ):
                self.check_collection(batch, message.partition_key, change)
        except DynamoDBError as error:
            return error
        return change

    def apply(self, batch: TableBatch, message: Message[Any], decision: Any) -> Any:
        """Add a decision's rows to the batch; return the reply, or the error of the reply."""
        if not isinstance(message, WriteItem):
            return self._apply_other(batch, message, decision)
        if not isinstance(decision, Change):
            return decision
        if self.has_effect(decision):
            self.put(batch, message, decision)
        size_bytes = batch.collections[message.partition_key] if self.has_local_indexes else None
        return Written(decision.attributes, decision.receipt, size_bytes)

    def _decide_other(self, batch: TableBatch, message: Message[Any]) -> Any:
        match message:
            case Prepare(part=part) | Transact(part=part):
                return self._parts.decide(batch, part)
            case ExpireItems():
                return self._decide_expiry(batch, message)
            case RestoreItems():
                return self._decide_restoration(batch, message)
            case Release():
                return None
        raise AssertionError(message)

    def _apply_other(self, batch: TableBatch, message: Message[Any], decision: Any) -> Any:
        match message:
            case Prepare(part=part):
                return self._parts.prepare(batch, part, decision)
            case Transact(part=part, rows=rows):
                return self._parts.transact(batch, part, rows, decision)
            case Release(transaction_id=transaction_id):
                self.locks.drop(transaction_id)
            case ExpireItems():
                for write, change in decision.deletions:
                    self.put(batch, write, change, Origin.TTL)
                return Expired(len(decision.deletions), batch.counter, decision.locked)
            case RestoreItems():
                for write, change in decision:
                    self.put(batch, write, change)
        return None

    def _decide_expiry(self, batch: TableBatch, message: ExpireItems) -> ExpiryDecision:
        """Decide on each item as the batch has it: an earlier write counts (S127)."""
        reader = self._expiry
        if reader is None or reader.attribute_name != message.attribute_name:
            return ExpiryDecision([], ())
        schema = self.definition.key_schema
        deletions: list[ItemChange] = []
        locked: list[bytes] = []
        # An item may be listed twice.
        for position in dict.fromkeys(message.positions):
            if position in self.locks.positions:
                locked.append(position)
                continue
            expiry = expire(self.definition, reader, batch.items[position], batch.now_epoch_seconds)
            if expiry is not None:
                write = WriteItem(*keys.split(schema, position), position, Delete(expiry.key))
                deletions.append(ItemChange(write, expiry.change))
        return ExpiryDecision(deletions, tuple(locked))

    def _decide_restoration(self, batch: TableBatch, message: RestoreItems) -> list[ItemChange]:
        """Put each item unless one exists at its position."""
        schema = self.definition.key_schema
        version = self._versions + batch.counter
        changes: dict[bytes, ItemChange] = {}
        for position, row in zip(message.positions, message.rows, strict=True):
            if batch.items[position] is not None or position in changes:
                continue
            item = codec.decode(row)
            item.version = version = version + 1
            write = WriteItem(
                *keys.split(schema, position), position, Put(item.item, item.size_bytes)
            )
            changes[position] = ItemChange(write, restoration(self.definition, item))
        return list(changes.values())

    # -- rows -------------------------------------------------------------------------------

    def carry_out_locked(self, batch: TableBatch, locked: LockedPart) -> None:
        """Carry out a prepared transaction's part in a batch that a round commits."""
        self._parts.carry_out_locked(batch, locked)

    def next_version(self, batch: TableBatch) -> int:
        """Return the version that the next change of a batch gives its item."""
        return self._versions + batch.counter + 1

    def has_effect(self, change: Change) -> bool:
        """Whether a change must be written.

        If the table records changes, a change whose old and new items are equal is not written.
        """
        old, new = change.old, change.new
        if old is None or new is None:
            return old is not new
        return not self.records_changes or old.item != new.item

    def check_collection(
        self,
        batch: TableBatch,
        partition_key: bytes,
        change: Change,
        grown_before_bytes: int = 0,
    ) -> int:
        """Return the growth of an item collection by a change in bytes, local indexes included.

        Raises ``ItemCollectionSizeLimitExceededException`` above its limit (S66, S67).
        """
        grown_bytes = _grown_bytes(change)
        size_bytes = batch.collections[partition_key] + grown_before_bytes + grown_bytes
        if grown_bytes > 0 and size_bytes > self._collection_limit_bytes:
            raise ItemCollectionSizeLimitExceededException(
                "Collection size exceeded. Attempting to grow an item collection beyond its "
                f"limit of {self._collection_limit_bytes} bytes"
            )
        return grown_bytes

    def put(
        self,
        batch: TableBatch,
        message: WriteItem | Action,
        change: Change,
        origin: Origin = Origin.USER,
        transaction: TransactionPlace | None = None,
    ) -> None:
        """Write a change into a batch: item, change record, local index entries and counts."""
        position, rows, item = message.position, batch.rows, change.new
        batch.counter += 1
        batch.items[position] = item
        row = None if item is None else codec.encode(item)
        rows[self._row_prefix + position] = row
        if self.records_changes:
            self._record(batch, message, change, origin, transaction)
        grown_bytes = batch.count(TABLE_INDEX_ID, change.old, item)
        if not self.has_local_indexes:
            return
        partition_key, sort_key = message.partition_key, message.sort_key
        for index_change in change.local_changes:
            index, old, new = index_change.definition, index_change.old, index_change.new
            prefix = self._index_prefixes[index.index_id] + partition_key
            # An entry that keeps its key is overwritten.
            if old is not None and (new is None or index_change.moves):
                rows[prefix + keys.encode_sort(index.key_schema, old.item) + sort_key] = None
            if new is not None:
                # If an entry is the whole item, its row is the item's row.
                value = row if new is item else codec.encode(new)
                rows[prefix + keys.encode_sort(index.key_schema, new.item) + sort_key] = value
            grown_bytes += batch.count(index.index_id, old, new, INDEX_ENTRY_OVERHEAD_BYTES)
        size_bytes = batch.collections[partition_key] + grown_bytes
        batch.collections[partition_key] = size_bytes
        batch.grown.append((partition_key, size_bytes))
        if grown_bytes:
            collection_row = key_layout.collection_row(self.definition.table_id, partition_key)
            rows[collection_row] = size_bytes.to_bytes(_SIZE_BYTES, "big") if size_bytes else None

    def _record(
        self,
        batch: TableBatch,
        message: WriteItem | Action,
        change: Change,
        origin: Origin,
        transaction: TransactionPlace | None,
    ) -> None:
        key = self.definition.key_schema.extract_key(message.write.identity)
        record = ChangeRecord(
            SequenceNumber(self._partition_number, batch.counter),
            self._time_us(batch),
            origin,
            items.encode(key),
            None if change.old is None else change.old.undecoded(),
            None if change.new is None else change.new.undecoded(),
            transaction,
            self._entry_changes(batch, message, change),
            message.author,
        )
        batch.records.append(record)
        row_key, row = change_log.row(record)
        batch.rows[row_key] = row
        batch.logged_bytes += len(row)
        if self._lists_changes:
            if batch.listing is None:
                batch.listing = self._open_listing(batch)
            listed_key, listed = batch.listing.row(
                message.position, batch.counter, change.old, len(row)
            )
            batch.rows[listed_key] = listed

    def _open_listing(self, batch: TableBatch) -> Listing:
        """The listing of a batch. Earlier changes are listed in its period if the last ones are."""
        period = changes_by_key.time_period(self._time_us(batch))
        last = self._listing
        if last is not None and last.period == period:
            return last
        return Listing(self._partition_number, period, self._versions + batch.began_after)

    def _time_us(self, batch: TableBatch) -> int:
        return max(int(batch.now_epoch_seconds * MICROSECONDS_PER_SECOND), self._last_change_us)

    def _entry_changes(
        self, batch: TableBatch, message: WriteItem | Action, change: Change
    ) -> dict[int, tuple[EntryChange, ...]]:
        """The entry changes for the followers; empty if they were not computed."""
        if change.global_changes is None:
            return {}
        position = message.position
        row = batch.rows[self._row_prefix + position]
        item_row = ItemRow(change.new, row) if change.new and row else None
        table_key = keys.without_hash(position)
        found: dict[int, tuple[EntryChange, ...]] = dict.fromkeys(self._held_indexes, ())
        for one in change.global_changes:
            found[one.definition.index_id] = entry_changes(one, batch.counter, table_key, item_row)
        return found


def _expiry_reader(definition: TableDefinition) -> ExpiryReader | None:
    """The reader of the items' expiry times; None if time to live is off."""
    settings = definition.time_to_live
    if settings is None or not settings.deletes:
        return None
    return ExpiryReader(definition.key_schema, settings.attribute_name)


def _grown_bytes(change: Change) -> int:
    old, new = change.old, change.new
    grown_bytes = (new.size_bytes if new else 0) - (old.size_bytes if old else 0)
    for index_change in change.local_changes:
        old, new = index_change.old, index_change.new
        if new is not None:
            grown_bytes += new.size_bytes + INDEX_ENTRY_OVERHEAD_BYTES
        if old is not None:
            grown_bytes -= old.size_bytes + INDEX_ENTRY_OVERHEAD_BYTES
    return grown_bytes
