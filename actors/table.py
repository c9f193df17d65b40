"""A table: finds the partition for each write, and reads durable items.

Reads do not queue behind writes: each takes one durable view and never waits for a sync. The
partitions alone write. A partition's actor is made when it gets its first message, so that an
idle table costs next to nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Final, NamedTuple, Protocol

import structlog
from msgspec import Struct

from actors.change_feed import ChangeFeed, RecentChanges
from actors.global_index import GlobalIndexActors, IndexPlace
from actors.holds import Join, Joined, Resolve
from actors.partition import (
    Expired,
    ExpireItems,
    PartitionSettings,
    Redefine,
    WriteItem,
    Written,
)
from actors.partition_map import PartitionMap, PartitionMoved
from actors.row_owner import MAILBOX_MESSAGES
from actors.runtime.clock import Clock
from actors.runtime.mailbox import Mailbox, MailboxClosed, MailboxFull, Message, ReplyT
from actors.runtime.supervisor import Supervisor
from actors.sealed import Sealed
from actors.split_gate import SplitGate
from actors.throttle import BackfillUnits, TableThrottle, ThrottleSettings
from actors.transacting_partition import TransactingPartition
from model import capacity
from model import key as keys
from model.capacity import KeyRead, Receipt
from model.errors import (
    InternalServerError,
    ResourceNotFoundException,
    Throttled,
    ThrottlingException,
)
from model.index import IndexDefinition
from model.item import Item
from model.stored_item import StoredItem
from model.table import TABLE_INDEX_ID, GlobalIndex, TableDefinition
from model.usual_key import parts_of, position_of
from model.write import Put, Write
from storage import catalog, codec, keys_layout
from storage.catalog import PartitionHead, TableRecord
from storage.store import NOT_AT_HAND, Store, StoreError, View

_SPLIT_SECONDS: Final = 0.001

_log = structlog.get_logger("actors")


class ItemRead(Struct, gc=False):
    """An item, None if there is none, and the units that reading it took."""

    stored: StoredItem | None
    units: float

    def receipt(self, *, consistent: bool) -> Receipt:
        """The receipt of reading it."""
        size_bytes = self.stored.size_bytes if self.stored else 0
        return Receipt(read_units=self.units, work=(KeyRead(size_bytes, self.units, consistent),))


class Following(Protocol):
    """What follows a table's changes as a whole: time to live, a Kafka destination."""

    def floor(self, partition_number: int) -> int:
        """The counter up to which a log's records are not needed any more.

        Of a log that ended (``ChangeFeed.last``) only those are asked who followed it then.
        """
        ...

    def split(self, parent: int, children: list[ChangeFeed]) -> None:
        """A partition was split, durably: its log has ended, and these go on behind it."""
        ...

    async def close(self) -> None:
        """Stop its actors after their present run."""
        ...


class Surroundings(NamedTuple):
    """What the actors of every table live with."""

    store: Store
    supervisor: Supervisor
    clock: Clock
    recent: RecentChanges
    settings: PartitionSettings
    throttling: ThrottleSettings = ThrottleSettings()


