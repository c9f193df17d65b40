"""The actors of a global secondary index: its partitions, and the followers that fill them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator
from typing import Any, NamedTuple

import anyio
import structlog
from msgspec import Struct

from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.feeds.index_lag import IndexLag
from dynactor.actors.followers.follower_group import FollowerGroup
from dynactor.actors.followers.pacing import Pacing
from dynactor.actors.followers.scan import TableScan
from dynactor.actors.indexes.index_backfill import IndexBackfill
from dynactor.actors.indexes.index_changes import IndexChanges
from dynactor.actors.limits.backfill_units import BackfillUnits
from dynactor.actors.partition.index_partition import (
    ApplyChanges,
    Backfill,
    EntryBatch,
    index_partition,
)
from dynactor.actors.partition.partition import Partition
from dynactor.actors.partition.partition_actors import PartitionActors
from dynactor.actors.runtime.fencing import is_fenced
from dynactor.actors.runtime.mailbox import MailboxClosed, MailboxFull
from dynactor.actors.runtime.replies import PartitionMoved
from dynactor.actors.runtime.supervisor import Supervisor
from dynactor.model.definitions.index import IndexDefinition
from dynactor.model.errors import InternalServerError
from dynactor.model.keys.key import KeySchema
from dynactor.model.pauses import REFUSED_SECONDS
from dynactor.storage import key_layout
from dynactor.storage.catalog import PartitionRange
from dynactor.storage.store import Store
from dynactor.storage.subscriber_names import index_subscriber
from dynactor.streams.entry_change import EntryChange

_log = structlog.get_logger("actors")


class IndexPlace(Struct, frozen=True):
    """An index of a table, and its partitions."""

    table_id: int
    table_key: KeySchema
    definition: IndexDefinition
    ranges: tuple[PartitionRange, ...]

    @property
    def subscriber_id(self) -> bytes:
        """The id of the index in checkpoints."""
        return index_subscriber(self.table_id, self.definition.index_id)


class BackfillProgress(Struct, frozen=True):
    """The progress of a backfill, its consumed units, and how often entries waited for units."""

    fraction_done: float
    write_units: int
    throttle_events: int


class _SentMessage(NamedTuple):
    """A message that was sent, or that waits for space in the mailbox.

    An awaitable without a task: a write has many of these, and a task for each would cost more.
    """

    actors: GlobalIndexActors
    number: int
    message: ApplyChanges | Backfill
    reply: asyncio.Future[None] | None

    def __await__(self) -> Generator[Any, None, None]:
        return self.actors.wait_carried_out(self.number, self.message, self.reply).__await__()


class GlobalIndexActors:
    """The actors of one index. Followers ask its partitions, which ask no other actor."""

    def __init__(
        self,
        place: IndexPlace,
        store: Store,
        supervisor: Supervisor,
        *,
        copy_messages: bool,
        lag: IndexLag,
        reads_wait_seconds: float,
        units: BackfillUnits,
        pacing: Pacing,
    ) -> None:
        """``units`` and ``pacing`` limit the backfill."""
        self.place = place
        # Maximum time that reads of the index wait until it is readable (``wait_readable``).
        self.reads_wait_seconds = reads_wait_seconds
        self.partitions = PartitionActors(place.ranges, self._make_partition, supervisor)
        self._store = store
        self._supervisor = supervisor
        self._copy_messages = copy_messages
        self._lag = lag
        self._units = units
        self._pacing = pacing
        self._is_closing = False
        self._maintainers = FollowerGroup(
            f"maintainer of index {place.definition.name}",
            place.subscriber_id,
            self._feed_changes,
            supervisor,
        )
        self._backfill: TableScan | None = None
        self._filling: IndexBackfill | None = None
        # False from the start of a backfill until the followers have caught up, because the entries
        # of a backfill may be newer than the applied changes.
        self.follows_all = True
        # Whether a partition refused its last message because the store refuses writes.
        self._is_refused = False
        # Number of backfill messages that waited for space in the mailbox of an index partition.
        self.backfill_throttle_events = 0

    @property
    def subscriber_id(self) -> bytes:
        """The id of the index in checkpoints."""
        return self.place.subscriber_id

    def _feed_changes(self, feed: ChangeFeed) -> IndexChanges:
        return IndexChanges(
            self.place.definition, self.place.table_key, self, feed.partition_number, self._lag
        )

    def follow(self, feed: ChangeFeed) -> None:
        """Apply the changes of a table's partition to the index; parents come before children."""
        self._maintainers.follow([feed])

    def split(self, parent: int, children: list[ChangeFeed]) -> None:
        """Follow the logs of the children of a table partition that was split."""
        self._maintainers.split(parent, children)

    def forget(self, partition_number: int) -> None:
        """Forget the follower of an ended log that was deleted."""
        self._maintainers.forget(partition_number)

    def backfill(self, ended: Callable[[], None]) -> None:
        """Start or continue filling the index with the items of the table."""
        self.follows_all = False
        definition, table_id = self.place.definition, self.place.table_id
        sink = IndexBackfill(definition, self.place.table_key, self, self._units)
        scan = TableScan(
            f"backfill of index {definition.name}",
            table_id,
            key_layout.backfill_cursor(table_id, definition.index_id),
            sink,
            self._store,
            ended=ended,
            pacing=self._pacing,
        )
        self._backfill = scan
        self._filling = sink
        self._supervisor.start(scan)

    @property
    def progress(self) -> BackfillProgress | None:
        """The progress of the running backfill, or of the last one since the server started."""
        if self._backfill is None or self._filling is None:
            return None
        return BackfillProgress(
            self._backfill.fraction_done, self._filling.write_units, self._filling.throttle_events
        )

    @property
    def is_stuck(self) -> bool:
        """Whether the backfill is stuck: the disk is full, or an actor was abandoned."""
        if self._backfill is None:
            return False
        return (
            self._is_refused
            or self._backfill.mailbox.closed
            or any(maintainer.mailbox.closed for maintainer in self._maintainers.values())
        )

    @property
    def is_followed(self) -> bool:
        """Whether the followers of the index have started."""
        return bool(self._maintainers)

    async def wait_caught_up(self) -> None:
        """Wait until every change that is durable now is applied to the index.

        ``follows_all`` stays False if a follower was abandoned, because its changes are missing.
        """
        has_passed = await self._maintainers.wait_caught_up()
        self.follows_all = has_passed and not self._is_closing

    async def wait_readable(self) -> None:
        """Wait until the index has every answered write, for at most ``reads_wait_seconds``.

        With ``--gsi-lag awaited`` a reader expects an index that is never behind. If the index
        can't keep up, for example on a full disk, an old answer is better than an error.
        """
        with anyio.move_on_after(self.reads_wait_seconds):
            await self._maintainers.wait_caught_up()

    @property
    def lag_records(self) -> int:
        """Maximum number of changes that the index lacks."""
        return self._maintainers.lag_records

    async def oldest_unapplied_us(self) -> int | None:
        """The commit time of the oldest change that the index lacks; None if it lacks none."""
        return await self._maintainers.oldest_unapplied_us()

    def number_at(self, position: bytes) -> int:
        """The number of the partition that owns a position."""
        return self.partitions.map.number_at(position)

    def ask(self, number: int, message: ApplyChanges | Backfill) -> Awaitable[None]:
        """Send a message until it is carried out, durably, however long the store refuses writes.

        The message is sent immediately if the mailbox has space. The result waits for the reply.
        It raises InternalServerError if the store refuses writes and the index is being closed, or
        if the index has another owner now.
        """
        try:
            reply = self.partitions[number].ask(message)
        except MailboxFull:
            if isinstance(message, Backfill):
                self.backfill_throttle_events += 1
            reply = None
        except (PartitionMoved, MailboxClosed):
            reply = None
        return _SentMessage(self, number, message, reply)

    async def wait_carried_out(
        self, number: int, message: ApplyChanges | Backfill, reply: asyncio.Future[None] | None
    ) -> None:
        """Wait for the reply to a message; send it again after a refusal."""
        while True:
            try:
                await (reply or self.partitions[number].ask(message))
            except MailboxFull:
                # This is the same partition, because no other task has run since ``ask``.
                await self.partitions[number].when_not_full()
            except PartitionMoved:
                # Send it again to the children: they know which changes the parent has applied.
                for asked in [self.ask(*part) for part in self._parts(message)]:
                    await asked
                return
            except MailboxClosed:
                raise InternalServerError("A partition of this index has failed") from None
            except InternalServerError as error:
                if self._is_closing or is_fenced(error):
                    raise
                _log.info("index_write_refused", index=self.place.definition.name, error=str(error))
                self._is_refused = True
                reply = None
                # The store doesn't signal when it accepts writes again.
                await anyio.sleep(REFUSED_SECONDS)
            else:
                self._is_refused = False
                return

    async def close(self) -> None:
        """Stop the backfill, the followers after the records in progress, and the partitions."""
        self._is_closing = True
        # Begin before stopping the backfill: a follower whose message is refused during the close
        # must know that it is being stopped.
        self._maintainers.begin_close()
        if self._backfill is not None:
            await self._supervisor.stop(self._backfill)
            self._backfill = None
        await self._maintainers.close()
        await self.partitions.stop()
        self.partitions.clear()

    # -- splitting --------------------------------------------------------------------------

    def divide(
        self, ranges: tuple[PartitionRange, ...], parent: int, children: tuple[int, int]
    ) -> None:
        """Replace a split partition by its children; senders divide the messages that are left."""
        for envelope in self.partitions.divide(ranges, parent, children):
            envelope.refuse(PartitionMoved())

    def _parts(self, message: ApplyChanges | Backfill) -> list[tuple[int, ApplyChanges | Backfill]]:
        """A message for a split partition, divided between the present partitions."""
        match message:
            case ApplyChanges(source=source, changes=changes):
                moved: defaultdict[int, list[EntryChange]] = defaultdict(list)
                for change in changes:
                    moved[self.number_at(change.position)].append(change)
                return [
                    (number, ApplyChanges(source, tuple(part))) for number, part in moved.items()
                ]
            case Backfill(entries=entries):
                put: defaultdict[int, list[tuple[bytes, bytes]]] = defaultdict(list)
                for entry in entries:
                    put[self.number_at(entry[0])].append(entry)
                return [(number, Backfill(tuple(part))) for number, part in put.items()]

    def _make_partition(self, number: int) -> Partition[EntryBatch]:
        definition = self.place.definition
        return index_partition(
            number,
            definition,
            key_layout.row_prefix(self.place.table_id, definition.index_id),
            self._store,
            copy_messages=self._copy_messages,
        )
