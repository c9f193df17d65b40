"""RestoreTableFromBackup."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import json

from dynactor.actors.restores.restore_phases import RestoreTable
from dynactor.api.access import asks
from dynactor.api.access.ask import Ask, Asking
from dynactor.api.answers import table_backup
from dynactor.api.answers.table_description import table_description
from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.foreign_arns import RESTORE_ARN_ERRORS
from dynactor.api.requests.inputs import RestoreTableFromBackupInput
from dynactor.api.requests.restore_request import restore_overrides
from dynactor.model.tables.restore_rules import restored


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
    state = await database.ask(RestoreTable(definition, backup.backup_id, request.BackupArn))
    return json.encode({"TableDescription": table_description(database, state)})


def _asks(asking: Asking) -> Iterator[Ask]:
    """The backup, and the new table."""
    yield from asks.member("BackupArn")(asking)
    yield from asks.restored_table(asking)


OPERATION = Operation(
    RestoreTableFromBackupInput, handle, asks=_asks, arn_errors=RESTORE_ARN_ERRORS
)
