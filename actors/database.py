"""The database: its tables, and the one actor that makes, changes and deletes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from uuid import uuid4

import anyio
import structlog
from msgspec import structs

from actors import partition_map
from actors.catalog_owner import CatalogOwner
from actors.change_feed import RecentChanges
from actors.clock_keeper import ClockKeeper, open_clock
from actors.database_settings import DatabaseSettings
from actors.destination_keeper import (
    AdvanceDestination,
    CheckDestinations,
    DestinationKeeper,
    DisableDestination,
    EnableDestination,
    UpdateDestination,
)
from actors.index_keeper import IndexKeeper
from actors.insights_keeper import InsightsKeeper, SwitchedInsights, UpdateContributorInsights
from actors.partition import PartitionSettings
from actors.publishing import Origins, Publishing
from actors.reminder import remind
from actors.replay_keeper import CancelReplay, EndReplay, ReplayKeeper, StartReplay
from actors.runtime.clock import Clock
from actors.runtime.mailbox import (
    Envelope,
    Mailbox,
    MailboxClosed,
    MailboxFull,
    Message,
    ReplyT,
)
from actors.runtime.supervisor import Supervisor
from actors.split_keeper import GrowTable, SplitKeeper, SplitPartition, SplitReason
from actors.split_watch import SplitWatch
from actors.stream_keeper import StreamKeeper, stream_row
from actors.subscribers.replay_progress import ReplayProgress
from actors.table import Surroundings, Table
from actors.table_messages import (
    AdvanceIndex,
    AdvanceTimeToLive,
    CreateTable,
    DeleteTable,
    EndTransition,
    KeepStreams,
    UpdateTable,
    UpdateTimeToLive,
)
from actors.table_state import IndexCounters, TableState, state_of
from actors.throttle import ThrottleSettings
from actors.time_to_live_keeper import TimeToLiveKeeper
from actors.transaction import Transactions
from model import contributor_insights, destination_rules
from model.contributor_insights import ContributorInsightsStatus
from model.errors import (
    DynamoDBError,
    InternalServerError,
    LimitExceededException,
    ResourceInUseException,
    ResourceNotFoundException,
    ValidationException,
)
from model.limits import MIB
from model.partitions import partition_count
from model.table import (
    TABLE_INDEX_ID,
    ContributorInsights,
    GlobalIndex,
    StreamingDestination,
    TableDefinition,
    TableStatus,
)
from model.table_rules import TableEdit, apply_edit, check_deletable
from model.time_to_live import TimeToLiveChange
from storage import catalog, keys_layout
from storage.catalog import Catalog, CatalogHead, TableRecord
from storage.store import Store, StoreError
from streams.broker import Broker
from streams.shard import Stream

_MAILBOX_MESSAGES: Final = 1_000
_AGAIN_SECONDS: Final = 1.0
# Deleted rows are compacted away at once where a table's deletion frees as much as this.
_RECLAIM_BYTES: Final = 16 * MIB


_log = structlog.get_logger("actors")


# What the actor tells itself, and nobody else sends again.
_OWN_MESSAGES: Final = (
    EndTransition,
    AdvanceIndex,
    AdvanceDestination,
    AdvanceTimeToLive,
    EndReplay,
    CheckDestinations,
)


class Database:
    """The tables. Requests find theirs here; changes of tables go through the mailbox.

    What has phases of its own is kept by the keepers of indexes, of time to live and of streams,
    which only this actor calls.
    """

    name = "database"

    def __init__(
        self,
        store: Store,
        settings: DatabaseSettings,
        clock: Clock,
        supervisor: Supervisor,
        *,
        broker: Broker | None,
        clock_keeper: ClockKeeper | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        # Who moves the clock, if it is virtual.
        self.clock_keeper = clock_keeper
        self.mailbox = Mailbox(_MAILBOX_MESSAGES, copy_messages=settings.copy_messages)
        self.in_hand: list[Envelope] = []
        self._store = store
        self._supervisor = supervisor
        self._tables: dict[str, Table] = {}
        self._surroundings = Surroundings(
            store,
            supervisor,
            clock,
            RecentChanges(),
            PartitionSettings(
                settings.item_collection_limit_bytes, settings.copy_messages, settings.index_lag
            ),
            ThrottleSettings(
                settings.throttling,
                f"arn:aws:dynamodb:{settings.region}:{settings.account_id}:table/",
                key_traffic=settings.key_traffic,
            ),
        )
        self.transactions = Transactions(
            store, clock, settings.account_id, settings.transaction_delay
        )
        self._owner = CatalogOwner(store)
        self._indexes = IndexKeeper(self._owner, supervisor, self._tell_advance)
        self._time_to_live = TimeToLiveKeeper(
            self._owner, self._surroundings, settings.time_to_live, self._tell_time_to_live
        )
        self._insights = InsightsKeeper(self._owner, clock)
        self.streams = StreamKeeper(self._owner, store, settings.streams)
        # Where a number of partitions is set, none are made for throughput.
        grows = settings.partitions_per_table is None
        self._splits = SplitKeeper(self._owner, store, self.streams, clock, grows=grows)
        self.split_watch = SplitWatch(
            settings.splits,
            store,
            clock,
            supervisor,
            tables=lambda: self.tables,
            growing=self._splits.growing,
            tell=self._tell,
        )
        publishing = Publishing(
            self._owner,
            self._surroundings,
            settings.relays,
            Origins(settings.region, settings.account_id),
            broker,
            self._tell,
        )
        self.destinations = DestinationKeeper(publishing)
        self.replays = ReplayKeeper(publishing)
        # Whether the actor ran before and did not end: what it holds may be half changed.
        self._crashed = False

    # -- for requests -----------------------------------------------------------------------

    def table(self, name: str) -> Table:
        """The table of that name, for reads and writes.

        Raises:
            ResourceNotFoundException: there is none, or it is being made or deleted.
        """
        table = self.usable_table(name)
        if table is None:
            raise ResourceNotFoundException("Requested resource not found")
        return table

    def usable_table(self, name: str) -> Table | None:
        """The table of that name; None if there is none, or it is being made or deleted."""
        table = self._tables.get(name)
        if table is None or table.definition.status in ("CREATING", "DELETING"):
            return None
        return table

    @property
    def partition_splits(self) -> Mapping[SplitReason, int]:
        """How many partitions were split since the server started, by reason."""
        return self._splits.splits

    def table_in_any_state(self, name: str) -> Table:
        """The table of that name, though it may be in the making.

        Raises:
            ResourceNotFoundException: there is none.
        """
        return self._named(name)

    @property
    def tables(self) -> Sequence[Table]:
        """All tables, sorted by name, whatever their state."""
        return [self._tables[name] for name in sorted(self._tables)]

    def table_names(self) -> Sequence[str]:
        """The names of all tables, sorted."""
        return sorted(self._tables)

    async def describe(self, name: str) -> TableState:
        """A table's definition and durable counters.

        Raises:
            ResourceNotFoundException: there is no such table.
        """
        table = self._named(name)
        state = await state_of(table)
        return structs.replace(state, growing=self._splits.growing(table))

    async def create_table(self, definition: TableDefinition) -> TableState:
        """Make a table.

        Raises:
            ResourceInUseException: there is one of that name.
        """
        return await self._ask(CreateTable(definition))

    async def update_table(self, name: str, edit: TableEdit) -> TableState:
        """Change a table's settings.

        Raises:
            ResourceNotFoundException, ResourceInUseException: no such table, or not ACTIVE.
            ValidationException, LimitExceededException: as ``table_rules.apply_edit``.
        """
        return await self._ask(UpdateTable(name, edit))

    async def delete_table(self, name: str) -> TableState:
        """Delete a table.

        Raises:
            ResourceNotFoundException, ResourceInUseException: no such table, or it is being
                made or deleted.
            ValidationException: it is protected against deletion.
        """
        return await self._ask(DeleteTable(name))

    async def change_destination(
        self, message: EnableDestination | DisableDestination | UpdateDestination
    ) -> StreamingDestination:
        """Switch the publishing of a table's changes on or off, or change it.

        Raises:
            ResourceNotFoundException, ResourceInUseException: no such table, or it is being
                made or deleted.
            ValidationException: as ``destination_rules``.
        """
        return await self._ask(message)

    async def start_replay(self, message: StartReplay) -> ReplayProgress:
        """Publish a table's changes to a topic once more.

        Raises:
            ResourceNotFoundException, ResourceInUseException: no such table, or it is being
                made or deleted.
            ValidationException: as ``ReplayKeeper.start``.
        """
        return await self._ask(message)

    async def cancel_replay(self, replay_id: str) -> ReplayProgress:
        """End a replay where it is.

        Raises:
            ResourceNotFoundException: there is none.
        """
        return await self._ask(CancelReplay(replay_id))

    async def split_partition(
        self,
        name: str,
        number: int,
        at: bytes,
        *,
        share: float = 0.5,
        index_id: int = TABLE_INDEX_ID,
    ) -> tuple[int, int]:
        """Split a partition of a table, or of a global index, at a position; returns its children.

        Raises:
            ResourceNotFoundException, ResourceInUseException: no such table, or it can't be split
                at this moment.
            ValidationException: it can't be split there.
        """
        return await self._ask(SplitPartition(name, number, at, share, index_id))

    async def update_time_to_live(self, name: str, change: TimeToLiveChange) -> None:
        """Switch a table's time to live on or off.

        Raises:
            ResourceNotFoundException, ResourceInUseException: no such table, or it is being made
                or deleted.
            ValidationException: as ``model.time_to_live.changed``.
        """
        await self._ask(UpdateTimeToLive(name, change))

    async def update_contributor_insights(
        self, message: UpdateContributorInsights
    ) -> SwitchedInsights:
        """Switch Contributor Insights of a table or of one of its global indexes.

        Raises:
            ResourceNotFoundException: there is no such table or index.
        """
        return await self._ask(message)

    def contributor_insights_status(
        self, insights: ContributorInsights | None
    ) -> ContributorInsightsStatus:
        """How Contributor Insights stands now."""
        return contributor_insights.status_of(
            insights, self.clock.now_epoch_seconds(), self.settings.table_transition_seconds
        )

    async def _ask(self, message: Message[ReplyT]) -> ReplyT:
        try:
            return await self.mailbox.put_nowait(message)
        except MailboxFull:
            raise LimitExceededException(
                "Too many table operations are waiting, try again"
            ) from None

    # -- the actor --------------------------------------------------------------------------

    async def run(self) -> None:
        """Work through the mailbox until it is closed and drained."""
        if self._crashed:
            await self.adopt(await catalog.load(self._store.latest))
        self._crashed = True
        while batch := await self.mailbox.take(1, 1):
            self.in_hand = batch
            for envelope in batch:
                try:
                    envelope.answer(await self._handle(envelope.message))
                except DynamoDBError as error:
                    envelope.refuse(error)
                except StoreError as error:
                    envelope.refuse(InternalServerError(f"Nothing was changed: {error}"))
                    if isinstance(envelope.message, _OWN_MESSAGES):
                        _log.warning("tried_again_later", error=str(error))
                        self._tell_later(_AGAIN_SECONDS, envelope.message)
            self.in_hand = []
        self._crashed = False

    async def adopt(self, loaded: Catalog) -> None:
        """Take over the catalog as it is stored: at start, and after a crash of the actor."""
        self._owner.adopt(loaded)
        await self.streams.load(self._store.latest)
        known = {record.definition.name for record in loaded.tables}
        for name in self._tables.keys() - known:
            del self._tables[name]
        for record in loaded.tables:
            table = self._tables.get(record.definition.name)
            if table is not None:
                # It may have been left half deleted, or another one's place taken.
                await table.close()
            table = self._tables[record.definition.name] = Table(
                record, self._surroundings, is_stored=True
            )
            await self.replays.forget(table)
            await self._put_to_work(table)
            self._transition(record.definition)
            topic = self.destinations.wanted(record.definition)
            if topic is not None:
                self._tell(EnableDestination(record.definition.name, topic))
        self._tell_later(self.settings.relays.check_seconds, CheckDestinations())

    async def keep_streams(self) -> float:
        """Have shards rolled and logs trimmed; returns after how many seconds to do it again."""
        try:
            await self.mailbox.put_nowait(KeepStreams(), always=True)
        except MailboxClosed:
            pass
        except InternalServerError as error:
            _log.warning("tried_again_later", error=str(error))
            return min(_AGAIN_SECONDS, self.settings.keep_streams_seconds)
        return self.settings.keep_streams_seconds

    async def _put_to_work(self, table: Table) -> None:
        """Start who follows a table's changes, and have its indexes go on in their phases."""
        await self.destinations.resume(table)
        if table.definition.records_changes or table.record.ended_logs:
            self.streams.attach(await table.feeds())
        await self._time_to_live.resume(table)
        await self._indexes.resume(table)
        for index in table.definition.global_indexes:
            self._schedule(table, index)

    async def _handle(self, message: Message[object]) -> object:
        match message:
            case CreateTable():
                return await self._create(message.definition)
            case UpdateTable():
                return await self._update(message)
            case DeleteTable():
                return await self._delete(message.name)
            case EndTransition():
                await self._end_transition(message)
                return None
            case AdvanceIndex():
                table = self._same(message.name, message.table_id)
                if table is not None:
                    await self._advance(table, message.index_id)
                return None
            case UpdateTimeToLive():
                await self._update_time_to_live(message)
                return None
            case AdvanceTimeToLive():
                table = self._same(message.name, message.table_id)
                if table is not None:
                    await self._time_to_live.advance(table)
                return None
            case UpdateContributorInsights():
                return await self._insights.update(self._named(message.table_name), message)
            case KeepStreams():
                await self._keep_streams()
                return None
            case SplitPartition():
                return await self._splits.split(self._settled(message.name), message)
            case GrowTable():
                table = self._same(message.name, message.table_id)
                # One at a time: others' messages come between.
                if table is not None and await self._splits.grow(table):
                    self._tell(message)
                return None
            case StartReplay():
                return await self._start_replay(message)
            case CancelReplay():
                return await self.replays.cancel(message)
            case EndReplay():
                table = self._same(message.name, message.table_id)
                if table is not None:
                    await self.replays.end(table, message)
                return None
            case EnableDestination():
                return await self._enable_destination(message)
            case DisableDestination():
                return await self.destinations.disable(self._settled(message.name), message)
            case UpdateDestination():
                return await self.destinations.update(self._settled(message.name), message)
            case AdvanceDestination():
                table = self._same(message.name, message.table_id)
                if table is not None:
                    await self.destinations.advance(table, message)
                    if table.definition.records_changes:
                        self.streams.attach(await table.feeds())
                return None
            case CheckDestinations():
                await self._check_destinations()
                return None
        raise AssertionError(message)

    async def _create(self, wanted: TableDefinition) -> TableState:
        if wanted.name in self._tables:
            raise ResourceInUseException(f"Table already exists: {wanted.name}")
        now = self.clock.now_epoch_seconds()
        on_demand = wanted.billing_mode == "PAY_PER_REQUEST"
        definition = structs.replace(
            wanted,
            table_id=self._owner.head.next_table_id,
            uuid=str(uuid4()),
            created_epoch_seconds=now,
            on_demand_since_epoch_seconds=now if on_demand else None,
            status="CREATING" if self.settings.table_transition_seconds else "ACTIVE",
        )
        if definition.stream is not None:
            label = self.streams.free_label(definition.name, now)
            definition = structs.replace(
                definition, stream=structs.replace(definition.stream, label=label)
            )
        topic = self.destinations.wanted(definition)
        if topic is not None:
            definition = destination_rules.enabled(definition, topic, "MILLISECOND")
        number = self._owner.head.next_partition_number
        ranges = []
        resources: list[TableDefinition | GlobalIndex] = [definition, *definition.global_indexes]
        for resource in resources:
            count = self.settings.partitions_per_table or partition_count(
                definition.billing_mode, resource.throughput, resource.warm_throughput
            )
            ranges.append(partition_map.divide_evenly(number, count))
            number += count
        record = TableRecord(
            definition,
            ranges[0],
            {
                index.definition.index_id: of_index
                for index, of_index in zip(definition.global_indexes, ranges[1:], strict=True)
            },
        )
        head = CatalogHead(definition.table_id + 1, number)
        positions = {partition.number: 0 for partition in record.partitions}
        stream = self.streams.enabled(definition, positions, now) if definition.stream else None
        await self._owner.put(record, head=head, puts=[stream_row(stream)] if stream else ())
        if stream is not None:
            self.streams.remember(stream)
        table = self._tables[definition.name] = Table(record, self._surroundings)
        await self._put_to_work(table)
        self._transition(definition)
        names = [index.name for index in definition.indexes]
        return TableState(
            structs.replace(definition, status="CREATING"),
            indexes={name: IndexCounters(0, 0) for name in names},
        )

    async def _update(self, message: UpdateTable) -> TableState:
        table = self._named(message.name)
        old = self._settled(message.name).definition
        now = self.clock.now_epoch_seconds()
        new = apply_edit(old, message.edit, now, self.settings.throughput_decreases_per_day)
        answered = await state_of(table)
        settled = new
        if self._is_settled_at_once(new):
            settled = structs.replace(new, status="ACTIVE")
        record, head = self._with_index_partitions(
            structs.replace(table.record, definition=settled)
        )
        try:
            stream = await self._changed_stream(table, old, settled, now)
            await self._owner.put(record, head=head, puts=[stream_row(stream)] if stream else ())
        except (StoreError, DynamoDBError):
            # The stream or index that is still there must not miss what is written from now on.
            with suppress(DynamoDBError):
                await table.redefine(old)
            raise
        table.record = record
        if stream is not None:
            self.streams.remember(stream)
            # A stream that ends was recorded until its end was durable.
            await table.redefine(settled)
        for index in settled.global_indexes:
            if index.status == "DELETING":
                await table.stop_index(index.definition.index_id)
        await self._put_to_work(table)
        self._transition(settled)
        self._tell(GrowTable(settled.table_id, settled.name))
        return structs.replace(answered, definition=new)

    async def _update_time_to_live(self, message: UpdateTimeToLive) -> None:
        table = self._named(message.name)
        if table.definition.status in ("CREATING", "DELETING"):
            raise ResourceInUseException(
                "Time to live cannot be configured when table is in CREATING or DELETING state"
            )
        await self._time_to_live.change(table, message.change)
        await self._put_to_work(table)

    def _is_settled_at_once(self, definition: TableDefinition) -> bool:
        """Whether UPDATING is over with the answer: not while an index gets its resources."""
        return (
            definition.status == "UPDATING"
            and not self.settings.table_transition_seconds
            and not any(index.backfilling is False for index in definition.global_indexes)
        )

    def _with_index_partitions(self, record: TableRecord) -> tuple[TableRecord, CatalogHead]:
        """A record in which new indexes have their partitions, and the head that goes with it."""
        definition = record.definition
        head = self._owner.head
        partitions = dict(record.index_partitions)
        for index in definition.global_indexes:
            if index.definition.index_id not in partitions:
                count = self.settings.partitions_per_table or partition_count(
                    definition.billing_mode, index.throughput, index.warm_throughput
                )
                partitions[index.definition.index_id] = partition_map.divide_evenly(
                    head.next_partition_number, count
                )
                head = structs.replace(
                    head, next_partition_number=head.next_partition_number + count
                )
        return structs.replace(record, index_partitions=partitions), head

    async def _changed_stream(
        self, table: Table, old: TableDefinition, new: TableDefinition, now: float
    ) -> Stream | None:
        """Tell the partitions of a new definition; the stream that it enables or ends, if any."""
        if (old.global_indexes, old.stream) == (new.global_indexes, new.stream):
            return None
        is_enabled = new.stream is not None and new.stream.enabled
        positions = await table.redefine(
            new if is_enabled else structs.replace(new, stream=old.stream)
        )
        if old.stream == new.stream:
            return None
        if is_enabled:
            return self.streams.enabled(new, positions, now)
        return self.streams.disabled(old, positions, now)

    async def _start_replay(self, message: StartReplay) -> ReplayProgress:
        table = self._settled(message.name)
        progress = await self.replays.start(table, message, self._tables.values())
        self.streams.attach(await table.feeds())
        return progress

    async def _enable_destination(self, message: EnableDestination) -> StreamingDestination:
        table = self._settled(message.name)
        if self.replays.writes_to(message.topic):
            raise ValidationException(f"A replay is writing to topic {message.topic}")
        destination = await self.destinations.enable(table, message)
        self.streams.attach(await table.feeds())
        return destination

    async def _delete(self, name: str) -> TableState:
        table = self._named(name)
        definition = table.definition
        if definition.status != "ACTIVE":
            raise _in_use(definition)
        check_deletable(definition)
        state = await state_of(table)
        deleting = structs.replace(definition, status="DELETING")
        if self.settings.table_transition_seconds:
            await self._put(table, deleting)
            self._transition(deleting)
        else:
            await self._drop(table, state.size_bytes)
        return structs.replace(state, definition=deleting)

    async def _end_transition(self, message: EndTransition) -> None:
        table = self._same(message.name, message.table_id)
        if table is None:
            return
        if table.definition.status == "DELETING":
            await self._drop(table, (await state_of(table)).size_bytes)
        elif table.definition.status != "ACTIVE":
            await self._put(table, structs.replace(table.definition, status="ACTIVE"))

    async def _drop(self, table: Table, size_bytes: int) -> None:
        """Take a table away with everything in it, once its last write is answered.

        Its stream stays readable for a day, and with it the logs.
        """
        record = table.record
        table.record = structs.replace(
            record, definition=structs.replace(table.definition, status="DELETING")
        )
        await self.destinations.drain(table)
        await table.close()
        feeds = await table.feeds()
        tails = {feed.partition_number: feed.tail for feed in feeds}
        stream = self.streams.disabled(record.definition, tails, self.clock.now_epoch_seconds())
        try:
            await self._owner.delete(
                table.record,
                puts=[stream_row(stream)] if stream else (),
                logs=[number for number in tails if not self.streams.shows([number])],
            )
        except StoreError:
            table.reopen(record)
            await self._put_to_work(table)
            raise
        if stream is not None:
            self.streams.remember(stream)
        self.streams.detach(tails)
        del self._tables[table.definition.name]
        if size_bytes >= _RECLAIM_BYTES:
            start, end = keys_layout.table_range(table.definition.table_id)
            self._supervisor.run_aside(self._store.reclaim, start, end)

    async def _put(self, table: Table, definition: TableDefinition) -> None:
        record = structs.replace(table.record, definition=definition)
        await self._owner.put(record)
        table.record = record

    async def _advance(self, table: Table, index_id: int) -> None:
        await self._indexes.advance(table, index_id)
        for index in table.definition.global_indexes:
            if index.definition.index_id == index_id and not index.backfilling:
                self._schedule(table, index)

    async def _keep_streams(self) -> None:
        """Roll shards that are old, forget what ended long ago, trim what nobody needs."""
        now = self.clock.now_epoch_seconds()
        await self.streams.roll(now)
        await self.streams.expire(now)
        for table in list(self._tables.values()):
            numbers = table.record.log_numbers
            if not self.streams.attached(numbers):
                continue
            await self._trim(table, now)
            # What was recorded before the last follower went is gone with this.
            if not table.definition.records_changes and not self.streams.shows(numbers):
                self.streams.detach(numbers)

    async def _trim(self, table: Table, now_epoch_seconds: float) -> None:
        for feed in await table.feeds():
            floor = table.floor(feed.partition_number, feed.tail)
            await self.streams.trim(feed, table.definition.table_id, floor, now_epoch_seconds)
            ended = table.record.ended_log(feed.partition_number)
            # Not before its parent's: an empty log between two others keeps their order.
            is_first = feed.parent is None
            if (
                ended
                and is_first
                and floor >= ended.last
                and not self.streams.shows([ended.number])
            ):
                await self._splits.release(table, ended)

    async def _check_destinations(self) -> None:
        """Cut off who takes no changes; the room that they took on the disk is given back."""
        now = self.clock.now_epoch_seconds()
        for table in list(self._tables.values()):
            if await self.destinations.check(table, now):
                await self._trim(table, now)
                for number in table.record.log_numbers:
                    start, end = keys_layout.change_range(number)
                    self._supervisor.run_aside(self._store.reclaim, start, end)
        self._tell_later(self.settings.relays.check_seconds, CheckDestinations())

    # -- parts ------------------------------------------------------------------------------

    def _named(self, name: str) -> Table:
        table = self._tables.get(name)
        if table is None:
            raise ResourceNotFoundException(
                f"Requested resource not found: Table: {name} not found"
            )
        return table

    def _settled(self, name: str) -> Table:
        """The table of that name, which is neither being made nor being deleted."""
        table = self._named(name)
        if table.definition.status in ("CREATING", "DELETING"):
            raise _in_use(table.definition)
        return table

    def _same(self, name: str, table_id: int) -> Table | None:
        """The table of that name, unless another has been made under it since."""
        table = self._tables.get(name)
        if table is None or table.definition.table_id != table_id:
            return None
        return table

    def _transition(self, definition: TableDefinition) -> None:
        """Tell the actor itself when a passing state of a table is over."""
        if definition.status == "ACTIVE" or any(
            index.backfilling is False for index in definition.global_indexes
        ):
            return
        message = EndTransition(definition.table_id, definition.name)
        self._tell_later(self.settings.table_transition_seconds, message)

    def _schedule(self, table: Table, index: GlobalIndex) -> None:
        """Tell the actor itself when a phase of an index is over that only takes its time."""
        message = AdvanceIndex(
            table.definition.table_id, table.definition.name, index.definition.index_id
        )
        if index.backfilling is False:
            self._tell_later(self.settings.index_allocation_seconds, message)
        elif index.status in ("UPDATING", "DELETING"):
            self._tell_later(self.settings.table_transition_seconds, message)

    def _tell_advance(self, table: Table, index: GlobalIndex) -> None:
        self._tell(
            AdvanceIndex(
                table.definition.table_id, table.definition.name, index.definition.index_id
            )
        )

    def _tell_time_to_live(self, table: Table) -> None:
        self._tell(AdvanceTimeToLive(table.definition.table_id, table.definition.name))

    def _tell_later(self, seconds: float, message: Message[None]) -> None:
        asyncio.get_running_loop().call_later(seconds, self._tell, message)

    def _tell(self, message: Message[Any]) -> None:
        if not self.mailbox.closed:
            # Its reply is for nobody; an error in it is dealt with where it happens.
            self.mailbox.put_nowait(message, always=True).add_done_callback(_retrieve)

    async def close(self) -> None:
        """Stop all partitions; every write taken is answered first."""
        await asyncio.gather(*(table.close() for table in self._tables.values()))
        await self.destinations.close()


