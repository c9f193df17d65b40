"""RestoreTableFromBackup."""

from __future__ import annotations

from msgspec import json

from dynactor.api.answers import table_backup
from dynactor.api.answers.table_description import table_description
from dynactor.api.requests import shapes
from dynactor.api.requests.operation import Call, Operation
from dynactor.api.requests.restore_request import RestoreShape, restore_overrides
from dynactor.model.tables.restore_rules import restored


class RestoreTableFromBackupInput(RestoreShape, frozen=True):
    """The members of RestoreTableFromBackup."""

    BackupArn: shapes.BackupArn


async def handle(call: Call[RestoreTableFromBackupInput]) -> bytes:
    """Start to restore a table from a backup; the table becomes ACTIVE when it is complete."""
    request, database = call.request, call.database
    backup = table_backup.find(database, request.BackupArn)
    definition = restored(
        backup.definition,
        request.TargetTableName,
        restore_overrides(request),
        call.database.settings.region,
    )
    state = await database.restore_table(definition, backup.backup_id, request.BackupArn)
    return json.encode({"TableDescription": table_description(database, state)})


OPERATION = Operation("RestoreTableFromBackup", RestoreTableFromBackupInput, handle)
