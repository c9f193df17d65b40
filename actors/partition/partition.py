"""A partition: the one owner of a range of items and their local index entries.

Each write is decided on the item it finds. One atomic group holds the items, the local index
rows, the change records and the partition's head.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from dynactor.actors.derived.indexes.index_lag import NO_LAG, IndexLag
from dynactor.actors.partition.change_feed import ChangeFeed
from dynactor.actors.partition.item_locks import ItemLocks
from dynactor.actors.partition.row_owner import Batch, RowOwner
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.runtime.mailbox import Envelope, Message
from dynactor.actors.table.throttle import Paid, TableThrottle
from dynactor.model.capacity.capacity import Receipt
from dynactor.model.errors import (
    ConditionalCheckFailedException,
    DynamoDBError,
    ItemCollectionSizeLimitExceededException,
    Throttled,
    TransactionConflictException,
)
from dynactor.model.keys import key as keys
from dynactor.model.limits import INDEX_ENTRY_OVERHEAD_BYTES, ITEM_SIZE_BYTES
from dynactor.model.tables.table import TABLE_INDEX_ID, TableDefinition
from dynactor.model.tables.time_to_live import ExpiryReader, expire
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.model.values import item as items
from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem
from dynactor.model.writes.change import Change, refused_change, restoration
from dynactor.model.writes.transaction import Action
from dynactor.model.writes.write import Delete, Put, Write, decide
from dynactor.storage import codec, key_layout
from dynactor.storage.catalog import PartitionHead
from dynactor.storage.store import Store
from dynactor.streams import change_log
from dynactor.streams.change_record import ChangeRecord, Origin, TransactionPlace
from dynactor.streams.entry_change import EntryChange, ItemRow, entry_changes
from dynactor.streams.sequence_number import SequenceNumber

_SIZE_BYTES: Final = 8
# Of so many item collections the sizes are kept in memory.
_KNOWN_COLLECTIONS: Final = 1_024


class PartitionSettings(Struct, frozen=True):
    """What may be set for partitions; see ``DatabaseSettings``."""

    item_collection_limit_bytes: int
    copy_messages: bool = False
    index_lag: IndexLag = NO_LAG
    index_reads_wait_seconds: float = 0.0


class Written(Struct, frozen=True):
    """The reply to a write.

    ``collection_size_bytes`` is the size of the item's collection, None on a table without
    local indexes.
    """

    attributes: Item | None
    receipt: Receipt
    collection_size_bytes: int | None


class WriteItem(Message[Written], frozen=True):
    """Carry out a write on the item at a position, its encoded key: the two keys together."""

    partition_key: bytes
    sort_key: bytes
    position: bytes
    write: Write


class Expired(Struct, frozen=True):
    """How many items were deleted, and the counter of the last change they saw or made.

    ``held`` are the positions that were passed over, as a transaction has them.
    """

    deleted_items: int
    counter: int
    held: tuple[bytes, ...] = ()


class ExpireItems(Message[Expired], frozen=True):
    """Delete those of the items at these positions that have expired by this attribute (S120)."""

    attribute_name: str
    positions: tuple[bytes, ...]


class RestoreItems(Message[None], frozen=True):
    """Put items of a backup, as its rows have them, at these positions, each where there is none.

    For a table that nobody else writes to yet; what a crash made come again is passed over.
    """

    positions: tuple[bytes, ...]
    rows: tuple[bytes, ...]


class Redefine(Message[int], frozen=True):
    """Keep to this definition of the table from now on.

    The reply is the counter of the last change made under the old one.
    """

    definition: TableDefinition


class WriteBatch(Batch):
    """What the writes of one batch see and leave, over what is stored.

    Items by position, collections' sizes by encoded partition key.
    """

    def __init__(self, head: PartitionHead) -> None:
        super().__init__(head)
        self.items: dict[bytes, StoredItem | None] = {}
        self.collections: dict[bytes, int] = {}
        self.records: list[ChangeRecord] = []


class Partition(RowOwner[WriteBatch]):
    """The actor.

    Invariants: a position that is held is written by nobody but the transaction that holds it.
    ``_collections`` are sizes of item collections as they are stored under ``_collections_head``:
    whatever moves the head otherwise than a batch does makes them unknown.
    """

    def __init__(
        self,
        feed: ChangeFeed,
        table: TableDefinition,
        store: Store,
        clock: Clock,
        settings: PartitionSettings,
        *,
        throttle: TableThrottle,
    ) -> None:
        number = feed.partition_number
        super().__init__(
            f"partition {number} of {table.name}",
            number,
            store,
            copy_messages=settings.copy_messages,
        )
        self._feed = feed
        self._item_collection_limit_bytes = settings.item_collection_limit_bytes
        self._keep_to(table)
        self._versions = SequenceNumber(number, 0).packed()
        self._clock = clock
        self._throttle = throttle
        # What became of the units of each write in hand: a write that is decided again pays once.
        self._paid: dict[object, Paid | Throttled] = {}
        self._item_locks = ItemLocks()
        self._collections: dict[bytes, int] = {}
        self._collections_head = self.head
        self._reader: ExpiryReader | None = None
        self._row_prefix = key_layout.row_prefix(table.table_id)
        self._index_prefixes = {
            index.index_id: key_layout.row_prefix(table.table_id, index.index_id)
            for index in table.local_indexes
        }

    def _keep_to(self, table: TableDefinition) -> None:
        """Go by this definition; what each write asks of it is worked out once."""
        self._table = table
        self._has_local_indexes = bool(table.local_indexes)
        # Up to this size no write can take an item collection beyond its limit.
        written_bytes = (1 + len(table.local_indexes)) * (
            ITEM_SIZE_BYTES + INDEX_ENTRY_OVERHEAD_BYTES
        )
        self._far_below_limit_bytes = self._item_collection_limit_bytes - written_bytes
        self._records_changes = table.records_changes
        self._held_indexes = _held_indexes(table)

    def became_durable(self, batch: WriteBatch) -> None:
        """Move the tail of the log."""
        self._feed.advance(batch.counter, batch.records, batch.logged_bytes)

    def started(self) -> None:
        """The log begins where the stored counter stands.

        What became of writes in hand when the actor crashed is unknown: they have paid.
        """
        self._paid.clear()
        self._feed.begin_once(self.head.counter, self.head.logged_bytes)

    async def load(self, envelopes: list[Envelope]) -> WriteBatch:
        """Load the items and collection sizes that the messages will change."""
        batch = WriteBatch(self.head)
        positions = []
        for envelope in envelopes:
            message = envelope.message
            if isinstance(message, WriteItem):
                positions.append(message.position)
                batch.collections[message.partition_key] = 0
            elif isinstance(message, ExpireItems | RestoreItems):
                positions += message.positions
                if self._has_local_indexes:
                    schema = self._table.key_schema
                    for position in message.positions:
                        batch.collections[keys.split(schema, position)[0]] = 0
            else:
                for action in self.actions_of(message):
                    positions.append(action.position)
                    batch.collections[action.partition_key] = 0
        row_keys = [self._row_prefix + position for position in positions]
        collections = self._unknown_collections(batch) if self._has_local_indexes else []
        row_keys += [
            key_layout.collection_row(self._table.table_id, partition_key)
            for partition_key in collections
        ]
        values = await self._store.latest.load(row_keys)
        for position, value in zip(positions, values, strict=False):
            batch.items[position] = None if value is None else codec.decode(value)
        for partition_key, value in zip(collections, values[len(positions) :], strict=True):
            batch.collections[partition_key] = int.from_bytes(value or b"", "big")
        return batch

    def _unknown_collections(self, batch: WriteBatch) -> list[bytes]:
        """Give the batch the sizes that are known; the collections of which they are not."""
        if self._collections_head is not self.head:
            self._collections.clear()
            return list(batch.collections)
        known = self._collections
        unknown = []
        for partition_key in batch.collections:
            size_bytes = known.get(partition_key)
            if size_bytes is None:
                unknown.append(partition_key)
            else:
                batch.collections[partition_key] = size_bytes
        return unknown

    def was_accepted(self, batch: WriteBatch) -> None:
        """Know the sizes of collections that are likely to be written again."""
        if self._has_local_indexes:
            if len(self._collections) > _KNOWN_COLLECTIONS:
                self._collections.clear()
            self._collections.update(batch.collections)
        self._collections_head = self.head

    async def load_collections(self, batch: WriteBatch, partition_keys: Iterable[bytes]) -> None:
        """Load the sizes of these item collections alone."""
        collections = list(partition_keys)
        values = await self._store.latest.load(
            [key_layout.collection_row(self._table.table_id, each) for each in collections]
        )
        for partition_key, value in zip(collections, values, strict=True):
            batch.collections[partition_key] = int.from_bytes(value or b"", "big")

    def decide(self, batch: WriteBatch, envelope: Envelope) -> Any:
        """What one message does to the batch; its reply, or the error it is refused with."""
        message = envelope.message
        if not isinstance(message, WriteItem):
            return self.decide_other(batch, envelope)
        position = message.position
        if position in self._item_locks.positions:
            self._throttle.count_conflict(position)
            return TransactionConflictException()
        old = batch.items[position]
        try:
            change = decide(self._table, old, message.write, self._versions + batch.counter + 1)
            if (
                self._has_local_indexes
                and batch.collections[message.partition_key] > self._far_below_limit_bytes
            ):
                self._check_collection(batch, message.partition_key, change)
        except ConditionalCheckFailedException as error:
            return self._pay(envelope.reply, position, refused_change(error.receipt)) or error
        except DynamoDBError as error:
            return error
        refused = self._pay(envelope.reply, position, change)
        if refused is not None:
            return refused
        if self._has_effect(change):
            self._apply(batch, message, change)
        return Written(
            change.attributes,
            change.receipt,
            batch.collections[message.partition_key] if self._has_local_indexes else None,
        )

    def on_batch_done(self) -> None:
        """Nothing of the batch is decided again: what was paid is spent."""
        for paid in self._paid.values():
            if not isinstance(paid, Throttled):
                self._throttle.count_write(paid)
        self._paid.clear()

    def on_batch_rejected(self, envelopes: list[Envelope]) -> None:
        """What the store refuses is not paid."""
        for envelope in envelopes:
            actions = self.actions_of(envelope.message)
            for payer in (envelope.reply, *((envelope.reply, each.ordinal) for each in actions)):
                paid = self._paid.pop(payer, None)
                if isinstance(paid, Paid):
                    self._throttle.give_back(self.partition_number, paid)

    def _pay(self, payer: object, position: bytes, change: Change) -> Throttled | None:
        """Have a write pay, once; why it can't, if so."""
        paid = self._paid.get(payer)
        if paid is None:
            paid = self._throttle.take_write(self.partition_number, position, change)
            self._paid[payer] = paid
        return paid if isinstance(paid, Throttled) else None

    def decide_other(self, batch: WriteBatch, envelope: Envelope) -> Any:
        """As ``decide``, of messages that are no single writes."""
        match envelope.message:
            case Redefine(definition=definition):
                self._keep_to(definition)
                return batch.counter
            case ExpireItems() as message:
                return self._expire(batch, message)
            case RestoreItems() as message:
                return self._restore(batch, message)
        raise AssertionError(envelope.message)

    def actions_of(self, message: Message[Any]) -> tuple[Action, ...]:  # noqa: ARG002 - see below
        """The actions in a message that is part of a transaction; there are none here."""
        return ()

    def _expire(self, batch: WriteBatch, message: ExpireItems) -> Expired:
        """Decide on what each item says now: a write that came before is honoured (S127)."""
        reader = self._expiry_reader()
        if reader is None or reader.attribute_name != message.attribute_name:
            return Expired(0, batch.counter)
        schema = self._table.key_schema
        now = self._clock.now_epoch_seconds()
        deleted_items = 0
        held = []
        for position in message.positions:
            if position in self._item_locks.positions:
                held.append(position)
                continue
            expiry = expire(self._table, reader, batch.items[position], now)
            if expiry is not None:
                write = WriteItem(*keys.split(schema, position), position, Delete(expiry.key))
                self._apply(batch, write, expiry.change, Origin.TTL)
                deleted_items += 1
        return Expired(deleted_items, batch.counter, tuple(held))

    def _restore(self, batch: WriteBatch, message: RestoreItems) -> None:
        schema = self._table.key_schema
        for position, row in zip(message.positions, message.rows, strict=True):
            if batch.items[position] is not None:
                continue
            item = codec.decode(row)
            item.version = self._versions + batch.counter + 1
            write = WriteItem(
                *keys.split(schema, position), position, Put(item.item, item.size_bytes)
            )
            self._apply(batch, write, restoration(self._table, item))

    def _expiry_reader(self) -> ExpiryReader | None:
        """What reads the times of items; None where time to live is off."""
        settings = self._table.time_to_live
        if settings is None or not settings.deletes:
            return None
        if self._reader is None or self._reader.attribute_name != settings.attribute_name:
            self._reader = ExpiryReader(self._table.key_schema, settings.attribute_name)
        return self._reader

    def _has_effect(self, change: Change) -> bool:
        """Whether a change must be written: where changes are recorded, equal is no change."""
        old, new = change.old, change.new
        if old is None or new is None:
            return old is not new
        return not self._records_changes or old.item != new.item

    def _check_collection(
        self,
        batch: WriteBatch,
        partition_key: bytes,
        change: Change,
        grown_before_bytes: int = 0,
    ) -> int:
        """Refuse to let a full item collection grow (S66, S67); returns by how much it grows."""
        if not self._has_local_indexes:
            return 0
        grown_bytes = _grown_bytes(change)
        size_bytes = batch.collections[partition_key] + grown_before_bytes + grown_bytes
        if grown_bytes > 0 and size_bytes > self._item_collection_limit_bytes:
            raise ItemCollectionSizeLimitExceededException(
                "Collection size exceeded. Attempting to grow an item collection beyond its "
                f"limit of {self._item_collection_limit_bytes} bytes"
            )
        return grown_bytes

    def _apply(
        self,
        batch: WriteBatch,
        message: WriteItem | Action,
        change: Change,
        origin: Origin = Origin.USER,
        transaction: TransactionPlace | None = None,
    ) -> None:
        position, rows, item = message.position, batch.rows, change.new
        batch.counter += 1
        batch.items[position] = item
        row = None if item is None else codec.encode(item)
        rows[self._row_prefix + position] = row
        if self._records_changes:
            self._record(batch, message, change, origin, transaction)
        grown_bytes = batch.count(TABLE_INDEX_ID, change.old, item)
        if not self._has_local_indexes:
            return
        partition_key, sort_key = message.partition_key, message.sort_key
        for of_index in change.local_changes:
            index, old, new = of_index.definition, of_index.old, of_index.new
            prefix = self._index_prefixes[index.index_id] + partition_key
            # An entry that stays under its key is written over.
            if old is not None and (new is None or of_index.moves):
                rows[prefix + keys.encode_sort(index.key_schema, old.item) + sort_key] = None
            if new is not None:
                # Where an entry is the whole item, so is its row.
                value = row if new is item else codec.encode(new)
                rows[prefix + keys.encode_sort(index.key_schema, new.item) + sort_key] = value
            grown_bytes += batch.count(index.index_id, old, new, INDEX_ENTRY_OVERHEAD_BYTES)
        size_bytes = batch.collections[partition_key] + grown_bytes
        batch.collections[partition_key] = size_bytes
        traffic = self._throttle.traffic
        if traffic is not None:
            traffic.grow(partition_key, size_bytes)
        if grown_bytes:
            collection_row = key_layout.collection_row(self._table.table_id, partition_key)
            rows[collection_row] = size_bytes.to_bytes(_SIZE_BYTES, "big") if size_bytes else None

    def _record(
        self,
        batch: WriteBatch,
        message: WriteItem | Action,
        change: Change,
        origin: Origin,
        transaction: TransactionPlace | None,
    ) -> None:
        key = self._table.key_schema.key_of(message.write.identity)
        record = ChangeRecord(
            SequenceNumber(self.partition_number, batch.counter),
            int(self._clock.now_epoch_seconds() * MICROSECONDS_PER_SECOND),
            origin,
            items.encode(key),
            None if change.old is None else change.old.undecoded(),
            None if change.new is None else change.new.undecoded(),
            transaction,
            self._entry_changes(batch, message, change),
        )
        batch.records.append(record)
        row_key, row = change_log.row(record)
        batch.rows[row_key] = row
        batch.logged_bytes += len(row)

    def _entry_changes(
        self, batch: WriteBatch, message: WriteItem | Action, change: Change
    ) -> dict[int, tuple[EntryChange, ...]]:
        """What followers need not work out again; nothing if it was not worked out."""
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


def _held_indexes(table: TableDefinition) -> list[int]:
    """The ids of the global indexes into which changes are carried."""
    return [index.definition.index_id for index in table.global_indexes if index.holds_entries]


def _grown_bytes(change: Change) -> int:
    old, new = change.old, change.new
    grown_bytes = (new.size_bytes if new else 0) - (old.size_bytes if old else 0)
    for of_index in change.local_changes:
        old, new = of_index.old, of_index.new
        if new is not None:
            grown_bytes += new.size_bytes + INDEX_ENTRY_OVERHEAD_BYTES
        if old is not None:
            grown_bytes -= old.size_bytes + INDEX_ENTRY_OVERHEAD_BYTES
    return grown_bytes