class Table:
    """The reads and writes of one table."""

    def __init__(
        self,
        record: TableRecord,
        surroundings: Surroundings,
        *,
        is_stored: bool = False,
    ) -> None:
        """``is_stored``: the table was there before the server started."""
        self._record = record
        self.throttle = TableThrottle(
            record, surroundings.clock, surroundings.throttling, is_stored=is_stored
        )
        self._surroundings = surroundings
        self._store = surroundings.store
        self._supervisor = surroundings.supervisor
        self._settings = surroundings.settings
        # Which partition owns what; a split puts another in its place.
        self.map = PartitionMap(record.partitions)
        parents = {child: ended.number for ended in record.ended_logs for child in ended.children}
        # Parents before their children.
        self._feeds = {
            number: ChangeFeed(number, surroundings.store, surroundings.recent, parents.get(number))
            for number in record.log_numbers
        }
        for ended in record.ended_logs:
            self._feeds[ended.number].begin(ended.last, ended.logged_bytes)
            self._feeds[ended.number].end()
        self._indexes: dict[int, GlobalIndexActors] = {}
        self._followings: dict[bytes, Following] = {}
        self._partitions: dict[int, TransactingPartition | Sealed] = {}
        self.split_gate = SplitGate()
        # What the keys of all items' rows begin with.
        self.row_prefix = keys_layout.row_prefix(record.definition.table_id)
        # Of a usual key as it came; a table keeps its key for life.
        self.position_of = position_of(record.definition.key_schema)
        # Of a usual item or key, what ``submit`` may be given.
        self.parts_of = parts_of(record.definition.key_schema)
        self._closed = False
        # How many writes were refused since the server started, as their mailbox was full.
        self.write_throttle_events = 0
        # How many items time to live has deleted since the server started.
        self.expired_items = 0

    @property
    def record(self) -> TableRecord:
        """The table as the catalog keeps it; its limits follow it at once."""
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
        return await self.submit(write)

    def submit(
        self, write: Write, parts: tuple[bytes, bytes] | None = None
    ) -> asyncio.Future[Written]:
        """Send a write to its partition; the future completes once it is durable.

        ``parts`` are the two of its position, if they are known (``parts_of``).

        The future raises what ``model.write.decide`` raises, Throttled if a limit of the table or
        of an index refuses it, and InternalServerError if the store takes no writes.

        Raises:
            Throttled: nothing is left of the partition's units, or its mailbox is full.
            InternalServerError: the partition has failed too often and was given up.
        """
        size_bytes = write.size_bytes if isinstance(write, Put) else 0
        if parts is None:
            parts = keys.encoded_parts(self.definition.key_schema, write.identity)
        partition_key, sort_key = parts
        position = partition_key + sort_key
        number = self.map.number_of(position)
        self.throttle.check_write(number, position)
        message = WriteItem(partition_key, sort_key, position, write)
        return self._put(number, message, size_bytes)

    def number_of(self, position: bytes) -> int:
        """The number of the partition that owns a position."""
        return self.map.number_of(position)

    def send(
        self,
        position: bytes,
        message: Message[ReplyT],
        size_bytes: int = 0,
        *,
        always: bool = False,
    ) -> asyncio.Future[ReplyT]:
        """Send what is part of a transaction to the partition that owns a position.

        Raises:
            Throttled, InternalServerError: as ``submit``; ``always``, not as its mailbox is full.
            ResourceNotFoundException: the table is being deleted.
        """
        return self._put(self.map.number_of(position), message, size_bytes, always=always)

    def join(self, number: int, message: Join) -> asyncio.Future[Joined | None]:
        """Have a partition hand over what it commits of a round of transactions.

        The others of the round do nothing until it has: it comes before all that waits.

        Raises:
            InternalServerError, ResourceNotFoundException: as ``send``.
        """
        return self._put(number, message, 0, always=True, first=True)

    def resolve(self, number: int, message: Resolve) -> None:
        """Tell a partition what became of the round that it joined."""
        partition = self._partitions[number]
        assert isinstance(partition, TransactingPartition), "no split comes between"
        partition.decisions.put_nowait(message, always=True)

    def _put(
        self,
        number: int,
        message: Message[ReplyT],
        size_bytes: int,
        *,
        always: bool = False,
        first: bool = False,
    ) -> asyncio.Future[ReplyT]:
        partition = self._partitions.get(number) or self._partition(number)
        try:
            return partition.mailbox.put_nowait(message, size_bytes, always=always, first=first)
        except MailboxFull:
            self.write_throttle_events += 1
            raise ThrottlingException(
                "Too many requests are waiting for this partition, try again"
            ) from None
        except MailboxClosed:
            if self._closed:
                raise _not_found() from None
            raise InternalServerError("A partition of this table has failed") from None

    async def expire(
        self, number: int, attribute_name: str, positions: tuple[bytes, ...]
    ) -> Expired:
        """Have a partition delete the items at these positions that have expired by then.

        Raises:
            PartitionMoved: it was split; its children may be asked.
            InternalServerError: the store takes no writes, or the partition was given up.
            ResourceNotFoundException: the table is being deleted.
        """
        partition = self._partition(number)
        try:
            # Even if it is full: at most one such message waits in a mailbox.
            reply = partition.mailbox.put_nowait(
                ExpireItems(attribute_name, positions), always=True
            )
        except MailboxClosed:
            raise InternalServerError("A partition of this table has failed") from None
        expired = await reply
        self.expired_items += expired.deleted_items
        return expired

    async def get(self, key: Item, *, consistent: bool) -> ItemRead:
        """The item with this key; raises as ``read_item`` says."""
        position = keys.encode(self.definition.key_schema, key)
        read = self.read_item(position, consistent=consistent)
        return read if isinstance(read, ItemRead) else await read

    def read_item(self, position: bytes, *, consistent: bool) -> ItemRead | Awaitable[ItemRead]:
        """The item at a position; at once if it is at hand.

        Raises:
            Throttled: nothing is left of its partition's read units.
            InternalServerError: what is stored can't be read.
        """
        number = self.map.number_of(position)
        # Never an error in a variable: it would keep this frame, and the frame it.
        refusal = self.throttle.refused_read(number, position)
        if refusal is not None:
            raise refusal.error()
        row = self.row_prefix + position
        view = self._store.durable()
        try:
            value = view.at_hand(row)
        except StoreError as error:
            raise unreadable(self.definition.name, error) from error
        if value is NOT_AT_HAND:
            return self._load_item(view, position, number, consistent=consistent)
        return self._item_read(value, number, position, consistent=consistent)

    async def _load_item(
        self, view: View, position: bytes, number: int, *, consistent: bool
    ) -> ItemRead:
        try:
            (value,) = await view.load([self.row_prefix + position])
        except StoreError as error:
            raise unreadable(self.definition.name, error) from error
        return self._item_read(value, number, position, consistent=consistent)

    def _item_read(
        self, value: bytes | None, number: int, position: bytes, *, consistent: bool
    ) -> ItemRead:
        """What was read of an item, once its units are taken."""
        stored = None if value is None else codec.decode(value)
        units = capacity.item_read_units(
            0 if stored is None else stored.size_bytes, consistent=consistent
        )
        throttle = self.throttle
        refusal = throttle.take_read(number, position, units)
        if refusal is not None:
            raise refusal.error()
        if throttle.read_heat.is_due(units):
            throttle.read_heat.note(number, position)
        return ItemRead(stored, units)

    async def read_items(
        self, positions: Sequence[bytes], *, consistent: bool, room_bytes: int
    ) -> list[ItemRead | Throttled]:
        """The items at these positions, all from one durable view; each is admitted on its own.

        The list ends before the item with which all together would be larger than the room.
        """
        throttle = self.throttle
        numbers = list(map(self.map.number_of, positions))
        refused = list(map(throttle.refused_read, numbers, positions))
        prefix = self.row_prefix
        admitted = [
            prefix + position
            for position, refusal in zip(positions, refused, strict=True)
            if refusal is None
        ]
        try:
            values = iter(await self._store.durable().load(admitted))
        except StoreError as error:
            raise unreadable(self.definition.name, error) from error
        reads: list[ItemRead | Throttled] = []
        for number, position, refusal in zip(numbers, positions, refused, strict=True):
            if refusal is not None:
                reads.append(refusal.error())
                continue
            value = next(values)
            stored = None if value is None else codec.decode(value)
            size_bytes = 0 if stored is None else stored.size_bytes
            room_bytes -= size_bytes
            if room_bytes < 0:
                break
            units = capacity.item_read_units(size_bytes, consistent=consistent)
            # What those before it took is known only now.
            late = throttle.take_read(number, position, units)
            if throttle.read_heat.is_due(units):
                throttle.read_heat.note(number, position)
            reads.append(ItemRead(stored, units) if late is None else late.error())
        return reads

    async def heads(self) -> list[PartitionHead]:
        """What each partition, those of indexes too, durably knows: counts and sizes."""
        while True:
            numbers = self.record.partition_numbers
            values = await self._store.durable().load(
                list(map(keys_layout.partition_head, numbers))
            )
            # A split is durable a moment before it is known here.
            gone = (number for number, value in zip(numbers, values, strict=True) if not value)
            if not any(map(self._is_sealed, gone)):
                return [catalog.decode_partition_head(value) for value in values]
            await asyncio.sleep(_SPLIT_SECONDS)

    def durable(self) -> View:
        """What is durable, for who looks at the table's rows without being its client."""
        return self._store.durable()

    def _is_sealed(self, number: int) -> bool:
        return isinstance(self._partitions.get(number), Sealed) or any(
            actors.is_sealed(number) for actors in self._indexes.values()
        )

    async def feeds(self) -> list[ChangeFeed]:
        """The change feeds of all logs that are kept, their tails known, parents before children.

        Those of ended logs are among them; not everybody reads these (``feeds_for``).
        """
        feeds = list(self._feeds.values())
        values = await self._store.durable().load(
            [keys_layout.partition_head(feed.partition_number) for feed in feeds]
        )
        for feed, value in zip(feeds, values, strict=True):
            # That of an ended log has begun.
            head = catalog.decode_partition_head(value)
            feed.begin(head.counter, head.logged_bytes)
        return feeds

    async def live_feeds(self) -> list[ChangeFeed]:
        """The change feeds of the present partitions, their tails known."""
        return [feed for feed in await self.feeds() if feed.last is None]

    async def feeds_for(self, subscriber_id: bytes) -> list[ChangeFeed]:
        """What a subscriber follows: all present logs, and ended ones that it followed then."""
        return [
            feed
            for feed in await self.feeds()
            if feed.last is None or subscriber_id in self._subscribers(feed.partition_number)
        ]

    def _subscribers(self, partition_number: int) -> tuple[bytes, ...]:
        ended = self.record.ended_log(partition_number)
        return ended.subscribers if ended else ()

    async def redefine(self, definition: TableDefinition) -> dict[int, int]:
        """Have every partition keep to a new definition.

        Returns:
            The counter of the last change under the old one, by partition number.
        """
        numbers = self.map.numbers
        replies = [
            self._partition(number).mailbox.put_nowait(Redefine(definition), always=True)
            for number in numbers
        ]
        counters = await asyncio.gather(*replies)
        return dict(zip(numbers, counters, strict=True))

    def index(self, index_id: int) -> GlobalIndexActors | None:
        """The actors of a global index, if it is at work."""
        return self._indexes.get(index_id)

    def start_index(self, index: GlobalIndex) -> GlobalIndexActors:
        """Put a global index to work; it has no followers yet."""
        index_id = index.definition.index_id
        place = IndexPlace(
            self.definition.table_id,
            self.definition.key_schema,
            index.definition,
            self.record.ranges(index_id),
        )
        actors = GlobalIndexActors(
            place,
            self._store,
            self._supervisor,
            copy_messages=self._settings.copy_messages,
            lag=self._settings.index_lag,
            units=BackfillUnits(self.throttle, index_id, self._surroundings.clock),
        )
        self._indexes[index_id] = actors
        return actors

    async def stop_index(self, index_id: int) -> None:
        """Stop whatever works for a global index."""
        actors = self._indexes.pop(index_id, None)
        if actors is not None:
            await actors.close()

    def attach(self, subscriber_id: bytes, following: Following) -> None:
        """Keep the changes that it still needs, and stop it when the table is closed.

        ``subscriber_id`` names it among those who followed a log that ends.
        """
        assert subscriber_id not in self._followings
        self._followings[subscriber_id] = following

    def following(self, subscriber_id: bytes) -> Following | None:
        """Who follows the table under this id, if anybody does."""
        return self._followings.get(subscriber_id)

    async def detach(self, subscriber_id: bytes) -> None:
        """Stop whoever follows the table under this id."""
        following = self._followings.pop(subscriber_id, None)
        if following is not None:
            await following.close()

    def floor(self, partition_number: int, tail: int) -> int:
        """The counter up to which no follower needs a log's records any more."""
        ended = self.record.ended_log(partition_number)
        floors = [tail]
        for subscriber_id, following in self._followings.items():
            if ended is None or subscriber_id in ended.subscribers:
                floors.append(following.floor(partition_number))
        for index in self.definition.global_indexes:
            index_id = index.definition.index_id
            if ended is not None:
                subscriber = keys_layout.index_subscriber(self.definition.table_id, index_id)
                if subscriber not in ended.subscribers:
                    continue
            actors = self._indexes.get(index_id)
            if actors is not None:
                floors.append(actors.floor(partition_number))
            elif index.holds_entries:
                floors.append(0)
        return min(floors)

    def index_lag_records(self, index: IndexDefinition) -> int:
        """How many changes an index may be behind its table; 0 for one that is not followed."""
        actors = self._indexes.get(index.index_id)
        return actors.lag_records if actors else 0

    async def close(self) -> None:
        """Take no more writes, and wait until those taken are answered."""
        self._closed = True
        followings = [*self._indexes.values(), *self._followings.values()]
        await asyncio.gather(*(following.close() for following in followings))
        self._indexes.clear()
        self._followings.clear()
        partitions = [
            each for each in self._partitions.values() if isinstance(each, TransactingPartition)
        ]
        await asyncio.gather(*map(self._supervisor.stop, partitions))

    def reopen(self, record: TableRecord) -> None:
        """Take writes again: the deletion for which the table was closed was refused."""
        self.record = record
        self._partitions.clear()
        self._closed = False

    # -- splitting --------------------------------------------------------------------------

    async def seal(self, number: int) -> None:
        """Have a partition end behind what it has taken; what comes from now on waits.

        When this returns all that it took is durable and answered.
        """
        partition = self._partitions.get(number)
        assert not isinstance(partition, Sealed)
        self._partitions[number] = Sealed(
            Mailbox(MAILBOX_MESSAGES, copy_messages=self._settings.copy_messages)
        )
        if partition is not None:
            await self._supervisor.stop(partition)

    def unseal(self, number: int) -> None:
        """The partition was not split after all: it goes on with what waits."""
        for envelope in self._partitions.pop(number).mailbox.drain():
            self._partition(number).mailbox.give(envelope)

    def divide(
        self, record: TableRecord, parent: int, children: tuple[int, int]
    ) -> list[ChangeFeed]:
        """A partition was split, durably; the record says so. What waits is its children's.

        Returns:
            The feeds of the children.
        """
        self.record = record
        self.throttle.split(parent, children)
        self.map = PartitionMap(record.partitions)
        ended = record.ended_log(parent)
        feeds = [
            ChangeFeed(
                number,
                self._store,
                self._surroundings.recent,
                parent=parent if ended else None,
            )
            for number in children
        ]
        for feed in feeds:
            feed.begin(0)
            self._feeds[feed.partition_number] = feed
        if ended is None:
            del self._feeds[parent]
        else:
            self._feeds[parent].begin(ended.last, ended.logged_bytes)
            self._feeds[parent].end()
            for following in (*self._indexes.values(), *self._followings.values()):
                following.split(parent, feeds)
        for envelope in self._partitions.pop(parent).mailbox.drain():
            message = envelope.message
            if isinstance(message, WriteItem):
                number = self.map.number_of(message.position)
                self._partition(number).mailbox.give(envelope)
            else:
                envelope.refuse(PartitionMoved())
        # At work, whether or not anything waits: who looks for large partitions finds them.
        for number in children:
            self._partition(number)
        return feeds

    def divide_index(
        self, record: TableRecord, index_id: int, parent: int, children: tuple[int, int]
    ) -> None:
        """A partition of a global index was split, durably; the record says so."""
        self.record = record
        self.throttle.split(parent, children, index_id)
        self._indexes[index_id].divide(record.ranges(index_id), parent, children)

    def forget_log(self, record: TableRecord, number: int) -> None:
        """A log that had ended is gone, durably; the record says so."""
        self.record = record
        del self._feeds[number]
        for feed in self._feeds.values():
            if feed.parent == number:
                feed.parent = None
        for actors in self._indexes.values():
            actors.forget(number)

    @property
    def subscriber_ids(self) -> tuple[bytes, ...]:
        """Who follows the table's logs now."""
        indexes = (each.subscriber_id for each in self._indexes.values() if each.is_followed)
        return (*indexes, *self._followings)

    def head(self, number: int, index_id: int = TABLE_INDEX_ID) -> PartitionHead | None:
        """What a partition of the table or of a global index knows of itself, if it is at work."""
        if index_id:
            actors = self._indexes.get(index_id)
            return actors.head(number) if actors else None
        partition = self._partitions.get(number)
        return partition.head if isinstance(partition, TransactingPartition) else None

    def _partition(self, number: int) -> TransactingPartition | Sealed:
        """The partition of that number, or what waits for it while it is split.

        Raises:
            PartitionMoved: it was split.
        """
        partition = self._partitions.get(number)
        if partition is None:
            if self._closed:
                raise _not_found()
            if number not in self.map:
                raise PartitionMoved
            partition = TransactingPartition(
                self._feeds[number],
                self.definition,
                self._store,
                self._surroundings.clock,
                self._settings,
                throttle=self.throttle,
            )
            self._partitions[number] = partition
            self._supervisor.start(partition)
        return partition


def _not_found() -> ResourceNotFoundException:
    return ResourceNotFoundException("Requested resource not found")


def unreadable(table: str, error: StoreError) -> InternalServerError:
    """The answer to a read that meets damage; the operator must hear of it too."""
    _log.error("unreadable", table=table, error=str(error))
    return InternalServerError(f"The data of the table {table} can't be read: {error}")