def _retrieve(reply: asyncio.Future[Any]) -> None:
    if not reply.cancelled():
        reply.exception()


def _in_use(definition: TableDefinition) -> ResourceInUseException:
    return ResourceInUseException(
        "Attempt to change a resource which is still in use: Table is being "
        f"{_DOING[definition.status]}: {definition.name}"
    )


_DOING: Final[dict[TableStatus, str]] = {
    "CREATING": "created",
    "UPDATING": "updated",
    "DELETING": "deleted",
    "ACTIVE": "used",
}


@asynccontextmanager
async def open_database(
    store: Store, settings: DatabaseSettings, clock: Clock, broker: Broker | None = None
) -> AsyncIterator[Database]:
    """A running database over an open store, which stays open when this ends.

    With a broker, changes of tables can be published.

    Raises:
        StoreError: the catalog can't be read.
        ClockBehindData: the data is of a virtual time that is still to come.
    """
    # Outside the group, which would hide what is wrong with the catalog in an ExceptionGroup.
    loaded = await catalog.load(store.latest)
    clock_keeper = await open_clock(
        store,
        clock,
        has_data=loaded.head_bytes is not None,
        copy_messages=settings.copy_messages,
    )
    async with anyio.create_task_group() as task_group:
        supervisor = Supervisor(task_group)
        database = Database(
            store, settings, clock, supervisor, broker=broker, clock_keeper=clock_keeper
        )
        if clock_keeper is not None:
            supervisor.start(clock_keeper)
        await database.adopt(loaded)
        supervisor.start(database)
        supervisor.run_aside(remind, clock, database.keep_streams)
        supervisor.run_aside(remind, clock, database.split_watch.check)
        supervisor.run_aside(remind, clock, database.transactions.tokens.trim)
        try:
            yield database
        finally:
            await supervisor.stop(database)
            await database.close()
            if clock_keeper is not None:
                await supervisor.stop(clock_keeper)
                await clock_keeper.close()
            supervisor.cancel_asides()
