"""The job that publishes a table's changes once more, or every item and then the changes.

Everything goes to a topic of its own, each item's changes in their order. A snapshot and the
positions of the logs behind it come from one view of the store, so that the changes go on exactly
where the snapshot ends. A snapshot that does not come to its end is worthless: it is begun anew,
with a view of that time, and each begins with a gap in every Kafka partition, so that consumers
forget what an earlier one has told them.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final

import anyio
import structlog
from msgspec import Struct

from dynactor.actors.derived.coalesced_wakeups import wait_wakeup
from dynactor.actors.derived.kafka.relay_settings import RelaySettings
from dynactor.actors.derived.kafka.replay_progress import (
    ENDED,
    ReplayProgress,
    ReplayStart,
    ReplayState,
)
from dynactor.actors.derived.kafka.replay_writer import TopicWriter
from dynactor.actors.derived.kafka.table_snapshot import TableSnapshot
from dynactor.actors.partition.change_feed import ChangeFeed
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.model.limits import KIB
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage.store import Closed, Store
from dynactor.streams import change_record
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.kafka.broker import Broker, BrokerError, Refused
from dynactor.streams.kafka.message import (
    KafkaMessage,
    KafkaSource,
    change_messages,
    gap_message,
    snapshot_message,
)
from dynactor.streams.kafka.partitioner import partition_of

_ROUND_RECORDS: Final = 512
_ROUND_BYTES: Final = 512 * KIB
# Few: between two pieces requests get their turn.
_PIECE_RECORDS: Final = 64
_TICK_RECORDS: Final = 64
# More than any log has.
_NOTHING_NEEDED: Final = 1 << 62
_CRASHED: Final = "the job failed again and again: the server's log says why"

_log = structlog.get_logger("kafka")

_Messages = defaultdict[int, list[KafkaMessage]]


class ReplayPlace(Struct, frozen=True):
    """What a replay works for, and where in each log it begins.

    ``positions`` are counters by partition number; for a snapshot, from where on the logs are
    to be kept until it has positions of its own. ``items`` is how many the table has.
    """

    replay_id: str
    table_id: int
    source: KafkaSource
    topic: str
    start: ReplayStart
    follows: bool
    positions: Mapping[int, int]
    is_whole: bool
    items: int


class Replay:
    """The actor; ``ended`` is called once, when it has nothing more to do.

    Invariant: every change of a log up to its position was acknowledged, or lies before what was
    asked for.
    """

    def __init__(
        self,
        place: ReplayPlace,
        feeds: Sequence[ChangeFeed],
        store: Store,
        clock: Clock,
        *,
        broker: Broker,
        settings: RelaySettings,
        ended: Callable[[], None],
        randomness: Random,
    ) -> None:
        self.name = f"replay of table {place.source.table_name} to topic {place.topic}"
        self.mailbox = Mailbox(1)
        self.in_hand: list[Envelope] = []
        self._place = place
        self._store = store
        self._clock = clock
        self._settings = settings
        self._ended = ended
        # Parents before their children.
        self._feeds = {feed.partition_number: feed for feed in feeds}
        self._joined = asyncio.get_running_loop().create_future()
        self._writer = TopicWriter(
            broker, settings, place.topic, place.source, self._told, randomness=randomness
        )
        self._state: ReplayState = "STARTING"
        self._problem: str | None = None
        self._positions = dict(place.positions)
        self._needs_snapshot = place.start.origin == "snapshot"
        # Where it ends, by partition number; None as long as that is not known.
        self._ends: dict[int, int] | None = None
        if not self._needs_snapshot:
            self._set_ends()
        self._items = 0
        self._items_total = place.items
        self._changes = 0
        self._missing_changes = 0
        self._snapshots = 0
        # What was recorded from here on, and not yet published, is kept for nobody else.
        self._logged_bytes = sum(feed.logged_bytes for feed in feeds)
        self._published_bytes = 0
        self._runs = False

    # -- for others -------------------------------------------------------------------------

    @property
    def progress(self) -> ReplayProgress:
        """How far it has come."""
        place, state, problem = self._place, self._state, self._problem
        if self.mailbox.closed and not self._runs and not self.is_over:
            state, problem = "FAILED", _CRASHED
        return ReplayProgress(
            place.replay_id,
            place.source.table_name,
            place.topic,
            place.start,
            place.follows,
            state,
            problem,
            place.is_whole,
            self._items,
            max(self._items, self._items_total),
            self._changes,
            self._changes + self._changes_left,
            self._missing_changes,
            self._snapshots,
            self._writer.omitted_images,
        )

    @property
    def is_over(self) -> bool:
        """Whether it has nothing more to do."""
        return self._state in ENDED

    def bury(self) -> None:
        """It crashed too often and does not run any more: it is over."""
        assert self.mailbox.closed
        self._end("FAILED", _CRASHED)

    def floor(self, partition_number: int) -> int:
        """The counter up to which it needs no records of a log any more."""
        if self.mailbox.closed:
            return _NOTHING_NEEDED
        return self._positions.get(partition_number, _NOTHING_NEEDED)

    def split(self, children: Sequence[ChangeFeed]) -> None:
        """A partition was split: its children's logs come behind its own."""
        if self._ends is not None and not self._place.follows:
            # All that it is to publish was there before.
            return
        for feed in children:
            self._feeds[feed.partition_number] = feed
            self._positions[feed.partition_number] = 0
        self._joined.set_result(None)
        self._joined = asyncio.get_running_loop().create_future()

    # -- the actor --------------------------------------------------------------------------

    async def run(self) -> None:
        """Publish what was asked for, unless the mailbox is closed before."""
        closed = self.mailbox.when_closed()
        self._runs = True
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._cancel_when, closed, group.cancel_scope)
                group.start_soon(self._watch_disk, group.cancel_scope)
                await self._work()
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._writer.close()
            self._runs = False
        if not self.is_over:
            self._end("CANCELLED", None)

    async def _cancel_when(self, closed: asyncio.Future[None], scope: anyio.CancelScope) -> None:
        await closed
        scope.cancel()

    async def _watch_disk(self, scope: anyio.CancelScope) -> None:
        """Give up where the topic takes so little that the logs would fill the disk."""
        limit_bytes = self._settings.retention_bytes
        while True:
            await anyio.sleep(self._settings.check_seconds)
            logged_bytes = sum(feed.logged_bytes for feed in self._feeds.values())
            waiting_bytes = logged_bytes - self._logged_bytes - self._published_bytes
            if waiting_bytes > limit_bytes:
                self._end(
                    "FAILED",
                    f"the topic was too slow: more than {limit_bytes:,} bytes of changes were "
                    "waiting for it",
                )
                scope.cancel()
                return

    async def _work(self) -> None:
        try:
            while self._needs_snapshot:
                await self._writer.open()
                await self._publish_snapshot()
            await self._publish_changes()
        except Refused as error:
            self._end("FAILED", str(error))
        else:
            self._end("DONE", None)

    async def _publish_snapshot(self) -> None:
        """Publish every item, or give it up where the topic takes nothing for too long."""
        self._state = "SNAPSHOT"
        self._items = 0
        self._snapshots += 1
        place, form = self._place, self._settings.form
        snapshot = await TableSnapshot.take(self._store, place.source.table_name, self._feeds)
        # Not those of children that have joined since.
        self._positions |= {
            number: position.counter for number, position in snapshot.positions.items()
        }
        taken_us = self._now_us()
        gap = gap_message(place.source, form, time_us=taken_us)
        messages: _Messages = defaultdict(list)
        messages.update((number, [gap]) for number in range(self._writer.partition_count))
        if not await self._written(messages, snapshot):
            return
        try:
            async for page in snapshot.pages():
                if not await self._written(await self._rows(page, taken_us), snapshot):
                    return
                self._items += len(page)
        except Closed:
            # The store was opened again after a full disk, and its old state went.
            self._let_go(snapshot)
            return
        self._needs_snapshot = False
        self._items_total = self._items
        self._set_ends()

    async def _rows(self, page: list[StoredItem], taken_us: int) -> _Messages:
        messages: _Messages = defaultdict(list)
        source, form = self._place.source, self._settings.form
        for at, item in enumerate(page, 1):
            message = snapshot_message(item, source, form, taken_us=taken_us)
            messages[self._partition_of(message)].append(message)
            if at % _PIECE_RECORDS == 0:
                await asyncio.sleep(0)
        return messages

    async def _written(self, messages: _Messages, snapshot: TableSnapshot) -> bool:
        """Write some of a snapshot; False if that took so long that it was let go of meanwhile.

        What is on its way is waited for even then: it could come late, behind the next snapshot.
        """
        letting_go = asyncio.get_running_loop().call_later(
            self._settings.snapshot_patience_seconds, self._let_go, snapshot
        )
        try:
            await self._writer.write(messages)
        finally:
            letting_go.cancel()
        return snapshot.is_held

    def _let_go(self, snapshot: TableSnapshot) -> None:
        """Give a snapshot up: the store should not hold its state any longer."""
        snapshot.release()
        self._state = "STARTING"
        _log.warning("snapshot_given_up", replay=self.name, items=self._items)

    async def _publish_changes(self) -> None:
        """Publish the logs from the positions on, to their ends or for ever."""
        self._state = "CHANGES"
        while True:
            feeds = list(self._feeds.values())
            additions = [feed.additions for feed in feeds]
            records = 0
            for feed in feeds:
                if self._is_next(feed):
                    records += await self._publish_run(feed)
            if records >= _TICK_RECORDS:
                continue
            if not records:
                if not self._place.follows:
                    return
                self._state = "FOLLOWING"
                if additions == [feed.additions for feed in self._feeds.values()]:
                    waiting = [feed.wait_addition() for feed in feeds]
                    await asyncio.wait(
                        [*waiting, self._joined], return_when=asyncio.FIRST_COMPLETED
                    )
            if self._place.follows:
                await wait_wakeup()

    def _is_next(self, feed: ChangeFeed) -> bool:
        """Whether a log may be read: that of a child, when its ancestors' were published whole."""
        parent = None if feed.parent is None else self._feeds.get(feed.parent)
        if parent is None:
            return True
        is_whole = (
            parent.last is not None and self._positions[parent.partition_number] >= parent.last
        )
        return is_whole and self._is_next(parent)

    async def _publish_run(self, feed: ChangeFeed) -> int:
        """Publish a run of one log; returns of how many records."""
        number = feed.partition_number
        position = self._positions[number]
        # Before it is read: records may come between, and then the end.
        last = feed.last
        found = await feed.read(position, max_records=_ROUND_RECORDS, max_bytes=_ROUND_BYTES)
        if not found and last is not None:
            # Its last changes were not recorded: nobody followed the table then.
            self._missing_changes += max(0, last - position)
            self._positions[number] = max(position, last)
            return 0
        end = None if self._ends is None or self._place.follows else self._ends[number]
        records = [
            record for record in found if end is None or record.sequence_number.counter <= end
        ]
        if not records:
            return 0
        await self._writer.open()
        await self._writer.write(await self._messages(records))
        last = records[-1].sequence_number.counter
        self._positions[number] = last
        self._changes += len(records)
        self._missing_changes += last - position - len(records)
        self._published_bytes += sum(map(change_record.stored_bytes, records))
        return len(records)

    async def _messages(self, records: list[ChangeRecord]) -> _Messages:
        messages: _Messages = defaultdict(list)
        for at, record in enumerate(records, 1):
            of_record = change_messages(record, self._place.source, self._settings.form)
            messages[self._partition_of(of_record[0])] += of_record
            if at % _PIECE_RECORDS == 0:
                await asyncio.sleep(0)
        return messages

    # -- parts ------------------------------------------------------------------------------

    def _partition_of(self, message: KafkaMessage) -> int:
        return partition_of(message.key, self._writer.partition_count)

    def _set_ends(self) -> None:
        self._ends = {number: feed.tail for number, feed in self._feeds.items()}

    @property
    def _changes_left(self) -> int:
        """How many changes are known to be still to come; those that are missing are counted."""
        if self._ends is None:
            return 0
        follows = self._place.follows
        return sum(
            max(0, (feed.tail if follows else self._ends[number]) - self._positions[number])
            for number, feed in self._feeds.items()
        )

    def _now_us(self) -> int:
        return int(self._clock.now_epoch_seconds() * MICROSECONDS_PER_SECOND)

    def _told(self, trouble: BrokerError | None) -> None:
        problem = None if trouble is None else str(trouble)
        if (problem is None) != (self._problem is None):
            _log.info("replay_waits" if problem else "replay_goes_on", replay=self.name)
        self._problem = problem

    def _end(self, state: ReplayState, problem: str | None) -> None:
        if self.is_over:
            return
        self._state, self._problem = state, problem
        _log.info("replay_ended", replay=self.name, state=state, problem=problem)
        self._ended()
