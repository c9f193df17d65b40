"""Creates exports of tables, and moves them through their phases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import structlog
from msgspec import structs

from dynactor.actors.backups.backup_copies import PastState
from dynactor.actors.backups.point_in_time import RecoverySwitch
from dynactor.actors.backups.table_backups import TableBackups
from dynactor.actors.followers.pacing import Pacing
from dynactor.actors.followers.phase_scan import PhaseScan
from dynactor.actors.parts.long_work import Pieces
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.parts.phase_machine import Phase, PhaseMachine, Subject
from dynactor.actors.phases.streams import StreamRegistry
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.table import Table
from dynactor.actors.transfers.export_files import ExportFiles
from dynactor.actors.transfers.kept_transfers import KeptTransfers
from dynactor.actors.transfers.transfer_buckets import TransferBuckets
from dynactor.model.access.bucket_grant import BucketGrant
from dynactor.model.errors import (
    ExportConflictException,
    InvalidExportTimeException,
    InvalidRestoreTimeException,
    LimitExceededException,
    ResourceNotFoundException,
    TableNotFoundException,
)
from dynactor.model.limits import (
    EXPORTS,
    INCREMENTAL_EXPORT_SECONDS,
)
from dynactor.model.tables.table_backup import TableBackup, TableBackupId
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.model.transfers.table_export import TableExport
from dynactor.storage import key_layout, transfers
from dynactor.storage.catalog import Catalog
from dynactor.storage.store import Row, StoreError

# A client names the present time a moment before its request arrives.
_PAST_SECONDS: Final = 5.0

_log = structlog.get_logger("actors")


class ExportTable(Message[TableExport], frozen=True):
    """Export a table; it will contain all writes that were answered before.

    ``request`` has the members of the request, with their wire names. ``grant`` has the objects
    that the caller may use; None without policies. Raises ``TableNotFoundException``,
    ``ExportConflictException`` if the client token was used for another export,
    ``InvalidExportTimeException``, ``PointInTimeRecoveryUnavailableException``, or
    ``LimitExceededException`` if too many exports are in progress.
    """

    table_name: str
    request: dict[str, Any]
    grant: BucketGrant | None = None


class CancelExport(Message[TableExport], frozen=True):
    """Stop an export, for an operator. It ends FAILED, because DynamoDB cancels no exports.

    The reply is the export as it was if it is over. Raises ``ResourceNotFoundException``.
    """

    export_id: str


class TableExports(Part):
    """Creates and lists exports. Invariant: every export in memory is durable."""

    is_leaders = True

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._backups = parts[TableBackups]
        self._recovery = parts[RecoverySwitch]
        self._streams = parts[StreamRegistry]
        self._buckets = parts[TransferBuckets].buckets
        self._backups.add_use(self._used_rows_ids)
        self.handlers = {ExportTable: self._begin, CancelExport: self._cancel}
        self._machine = PhaseMachine(
            "export",
            {
                "COPYING": Phase(("WRITING", "FAILED"), self._wait_for_copy, leave=self._end_copy),
                "WRITING": Phase(("COMPLETED", "FAILED"), self._write, leave=self._end_files),
                "COMPLETED": Phase(),
                "FAILED": Phase(),
            },
            find=self._find,
            stored_phase=lambda export: export.phase,
            tell=parts.tell_later,
            part_ids=None,
        )
        self.machines = [self._machine]
        self._exports: KeptTransfers[TableExport] = KeptTransfers(
            self._clock,
            parts.environment.randomness,
            key=transfers.export_key,
            since=lambda one: one.ended_epoch_seconds,
        )
        self._writings: dict[str, PhaseScan[ExportFiles]] = {}

    # -- for requests -----------------------------------------------------------------------

    def find(self, export_id: str) -> TableExport | None:
        """The export with this id, unless it was forgotten."""
        return self._exports.find(export_id)

    @property
    def exports(self) -> Sequence[TableExport]:
        """The exports of the last 90 days, the newest first."""
        return self._exports.listed

    # -- for the database's actor -------------------------------------------------------------

    async def adopt(self, _loaded: Catalog) -> None:
        """Load the stored exports, after the backups; continue those that are in progress."""
        await self.close()
        stored = await transfers.load_exports(self._store.latest)
        self._exports.load((each.export_id, each) for each in stored)
        for export in self._exports:
            await self._machine.resume(_subject(export))

    async def keep(self, _now_epoch_seconds: float) -> Pieces:
        """Delete the records of exports that ended more than 90 days ago."""
        await self._exports.forget_old(self._owner)
        yield

    async def _begin(self, message: ExportTable) -> TableExport:
        conflict = "The client token was used for an export with other parameters"
        same = self._exports.with_same_token(message.request, ExportConflictException(conflict))
        if same is not None:
            return same
        table = self._tables.get(message.table_name)
        if table is None or table.definition.status in ("CREATING", "DELETING"):
            arn = f"{self._settings.table_arns}{message.table_name}"
            raise TableNotFoundException(f"Table not found: {arn}")
        # The default end of a period: the answer has it, and the next period begins there.
        export_id, now = self._exports.new_id()
        past = await self._past(table, message.request, now)
        if sum(export.status == "IN_PROGRESS" for export in self._exports) >= EXPORTS:
            raise LimitExceededException(
                f"Subscriber limit exceeded: Only {EXPORTS} tables can be exported simultaneously"
            )
        is_past = past is not None and past.until_us is None
        exported = past.epoch_us / MICROSECONDS_PER_SECOND if past and is_past else now
        starts = tuple(partition.start for partition in table.record.partitions)

        def backup_export(backup: TableBackup) -> TableExport:
            return TableExport(
                export_id,
                message.table_name,
                table.definition.uuid,
                backup.rows_id,
                message.request,
                now,
                exported,
                backup.label,
                starts,
                grant=message.grant,
            )

        backup = await self._backups.create_internal(
            table, lambda backup: [transfers.export_row(backup_export(backup))], past
        )
        export = self._exports[export_id] = backup_export(backup)
        await self._machine.resume(_subject(export))
        await self._streams.attach_logs(table)
        return export

    async def _cancel(self, message: CancelExport) -> TableExport:
        export = self.find(message.export_id)
        if export is None:
            raise ResourceNotFoundException(f"There is no export {message.export_id}")
        if export.status != "IN_PROGRESS":
            return export
        self._machine.forget(export.rows_id)
        writing = self._writings.pop(export.export_id, None)
        try:
            if writing is not None:
                await self._supervisor.stop(writing.scan)
            else:
                await self._backups.abandon(_backup_id(export))
            await self._fail(export, "ExportCancelled", "An operator canceled the export")
        except StoreError:
            await self._machine.resume(_subject(export))
            raise
        return self._exports[export.export_id]

    async def _past(
        self, table: Table, request: dict[str, Any], now_epoch_seconds: float
    ) -> PastState | None:
        """The past state or the changes to export; None for the present state."""
        if request.get("ExportType") == "INCREMENTAL_EXPORT":
            period = request["IncrementalExportSpecification"]
            end = period.get("ExportToTime", now_epoch_seconds)
            return await self._changes(table, period["ExportFromTime"], end)
        wanted = request.get("ExportTime")
        return None if wanted is None else await self._past_state(table, wanted)

    async def _changes(self, table: Table, begin: float, end: float) -> PastState:
        """The changes of a period in the recovery window.

        Raises ``InvalidExportTimeException`` if it is too short, too long or outside of the window.
        """
        least, most = INCREMENTAL_EXPORT_SECONDS
        difference = "Difference between export period from time and export period to time is"
        if end - begin < least:
            raise InvalidExportTimeException(f"{difference} less than 15 minutes")
        if end - begin > most:
            # The text is inferred from the other one.
            raise InvalidExportTimeException(f"{difference} greater than 24 hours")
        if end > self._clock.now_epoch_seconds():
            raise InvalidExportTimeException("The specified ExportToTime is in the future")
        past = await self._in_window(table, begin, is_before=True)
        until_us = round(end * MICROSECONDS_PER_SECOND)
        return PastState(past.epoch_us, past.positions, until_us)

    async def _past_state(self, table: Table, wanted_epoch_seconds: float) -> PastState | None:
        """The state at a time in the recovery window; None for the present.

        Without point-in-time recovery the time must be the present.
        """
        now = self._clock.now_epoch_seconds()
        if wanted_epoch_seconds > now:
            raise InvalidExportTimeException("The specified ExportTime is in the future")
        is_recoverable = table.definition.point_in_time_recovery is not None
        if not is_recoverable and now - _PAST_SECONDS <= wanted_epoch_seconds:
            return None
        return await self._in_window(table, wanted_epoch_seconds)

    async def _in_window(
        self, table: Table, epoch_seconds: float, *, is_before: bool = False
    ) -> PastState:
        try:
            return await self._recovery.past_state(
                table.definition.name, epoch_seconds, is_before=is_before
            )
        except InvalidRestoreTimeException:
            raise InvalidExportTimeException(
                "The specified ExportTime is outside of the point in time recovery window"
            ) from None

    def _used_rows_ids(self) -> set[int]:
        """The rows of the backups that exports in progress still need."""
        return {each.rows_id for each in self._exports if each.status == "IN_PROGRESS"}

    async def close(self) -> None:
        """Stop writing files; the next start begins them again."""
        writings, self._writings = self._writings, {}
        for writing in writings.values():
            await self._supervisor.stop(writing.scan)

    # -- phases -----------------------------------------------------------------------------

    def _find(self, subject: Subject) -> TableExport | None:
        for export in self._exports:
            if export.rows_id == subject.part_id:
                return export
        return None

    async def _wait_for_copy(self, export: TableExport, over: Callable[[], None]) -> None:
        self._backups.when_over(_backup_id(export), over)

    async def _end_copy(self, export: TableExport) -> str:
        if self._backups.find_internal(_backup_id(export)) is None:
            return await self._fail(export, "InternalServerError", "The table can't be copied")
        await self._store_export(structs.replace(export, phase="WRITING"))
        return "WRITING"

    async def _write(self, export: TableExport, over: Callable[[], None]) -> None:
        files = ExportFiles(
            export, self._settings.table_arns + export.table_name, self._buckets, self._clock
        )
        writing = PhaseScan(
            f"export {export.export_id} of {export.table_name}",
            export.rows_id,
            key_layout.filling_cursor(export.rows_id),
            files,
            self._store,
            pacing=Pacing(self._tables.consumed_units),
            over=over,
        )
        self._writings[export.export_id] = writing
        self._supervisor.start(writing.scan)

    async def _end_files(self, export: TableExport) -> str:
        writing = self._writings[export.export_id]
        if writing.failure is not None:
            error = writing.sink.failure
            code = "InternalServerError" if error is None else error.code
            phase = await self._fail(export, code, writing.failure)
        else:
            phase = "COMPLETED"
            done = structs.replace(writing.sink.export, phase="COMPLETED")
            await self._store_export(done, is_over=True)
            _log.info(
                "table_exported",
                table=export.table_name,
                export=export.export_id,
                items=done.item_count,
            )
        del self._writings[export.export_id]
        return phase

    async def _fail(self, export: TableExport, code: str, message: str) -> str:
        failed = structs.replace(
            export,
            phase="FAILED",
            ended_epoch_seconds=self._clock.now_epoch_seconds(),
            failure_code=code,
            failure_message=message,
        )
        await self._store_export(failed, is_over=True)
        _log.error(
            "table_export_failed",
            table=export.table_name,
            export=export.export_id,
            code=code,
            reason=message,
        )
        return "FAILED"

    async def _store_export(self, export: TableExport, *, is_over: bool = False) -> None:
        """Store an export, and delete its internal backup if the export is over."""
        row: list[Row] = [transfers.export_row(export)]
        if is_over:
            await self._backups.delete_internal(_backup_id(export), row)
        else:
            await self._owner.change(puts=row)
        self._exports[export.export_id] = export


def _backup_id(export: TableExport) -> TableBackupId:
    return TableBackupId(export.table_name, export.backup_label)


def _subject(export: TableExport) -> Subject:
    return Subject(export.rows_id, export.table_name, export.rows_id)
