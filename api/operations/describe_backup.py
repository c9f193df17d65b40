"""DescribeBackup."""

from __future__ import annotations

from msgspec import json

from dynactor.api.access import asks
from dynactor.api.answers import table_backup
from dynactor.api.execution.operation import Effect, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import DescribeBackupInput


def handle(call: Call[DescribeBackupInput]) -> bytes:
    """Show a backup and the definition of its table."""
    backup = table_backup.find(call.database, call.request.BackupArn)
    return json.encode({"BackupDescription": table_backup.description(call.database, backup)})


OPERATION = Operation(
    DescribeBackupInput, handle, asks=asks.member("BackupArn"), effect=Effect.DESCRIBES
)
