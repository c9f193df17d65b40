"""The database, as requests see it: its tables, and changes of them through its actor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from msgspec import structs

from dynactor.actors.backups.past_reads import PastReads
from dynactor.actors.backups.point_in_time import UpdateRecovery
from dynactor.actors.backups.table_backups import CreateTableBackup, DeleteTableBackup
from dynactor.actors.catalog.catalog_upgrade import upgrade
from dynactor.actors.catalog.homes import HomeChange, MoveGuard
from dynactor.actors.catalog.tables import Tables
from dynactor.actors.database.database_actor import DatabaseActor, load_catalog
from dynactor.actors.database.virtual_clock import VirtualClockControl, open_clock
from dynactor.actors.derived.kafka.replay_progress import ReplayProgress
from dynactor.actors.feeds.change_feed import RecentChanges
from dynactor.actors.limits.burst_balances import BalanceWriter
from dynactor.actors.limits.throttle import ThrottleSettings
from dynactor.actors.partition.table_partition import PartitionSettings
from dynactor.actors.phases.contributor_insights import SwitchedInsights, UpdateContributorInsights
from dynactor.actors.phases.database_settings import DatabaseSettings
from dynactor.actors.phases.destination_phases import (
    DisableDestination,
    EnableDestination,
    UpdateDestination,
)
from dynactor.actors.phases.replays import CancelReplay, StartReplay
from dynactor.actors.restores.restore_phases import RestoreTable, RestoreTableToTime
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.runtime.mailbox import MailboxFull, Message, ReplyT
from dynactor.actors.runtime.randomness import open_randomness
from dynactor.actors.runtime.reminder import remind
from dynactor.actors.runtime.supervisor import Supervisor
from dynactor.actors.splitting.split_watch import SplitWatch
from dynactor.actors.splitting.splits import SplitPartition, SplitReason
from dynactor.actors.table.environment import TableEnvironment
from dynactor.actors.table.messages import CreateTable, DeleteTable, UpdateTable, UpdateTimeToLive
from dynactor.actors.table.state import TableState, state_of
from dynactor.actors.table.table import Table
from dynactor.actors.transactions.coordinator import Transactions
from dynactor.actors.transfers.bulk_operations import CancelBulkOperation, StartBulkPutItems
from dynactor.actors.transfers.table_exports import CancelExport, ExportTable
from dynactor.actors.transfers.table_imports import CancelImport, ImportTable
from dynactor.model.access.bucket_grant import BucketGrant
from dynactor.model.definitions.table import (
    TABLE_INDEX_ID,
    ContributorInsights,
    StreamingDestination,
    TableDefinition,
)
from dynactor.model.errors import LimitExceededException, ResourceNotFoundException
from dynactor.model.kept_failure import KeptFailure
from dynactor.model.tables import contributor_insights
from dynactor.model.tables.contributor_insights import ContributorInsightsStatus
from dynactor.model.tables.table_backup import TableBackup, TableBackupId
from dynactor.model.tables.table_rules import TableEdit
from dynactor.model.tables.time_to_live import TimeToLiveChange
from dynactor.model.transfers.bulk_operation import BulkOperation
from dynactor.model.transfers.table_export import TableExport
from dynactor.model.transfers.table_import import TableImport
from dynactor.storage import burst_balances, key_layout
from dynactor.storage.burst_balances import NO_BALANCES, LoadedBalances
from dynactor.storage.store import Store
from dynactor.streams.kafka.broker import Broker


class Database:
    """The tables. Requests read and write them directly; changes of tables go to the actor."""

    def __init__(
        self,
        store: Store,
        settings: DatabaseSettings,
        clock: Clock,
        supervisor: Supervisor,
        *,
        broker: Broker | None,
        balances: LoadedBalances,
        clock_control: VirtualClockControl | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self._store = store
        # The control of a virtual clock; None if the clock is real.
        self.clock_control = clock_control
        self._tables = Tables()
        self.balances = BalanceWriter(
            store,
            clock,
            balances,
            owners=lambda: [table.throttle for table in self._tables.values()],
            copy_messages=settings.copy_messages,
        )
        environment = TableEnvironment(
            store,
            supervisor,
            clock,
            RecentChanges(),
            PartitionSettings(
                settings.item_collection_limit_bytes,
                settings.copy_messages,
                settings.index_lag,
                settings.index_reads_wait_seconds,
                settings.is_traced,
            ),
            self.balances,
            ThrottleSettings(
                settings.throttling,
                settings.table_arns,
                key_traffic=settings.key_traffic,
                initial_burst_seconds=settings.initial_burst_seconds,
            ),
            self._tables.consumed_units,
            randomness := open_randomness(settings.seed),
        )
        self.actor = DatabaseActor(environment, settings, self._tables, broker)
        self._ref = self.actor.ref
        # For reads that bypass the actor's mailbox.
        control_plane = self.actor.control_plane
        self.streams = control_plane.streams
        self.destinations = control_plane.destinations
        self.replays = control_plane.replays
        self.table_backups = control_plane.table_backups
        self.exports = control_plane.exports
        self.imports = control_plane.imports
        self.past_reads = PastReads(store, clock, self.usable_table)
        self.bulk_operations = control_plane.bulk_operations
        self._splits = control_plane.splits
        self.transactions = Transactions(
            store, clock, settings.account_id, randomness, settings.transaction_delay
        )
        self.split_watch = SplitWatch(
            settings.splits,
            store,
            clock,
            supervisor,
            tables=lambda: self.tables,
            growing=self._splits.growing,
            tell=self.actor.tell,
        )

    def table(self, name: str) -> Table:
        """The table with this name, for reads and writes.

        Raises:
            ResourceNotFoundException: the table does not exist, or is being created or deleted.
        """
        table = self.usable_table(name)
        if table is None:
            raise ResourceNotFoundException("Requested resource not found")
        return table

    def usable_table(self, name: str) -> Table | None:
        """The table with this name; None if it does not exist, or is being created or deleted."""
        table = self._tables.get(name)
        if table is None or table.definition.status in ("CREATING", "DELETING"):
            return None
        return table

    def mailbox_lengths(self) -> dict[str, int]:
        """Number of messages that wait for each of the database's own actors, by actor."""
        lengths = {
            "database": len(self.actor.mailbox),
            "burst_balances": len(self.balances.mailbox),
        }
        if self.clock_control is not None:
            lengths["virtual_clock"] = len(self.clock_control.mailbox)
        return lengths

    @property
    def partition_splits(self) -> Mapping[SplitReason, int]:
        """Number of partitions that were split since the server started, by reason."""
        return dict(self._splits.splits)

    def table_in_any_state(self, name: str) -> Table:
        """The table with this name, even while it is being created.

        Raises:
            ResourceNotFoundException: the table does not exist.
        """
        return self._tables.named(name)

    @property
    def tables(self) -> Sequence[Table]:
        """All tables, sorted by name, whatever their state."""
        return [self._tables[name] for name in sorted(self._tables)]

    def table_names(self) -> Sequence[str]:
        """The names of all tables, sorted, also of tables that have another home."""
        elsewhere = self._tables.elsewhere
        return sorted(self._tables.keys() | elsewhere if elsewhere else self._tables)

    async def stream_names(self) -> Sequence[tuple[str, str]]:
        """The tables and labels of all streams, sorted, also of tables that have another home."""
        if self._tables.elsewhere:
            return await self.streams.stored_names()
        return [(stream.table_name, stream.label) for stream in self.streams.all()]

    async def definitions(self) -> list[TableDefinition]:
        """The definitions of all tables, sorted by name, also of tables that have another home.

        Raises:
            StoreError: the catalog can't be read.
        """
        return await self.actor.definitions()

    # -- tables with other homes --------------------------------------------------------------

    @property
    def tables_elsewhere(self) -> Mapping[str, int]:
        """The epochs of the shares that run the other tables, by table."""
        return self._tables.elsewhere

    @property
    def table_groups(self) -> Mapping[str, str]:
        """The groups of tables that have one home, by table."""
        return self._tables.groups

    def runs(self, name: str) -> bool:
        """Whether this database runs a table with this name."""
        return name in self._tables

    def movable_tables(self) -> Sequence[str]:
        """The tables that may get another home now, sorted."""
        return [name for name in sorted(self._tables) if self.actor.may_move(self._tables[name])]

    async def confirm_owner(self) -> None:
        """Read the store, which refuses a database that another server has taken over.

        Raises:
            StoreError: this database may be out of date.
        """
        await self._store.latest.load([key_layout.CATALOG_VERSION])

    def guard_moves(self, guard: MoveGuard) -> None:
        """Let the node hold back the requests to tables that move."""
        self.actor.move_guard = guard

    async def change_homes(self, message: HomeChange) -> None:
        """Move, take, recall or group tables: see the messages.

        Raises:
            InternalServerError: the store refused a commit; the caller tries again later.
        """
        # Requests to tables that move wait, so these messages come first.
        await self._ref.ask(message, always=True, first=True)

    async def describe(self, name: str) -> TableState:
        """A table's definition and durable counters.

        Raises:
            ResourceNotFoundException: there is no such table.
        """
        table = self._tables.named(name)
        state = await state_of(table)
        return structs.replace(state, growing=self._splits.growing(table))

    async def create_table(self, definition: TableDefinition) -> TableState:
        """Create a table.

        Raises:
            ResourceInUseException: the name is in use.
        """
        return await self._ask(CreateTable(definition))

    async def update_table(self, name: str, edit: TableEdit) -> TableState:
        """Change a table's settings.

        Raises:
            ResourceNotFoundException, ResourceInUseException: no such table, or not ACTIVE.
            ValidationException, LimitExceededException: see ``table_rules.apply_edit``.
        """
        return await self._ask(UpdateTable(name, edit))

    async def delete_table(self, name: str) -> TableState:
        """Delete a table.

        Raises:
            ResourceNotFoundException, ResourceInUseException: no such table, or it is being created
                or deleted.
            ValidationException: the table is protected against deletion.
        """
        return await self._ask(DeleteTable(name))

    async def create_table_backup(self, name: str, backup_name: str) -> TableBackup:
        """Start a backup of a table; it will contain all writes that were answered before.

        Raises:
            TableNotFoundException, TableInUseException: no such table, or it is being created or
                deleted.
        """
        return await self._ask(CreateTableBackup(name, backup_name))

    async def delete_table_backup(self, backup_id: TableBackupId, arn: str) -> TableBackup:
        """Delete a backup of a table; returns its last description. Errors name it by its ARN.

        Raises:
            BackupNotFoundException, BackupInUseException: the backup does not exist, or is being
                created or restored.
        """
        return await self._ask(DeleteTableBackup(backup_id, arn))

    async def restore_table(
        self, definition: TableDefinition, backup_id: TableBackupId, arn: str
    ) -> TableState:
        """Create a table from a backup; it is ACTIVE once it is complete.

        Raises:
            TableAlreadyExistsException, TableInUseException: the name is in use.
            BackupNotFoundException, BackupInUseException: no such backup, or it is being created.
            LimitExceededException: too many tables are being restored.
        """
        return await self._ask(RestoreTable(definition, backup_id, arn))

    async def restore_table_to_time(self, message: RestoreTableToTime) -> TableState:
        """Create a table from another one as it was; it is ACTIVE once it is complete.

        Raises:
            TableAlreadyExistsException, TableInUseException: the name is in use.
            TableNotFoundException, PointInTimeRecoveryUnavailableException: the source is missing,
                or can't be restored.
            InvalidRestoreTimeException: the time is not in the source's window.
            LimitExceededException: too many tables are being restored.
        """
        return await self._ask(message)

    async def update_recovery(self, message: UpdateRecovery) -> None:
        """Enable or disable a table's point-in-time recovery, or change its period.

        Raises:
            TableNotFoundException: no such table.
            ContinuousBackupsUnavailableException: the table is being created.
        """
        await self._ask(message)

    async def export_table(
        self, table_name: str, request: dict[str, Any], grant: BucketGrant | None = None
    ) -> TableExport:
        """Start an export of a table; it will contain all writes that were answered before.

        ``grant`` has the objects that the caller may use; None without policies.

        Raises:
            TableNotFoundException: no such table, or it is being created or deleted.
            ExportConflictException: the client token was used for another export.
            InvalidExportTimeException: the time is not the present.
            LimitExceededException: too many exports are in progress.
        """
        return await self._ask(ExportTable(table_name, request, grant))

    async def import_table(
        self,
        definition: TableDefinition,
        request: dict[str, Any],
        grant: BucketGrant | None = None,
    ) -> TableImport:
        """Import files into a new table, which is ACTIVE once it is complete.

        ``grant`` has the objects that the caller may use; None without policies.

        Raises:
            ResourceInUseException: the name is in use.
            ImportConflictException: the client token was used for another import.
            LimitExceededException: too many imports are in progress.
        """
        return await self._ask(ImportTable(definition, request, grant))

    async def cancel_import(self, import_id: str) -> TableImport:
        """Delete the incomplete table of an import; returns the import as it is if it is over.

        Raises:
            ResourceNotFoundException: the import does not exist, or was forgotten.
        """
        return await self._ask(CancelImport(import_id))

    async def cancel_export(self, export_id: str) -> TableExport:
        """Stop an export, which ends FAILED; returns the export as it is if it is over.

        Raises:
            ResourceNotFoundException: the export does not exist, or was forgotten.
        """
        return await self._ask(CancelExport(export_id))

    async def import_upload(
        self, definition: TableDefinition, creation: dict[str, Any]
    ) -> TableImport:
        """Import files that a client uploads; raises as ``import_table``.

        ``creation`` has the members of CreateTable. The pieces go to ``imports.uploads``.
        """
        request = {
            "InputFormat": "DYNAMODB_JSON",
            "InputCompressionType": "GZIP",
            "TableCreationParameters": creation,
        }
        return await self._ask(ImportTable(definition, request))

    async def start_bulk_put(
        self, table_name: str, request: dict[str, Any], grant: BucketGrant | None = None
    ) -> BulkOperation:
        """Start to put the items of files into a table.

        ``grant`` has the objects that the caller may use; None without policies.

        Raises:
            ResourceNotFoundException, ResourceInUseException: no such table, or it is being created
                or deleted.
            IdempotentParameterMismatchException: the client token was used for another operation.
            LimitExceededException: too many bulk operations are in progress.
        """
        return await self._ask(StartBulkPutItems(table_name, request, grant))

    async def cancel_bulk_operation(self, operation_id: str) -> BulkOperation:
        """Stop a bulk operation; items that are written stay.

        Raises:
            ResourceNotFoundException: there is no such operation.
        """
        return await self._ask(CancelBulkOperation(operation_id))

    async def change_destination(
        self, message: EnableDestination | DisableDestination | UpdateDestination
    ) -> StreamingDestination:
        """Start or stop publishing a table's changes, or change the settings.

        Raises:
            ResourceNotFoundException, ResourceInUseException: no such table, or it is being created
                or deleted.
            ValidationException: see ``destination_rules``.
        """
        return await self._ask(message)

    async def start_replay(self, message: StartReplay) -> ReplayProgress:
        """Publish a table's changes to a topic again.

        Raises:
            ResourceNotFoundException, ResourceInUseException: no such table, or it is being created
                or deleted.
            ValidationException: see ``Replays.start``.
        """
        return await self._ask(message)

    async def cancel_replay(self, replay_id: str) -> ReplayProgress:
        """Stop a replay.

        Raises:
            ResourceNotFoundException: there is no such replay.
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
                now.
            ValidationException: the partition can't be split at this position.
        """
        return await self._ask(SplitPartition(name, number, at, share, index_id))

    async def update_time_to_live(self, name: str, change: TimeToLiveChange) -> None:
        """Switch a table's time to live on or off.

        Raises:
            ResourceNotFoundException, ResourceInUseException: no such table, or it is being created
                or deleted.
            ValidationException: see ``dynactor.model.tables.time_to_live.changed``.
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
        """The present state of Contributor Insights."""
        return contributor_insights.status_of(
            insights, self.clock.now_epoch_seconds(), self.settings.table_transition_seconds
        )

    async def _ask(self, message: Message[ReplyT]) -> ReplyT:
        try:
            return await self._ref.ask(message)
        except MailboxFull:
            raise LimitExceededException(
                "Too many table operations are waiting, try again"
            ) from None


@asynccontextmanager
async def open_database(
    store: Store,
    settings: DatabaseSettings,
    clock: Clock,
    broker: Broker | None = None,
    *,
    keeps_clock: bool = True,
    has_other_data: bool = False,
) -> AsyncIterator[Database]:
    """A running database over an open store, which stays open when this ends.

    Changes of tables can be published if there is a broker. If several databases share a virtual
    clock, one of them stores its time; ``has_other_data`` says whether another database has tables.

    Raises:
        StoreError: the catalog can't be read.
        ClockBehindData: the data has a virtual time in the future.
    """
    # Load before the group starts, because the group would wrap an error in an ExceptionGroup.
    loaded = await load_catalog(store, settings.share)
    loaded_balances = NO_BALANCES
    if settings.is_leader:
        loaded = await upgrade(store, loaded)
        loaded_balances = await burst_balances.load(store.latest)
    clock_control = None
    if keeps_clock:
        clock_control = await open_clock(
            store,
            clock,
            has_data=loaded.head_bytes is not None or has_other_data,
            copy_messages=settings.copy_messages,
        )
    # The catalog is read again in the group, which would wrap an error in an ExceptionGroup.
    kept = KeptFailure()
    async with anyio.create_task_group() as task_group:
        supervisor = Supervisor(task_group)
        database = Database(
            store,
            settings,
            clock,
            supervisor,
            broker=broker,
            balances=loaded_balances,
            clock_control=clock_control,
        )
        if clock_control is not None:
            supervisor.start(clock_control)
        with kept:
            await database.actor.adopt(loaded)
            if settings.is_leader:
                await database.balances.start()
        if kept.is_failed:
            # The actors that have started would keep the group open.
            task_group.cancel_scope.cancel()
        else:
            async with _started(database, supervisor):
                yield database
    kept.raise_again()


@asynccontextmanager
async def _started(database: Database, supervisor: Supervisor) -> AsyncIterator[None]:
    """Run the database's actors within the context."""
    clock, clock_control = database.clock, database.clock_control
    is_leader = database.settings.is_leader
    supervisor.start(database.actor)
    supervisor.keep_in_background(remind, clock, database.actor.keep_streams)
    supervisor.keep_in_background(remind, clock, database.split_watch.check)
    if is_leader:
        supervisor.start(database.balances)
        supervisor.keep_in_background(remind, clock, database.balances.keep)
        supervisor.keep_in_background(remind, clock, database.transactions.tokens.trim)
    try:
        yield
    finally:
        await supervisor.stop(database.actor)
        await database.actor.close()
        if is_leader:
            await supervisor.stop(database.balances)
            await database.balances.close()
        if clock_control is not None:
            await supervisor.stop(clock_control)
            await clock_control.close()
        supervisor.cancel_background()
