"""DeleteBackup."""

from __future__ import annotations

from msgspec import json

from dynactor.actors.backups.messages import DeleteTableBackup
from dynactor.api.access import asks
from dynactor.api.answers import table_backup
from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import DeleteBackupInput


async def handle(call: Call[DeleteBackupInput]) -> bytes:
    """Delete a complete backup that no restore uses; return its description."""
    database, arn = call.database, call.request.BackupArn
    backup = await database.ask(DeleteTableBackup(table_backup.named(arn), arn))
    return json.encode({"BackupDescription": table_backup.description(database, backup, "DELETED")})


OPERATION = Operation(DeleteBackupInput, handle, asks=asks.member("BackupArn"))
