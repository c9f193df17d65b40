"""The messages about backups of tables, handled by the database's actor."""

from __future__ import annotations

from dynactor.actors.runtime.mailbox import Message
from dynactor.model.tables.table_backup import (
    TableBackup,
    TableBackupId,
)


class CreateTableBackup(Message[TableBackup], frozen=True):
    """Start a backup of a table; it will contain all writes that were answered before.

    Raises ``TableNotFoundException`` or ``TableInUseException``.
    """

    table_name: str
    name: str


class DeleteTableBackup(Message[TableBackup], frozen=True):
    """Delete a backup of a table; the reply is its last description. Errors name it by its ARN.

    Tables that were restored from it keep their items. Raises ``ValidationException`` for a backup
    of the system, ``BackupNotFoundException``, or ``BackupInUseException`` while it is being
    created or restored.
    """

    backup_id: TableBackupId
    arn: str
