"""Creates tables from backups, past states and imports, phase by phase.

A table that is being restored is CREATING until it is complete. For a restore to a point in time,
an internal backup of the source's past state is made first. Then the table's partitions put the
backup's items, with the entries of local indexes; these puts are not recorded as changes. The items
of an import are loaded without the partitions (``actors/transfers/import_rows.py``). Then its
global indexes are filled like added indexes, all at once. After a crash each phase continues from
its stored state. At the end the table is ACTIVE. Its changes are published if those of all tables
are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import structlog
from msgspec import structs

from dynactor.actors.backups.point_in_time import RecoverySwitch
from dynactor.actors.backups.table_backups import TableBackups
from dynactor.actors.catalog import definition_commit
from dynactor.actors.catalog.definition_commit import CommittedDefinition
from dynactor.actors.followers.pacing import Pacing
from dynactor.actors.followers.phase_scan import PhaseScan
from dynactor.actors.followers.stored_checkpoint import first_checkpoints
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.parts.phase_machine import GONE, Phase, PhaseMachine
from dynactor.actors.phases.destination_messages import EnableDestination
from dynactor.actors.phases.destination_phases import DestinationPhases
from dynactor.actors.phases.index_phases import IndexPhases
from dynactor.actors.phases.table_changes import TableChanges
from dynactor.actors.restores.table_restore import RestoredItems
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.state import TableState, table_state
from dynactor.actors.table.table import Table
from dynactor.actors.transfers.import_rows import ImportedRows
from dynactor.actors.transfers.table_imports import TableImports
from dynactor.model.definitions.table import Restoration, RestorePhase, TableDefinition
from dynactor.model.errors import (
    BackupInUseException,
    BackupNotFoundException,
    DynamoDBError,
    LimitExceededException,
    TableAlreadyExistsException,
    TableInUseException,
)
from dynactor.model.limits import RESTORES
from dynactor.model.tables.table_backup import TableBackupId
from dynactor.model.tables.table_rules import in_use
from dynactor.model.transfers.table_import import TableImport
from dynactor.storage import key_layout, transfers
from dynactor.storage.catalog import TableRecord
from dynactor.storage.store import Row, StoreError
from dynactor.storage.subscriber_names import index_subscriber

_log = structlog.get_logger("actors")


class RestoreTable(Message[TableState], frozen=True):
    """Create a table from a backup; the actor fills in the same attributes as for ``CreateTable``.

    The table is ACTIVE once it is complete. Errors name the backup by its ARN. Raises
    ``TableAlreadyExistsException``, ``TableInUseException``, ``BackupNotFoundException``,
    ``BackupInUseException``, or ``LimitExceededException`` if too many tables are being restored.
    """

    definition: TableDefinition
    backup_id: TableBackupId
    arn: str


class RestoreTableToTime(Message[TableState], frozen=True):
    """Create a table from another one as it was at a time, None for the latest restorable time.

    Raises ``TableAlreadyExistsException``, ``TableInUseException``, ``TableNotFoundException``,
    ``PointInTimeRecoveryUnavailableException``, ``InvalidRestoreTimeException`` for a time outside
    of the source's window, or ``LimitExceededException`` if too many tables are being restored.
    """

    definition: TableDefinition
    source_name: str
    epoch_seconds: float | None


class CancelImport(Message[TableImport], frozen=True):
    """Delete the incomplete table of an import, for an operator.

    The reply is the import as it is if it is over. Raises ``ResourceNotFoundException``.
    """

    import_id: str


class RestorePhases(Part):
    """Starts restores of tables, and moves them and imported tables through their phases."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._table_changes = parts[TableChanges]
        self._indexes = parts[IndexPhases]
        self._backups = parts[TableBackups]
        self._recovery = parts[RecoverySwitch]
        self._imports = parts[TableImports]
        self._destinations = parts[DestinationPhases]
        self._backups.add_use(self._used_rows_ids)
        self.handlers = {
            RestoreTable: self._begin,
            RestoreTableToTime: self._begin_to_time,
            CancelImport: self._cancel_import,
        }
        self._machine = PhaseMachine(
            "restore",
            {
                "COPYING": Phase(("ITEMS", GONE), self._wait_for_copy, leave=self._end_copy),
                "ITEMS": Phase(("INDEXES", "DONE", GONE), self._fill, leave=self._end_items),
                "INDEXES": Phase(("DONE",), self._wait_for_indexes, leave=self._end),
                "DONE": Phase(),
            },
            find=parts.find_table,
            stored_phase=lambda table: table.definition.restore_phase,
            tell=parts.tell_later,
        )
        self.machines = [self._machine]
        # The running scans, by table id.
        self._fillings: dict[int, PhaseScan[RestoredItems | ImportedRows]] = {}
        # By table id: the function that ends the phase INDEXES.
        self._indexes_over: dict[int, Callable[[], None]] = {}

    async def _begin(self, message: RestoreTable) -> TableState:
        """Create the table, still empty."""
        self._check_name(message.definition.name)
        backup = self._backups.find(message.backup_id)
        if backup is None:
            raise BackupNotFoundException(f"Backup not found: {message.arn}")
        if backup.status == "CREATING":
            raise BackupInUseException(f"Backup is being created: {message.arn}")
        self._check_limit()
        restoration = Restoration(
            backup.definition.name, backup.label, backup.rows_id, self._clock.now_epoch_seconds()
        )
        state = await self._create(message.definition, restoration)
        await self._parts.resume(self._tables[message.definition.name])
        return state

    async def _begin_to_time(self, message: RestoreTableToTime) -> TableState:
        """Create the table, still empty, and start the copy of its source's past state."""
        self._recovery.check_enabled(message.source_name)
        past = None
        if message.epoch_seconds is not None:
            past = await self._recovery.past_state(message.source_name, message.epoch_seconds)
        self._check_name(message.definition.name)
        self._check_limit()
        source = self._tables[message.source_name]
        now = self._clock.now_epoch_seconds()
        backup = await self._backups.create_internal(source, past=past)
        restoration = Restoration(
            message.source_name,
            backup.label,
            backup.rows_id,
            now,
            "COPYING",
            restored_to_epoch_seconds=now if past is None else message.epoch_seconds,
        )
        try:
            state = await self._create(message.definition, restoration)
        except (StoreError, DynamoDBError):
            await self._backups.abandon(backup.backup_id)
            raise
        await self._parts.resume(self._tables[message.definition.name])
        return state

    def _check_name(self, name: str) -> None:
        if (taken := self._tables.get(name)) is not None:
            if taken.definition.status == "CREATING":
                raise TableInUseException(in_use(taken.definition).message)
            raise TableAlreadyExistsException(f"Table already exists: {name}")

    def _check_limit(self) -> None:
        if sum(_is_restoring(table) for table in self._tables.values()) >= RESTORES:
            raise LimitExceededException(
                f"Subscriber limit exceeded: Only {RESTORES} tables can be restored simultaneously"
            )

    async def _create(self, definition: TableDefinition, restoration: Restoration) -> TableState:
        indexes = tuple(
            structs.replace(index, status="CREATING", backfilling=False)
            for index in definition.global_indexes
        )
        return await self._table_changes.create(
            structs.replace(definition, restoration=restoration, global_indexes=indexes)
        )

    async def _cancel_import(self, message: CancelImport) -> TableImport:
        canceled = self._imports.canceled(message.import_id)
        table = self._tables.same(canceled.table_name, canceled.table_id)
        if table is not None and table.definition.restore_phase != "DONE":
            await self._give_up(table, [transfers.import_row(canceled)])
            self._imports.remember(canceled)
        return canceled

    async def resume(self, table: Table) -> None:
        """Resume a table's phase; end the phase INDEXES if the last index is ACTIVE."""
        await super().resume(table)
        self._check_indexes(table)

    def may_move(self, table: Table) -> bool:
        """Whether the table is complete."""
        return table.definition.restore_phase == "DONE"

    def _used_rows_ids(self) -> set[int]:
        """The rows of the backups that tables still need."""
        restorations = (table.definition.restoration for table in self._tables.values())
        return {
            each.backup_rows_id
            for each in restorations
            if each is not None and each.phase in ("COPYING", "ITEMS")
        }

    def _check_indexes(self, table: Table) -> None:
        definition = table.definition
        over = self._indexes_over.get(definition.table_id)
        is_filled = all(index.backfilling is None for index in definition.global_indexes)
        if over is not None and is_filled and definition.restore_phase == "INDEXES":
            over()

    async def cancel(self, table: Table) -> TableState | None:
        """Delete an incomplete table, for DeleteTable; None if it may not be deleted."""
        if not self._may_be_canceled(table):
            return None
        definition = table.definition
        state = await self._give_up(table)
        self._imports.cancel(definition)
        return state

    def _may_be_canceled(self, table: Table) -> bool:
        """Whether a table may be deleted while it is being restored.

        It is restored to a point in time, or a client uploads its items, or its restore is stuck:
        the disk is full, or the actor that fills the table or an index was abandoned.
        """
        table_id = table.definition.table_id
        restoration = table.definition.restoration
        if restoration is None or restoration.phase == "DONE":
            return False
        if restoration.restored_to_epoch_seconds is not None:
            return True
        if restoration.import_id is not None and self._imports.is_upload(table):
            # The client may have given up.
            return True
        filling = self._fillings.get(table_id)
        return (
            self._machine.is_refused(table_id)
            or (filling is not None and (filling.scan.is_refused or filling.scan.mailbox.closed))
            or self._indexes.is_stuck(table)
        )

    async def _give_up(self, table: Table, also: Sequence[Row] = ()) -> TableState:
        """Delete an incomplete table, and store other rows in the same commit."""
        state = await table_state(table)
        await self._table_changes.drop(table, state.size_bytes, also)
        await self._delete_copy(table.definition)
        return structs.replace(
            state, definition=structs.replace(state.definition, status="DELETING")
        )

    async def _delete_copy(self, definition: TableDefinition) -> None:
        """Delete the internal backup of a restore to a point in time, or uploaded files.

        After ``StoreError``, the next start deletes it.
        """
        restoration = definition.restoration
        if restoration is not None and restoration.import_id is not None:
            await self._imports.forget_files(restoration.import_id)
        if restoration is not None and restoration.restored_to_epoch_seconds is not None:
            source, label = restoration.source_table, restoration.backup_label
            await self._backups.abandon(TableBackupId(source, label))

    async def closing(self, table: Table) -> None:
        """Stop restoring a table, until it is resumed."""
        self._machine.forget(table.definition.table_id)
        await self._stop_filling(table)

    async def close(self) -> None:
        """Stop filling tables; the next start continues."""
        fillings, self._fillings = self._fillings, {}
        for filling in fillings.values():
            await self._supervisor.stop(filling.scan)

    # -- phases -----------------------------------------------------------------------------

    async def _wait_for_copy(self, table: Table, over: Callable[[], None]) -> None:
        self._backups.when_over(_backup_id(table), over)

    async def _end_copy(self, table: Table) -> str | None:
        if self._backups.find_internal(_backup_id(table)) is None:
            _log.error(
                "table_not_restored",
                table=table.definition.name,
                reason="the source can't be copied",
            )
            await self._give_up(table)
            return GONE
        await definition_commit.store(self._owner, table, _in_phase(table.definition, "ITEMS"))
        return "ITEMS"

    async def _fill(self, table: Table, over: Callable[[], None]) -> None:
        definition = table.definition
        assert definition.restoration is not None
        filling: PhaseScan[RestoredItems | ImportedRows] = PhaseScan(
            f"filling of {definition.name}",
            definition.restoration.backup_rows_id,
            key_layout.filling_cursor(definition.table_id),
            self._imports.reader(table) if _is_imported(table) else RestoredItems(table),
            self._store,
            pacing=Pacing(self._tables.consumed_units),
            over=over,
        )
        self._fillings[definition.table_id] = filling
        self._supervisor.start(filling.scan)

    async def _end_items(self, table: Table) -> str | None:
        definition = table.definition
        filling = self._fillings.get(definition.table_id)
        if filling is not None and filling.failure is not None:
            if _is_imported(table):
                failed = self._imports.failed(table, filling.failure)
                await self._give_up(table, [transfers.import_row(failed)])
                self._imports.remember(failed)
            else:
                _log.error("table_not_restored", table=definition.name, reason=filling.failure)
                await self._give_up(table)
            return GONE
        # The scan must not put items into a table that has other writers.
        await self._stop_filling(table)
        if definition.global_indexes:
            await self._begin_indexes(table)
            phase = "INDEXES"
        else:
            phase = await self._end(table)
        await self._delete_copy(definition)
        return phase

    async def _stop_filling(self, table: Table) -> None:
        filling = self._fillings.pop(table.definition.table_id, None)
        if filling is not None:
            await self._supervisor.stop(filling.scan)

    async def _wait_for_indexes(self, table: Table, over: Callable[[], None]) -> None:
        self._indexes_over[table.definition.table_id] = over
        self._check_indexes(table)

    async def _begin_indexes(self, table: Table) -> None:
        definition = _in_phase(table.definition, "INDEXES")
        definition = structs.replace(
            definition,
            global_indexes=tuple(
                structs.replace(index, backfilling=True) for index in definition.global_indexes
            ),
        )

        def storing(record: TableRecord, counters: Mapping[int, int]) -> CommittedDefinition:
            checkpoints = [
                row
                for index in definition.global_indexes
                for row in first_checkpoints(
                    index_subscriber(definition.table_id, index.definition.index_id),
                    counters,
                )
            ]
            return CommittedDefinition(
                record,
                [*checkpoints, *(self._imports.loaded(table) if _is_imported(table) else ())],
                [key_layout.filling_cursor(definition.table_id)],
            )

        content = self._imports.heads(table) if _is_imported(table) else None
        await definition_commit.redefine(self._owner, table, definition, storing, content)

    async def _end(self, table: Table) -> str:
        """Open the table to all clients; its followers start before that."""
        whole = _in_phase(table.definition, "DONE")
        topic = self._destinations.wanted(whole)
        if topic is not None:
            await self._destinations.enable(table, EnableDestination(whole.name, topic))
            whole = _in_phase(table.definition, "DONE")
        imported = self._imports.completed(table) if _is_imported(table) else None
        is_loaded = imported is not None and table.definition.restore_phase == "ITEMS"
        await definition_commit.redefine(
            self._owner,
            table,
            structs.replace(whole, status="ACTIVE"),
            lambda record, _: CommittedDefinition(
                record,
                [] if imported is None else [transfers.import_row(imported)],
                [key_layout.filling_cursor(whole.table_id)],
            ),
            self._imports.heads(table) if is_loaded else None,
        )
        self._indexes_over.pop(whole.table_id, None)
        if imported is None:
            _log.info("table_restored", table=whole.name)
        else:
            self._imports.remember(imported)
        return "DONE"


def _backup_id(table: Table) -> TableBackupId:
    restoration = table.definition.restoration
    assert restoration is not None
    return TableBackupId(restoration.source_table, restoration.backup_label)


def _is_restoring(table: Table) -> bool:
    return table.definition.restore_phase != "DONE" and not _is_imported(table)


def _is_imported(table: Table) -> bool:
    restoration = table.definition.restoration
    return restoration is not None and restoration.import_id is not None


def _in_phase(definition: TableDefinition, phase: RestorePhase) -> TableDefinition:
    restoration = definition.restoration
    assert restoration is not None
    return structs.replace(definition, restoration=structs.replace(restoration, phase=phase))
