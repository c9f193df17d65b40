"""Creates, lists and deletes backups of tables.

A backup is CREATING while its items are copied, and AVAILABLE once all of them are durable. Until
then neither its table nor the backup can be deleted. A backup that fails, because the disk is full
or the table's rows can't be read, is deleted, and the log reports it.

The commit that creates a backup stores its positions in the logs, as the checkpoints of a
subscriber. While the backup is CREATING, its table's changes are recorded, and the logs are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import structlog
from msgspec import structs

from dynactor.actors.backups.backup_copies import CopyRun, KeptLogs, PastState, backup_subscriber
from dynactor.actors.backups.messages import CreateTableBackup, DeleteTableBackup
from dynactor.actors.catalog import definition_commit
from dynactor.actors.catalog.definition_commit import CommittedDefinition
from dynactor.actors.followers.pacing import Pacing
from dynactor.actors.followers.stored_checkpoint import first_checkpoints
from dynactor.actors.followers.table_copy import stored_positions
from dynactor.actors.parts.long_work import Pieces, chained
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.parts.phase_machine import GONE, Phase, PhaseMachine, Subject
from dynactor.actors.phases.space_reclaim import LARGE_BYTES, SpaceReclaimer, reclaim_row
from dynactor.actors.phases.streams import StreamRegistry
from dynactor.actors.table.state import table_state
from dynactor.actors.table.table import Table
from dynactor.model.errors import (
    BackupInUseException,
    BackupNotFoundException,
    ResourceInUseException,
    TableInUseException,
    TableNotFoundException,
    ValidationException,
)
from dynactor.model.tables.table_backup import (
    SYSTEM_SUFFIX,
    TableBackup,
    TableBackupId,
    backup_label,
    is_restoring,
)
from dynactor.model.tables.table_rules import in_use
from dynactor.storage import key_layout, table_backups
from dynactor.storage.catalog import Catalog, TableRecord
from dynactor.storage.store import Row

_MILLISECONDS: Final = 1_000
_SUFFIX_BYTES: Final = 4

_log = structlog.get_logger("actors")


class TableBackups(Part):
    """Creates, lists and deletes backups. Invariant: every backup in memory is durable."""

    is_leaders = True

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._randomness = parts.environment.randomness
        self._space = parts[SpaceReclaimer]
        self._streams = parts[StreamRegistry]
        self.handlers = {CreateTableBackup: self._create, DeleteTableBackup: self._delete}
        self._machine = PhaseMachine(
            "backup",
            {
                "CREATING": Phase(("AVAILABLE", GONE), self._begin_copy, leave=self._end_copy),
                "AVAILABLE": Phase(),
            },
            find=self._find,
            stored_phase=lambda backup: backup.status,
            tell=parts.tell_later,
            part_ids=None,
        )
        self.machines = [self._machine]
        self._backups: dict[TableBackupId, TableBackup] = {}
        self._copies: dict[TableBackupId, CopyRun] = {}
        # Called when a backup is AVAILABLE, or has failed.
        self._when_over: dict[TableBackupId, Callable[[], None]] = {}
        # Each returns the rows of the internal backups that it uses.
        self._uses: list[Callable[[], Collection[int]]] = []

    # -- for requests -----------------------------------------------------------------------

    def find(self, backup_id: TableBackupId) -> TableBackup | None:
        """The backup with this id, if it exists and clients may see it."""
        backup = self._backups.get(backup_id)
        return None if backup is None or backup.is_internal else backup

    @property
    def backups(self) -> Sequence[TableBackup]:
        """All backups that clients may see, sorted by their ids."""
        return [
            self._backups[backup_id]
            for backup_id in sorted(self._backups)
            if not self._backups[backup_id].is_internal
        ]

    # -- for the database's actor -------------------------------------------------------------

    def add_use(self, used_rows_ids: Callable[[], Collection[int]]) -> None:
        """Keep the internal backups with these ids of rows."""
        self._uses.append(used_rows_ids)

    async def load(self, _loaded: Catalog) -> None:
        """Load the stored backups, before the tables are resumed."""
        stored = await table_backups.load(self._store.latest)
        self._backups = {each.backup_id: each for each in stored}
        # Keep the copies of backups that are still CREATING. If the actor crashed when a copy
        # ended, the items need not be copied again.
        self._copies = {
            backup_id: copy
            for backup_id, copy in self._copies.items()
            if (backup := self._backups.get(backup_id)) and backup.status == "CREATING"
        }
        self._when_over.clear()

    async def adopt(self, _loaded: Catalog) -> None:
        """Continue the backups that are CREATING."""
        for backup in list(self._backups.values()):
            await self._machine.resume(_subject(backup))

    async def _create(self, message: CreateTableBackup) -> TableBackup:
        """Start a backup of a table, as the table is when the backup's record is stored."""
        table = self._tables.get(message.table_name)
        if table is None:
            raise TableNotFoundException(f"Table not found: {message.table_name}")
        definition = table.definition
        if definition.status == "CREATING":
            raise TableNotFoundException(f"Table not found: {message.table_name}")
        if definition.status == "DELETING":
            raise TableInUseException(in_use(definition).message)
        backup = await self._new_backup(message.name, table)
        await self._begin(table, backup)
        await self._streams.attach_logs(table)
        return backup

    async def create_internal(
        self,
        table: Table,
        also: Callable[[TableBackup], Sequence[Row]] = lambda _: (),
        past: PastState | None = None,
    ) -> TableBackup:
        """Start a backup that clients don't see, and store other rows in the same commit.

        With ``past`` it is a backup of the table as it was at an earlier time, or of its changes
        since then. After ``StoreError``, nothing was changed.
        """
        backup = structs.replace(
            await self._new_backup("", table),
            is_internal=True,
            state_epoch_us=None if past is None else past.epoch_us,
            changes_until_us=None if past is None else past.until_us,
        )
        await self._begin(table, backup, also(backup), past)
        return backup

    async def last_state(self, table: Table) -> TableBackup:
        """The backup that keeps the items of a table with point-in-time recovery at its deletion.

        The backup takes over the table's rows, so nothing is copied.
        """
        name = f"{table.definition.name}$DeletedTableBackup"
        return structs.replace(
            await self._new_backup(name, table, SYSTEM_SUFFIX),
            rows_id=table.definition.table_id,
            status="AVAILABLE",
            is_system=True,
        )

    def remember(self, backup: TableBackup) -> None:
        """Keep a backup that was stored with the deletion of its table."""
        self._backups[backup.backup_id] = backup

    async def keep(self, now_epoch_seconds: float) -> Pieces:
        """Delete backups that are past their time, and internal ones that nothing uses."""
        async for _ in chained(self._expire(now_epoch_seconds), self._delete_unused()):
            yield

    async def _expire(self, now_epoch_seconds: float) -> Pieces:
        for backup in list(self._backups.values()):
            if backup.backup_id not in self._backups:
                continue
            expires = backup.expires_epoch_seconds
            is_read = any(is_restoring(table.definition, backup) for table in self._tables.values())
            if expires is not None and expires <= now_epoch_seconds and not is_read:
                await self._delete_rows(backup)
                yield

    async def _delete_unused(self) -> Pieces:
        for backup in list(self._backups.values()):
            if backup.is_internal and not any(backup.rows_id in used() for used in self._uses):
                await self.abandon(backup.backup_id)
                yield

    async def abandon(self, backup_id: TableBackupId) -> None:
        """Delete an internal backup in any state; after ``StoreError``, nothing was changed."""
        backup = self._backups.get(backup_id)
        if backup is None:
            return
        copy = self._copies.pop(backup_id, None)
        if copy is not None:
            await self._supervisor.stop(copy.actor)
        self._when_over.pop(backup_id, None)
        await self._delete_rows(backup)

    def find_internal(self, backup_id: TableBackupId) -> TableBackup | None:
        """A backup that clients don't see; None if it has failed."""
        return self._backups.get(backup_id)

    def when_over(self, backup_id: TableBackupId, over: Callable[[], None]) -> None:
        """Call ``over`` once a backup is AVAILABLE, or has failed."""
        backup = self._backups.get(backup_id)
        if backup is None or backup.status == "AVAILABLE":
            over()
        else:
            self._when_over[backup_id] = over

    async def delete_internal(self, backup_id: TableBackupId, puts: Sequence[Row]) -> None:
        """Store rows, and delete an internal backup, if any; ``StoreError`` changes nothing."""
        backup = self._backups.get(backup_id)
        if backup is None:
            await self._owner.change(puts=puts)
        else:
            await self._delete_rows(backup, puts)

    async def _delete(self, message: DeleteTableBackup) -> TableBackup:
        backup = self._backups.get(message.backup_id)
        if backup is None:
            raise BackupNotFoundException(f"Backup not found: {message.arn}")
        if backup.is_system:
            raise ValidationException(
                f"User is not allowed to delete the system backup: {message.arn}"
            )
        if self._is_being_made(backup):
            raise BackupInUseException(f"Backup is being created: {message.arn}")
        if any(is_restoring(table.definition, backup) for table in self._tables.values()):
            raise BackupInUseException(f"Backup is being restored to a table: {message.arn}")
        await self._delete_rows(backup)
        return backup

    def check_deletable(self, table: Table) -> None:
        """Refuse to delete a table while a backup of it is being created (Developer Guide).

        Raises ``ResourceInUseException`` if there is such a backup.
        """
        definition = table.definition
        for backup in self._backups.values():
            if backup.definition.table_id == definition.table_id and self._is_being_made(backup):
                raise ResourceInUseException(
                    "Attempt to change a resource which is still in use: Table is being backed "
                    f"up: {definition.name}"
                )

    def may_move(self, table: Table) -> bool:
        """Whether no backup of the table, also no internal one, is being created."""
        return not any(
            backup.definition.table_id == table.definition.table_id and backup.status == "CREATING"
            for backup in self._backups.values()
        )

    async def close(self) -> None:
        """Stop all copies; the next start begins them again."""
        copies, self._copies = self._copies, {}
        for copy in copies.values():
            await self._supervisor.stop(copy.actor)

    # -- parts ------------------------------------------------------------------------------

    async def _begin(
        self,
        table: Table,
        backup: TableBackup,
        also: Sequence[Row] = (),
        past: PastState | None = None,
    ) -> None:
        puts = [table_backups.row(backup), *also]
        await self._record(table, backup, is_new=True, puts=puts, past=past)
        self._backups[backup.backup_id] = backup
        await self._machine.resume(_subject(backup))

    async def _new_backup(self, name: str, table: Table, suffix: str | None = None) -> TableBackup:
        state = await table_state(table)
        # Round down to milliseconds, as answers do. Otherwise a client that lists backups up to
        # this time would miss this one.
        now_milliseconds = int(self._clock.now_epoch_seconds() * _MILLISECONDS)
        while True:
            backup = TableBackup(
                backup_label(
                    now_milliseconds, suffix or self._randomness.randbytes(_SUFFIX_BYTES).hex()
                ),
                name,
                self._owner.head.next_table_id,
                table.definition,
                now_milliseconds / _MILLISECONDS,
                state.item_count,
                state.size_bytes,
            )
            if backup.backup_id not in self._backups:
                return backup
            if suffix is not None:
                now_milliseconds += 1

    def _find(self, subject: Subject) -> TableBackup | None:
        for backup in self._backups.values():
            if backup.rows_id == subject.part_id:
                return backup
        return None

    async def _begin_copy(self, backup: TableBackup, over: Callable[[], None]) -> None:
        copy = self._copies.get(backup.backup_id)
        if copy is None:
            pacing = Pacing(self._tables.consumed_units)
            copy = self._copies[backup.backup_id] = CopyRun(backup, self._store, pacing)
            table = self._table(backup)
            if table is None:
                copy.failure, copy.is_over = "its table is gone", True
            else:
                if not await stored_positions(self._store.latest, backup_subscriber(backup)):
                    # An earlier version has stored the backup.
                    await self._record(table, backup)
                self._supervisor.start(copy.actor)
        self._keep_logs(backup)
        copy.over = over
        if copy.is_over:
            over()

    async def _end_copy(self, backup: TableBackup) -> str | None:
        """Make a backup AVAILABLE, or delete it if it failed."""
        copy = self._copies[backup.backup_id]
        if copy.failure is not None:
            _log.error(
                "table_backup_failed",
                table=backup.definition.name,
                backup=backup.name,
                reason=copy.failure,
            )
            await self._delete_rows(backup)
            del self._copies[backup.backup_id]
            self._report_over(backup)
            return GONE
        backup = structs.replace(
            backup,
            status="AVAILABLE",
            item_count=copy.rows.item_count,
            size_bytes=copy.rows.size_bytes,
        )
        await self._end(
            backup,
            puts=[table_backups.row(backup)],
            deletes=[key_layout.filling_cursor(backup.rows_id)],
        )
        self._backups[backup.backup_id] = backup
        del self._copies[backup.backup_id]
        self._report_over(backup)
        return "AVAILABLE"

    def _report_over(self, backup: TableBackup) -> None:
        over = self._when_over.pop(backup.backup_id, None)
        if over is not None:
            over()

    def _is_being_made(self, backup: TableBackup) -> bool:
        """Whether the backup is being created; False if the actor that copies it was abandoned."""
        copy = self._copies.get(backup.backup_id)
        return copy is not None and not copy.actor.mailbox.closed

    async def _delete_rows(self, backup: TableBackup, puts: Sequence[Row] = ()) -> None:
        rows = key_layout.table_range(backup.rows_id)
        is_large = backup.size_bytes >= LARGE_BYTES
        await self._end(
            backup,
            puts=[*puts, reclaim_row(rows)] if is_large else puts,
            deletes=[
                key_layout.table_backup(backup.backup_id),
                key_layout.filling_cursor(backup.rows_id),
            ],
            discards=[rows],
        )
        del self._backups[backup.backup_id]
        if is_large:
            self._space.begin(rows)

    # -- changes since a backup's moment ---------------------------------------------------------

    def _table(self, backup: TableBackup) -> Table | None:
        """The table that a backup is of, if it still exists."""
        return self._tables.same(backup.definition.name, backup.definition.table_id)

    def _keep_logs(self, backup: TableBackup) -> None:
        table, subscriber = self._table(backup), backup_subscriber(backup)
        if table is not None and table.followers.following(subscriber) is None:
            table.followers.attach(subscriber, KeptLogs())

    async def _record(
        self,
        table: Table,
        backup: TableBackup,
        *,
        is_new: bool = False,
        puts: Sequence[tuple[bytes, bytes]] = (),
        past: PastState | None = None,
    ) -> None:
        """Record a table's changes from now on, and store the positions of a backup, in one commit.

        ``is_new``: the commit also assigns the id of the backup's rows. ``past`` has earlier
        positions, from which on the logs are kept. After ``StoreError``, nothing was changed, or
        the outcome is ``Unknown``.
        """
        subscriber = backup_subscriber(backup)

        def storing(record: TableRecord, counters: Mapping[int, int]) -> CommittedDefinition:
            positions = counters if past is None else past.positions
            # Other nodes may have assigned numbers since an earlier attempt.
            head = structs.replace(self._owner.head, next_table_id=backup.rows_id + 1)
            return CommittedDefinition(
                definition_commit.with_follower(record, subscriber, positions),
                puts=[*puts, *first_checkpoints(subscriber, positions)],
                catalog_head=head if is_new else None,
            )

        definition = structs.replace(table.definition, is_backed_up=True)
        await definition_commit.redefine(self._owner, table, definition, storing)

    async def _end(
        self,
        backup: TableBackup,
        *,
        puts: Sequence[tuple[bytes, bytes]],
        deletes: Sequence[bytes],
        discards: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """Store a backup's end, and stop recording changes for it; raises ``StoreError``."""
        table, subscriber = self._table(backup), backup_subscriber(backup)
        stored = self._backups[backup.backup_id]
        if table is None or stored.status == "AVAILABLE":
            await self._owner.change(puts=puts, deletes=deletes, discards=discards)
            return

        def storing(record: TableRecord, _counters: Mapping[int, int]) -> CommittedDefinition:
            return CommittedDefinition(
                definition_commit.without_followers(record, [subscriber]),
                puts=puts,
                deletes=deletes,
                range_deletes=[key_layout.subscriber_checkpoints(subscriber)],
                discards=discards,
            )

        others = (
            each
            for each in self._backups.values()
            if each.status == "CREATING" and each.rows_id != backup.rows_id
        )
        is_backed_up = any(self._table(each) is table for each in others)
        definition = structs.replace(table.definition, is_backed_up=is_backed_up)
        await definition_commit.redefine(self._owner, table, definition, storing)
        await table.followers.detach(subscriber)


def _subject(backup: TableBackup) -> Subject:
    return Subject(backup.definition.table_id, backup.definition.name, backup.rows_id)
