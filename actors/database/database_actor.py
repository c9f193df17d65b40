"""The database's actor: carries out changes of tables, one message after another.

Parts that only this actor calls do the work: tables, logs, streams, splits, indexes, time to live,
destinations, replays, insights, backups, restored tables, transfers and disk space. Transfers are
exports, imports and bulk operations. The actor sends itself a message when the next phase of a part
is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog
from msgspec import structs

from dynactor.actors.backups.point_in_time import RecoverySwitch, UpdateRecovery
from dynactor.actors.backups.table_backups import (
    CreateTableBackup,
    DeleteTableBackup,
    TableBackups,
)
from dynactor.actors.catalog import definition_commit
from dynactor.actors.catalog.catalog_owner import CatalogOwner
from dynactor.actors.catalog.cooldowns import Cooldowns
from dynactor.actors.catalog.homes import (
    GroupTables,
    Homes,
    MoveGuard,
    MoveTables,
    RecallTables,
    Share,
    TakeTables,
)
from dynactor.actors.catalog.long_work import ContinueWork, LongWork, Pieces, Work, chained
from dynactor.actors.catalog.space_reclaim import EndReclaim, SpaceReclaimer
from dynactor.actors.catalog.streams import StreamRegistry
from dynactor.actors.catalog.tables import Tables
from dynactor.actors.database.control_plane import ControlPlane
from dynactor.actors.derived.kafka.kafka_environment import KafkaEnvironment
from dynactor.actors.derived.kafka.publishing import Origins, Publishing
from dynactor.actors.derived.kafka.replay_progress import ReplayProgress
from dynactor.actors.phases import index_phases, table_phases, time_to_live_phases
from dynactor.actors.phases.contributor_insights import (
    ContributorInsightsSwitch,
    UpdateContributorInsights,
)
from dynactor.actors.phases.database_settings import DatabaseSettings
from dynactor.actors.phases.destination_phases import (
    CheckDestinations,
    DestinationPhases,
    DisableDestination,
    EnableDestination,
    UpdateDestination,
)
from dynactor.actors.phases.index_phases import IndexPhases, TableIndex
from dynactor.actors.phases.log_trimming import LogTrimmer
from dynactor.actors.phases.phase_machine import EndPhase, PhaseMachine, Subject
from dynactor.actors.phases.replays import CancelReplay, EndReplay, Replays, StartReplay
from dynactor.actors.phases.table_changes import TableChanges
from dynactor.actors.phases.time_to_live_phases import TimeToLivePhases
from dynactor.actors.restores.restore_phases import (
    RestorePhases,
    RestoreTable,
    RestoreTableToTime,
)
from dynactor.actors.runtime.cancellation import together
from dynactor.actors.runtime.fencing import is_fenced
from dynactor.actors.runtime.mailbox import Envelope, Mailbox, MailboxClosed, Message
from dynactor.actors.runtime.ref import Ref
from dynactor.actors.splitting.splits import GrowTable, SplitPartition, Splitter, is_settled
from dynactor.actors.table.environment import TableEnvironment
from dynactor.actors.table.messages import (
    CreateTable,
    DeleteTable,
    KeepStreams,
    UpdateTable,
    UpdateTimeToLive,
)
from dynactor.actors.table.state import TableState, state_of
from dynactor.actors.table.table import Table
from dynactor.actors.transfers.bulk_operations import (
    BulkOperations,
    CancelBulkOperation,
    EndBulkOperation,
    StartBulkPutItems,
)
from dynactor.actors.transfers.table_exports import CancelExport, ExportTable, TableExports
from dynactor.actors.transfers.table_imports import CancelImport, ImportTable, TableImports
from dynactor.actors.transfers.uploads import Uploads
from dynactor.model.definitions.table import StreamingDestination, TableDefinition
from dynactor.model.errors import (
    DynamoDBError,
    InternalServerError,
    ResourceInUseException,
    ValidationException,
)
from dynactor.model.tables.table_backup import TableBackup
from dynactor.model.tables.table_rules import check_deletable
from dynactor.model.transfers.table_export import TableExport
from dynactor.model.transfers.table_import import TableImport
from dynactor.storage import catalog, key_layout, table_backups, transfers
from dynactor.storage.buckets.directory_bucket import DirectoryBucket
from dynactor.storage.buckets.open_buckets import Buckets
from dynactor.storage.catalog import Catalog, TableRecord
from dynactor.storage.store import Conflict, Fenced, Row, Store, StoreError, Unknown
from dynactor.streams.kafka.broker import Broker

T = TypeVar("T")

_MAILBOX_MESSAGES: Final = 1_000
# Pause before a message that the store refused is tried again.
_AGAIN_SECONDS: Final = 1.0
# Maximum number of repetitions of a message because of a conflict.
_MOST_CONFLICTS: Final = 3
# Maximum number of tables that are opened at the same time.
_MOST_OPENED_AT_ONCE: Final = 16
# The answer if a sync failed or the connection was lost during a commit.
_UNKNOWN: Final = "Whether this was changed is unknown"

_log = structlog.get_logger("actors")


class CatchUp(Message[None], frozen=True):
    """Load the catalog again, because the stored one may differ from memory."""


# Messages that the actor sends itself. No client would repeat them, so the actor does.
_OWN_MESSAGES: Final = (
    EndPhase,
    EndReplay,
    EndReclaim,
    EndBulkOperation,
    CheckDestinations,
)


class DatabaseActor:
    """Carries out changes of tables, one after another; only this actor adds and removes tables.

    Others send messages through ``ref``, and read through ``control_plane``.
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
        self.in_progress: list[Envelope] = []
        self._settings = settings
        self._tables = tables
        self._environment = environment
        self._store = store = environment.store
        self._clock = clock = environment.clock
        share = settings.share
        self._owner = CatalogOwner(store, "" if share is None else share.node)
        self._homes = Homes(self._owner, store, share, tables)
        self._time_to_live = TimeToLivePhases(self._owner, environment, settings.time_to_live)
        self._insights = ContributorInsightsSwitch(self._owner, clock)
        self._streams = StreamRegistry(self._owner, store, settings.streams)
        # A fixed number of partitions disables growth for throughput.
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
        self._destinations = DestinationPhases(publishing, tables, self._tell_later)
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
        self._cooldowns = Cooldowns(clock, is_on=settings.control_plane_cooldowns)
        self._table_backups = TableBackups(
            self._owner, environment, tables, self._space, self._tell_later
        )
        self._recovery = RecoverySwitch(self._owner, environment, tables)
        buckets = Buckets(settings.buckets, settings.bucket_umask)
        logs, uploads = settings.import_log_directory, settings.upload_directory
        self._imports = TableImports(
            self._owner,
            environment,
            tables,
            table_changes=self._table_changes,
            buckets=buckets,
            uploads=Uploads(None if uploads is None else Path(uploads)),
            log_directory=None if logs is None else DirectoryBucket(Path(logs)),
        )
        self._restores = RestorePhases(
            self._owner,
            environment,
            tables,
            table_changes=self._table_changes,
            backups=self._table_backups,
            recovery=self._recovery,
            imports=self._imports,
            destinations=self._destinations,
            drop=self._drop_unfinished,
            tell=self._tell_later,
        )
        self._exports = TableExports(
            self._owner,
            environment,
            tables,
            self._table_backups,
            buckets,
            recovery=self._recovery,
            table_arns=settings.table_arns,
            tell=self._tell_later,
        )
        self._bulk_operations = BulkOperations(
            self._owner, environment, tables, buckets, self._tell_later
        )
        self.control_plane = ControlPlane(
            self._streams,
            self._destinations,
            self._replays,
            self._table_backups,
            self._splits,
            self._exports,
            self._imports,
            self._bulk_operations,
        )
        transition_seconds = settings.table_transition_seconds
        self._table_machine = PhaseMachine(
            "table",
            table_phases.table_phases(
                self._owner, transition_seconds, self._drop_as_it_is, self._grow
            ),
            find=self._find,
            stored_phase=table_phases.stored_phase,
            tell=self._tell_later,
        )
        self._table_update_machine = PhaseMachine(
            "table settings",
            table_phases.updates(self._owner, transition_seconds, self._grow),
            find=self._find,
            stored_phase=table_phases.stored_update,
            tell=self._tell_later,
        )
        indexes = IndexPhases(self._owner, environment, self._grow)
        self._index_machine = PhaseMachine(
            "index",
            indexes.phases(settings.index_allocation_seconds, transition_seconds),
            find=self._find_index,
            stored_phase=index_phases.stored_phase,
            tell=self._tell_later,
        )
        self._index_update_machine = PhaseMachine(
            "index throughput",
            indexes.updates(transition_seconds),
            find=self._find_index,
            stored_phase=index_phases.stored_update,
            tell=self._tell_later,
        )
        self._time_to_live_machine = PhaseMachine(
            "time to live",
            self._time_to_live.phases(),
            find=self._find,
            stored_phase=time_to_live_phases.stored_phase,
            tell=self._tell_later,
        )
        self._long_work = LongWork(lambda message, first: self.tell(message, first=first))
        # Holds the requests to tables that move; None if this database shares no tables.
        self.move_guard: MoveGuard | None = None
        # Whether an earlier run crashed, so that a change may be incomplete in memory.
        self._crashed = False
        # Whether the stored catalog may differ from memory.
        self._is_behind = False
        self._next_check: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Work through the mailbox until it is closed and drained."""
        self._is_behind |= self._crashed
        await self._long_work.drop()
        await self._catch_up()
        self._crashed = True
        while batch := await self.mailbox.take(1, 1):
            for envelope in batch:
                self.in_progress = [envelope, *self._long_work.envelopes]
                await self._answer(envelope)
            self.in_progress = self._long_work.envelopes
        await self._long_work.drop()
        self._crashed = False

    async def _answer(self, envelope: Envelope) -> None:
        work: Work | None = Work(envelope)
        if isinstance(envelope.message, ContinueWork):
            work = self._long_work.take(envelope.message)
        if work is None:
            return
        envelope = work.envelope
        was_in_doubt, was_current = self._owner.is_in_doubt, self._is_current
        try:
            reply = await self._work_past_conflicts(work)
            if work.rest is None:
                envelope.answer(reply)
            else:
                self._long_work.keep(work, first=isinstance(envelope.message, TakeTables))
        except InternalServerError as error:
            # A partition of the table has replied with the store's error.
            envelope.refuse(error)
            self._try_again(envelope, error)
        except DynamoDBError as error:
            envelope.refuse(error)
        except StoreError as error:
            is_in_doubt = self._owner.is_in_doubt and not was_in_doubt
            is_unknown = isinstance(error, Unknown) or is_in_doubt
            known = _UNKNOWN if is_unknown else "Nothing was changed"
            envelope.refuse(InternalServerError(f"{known}: {error}"))
            self._try_again(envelope, error)
        if not self._is_current:
            # Catch up immediately, because the next change of the catalog may be hours away.
            if isinstance(envelope.message, CatchUp):
                self._tell_later(_AGAIN_SECONDS, CatchUp())
            elif was_current:
                self.tell(CatchUp())

    async def _work_past_conflicts(self, work: Work) -> object:
        """Carry out a message, or do the next piece of it; return the reply.

        Repeat it if the stored catalog differs from memory.
        """
        while True:
            try:
                if await self._catch_up():
                    await work.drop()
                if work.rest is None:
                    reply = await self._handle(work.envelope.message)
                    if not isinstance(reply, AsyncGenerator):
                        return reply
                    work.rest = reply
                await work.do_piece()
            except Fenced:
                raise
            except Conflict:
                await work.drop()
                # Another node may have assigned numbers only.
                if not await self._owner.refresh_head():
                    self._is_behind = True
                if work.conflicts == _MOST_CONFLICTS:
                    raise
                work.conflicts += 1
            else:
                return None

    @property
    def _is_current(self) -> bool:
        """Whether memory is known to match the stored catalog."""
        return not self._is_behind and not self._owner.is_in_doubt

    async def _catch_up(self) -> bool:
        """Load the catalog if it may differ from memory; return whether it was loaded.

        After a commit of unknown outcome, partitions and followers may use a change that is not
        stored. So all tables restart, whatever the outcome was.

        Raises:
            StoreError, DynamoDBError: memory may still be behind.
        """
        if self._owner.is_in_doubt:
            # The commit of unknown outcome may still be written.
            await self._owner.settle()
            self._is_behind = True
        if not self._is_behind:
            return False
        await self._long_work.restart()
        await self.adopt()
        self._is_behind = False
        _log.warning("catalog_reloaded")
        return True

    async def adopt(self, loaded: Catalog | None = None) -> None:
        """Adopt the stored catalog: at start, and whenever it may differ from memory.

        ``loaded`` is the catalog if this database alone changes it.
        """
        if self._settings.share is not None:
            # Load the claims first. A table that another home gives back after that is opened
            # later, so no table is opened by a record that is older than its claim.
            await self._homes.load()
        if loaded is None or self._settings.share is not None:
            loaded = await load_catalog(self._store, self._settings.share)
        self._owner.adopt(loaded)
        self._forget_phases()
        self._table_machine.forget()
        self._homes.note_all([record.definition.name for record in loaded.tables])
        await self._streams.load(self._store.latest)
        is_leader = self._settings.is_leader
        here = [each for each in loaded.tables if self._homes.is_here(each.definition.name)]
        own = {record.definition.table_id for record in here}
        if is_leader:
            # The leader also has the streams of deleted tables.
            elsewhere = {record.definition.table_id for record in loaded.tables} - own
            self._streams.keep_only(lambda stream: stream.table_id not in elsewhere)
            await self._imports.adopt(self._store.latest)
            await self._table_backups.load(self._store.latest)
        else:
            self._streams.keep_only(lambda stream: stream.table_id in own)
        known = {record.definition.name for record in here}
        gone = self._tables.keys() - known
        await asyncio.gather(*(self._tables.pop(name).close() for name in gone))
        for some in _portions(here):
            await together(map(self._reopen, some))
        self._check_destinations_later()
        if is_leader:
            await self._table_backups.resume()
            await self._exports.adopt(self._store.latest)
            await self._bulk_operations.adopt(self._store.latest)
            await self._space.resume()

    async def _reopen(self, record: TableRecord) -> None:
        """Start a stored table again, if it is open."""
        table = self._tables.get(record.definition.name)
        if table is not None:
            # The table may be half deleted, or another table may have its name by now.
            await self._restores.forget(table)
            await table.close()
        await self._open(record)

    async def _open(self, record: TableRecord) -> None:
        """Start a stored table; several are started at the same time."""
        name = record.definition.name
        table = Table(record, self._environment, is_stored=True)
        await self._replays.forget(table)
        # Requests read the tails of its streams as soon as the table is found.
        await self._attach_logs(table)
        self._tables[name] = table
        self._homes.opened(name)
        if self.move_guard is not None:
            # Requests don't need its followers, nor the other tables.
            self.move_guard.opened()
        await self._resume(table)
        topic = self._destinations.wanted(record.definition)
        if topic is not None:
            self.tell(EnableDestination(name, topic))

    async def _take(self, message: TakeTables) -> Pieces:
        """Open the tables that this database has become the home of.

        Raises:
            StoreError, DynamoDBError: some of them are not open; the caller repeats the message.
        """
        names = [name for name in message.names if name not in self._tables]
        await self._homes.reload(names)
        claims = {name: self._homes.claim(name) for name in names}
        ended = [name for name, claim in claims.items() if claim and claim.epoch in message.ended]
        await self._homes.end(ended)
        for some in _portions(names):
            # A table may have been opened since the last piece.
            await self._take_some([name for name in some if name not in self._tables])
            yield

    async def _take_some(self, names: Sequence[str]) -> None:
        """Open those of these tables whose home this is, all at the same time."""
        here = [name for name in names if self._homes.is_here(name)]
        for name in names:
            if name not in here:
                self._homes.note(name)
        if not here:
            return
        rows = await self._store.latest.load(list(map(key_layout.table_record, here)))
        records = []
        for name, stored in zip(here, rows, strict=True):
            if stored is None:
                self._homes.opened(name)
            else:
                self._owner.note_record(name, stored)
                records.append(catalog.decode_record(stored))
        try:
            await together(map(self._open_moved, records))
        except (StoreError, DynamoDBError):
            # A table may have started in part, so start all again.
            self._is_behind = True
            raise

    async def _open_moved(self, record: TableRecord) -> None:
        await self._streams.load_table(self._store.latest, record.definition.table_id)
        await self._open(record)

    async def _move(self, message: MoveTables) -> None:
        """Give tables to another share, unless they can't move now.

        Requests to the tables wait only meanwhile.

        Raises:
            StoreError: the tables may be closed; ``TakeTables`` opens them again.
        """
        guard, epoch = self.move_guard, message.epoch
        # Another share would run the next table that gets the name of a deleted one.
        names = [
            name
            for name in message.names
            if (self.may_move(table) if (table := self._tables.get(name)) else epoch == 0)
        ]
        if guard is None or not guard.may_give(epoch):
            return
        async with guard.holding(names) as are_idle:
            if not are_idle:
                return
            await asyncio.gather(
                *(self._close(self._tables[name]) for name in names if name in self._tables)
            )
            # The other node may have ended meanwhile.
            if guard.may_give(epoch):
                await self._homes.reload(names)
                await self._homes.give(list(filter(self._homes.is_here, names)), epoch)
            # Open again what was not given.
            await self._take_some(list(filter(self._homes.is_here, names)))

    async def _close(self, table: Table) -> None:
        """Close a table that is about to get another home."""
        name, table_id = table.definition.name, table.definition.table_id
        await self._restores.forget(table)
        await table.close()
        self._forget_phases(table_id)
        self._table_machine.forget(table_id)
        self._streams.detach(table.record.log_numbers)
        self._streams.forget_table(table_id)
        self._homes.closed(name)
        del self._tables[name]

    def may_move(self, table: Table) -> bool:
        """Whether a table may get another home now.

        Work that only the leader does, such as backups, needs the table at the leader.
        """
        definition = table.definition
        if not self._settings.is_leader:
            return True
        return (
            is_settled(definition)
            and definition.restore_phase == "DONE"
            and not definition.is_replayed
            and not self._table_backups.is_copied(table)
            and not self._bulk_operations.uses(table)
            and all(
                stream.table_id == definition.table_id
                for stream in self._streams.all()
                if stream.table_name == definition.name
            )
        )

    async def definitions(self) -> list[TableDefinition]:
        """The definitions of all tables, sorted by name, also of tables that have another home.

        Raises:
            StoreError: the catalog can't be read.
        """
        if self._tables.elsewhere:
            stored = await load_catalog(self._store, self._settings.share)
            return [record.definition for record in stored.tables]
        return [self._tables[name].definition for name in sorted(self._tables)]

    async def keep_streams(self) -> float:
        """Roll shards and trim logs; returns the seconds until the next call."""
        try:
            await self.ref.ask(KeepStreams(), always=True)
        except MailboxClosed:
            pass
        except InternalServerError as error:
            _log.warning("log_trimming_delayed", error=str(error))
            return min(_AGAIN_SECONDS, self._settings.keep_streams_seconds)
        return self._settings.keep_streams_seconds

    async def _begin(self, table: Table) -> None:
        """Start everything that a table's record requires, unless it is started already."""
        await self._attach_logs(table)
        await self._resume(table)

    async def _attach_logs(self, table: Table) -> None:
        """Let streams read the logs of a table, if it has logs."""
        if table.definition.records_changes or table.record.ended_logs:
            self._streams.attach(await table.followers.feeds())

    async def _resume(self, table: Table) -> None:
        """Start a table's followers, and resume its phases and those of its parts."""
        await self._destinations.resume(table)
        await self._time_to_live_machine.resume(_subject(table))
        for index in table.definition.global_indexes:
            subject = _subject(table, index.definition.index_id)
            await self._index_machine.resume(subject)
            await self._index_update_machine.resume(subject)
        await self._restores.machine.resume(_subject(table))
        await self._table_machine.resume(_subject(table))
        await self._table_update_machine.resume(_subject(table))

    def _find(self, subject: Subject) -> Table | None:
        return self._tables.same(subject.table_name, subject.table_id)

    def _find_index(self, subject: Subject) -> TableIndex | None:
        table = self._find(subject)
        return None if table is None else index_phases.find(table, subject.part_id)

    async def _end_phase(self, message: EndPhase) -> None:
        if message.kind == self._table_machine.kind:
            await self._table_machine.end(message)
        elif message.kind == self._table_update_machine.kind:
            await self._table_update_machine.end(message)
        elif message.kind == self._time_to_live_machine.kind:
            await self._time_to_live_machine.end(message)
        elif message.kind == self._index_update_machine.kind:
            await self._index_update_machine.end(message)
        elif message.kind == self._table_backups.machine.kind:
            await self._table_backups.machine.end(message)
        elif message.kind == self._exports.machine.kind:
            await self._exports.machine.end(message)
        elif message.kind == self._destinations.machine.kind:
            await self._destinations.machine.end(message)
            table = self._find(message.subject)
            if table is not None and table.definition.records_changes:
                self._streams.attach(await table.followers.feeds())
        elif (table := self._find(message.subject)) is not None:
            with self._restores.trying(message.subject):
                if message.kind == self._index_machine.kind:
                    await self._index_machine.end(message)
                    self._restores.check_indexes(table)
                else:
                    await self._restores.machine.end(message)
                    # Do this also if the message is a repetition, because the store may have
                    # refused the first attempt.
                    if self._find(message.subject) is not None:
                        await self._begin(table)

    def _forget_phases(self, table_id: int | None = None) -> None:
        """Forget the phases of a table, or of all tables, because their work has stopped."""
        self._table_update_machine.forget(table_id)
        self._destinations.machine.forget(table_id)
        self._index_machine.forget(table_id)
        self._index_update_machine.forget(table_id)
        self._time_to_live_machine.forget(table_id)
        self._restores.machine.forget(table_id)

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
            case EndPhase():
                await self._end_phase(message)
                return None
            case CatchUp():
                # ``_catch_up`` runs before each message.
                return None
            case UpdateTimeToLive():
                await self._update_time_to_live(message)
                return None
            case UpdateContributorInsights():
                return await self._insights.update(self._tables.named(message.table_name), message)
            case KeepStreams():
                return self._keep_streams()
            case SplitPartition():
                return await self._splits.split(self._tables.settled(message.name), message)
            case GrowTable():
                table = self._tables.same(message.name, message.table_id)
                # Split once per message, so that other messages are handled in between.
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
            case CheckDestinations():
                return self._check_destinations()
        return await self._handle_homes(message)

    async def _handle_homes(self, message: Message[object]) -> object:
        match message:
            case TakeTables():
                return self._take(message)
            case MoveTables():
                await self._move(message)
                return None
            case RecallTables():
                await self._homes.recall(message.names)
                return None
            case GroupTables():
                await self._homes.group(message.names)
                return None
        return await self._handle_transfer(message)

    async def _handle_transfer(self, message: Message[object]) -> object:
        match message:
            case CreateTableBackup():
                return await self._create_backup(message)
            case DeleteTableBackup():
                return await self._table_backups.delete(message)
            case ExportTable():
                return await self._begin_export(message)
            case ImportTable():
                begun = await self._imports.begin(message)
                table = self._tables.same(begun.table_name, begun.table_id)
                if table is not None:
                    await self._begin(table)
                return begun
            case CancelImport():
                return await self._cancel_import(message.import_id)
            case CancelExport():
                return await self._exports.cancel(message)
            case StartBulkPutItems():
                return await self._bulk_operations.begin(message)
            case CancelBulkOperation():
                return await self._bulk_operations.cancel(message)
            case EndBulkOperation():
                await self._bulk_operations.end(message)
                return None
            case RestoreTable():
                state = await self._restores.begin(message)
                await self._begin(self._tables[message.definition.name])
                return state
            case RestoreTableToTime():
                state = await self._restores.begin_to_time(message)
                await self._begin(self._tables[message.definition.name])
                return state
            case UpdateRecovery():
                table = await self._recovery.update(message)
                await self._begin(table)
                return None
        raise AssertionError(message)

    async def _update(self, message: UpdateTable) -> TableState:
        old = self._tables.settled(message.name).definition
        self._cooldowns.check_edit(old, message.edit)
        state = await self._table_changes.update(message)
        self._cooldowns.note(old, message.edit)
        table = self._tables[message.name]
        if table.definition.changing != old.changing:
            # Earlier changes end together with the latest one.
            await self._table_update_machine.restart(_subject(table))
        await self._begin(table)
        self._grow(table)
        return state

    async def _update_time_to_live(self, message: UpdateTimeToLive) -> None:
        table = self._tables.named(message.name)
        if table.definition.status == "DELETING":
            # The service accepts the change, which has no effect any more.
            return
        if table.definition.status == "CREATING":
            raise ResourceInUseException(
                "Time to live cannot be configured when table is in CREATING or DELETING state"
            )
        await self._time_to_live.change(table, message.change)
        await self._begin(table)

    async def _create_backup(self, message: CreateTableBackup) -> TableBackup:
        backup = await self._table_backups.create(message)
        self._streams.attach(await self._tables[message.table_name].followers.feeds())
        return backup

    async def _begin_export(self, message: ExportTable) -> TableExport:
        export = await self._exports.begin(message)
        # The request may repeat one for a table that is deleted by now.
        table = self._tables.get(message.table_name)
        if table is not None and table.definition.records_changes:
            self._streams.attach(await table.followers.feeds())
        return export

    async def _cancel_import(self, import_id: str) -> TableImport:
        canceled = self._imports.canceled(import_id)
        table = self._tables.same(canceled.table_name, canceled.table_id)
        if table is not None and table.definition.restore_phase != "DONE":
            await self._give_up_restoring(table, [transfers.import_row(canceled)])
            self._imports.remember(canceled)
        return canceled

    async def _start_replay(self, message: StartReplay) -> ReplayProgress:
        table = self._tables.settled(message.name)
        progress = await self._replays.start(table, message, await self.definitions())
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
        if self._restores.may_be_canceled(table):
            state = await self._give_up_restoring(table)
            self._imports.cancel(definition)
            return state
        check_deletable(definition)
        self._cooldowns.check_deletion(definition)
        self._table_backups.check_deletable(table)
        state = await state_of(table)
        deleting = structs.replace(definition, status="DELETING")
        if self._settings.table_transition_seconds:
            await definition_commit.store(self._owner, table, deleting)
            await self._table_machine.resume(_subject(table))
        else:
            await self._drop(table, state.size_bytes)
        return structs.replace(state, definition=deleting)

    async def _drop_as_it_is(self, table: Table) -> None:
        await self._drop(table, (await state_of(table)).size_bytes)

    async def _drop(self, table: Table, size_bytes: int, also: Sequence[Row] = ()) -> None:
        """Delete a table; its followers continue if the store refuses.

        The items of a table with point-in-time recovery stay, in a backup.
        """
        kept: TableBackup | None = None
        if table.definition.point_in_time_recovery is not None:
            kept = await self._table_backups.last_state(table)
            also = [*also, Row(*table_backups.row(kept))]
        try:
            await self._table_changes.drop(table, size_bytes, also, keeps_items=kept is not None)
        except Unknown:
            raise
        except StoreError:
            # The deletion has stopped the followers, so start them again.
            self._forget_phases(table.definition.table_id)
            await self._begin(table)
            raise
        if kept is not None:
            self._table_backups.remember(kept)
        self._forget_phases(table.definition.table_id)
        self._table_machine.forget(table.definition.table_id)

    async def _drop_unfinished(self, table: Table, also: Sequence[Row]) -> None:
        await self._give_up_restoring(table, also)

    async def _give_up_restoring(self, table: Table, also: Sequence[Row] = ()) -> TableState:
        """Delete an incomplete table."""
        state = await state_of(table)
        await self._restores.forget(table)
        await self._drop(table, state.size_bytes, also)
        await self._restores.delete_copy(table.definition)
        return structs.replace(
            state, definition=structs.replace(state.definition, status="DELETING")
        )

    async def _keep_streams(self) -> Pieces:
        """Roll shards, trim logs, and delete what is old."""
        now = self._clock.now_epoch_seconds()
        async for _ in chained(self._log_trimmer.keep(now)):
            yield
        if not self._settings.is_leader:
            return
        async for _ in chained(
            self._table_backups.expire(now),
            self._table_backups.delete_unused(
                lambda: self._restores.used_rows_ids | self._exports.used_rows_ids
            ),
        ):
            yield
        for kind in (self._exports, self._imports, self._bulk_operations):
            await kind.forget_old()
            yield

    async def _check_destinations(self) -> Pieces:
        """Cut off destinations that lag too far behind, and reclaim their disk space."""
        self._replays.check()
        now = self._clock.now_epoch_seconds()
        for table in list(self._tables.values()):
            if self._tables.has(table) and await self._destinations.check(table, now):
                async for _ in chained(self._log_trimmer.give_back(table, now)):
                    yield
            yield
        self._check_destinations_later()

    def _check_destinations_later(self) -> None:
        # Start only one timer, because the actor may adopt the catalog repeatedly.
        if self._next_check is not None:
            self._next_check.cancel()
        seconds = self._settings.relays.check_seconds
        loop = asyncio.get_running_loop()
        self._next_check = loop.call_later(seconds, self.tell, CheckDestinations())

    def _grow(self, table: Table) -> None:
        self.tell(GrowTable(table.definition.table_id, table.definition.name))

    def _try_again(self, envelope: Envelope, error: Exception) -> None:
        """Repeat an own message later, unless the work has another owner now."""
        if not isinstance(envelope.message, _OWN_MESSAGES):
            return
        if is_fenced(error):
            _log.warning("phase_fenced", error=str(error))
        else:
            _log.warning("catalog_change_delayed", error=str(error))
            self._tell_later(_AGAIN_SECONDS, envelope.message)

    def _tell_later(self, seconds: float, message: Message[Any]) -> None:
        if not seconds:
            self.tell(message)
            return
        asyncio.get_running_loop().call_later(seconds, self.tell, message)

    def tell(self, message: Message[Any], *, first: bool = False) -> None:
        """Put a message into the mailbox, even if it is full, and ignore its reply."""
        if not self.mailbox.closed:
            # The actor handles errors of its own messages itself.
            self.ref.tell(message, always=True, first=first)

    async def close(self) -> None:
        """Stop all partitions, after their accepted writes are answered."""
        await self._exports.close()
        await self._table_backups.close()
        await self._restores.close()
        await self._imports.uploads.close()
        await asyncio.gather(*(table.close() for table in self._tables.values()))
        await self._destinations.close()


async def load_catalog(store: Store, share: Share | None) -> Catalog:
    """The stored catalog, with the count of this node's commits."""
    return await catalog.load(store.latest, "" if share is None else share.node)


def _portions(things: Sequence[T]) -> Iterator[Sequence[T]]:
    """These in portions of as many as are opened at the same time."""
    for start in range(0, len(things), _MOST_OPENED_AT_ONCE):
        yield things[start : start + _MOST_OPENED_AT_ONCE]


def _subject(table: Table, part_id: int = 0) -> Subject:
    return Subject(table.definition.table_id, table.definition.name, part_id)
