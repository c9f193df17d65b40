"""The database's actor: carries out changes of tables, one message after the other.

The work is done by parts that only this actor calls: tables, logs, streams, splits, indexes, time
to live, destinations, replays, insights, backups of tables, restored tables and disk space. The
actor tells itself when the next phase of one of these is due.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import structlog
from msgspec import structs

from dynactor.actors.backups.restore_phases import (
    AdvanceRestore,
    Filled,
    RestorePhases,
    RestoreTable,
)
from dynactor.actors.backups.table_backups import (
    CreateTableBackup,
    DeleteTableBackup,
    EndTableBackup,
    TableBackups,
)
from dynactor.actors.catalog import definition_commit
from dynactor.actors.catalog.catalog_owner import CatalogOwner
from dynactor.actors.catalog.contributor_insights import (
    ContributorInsightsSwitch,
    UpdateContributorInsights,
)
from dynactor.actors.catalog.control_plane import ControlPlane
from dynactor.actors.catalog.database_settings import DatabaseSettings
from dynactor.actors.catalog.destination_phases import (
    AdvanceDestination,
    CheckDestinations,
    DestinationPhases,
    DisableDestination,
    EnableDestination,
    UpdateDestination,
)
from dynactor.actors.catalog.index_phases import IndexPhases
from dynactor.actors.catalog.log_trimming import LogTrimmer
from dynactor.actors.catalog.replays import CancelReplay, EndReplay, Replays, StartReplay
from dynactor.actors.catalog.space_reclaim import EndReclaim, SpaceReclaimer
from dynactor.actors.catalog.streams import StreamRegistry
from dynactor.actors.catalog.table_changes import TableChanges
from dynactor.actors.catalog.tables import Tables
from dynactor.actors.catalog.time_to_live_phases import TimeToLivePhases
from dynactor.actors.catalog.timed_states import Transitions
from dynactor.actors.derived.kafka.kafka_environment import KafkaEnvironment
from dynactor.actors.derived.kafka.publishing import Origins, Publishing
from dynactor.actors.derived.kafka.replay_progress import ReplayProgress
from dynactor.actors.runtime.fencing import is_fenced
from dynactor.actors.runtime.mailbox import Envelope, Mailbox, MailboxClosed, Message
from dynactor.actors.runtime.ref import Ref
from dynactor.actors.splitting.splits import GrowTable, SplitPartition, Splitter
from dynactor.actors.table.environment import TableEnvironment
from dynactor.actors.table.messages import (
    AdvanceIndex,
    AdvanceTimeToLive,
    CreateTable,
    DeleteTable,
    EndTransition,
    KeepStreams,
    UpdateTable,
    UpdateTimeToLive,
)
from dynactor.actors.table.state import TableState, state_of
from dynactor.actors.table.table import Table
from dynactor.model.errors import (
    DynamoDBError,
    InternalServerError,
    ResourceInUseException,
    ValidationException,
)
from dynactor.model.tables.table import GlobalIndex, StreamingDestination, TableDefinition
from dynactor.model.tables.table_rules import after_update, check_deletable
from dynactor.storage import catalog
from dynactor.storage.catalog import Catalog
from dynactor.storage.store import StoreError, Unknown
from dynactor.streams.kafka.broker import Broker

_MAILBOX_MESSAGES: Final = 1_000
# A message that the store refused is tried again after so long.
_AGAIN_SECONDS: Final = 1.0
# A commit whose sync failed may still be there after a restart.
_UNKNOWN: Final = "Whether this was changed is unknown"

_log = structlog.get_logger("actors")


# What the actor tells itself, and nobody else sends again.
_OWN_MESSAGES: Final = (
    EndTransition,
    AdvanceIndex,
    AdvanceDestination,
    AdvanceTimeToLive,
    EndReplay,
    EndReclaim,
    EndTableBackup,
    AdvanceRestore,
    CheckDestinations,
)


class DatabaseActor:
    """Carries out changes of tables, one message after another; it alone adds and removes tables.

    Others send messages through ``ref``, and read through the door, ``control_plane``.
    """

    name = "database"

    def __init__(
        self,
        environment: TableEnvironment,
        settings: DatabaseSettings,
        tables: Tables,
        broker: Broker | None,
    ) -> None:
        self.mailbox = Mailbox(_MAILBOX_MESSAGES, copy_messages=settings.copy_messages)
        self.ref = Ref(self.mailbox)
        self.in_hand: list[Envelope] = []
        self._settings = settings
        self._tables = tables
        self._environment = environment
        self._store = store = environment.store
        self._clock = clock = environment.clock
        self._owner = CatalogOwner(store)
        self._indexes = IndexPhases(self._owner, environment.supervisor, self._tell_advance)
        self._time_to_live = TimeToLivePhases(
            self._owner, environment, settings.time_to_live, self._tell_time_to_live
        )
        self._insights = ContributorInsightsSwitch(self._owner, clock)
        self._streams = StreamRegistry(self._owner, store, settings.streams)
        # Where a number of partitions is set, none are made for throughput.
        grows = settings.partitions_per_table is None
        self._splits = Splitter(self._owner, store, self._streams, clock, grows=grows)
        self._space = SpaceReclaimer(self._owner, environment, self.tell)
        self._log_trimmer = LogTrimmer(tables, self._streams, self._splits, self._space)
        publishing = Publishing(
            self._owner,
            environment,
            settings.relays,
            Origins(settings.region, settings.account_id),
            KafkaEnvironment.of(broker, settings.relays, environment) if broker else None,
            self.tell,
        )
        self._destinations = DestinationPhases(publishing)
        self._replays = Replays(publishing)
        self._table_changes = TableChanges(
            self._owner,
            environment,
            settings,
            tables,
            streams=self._streams,
            destinations=self._destinations,
            space=self._space,
        )
        self._table_backups = TableBackups(self._owner, environment, tables, self._space, self.tell)
        self._restores = RestorePhases(
            self._owner,
            environment,
            tables,
            table_changes=self._table_changes,
            backups=self._table_backups,
            destinations=self._destinations,
            tell=self.tell,
        )
        self.control_plane = ControlPlane(
            self._streams, self._destinations, self._replays, self._table_backups, self._splits
        )
        self._passing = Transitions()
        # Whether the actor ran before and did not end: what it holds may be half changed.
        self._crashed = False

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
                except InternalServerError as error:
                    # Of a table's partition, to which the store said so.
                    envelope.refuse(error)
                    self._try_again(envelope, error)
                except DynamoDBError as error:
                    envelope.refuse(error)
                except StoreError as error:
                    known = _UNKNOWN if isinstance(error, Unknown) else "Nothing was changed"
                    envelope.refuse(InternalServerError(f"{known}: {error}"))
                    self._try_again(envelope, error)
            self.in_hand = []
        self._crashed = False

    async def adopt(self, loaded: Catalog) -> None:
        """Take over the catalog as it is stored: at start, and after a crash of the actor."""
        self._owner.adopt(loaded)
        self._passing.forget()
        await self._streams.load(self._store.latest)
        known = {record.definition.name for record in loaded.tables}
        for name in self._tables.keys() - known:
            del self._tables[name]
        for record in loaded.tables:
            table = self._tables.get(record.definition.name)
            if table is not None:
                # It may have been left half deleted, or another one's place taken.
                await self._restores.forget(table)
                await table.close()
            table = self._tables[record.definition.name] = Table(
                record, self._environment, is_stored=True
            )
            await self._replays.forget(table)
            await self._begin(table)
            self._restores.check(table)
            topic = self._destinations.wanted(record.definition)
            if topic is not None:
                self.tell(EnableDestination(record.definition.name, topic))
        self._tell_later(self._settings.relays.check_seconds, CheckDestinations())
        await self._table_backups.adopt(self._store.latest)
        await self._space.resume()

    async def keep_streams(self) -> float:
        """Have shards rolled and logs trimmed; returns after how many seconds to do it again."""
        try:
            await self.ref.ask(KeepStreams(), always=True)
        except MailboxClosed:
            pass
        except InternalServerError as error:
            _log.warning("tried_again_later", error=str(error))
            return min(_AGAIN_SECONDS, self._settings.keep_streams_seconds)
        return self._settings.keep_streams_seconds

    async def _begin(self, table: Table) -> None:
        """Put to work what a table's record says, and wait for the end of a passing state."""
        await self._put_to_work(table)
        self._transition(table.definition)

    async def _put_to_work(self, table: Table) -> None:
        """Start who follows a table's changes, and have its indexes go on in their phases."""
        await self._destinations.resume(table)
        if table.definition.records_changes or table.record.ended_logs:
            self._streams.attach(await table.followers.feeds())
        await self._time_to_live.resume(table)
        await self._indexes.resume(table)
        self._restores.resume(table)
        for index in table.definition.global_indexes:
            self._schedule(table, index)

    async def _handle(self, message: Message[object]) -> object:
        match message:
            case CreateTable():
                state = await self._table_changes.create(message.definition)
                await self._begin(self._tables[message.definition.name])
                return state
            case UpdateTable():
                return await self._update(message)
            case DeleteTable():
                return await self._delete(message.name)
            case EndTransition():
                await self._end_transition(message)
                return None
            case AdvanceIndex():
                await self._advance(message)
                return None
            case UpdateTimeToLive():
                await self._update_time_to_live(message)
                return None
            case AdvanceTimeToLive():
                table = self._tables.same(message.name, message.table_id)
                if table is not None:
                    await self._time_to_live.advance(table)
                return None
            case UpdateContributorInsights():
                return await self._insights.update(self._tables.named(message.table_name), message)
            case KeepStreams():
                await self._log_trimmer.keep(self._clock.now_epoch_seconds())
                return None
            case SplitPartition():
                return await self._splits.split(self._tables.settled(message.name), message)
            case GrowTable():
                table = self._tables.same(message.name, message.table_id)
                # One at a time: others' messages come between.
                if table is not None and await self._splits.grow(table):
                    self.tell(message)
                return None
            case StartReplay():
                return await self._start_replay(message)
            case CancelReplay():
                return await self._replays.cancel(message)
            case EndReplay():
                table = self._tables.same(message.name, message.table_id)
                if table is not None:
                    await self._replays.end(table, message)
                return None
            case EndReclaim():
                await self._space.end(message)
                return None
            case EnableDestination():
                return await self._enable_destination(message)
            case DisableDestination():
                return await self._destinations.disable(self._tables.settled(message.name), message)
            case UpdateDestination():
                return await self._destinations.update(self._tables.settled(message.name), message)
            case AdvanceDestination():
                table = self._tables.same(message.name, message.table_id)
                if table is not None:
                    await self._destinations.advance(table, message)
                    if table.definition.records_changes:
                        self._streams.attach(await table.followers.feeds())
                return None
            case CheckDestinations():
                await self._check_destinations()
                return None
        return await self._handle_table_backup(message)

    async def _handle_table_backup(self, message: Message[object]) -> object:
        match message:
            case CreateTableBackup():
                return await self._table_backups.create(message)
            case EndTableBackup():
                await self._table_backups.end(message)
                return None
            case DeleteTableBackup():
                return await self._table_backups.delete(message)
            case RestoreTable():
                state = await self._restores.begin(message)
                await self._begin(self._tables[message.definition.name])
                return state
            case AdvanceRestore():
                table = self._tables.same(message.name, message.table_id)
                if table is not None:
                    with self._restores.trying(table):
                        await self._advance_restore(table, message.filled)
                return None
        raise AssertionError(message)

    async def _update(self, message: UpdateTable) -> TableState:
        state = await self._table_changes.update(message)
        table = self._tables[message.name]
        await self._begin(table)
        self.tell(GrowTable(table.definition.table_id, table.definition.name))
        return state

    async def _update_time_to_live(self, message: UpdateTimeToLive) -> None:
        table = self._tables.named(message.name)
        if table.definition.status in ("CREATING", "DELETING"):
            raise ResourceInUseException(
                "Time to live cannot be configured when table is in CREATING or DELETING state"
            )
        await self._time_to_live.change(table, message.change)
        await self._put_to_work(table)

    async def _start_replay(self, message: StartReplay) -> ReplayProgress:
        table = self._tables.settled(message.name)
        progress = await self._replays.start(table, message, self._tables.values())
        self._streams.attach(await table.followers.feeds())
        return progress

    async def _enable_destination(self, message: EnableDestination) -> StreamingDestination:
        table = self._tables.settled(message.name)
        if self._replays.writes_to(message.topic):
            raise ValidationException(f"A replay is writing to topic {message.topic}")
        destination = await self._destinations.enable(table, message)
        self._streams.attach(await table.followers.feeds())
        return destination

    async def _delete(self, name: str) -> TableState:
        table = self._tables.named(name)
        definition = table.definition
        if self._restores.is_stuck(table):
            return await self._give_up_restoring(table)
        check_deletable(definition)
        self._table_backups.check_deletable(table)
        state = await state_of(table)
        deleting = structs.replace(definition, status="DELETING")
        if self._settings.table_transition_seconds:
            await definition_commit.store(self._owner, table, deleting)
            self._transition(deleting)
        else:
            await self._drop(table, state.size_bytes)
        return structs.replace(state, definition=deleting)

    async def _end_transition(self, message: EndTransition) -> None:
        table = self._tables.same(message.name, message.table_id)
        if table is None or not self._passing.goes_on(message.state, message.table_id):
            return
        if table.definition.status == "DELETING":
            await self._drop(table, (await state_of(table)).size_bytes)
        elif table.definition.status != "ACTIVE":
            await definition_commit.store(self._owner, table, after_update(table.definition))
            self.tell(GrowTable(message.table_id, message.name))
        self._passing.end(message.table_id)

    async def _drop(self, table: Table, size_bytes: int) -> None:
        """Take a table away; who follows it goes on if the store refuses."""
        try:
            await self._table_changes.drop(table, size_bytes)
        except StoreError:
            await self._put_to_work(table)
            raise

    async def _advance(self, message: AdvanceIndex) -> None:
        table_id, index_id, state = message.table_id, message.index_id, message.state
        table = self._tables.same(message.name, table_id)
        if table is None:
            return
        if state is not None and not self._passing.goes_on(state, table_id, index_id):
            return
        with self._restores.trying(table):
            await self._indexes.advance(table, index_id)
            if state is not None:
                self._passing.end(table_id, index_id)
                # It may have more throughput now than its partitions can take.
                self.tell(GrowTable(table_id, message.name))
            for index in table.definition.global_indexes:
                if index.definition.index_id == index_id and not index.backfilling:
                    self._schedule(table, index)
            if table.definition.restore_phase == "INDEXES":
                await self._advance_restore(table, Filled())

    async def _advance_restore(self, table: Table, filled: Filled) -> None:
        if filled.failure is None:
            await self._restores.advance(table)
            await self._put_to_work(table)
            return
        name = table.definition.name
        _log.error("table_not_restored", table=name, reason=filled.failure)
        await self._give_up_restoring(table)

    async def _give_up_restoring(self, table: Table) -> TableState:
        """Take away a table that is not whole."""
        state = await state_of(table)
        await self._restores.forget(table)
        await self._drop(table, state.size_bytes)
        return structs.replace(
            state, definition=structs.replace(state.definition, status="DELETING")
        )

    async def _check_destinations(self) -> None:
        """Cut off who takes no changes; the room that they took on the disk is given back."""
        self._replays.check()
        now = self._clock.now_epoch_seconds()
        for table in list(self._tables.values()):
            if await self._destinations.check(table, now):
                await self._log_trimmer.give_back(table, now)
        self._tell_later(self._settings.relays.check_seconds, CheckDestinations())

    def _transition(self, definition: TableDefinition) -> None:
        """Tell the actor itself when a passing state of a table is over."""
        if definition.restore_phase != "DONE":
            return
        if definition.status == "ACTIVE" or any(
            index.backfilling is False for index in definition.global_indexes
        ):
            return
        table_id, name = definition.table_id, definition.name
        state = self._passing.begin(definition.status, table_id)
        if state is not None:
            message = EndTransition(table_id, name, state)
            self._tell_later(self._settings.table_transition_seconds, message)

    def _schedule(self, table: Table, index: GlobalIndex) -> None:
        """Tell the actor itself when a phase of an index is over that only takes its time."""
        if table.definition.restore_phase != "DONE":
            return
        if index.backfilling is False:
            seconds = self._settings.index_allocation_seconds
        elif index.status in ("UPDATING", "DELETING"):
            seconds = self._settings.table_transition_seconds
        else:
            return
        table_id, name = table.definition.table_id, table.definition.name
        index_id = index.definition.index_id
        state = self._passing.begin(index.status, table_id, index_id)
        if state is not None:
            self._tell_later(seconds, AdvanceIndex(table_id, name, index_id, state))

    def _tell_advance(self, table: Table, index: GlobalIndex) -> None:
        self.tell(
            AdvanceIndex(
                table.definition.table_id, table.definition.name, index.definition.index_id
            )
        )

    def _tell_time_to_live(self, table: Table) -> None:
        self.tell(AdvanceTimeToLive(table.definition.table_id, table.definition.name))

    def _try_again(self, envelope: Envelope, error: Exception) -> None:
        """Have what the actor tells itself come once more, unless it has another owner now."""
        if not isinstance(envelope.message, _OWN_MESSAGES):
            return
        if is_fenced(error):
            _log.warning("phase_fenced", error=str(error))
        else:
            _log.warning("tried_again_later", error=str(error))
            self._tell_later(_AGAIN_SECONDS, envelope.message)

    def _tell_later(self, seconds: float, message: Message[None]) -> None:
        asyncio.get_running_loop().call_later(seconds, self.tell, message)

    def tell(self, message: Message[Any]) -> None:
        """Put a message into the mailbox, however full it is; its reply is for nobody."""
        if not self.mailbox.closed:
            # An error in its reply is dealt with where it happens.
            self.ref.tell(message, always=True)

    async def close(self) -> None:
        """Stop all partitions; every write taken is answered first."""
        await self._table_backups.close()
        await self._restores.close()
        await asyncio.gather(*(table.close() for table in self._tables.values()))
        await self._destinations.close()
