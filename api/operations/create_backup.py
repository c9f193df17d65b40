"""CreateBackup."""

from __future__ import annotations

from msgspec import json

from dynactor.actors.backups.messages import CreateTableBackup
from dynactor.api.access import asks
from dynactor.api.answers import table_backup
from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.foreign_arns import BACKUP_ARN_ERRORS
from dynactor.api.requests.inputs import CreateBackupInput
from dynactor.api.requests.table_arn import table_name


async def handle(call: Call[CreateBackupInput]) -> bytes:
    """Start a backup of a table; names need not be unique."""
    request = call.request
    name = table_name(request.TableName)
    backup = await call.database.ask(CreateTableBackup(name, request.BackupName))
    return json.encode({"BackupDetails": table_backup.details(call.database, backup)})


OPERATION = Operation(CreateBackupInput, handle, asks=asks.table, arn_errors=BACKUP_ARN_ERRORS)
