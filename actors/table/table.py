"""A table: finds the partition for each write, and reads durable items.

Reads don't queue behind writes: each uses one durable view and never waits for a sync. Only the
partitions write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog
from msgspec import Struct

from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.limits.throttle import TableThrottle
from dynactor.actors.partition.batch import TableBatch
from dynactor.actors.partition.item_locks import Join, Joined, Resolve
from dynactor.actors.partition.messages import Expired, ExpireItems, WriteItem, Written
from dynactor.actors.partition.partition import Partition
from dynactor.actors.partition.partition_actors import PartitionActors
from dynactor.actors.partition.table_partition import table_partition
from dynactor.actors.runtime.caller import CALLER
from dynactor.actors.runtime.mailbox import MailboxClosed, MailboxFull, Message, ReplyT
from dynactor.actors.runtime.replies import PartitionMoved
from dynactor.actors.table.environment import TableEnvironment
from dynactor.actors.table.followers import Followers
from dynactor.actors.table.row_sizes import RowSizes
from dynactor.model import capacity
from dynactor.model.capacity import KeyRead, Receipt
from dynactor.model.definitions.table import TABLE_INDEX_ID, TableDefinition
from dynactor.model.errors import (
    DynamoDBError,
    InternalServerError,
    ResourceNotFoundException,
    ThrottlingException,
)
from dynactor.model.keys import key as keys
from dynactor.model.keys.fast_key import encode_parts, encode_position
from dynactor.model.values.stored_item import StoredItem
from dynactor.model.writes.write import Put, Write
from dynactor.storage import catalog, codec, key_layout
from dynactor.storage.catalog import PartitionHead, TableRecord
from dynactor.storage.store import NOT_CACHED, RowReads, StoreError, View

T = TypeVar("T")

_log = structlog.get_logger("actors")


class ItemRead(Struct, gc=False):
    """An item, None if it does not exist, and the units that its read consumed."""

    stored: StoredItem | None
    units: float

    def receipt(self, *, consistent: bool) -> Receipt:
        """The receipt of the read."""
        size_bytes = self.stored.size_bytes if self.stored else 0
        return Receipt(read_units=self.units, work=(KeyRead(size_bytes, self.units, consistent),))


class Table:
    """The reads and writes of one table."""

    def __init__(
        self,
        record: TableRecord,
        environment: TableEnvironment,
        *,
        is_stored: bool = False,
    ) -> None:
        """``is_stored``: the table existed before the server started."""
        self._record = record
        self.throttle = TableThrottle(
            record,
            environment.clock,
            environment.throttling,
            environment.balances,
            is_stored=is_stored,
        )
        self.followers = Followers(lambda: self._record, environment, self.throttle)
        self._environment = environment
        self._store = environment.store
        self.partitions = PartitionActors(
            record.partitions,
            self._make_partition,
            environment.supervisor,
        )
        self.row_prefix = key_layout.row_prefix(record.definition.table_id)
        # Encodes a typical key from JSON (``fast_key.py``); a table never changes its key schema.
        self.encode_position = encode_position(record.definition.key_schema)
        # The two parts of the position of a typical item or key, for ``submit``.
        self.encode_parts = encode_parts(record.definition.key_schema)
        self._is_closed = self._is_deleted = False
        # The sizes of rows of the table and its indexes, by index id.
        self.row_sizes: dict[int, RowSizes] = {}
        # Number of writes since the server started that were refused because the mailbox was full.
        self.write_throttle_events = 0
        # Number of items that time to live has deleted since the server started.
        self.expired_items = 0

    @property
    def record(self) -> TableRecord:
        """The table's record in the catalog; setting it changes the limits at once."""
        return self._record

    @record.setter
    def record(self, record: TableRecord) -> None:
        self._record = record
        self.throttle.follow(record)

    @property
    def definition(self) -> TableDefinition:
        """The table's definition."""
        return self._record.definition

    async def write(self, write: Write) -> Written:
        """Carry out a write and return once it is durable; raises as ``submit`` says."""
        try:
            return await self.submit(write)
        finally:
            # A caller that writes in a loop lets others work, even if its writes wait for nothing.
            await asyncio.sleep(0)

    def submit(
        self, write: Write, parts: tuple[bytes, bytes] | None = None
    ) -> asyncio.Future[Written]:
        """Send a write to its partition; the future completes once it is durable.

        ``parts`` are the two parts of its position, if they are known (``encode_parts``).

        The future raises the errors of ``dynactor.model.writes.write.decide``, Throttled if a limit
        of the table or of an index refuses the write, and InternalServerError if the store refuses
        writes. This call raises ``Throttled`` if the partition has no units left or a full mailbox,
        and ``InternalServerError`` if it was abandoned after too many failures.
        """
        size_bytes = write.size_bytes if isinstance(write, Put) else 0
        if parts is None:
            parts = keys.encoded_parts(self.definition.key_schema, write.identity)
        partition_key, sort_key = parts
        position = partition_key + sort_key
        number = self.partitions.map.number_at(position)
        self.throttle.check_write(number, position)
        message = WriteItem(partition_key, sort_key, position, write, CALLER.get())
        return self._put(number, message, size_bytes)

    def number_at(self, position: bytes) -> int:
        """The number of the partition that owns a position."""
        return self.partitions.map.number_at(position)

    def send(
        self,
        position: bytes,
        message: Message[ReplyT],
        size_bytes: int = 0,
        *,
        always: bool = False,
    ) -> asyncio.Future[ReplyT]:
        """Send a message that is not a single write to the partition that owns a position.

        The message is part of a transaction, or contains items of a backup. Raises as ``submit``,
        but with ``always`` a full mailbox is ignored; ``ResourceNotFoundException`` if the table is
        being deleted.
        """
        return self._put(self.number_at(position), message, size_bytes, always=always)

    def join(self, number: int, message: Join) -> asyncio.Future[Joined | None]:
        """Ask a partition for its group of a round of transactions.

        The message precedes all waiting messages, because the round's other partitions wait for it.
        Raises as ``send``, or ``PartitionMoved``; then prepare the transactions again.
        """
        return self._put(number, message, 0, always=True, first=True)

    def resolve(self, number: int, message: Resolve) -> None:
        """Tell a partition the outcome of the round that it joined."""
        self.partitions.decisions(number).tell(message, always=True)

    def _put(
        self,
        number: int,
        message: Message[ReplyT],
        size_bytes: int,
        *,
        always: bool = False,
        first: bool = False,
    ) -> asyncio.Future[ReplyT]:
        partition = self.partitions[number]
        try:
            return partition.ask(message, size_bytes, always=always, first=first)
        except MailboxFull:
            self.write_throttle_events += 1
            raise ThrottlingException(
                "Too many requests are waiting for this partition, try again"
            ) from None
        except MailboxClosed:
            if self._is_closed:
                raise self._closed_error() from None
            raise InternalServerError("A partition of this table has failed") from None

    async def expire(
        self, number: int, attribute_name: str, positions: tuple[bytes, ...]
    ) -> Expired:
        """Ask a partition to delete the items at these positions that have expired.

        Raises ``PartitionMoved`` if it was split, so ask its children; ``InternalServerError`` if
        the store takes no writes, or the partition was abandoned; ``ResourceNotFoundException`` if
        the table is being deleted.
        """
        partition = self.partitions[number]
        try:
            # Ask even if the mailbox is full, because a mailbox has at most one such message.
            reply = partition.ask(ExpireItems(attribute_name, positions), always=True)
        except MailboxClosed:
            raise InternalServerError("A partition of this table has failed") from None
        expired = await reply
        self.expired_items += expired.deleted_items
        return expired

    def read_item(self, position: bytes, *, consistent: bool) -> ItemRead | Awaitable[ItemRead]:
        """The item at a position; an awaitable if it is not in memory.

        Raises ``Throttled`` if its partition has no read units left, or ``InternalServerError``.
        """
        number = self.partitions.map.number_at(position)
        # Don't bind the exception to a name: exception and frame would form a reference cycle.
        refusal = self.throttle.refused_read(number, position)
        if refusal is not None:
            raise refusal.error()
        row = self.row_prefix + position
        view = self._store.durable() if consistent else self._store.eventual()
        try:
            value = view.cached(row)
        except StoreError as error:
            raise unreadable(self.definition.name, error) from error
        if value is NOT_CACHED:
            return self._load_item(view, position, number, consistent=consistent)
        return self._item_read(value, number, position, consistent=consistent)

    async def read_past_item(self, past: RowReads, position: bytes) -> ItemRead:
        """The item at a position of a past view, at a present cost; raises as ``read_item``."""
        number = self.partitions.map.number_at(position)
        refusal = self.throttle.refused_read(number, position)
        if refusal is not None:
            raise refusal.error()
        return await self._load_item(past, position, number, consistent=False)

    async def _load_item(
        self, view: RowReads, position: bytes, number: int, *, consistent: bool
    ) -> ItemRead:
        try:
            (value,) = await view.load([self.row_prefix + position])
        except StoreError as error:
            raise unreadable(self.definition.name, error) from error
        return self._item_read(value, number, position, consistent=consistent)

    def _item_read(
        self, value: bytes | None, number: int, position: bytes, *, consistent: bool
    ) -> ItemRead:
        stored = None if value is None else codec.decode(value)
        units = capacity.item_read_units(
            0 if stored is None else stored.size_bytes, consistent=consistent
        )
        throttle = self.throttle
        refusal = throttle.take_read(number, position, units)
        if refusal is not None:
            raise refusal.error()
        if throttle.read_positions.is_due(units):
            throttle.read_positions.note(number, position)
        return ItemRead(stored, units)

    async def heads(self) -> list[PartitionHead]:
        """The durable counts and sizes of each partition, index partitions included."""
        while True:
            numbers = self.record.partition_numbers
            values = await self._store.durable().load(list(map(key_layout.partition_head, numbers)))
            # A split is durable a moment before ``record`` has it.
            gone = [number for number, value in zip(numbers, values, strict=True) if not value]
            splits = [split for number in gone if (split := self._when_split(number)) is not None]
            if splits:
                await asyncio.wait(splits)
            elif not gone or self.record.partition_numbers == numbers:
                return [catalog.decode_partition_head(value) for value in values if value]

    def view(self, *, consistent: bool) -> View:
        """The view for strongly or eventually consistent reads."""
        return self._store.durable() if consistent else self._store.eventual()

    async def in_snapshot(
        self, read: Callable[[View], Awaitable[T]], *, calls_once: bool, eventual: bool
    ) -> T:
        """Read one durable state, as the store's ``in_snapshot``; raises ``StoreError``."""
        return await self._store.in_snapshot(read, calls_once=calls_once, eventual=eventual)

    def durable(self) -> View:
        """The durable view, for reads by the server itself, which consume no units."""
        return self._store.durable()

    def _when_split(self, number: int) -> asyncio.Future[None] | None:
        """A future for the end of a split of the table or an index; None if there is no split."""
        for actors in self.followers.indexes.values():
            split = actors.partitions.when_split(number)
            if split is not None:
                return split
        return self.partitions.when_split(number)

    async def close(self, *, is_deleted: bool = False) -> None:
        """Accept no more writes, and wait until the accepted ones are answered.

        New writes get ResourceNotFoundException if the table is deleted. Otherwise they get an
        error that SDKs retry, because a table that restarts still exists.
        """
        self._is_closed, self._is_deleted = True, is_deleted
        await self.followers.close()
        await self.partitions.stop()

    def reopen(self, record: TableRecord) -> None:
        """Accept writes again: the deletion for which the table was closed has failed."""
        self.record = record
        self.partitions.clear()
        self._is_closed = False

    # -- splitting --------------------------------------------------------------------------

    def divide(
        self, record: TableRecord, parent: int, children: tuple[int, int]
    ) -> list[ChangeFeed]:
        """Replace a split partition by its children, which ``record`` has; forward its writes.

        Senders of other messages get ``PartitionMoved``, because such a message may concern both
        children. Returns the feeds of the children.
        """
        self.record = record
        self.throttle.split(parent, children)
        feeds = self.followers.split(parent, children)
        for envelope in self.partitions.divide(record.partitions, parent, children):
            message = envelope.message
            if isinstance(message, WriteItem):
                self.partitions[self.number_at(message.position)].forward(envelope)
            else:
                envelope.refuse(PartitionMoved())
        return feeds

    def divide_index(
        self, record: TableRecord, index_id: int, parent: int, children: tuple[int, int]
    ) -> None:
        """Replace a split partition of a global index by its children, which ``record`` has."""
        self.record = record
        self.throttle.split(parent, children, index_id)
        self.followers.indexes[index_id].divide(record.ranges(index_id), parent, children)

    def head(self, number: int, index_id: int = TABLE_INDEX_ID) -> PartitionHead | None:
        """The head of a partition of the table or of a global index, if it is running."""
        if index_id == TABLE_INDEX_ID:
            return self.partitions.head(number)
        actors = self.followers.indexes.get(index_id)
        return actors.partitions.head(number) if actors else None

    def _make_partition(self, number: int) -> Partition[TableBatch]:
        if self._is_closed:
            raise self._closed_error()
        return table_partition(
            self.followers.feed(number),
            self._record,
            self._store,
            self._environment.clock,
            self._environment.settings,
            throttle=self.throttle,
        )

    def _closed_error(self) -> DynamoDBError:
        if self._is_deleted:
            return ResourceNotFoundException("Requested resource not found")
        return InternalServerError("Nothing was written: this table is restarting, try again")


def unreadable(table: str, error: StoreError) -> InternalServerError:
    """The answer to a read of damaged data; it is logged for the operator, too."""
    _log.error("table_read_failed", table=table, error=str(error))
    return InternalServerError(f"The data of the table {table} can't be read: {error}")
