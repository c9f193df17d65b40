"""Assembles a table's partition: the loop, its core, its effects, and its participant."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.feeds.index_lag import NO_LAG, IndexLag
from dynactor.actors.limits.throttle import TableThrottle
from dynactor.actors.partition.batch import TableBatch
from dynactor.actors.partition.charges import Charges
from dynactor.actors.partition.item_locks import Accepted, ItemLocks, Prepare
from dynactor.actors.partition.messages import WriteItem
from dynactor.actors.partition.participant import Participant
from dynactor.actors.partition.partition import MAILBOX_MESSAGES, HeadGone, Partition
from dynactor.actors.partition.roles import Effects, Outcome, RowLoader
from dynactor.actors.partition.table_core import TableCore
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.runtime.mailbox import Envelope
from dynactor.actors.runtime.message_times import TimedMailbox
from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import PartitionHead, TableRecord
from dynactor.storage.store import Store


class PartitionSettings(Struct, frozen=True):
    """The settings of partitions; see ``DatabaseSettings``."""

    item_collection_limit_bytes: int
    copy_messages: bool = False
    index_lag: IndexLag = NO_LAG
    index_reads_wait_seconds: float = 0.0
    # Whether messages of traced requests are timed.
    is_traced: bool = False


class TableEffects:
    """The actions of a table's partition besides writing rows.

    It charges writes, replies to transactions whose items are locked, counts the growth of item
    collections, and moves the tail of the change feed.
    """

    def __init__(
        self,
        feed: ChangeFeed,
        clock: Clock,
        throttle: TableThrottle,
        charges: Charges,
        locks: ItemLocks,
    ) -> None:
        self.charge = charges.charge
        self.done = charges.spend
        self.rejected = charges.give_back
        self._feed = feed
        self._clock = clock
        self._throttle = throttle
        self._charges = charges
        self._locks = locks

    def begin(self, head: PartitionHead) -> None:
        """Begin the change feed at the stored counter."""
        self._charges.forget_batch()
        self._feed.begin_once(head.counter, head.logged_bytes)

    def forget(self) -> None:
        """Give back the units of prepared transactions: none of them is committed."""
        self._charges.give_back_prepared()

    def loaded(self, batch: TableBatch) -> None:
        """Set the time of a batch."""
        batch.now_epoch_seconds = self._clock.now_epoch_seconds()

    def accepted(self, batch: TableBatch, outcomes: Sequence[Outcome]) -> None:
        """Count the growth of collections, and reply to transactions whose items are locked now."""
        traffic = self._throttle.traffic
        if traffic is not None:
            for partition_key, size_bytes in batch.grown:
                traffic.grow(partition_key, size_bytes)
        if batch.prepared:
            # The batch is accepted: the transaction's own commit comes later, so the reply need not
            # wait until the batch is durable.
            for envelope, outcome in outcomes:
                if isinstance(outcome, Accepted):
                    self._answer_prepared(envelope, outcome)

    def _answer_prepared(self, envelope: Envelope, accepted: Accepted) -> None:
        if not isinstance(envelope.message, Prepare):
            return
        transaction_id = envelope.message.part.transaction_id
        if envelope.reply.done():
            # The coordinator was canceled, so no message will release the locks.
            self._locks.drop(transaction_id)
        elif self._locks.get(transaction_id) is not None:
            # If the transaction has no locks, a later message of this batch has released it, so its
            # units count as consumed.
            self._charges.keep(transaction_id, envelope)
            envelope.answer(accepted)

    def durable(self, batch: TableBatch) -> None:
        """Move the tail of the change feed."""
        self._feed.advance(batch.counter, batch.records, batch.logged_bytes)


class TimedEffects:
    """The effects of a partition, and the times of traced messages."""

    def __init__(self, effects: Effects[TableBatch], mailbox: TimedMailbox) -> None:
        self.begin = effects.begin
        self.forget = effects.forget
        self.loaded = effects.loaded
        self.charge = effects.charge
        self.durable = effects.durable
        self.rejected = effects.rejected
        self.done = effects.done
        self._effects = effects
        self._mailbox = mailbox

    def accepted(self, batch: TableBatch, outcomes: Sequence[Outcome]) -> None:
        """Note when the batch was accepted."""
        self._mailbox.note_accepted(envelope for envelope, _ in outcomes)
        self._effects.accepted(batch, outcomes)


class StoredDefinition:
    """The definition that a partition's core decides by, and its version."""

    def __init__(self, core: TableCore, record: TableRecord) -> None:
        self._core = core
        self._version = record.definition_version
        self._table_id = record.definition.table_id
        self._key = key_layout.table_record(record.definition.name)

    async def follow(self, version: int, rows: RowLoader) -> None:
        """Load the stored definition from these rows, unless the core decides by this version.

        ``rows`` load through the lock of a locked head: on PostgreSQL a second connection could be
        missing, because other partitions may hold all of them. Raises ``HeadGone`` if the table was
        deleted, or ``StoreError``.
        """
        if version == self._version:
            return
        (row,) = await rows.load([self._key])
        record = None if row is None else catalog.decode_record(row)
        if record is None or record.definition.table_id != self._table_id:
            raise HeadGone("the table was deleted")
        self._core.use(record.definition)
        self._version = record.definition_version


def table_partition(
    feed: ChangeFeed,
    record: TableRecord,
    store: Store,
    clock: Clock,
    settings: PartitionSettings,
    *,
    throttle: TableThrottle,
) -> Partition[TableBatch]:
    """Return the actor of a table's partition; it takes its number from its change feed."""
    number, definition = feed.partition_number, record.definition
    copy_messages = settings.copy_messages
    core = TableCore(number, definition, settings.item_collection_limit_bytes)
    charges = Charges(number, throttle)
    effects: Effects[TableBatch] = TableEffects(feed, clock, throttle, charges, core.locks)
    mailbox = None
    if settings.is_traced:
        mailbox = TimedMailbox(MAILBOX_MESSAGES, copy_messages=copy_messages)
        effects = TimedEffects(effects, mailbox)
    return Partition(
        f"partition {number} of {definition.name}",
        number,
        store,
        core,
        effects,
        Participant(core, charges, copy_messages=copy_messages),
        definition=StoredDefinition(core, record),
        copy_messages=copy_messages,
        mailbox=mailbox,
        single=None if settings.is_traced else WriteItem,
    )
