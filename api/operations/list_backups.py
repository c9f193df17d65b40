"""ListBackups."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from msgspec import json

from dynactor.actors.backups.table_backups import TableBackups
from dynactor.api.access import asks
from dynactor.api.answers import table_backup
from dynactor.api.answers.table_description import backup_arn
from dynactor.api.execution.operation import Effect, Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.foreign_arns import BACKUP_ARN_ERRORS
from dynactor.api.requests.inputs import ListBackupsInput
from dynactor.api.requests.table_arn import table_name
from dynactor.model.limits import LIST_BACKUPS_PAGE
from dynactor.model.tables.table_backup import TableBackup


def handle(call: Call[ListBackupsInput]) -> bytes:
    """A page of the backups by table and time; the start backup may have been deleted."""
    request, database = call.request, call.database
    found = _matching(request, database.part(TableBackups).backups)
    first = 0
    if request.ExclusiveStartBackupArn is not None:
        start = table_backup.named(request.ExclusiveStartBackupArn)
        first = bisect_right(found, start, key=lambda backup: backup.backup_id)
    page = found[first : first + (request.Limit or LIST_BACKUPS_PAGE)]
    answer: dict[str, Any] = {
        "BackupSummaries": [table_backup.summary(database, backup) for backup in page]
    }
    if first + len(page) < len(found):
        answer["LastEvaluatedBackupArn"] = backup_arn(database, page[-1].backup_id)
    return json.encode(answer)


def _matching(request: ListBackupsInput, backups: Sequence[TableBackup]) -> list[TableBackup]:
    name = None if request.TableName is None else table_name(request.TableName)
    kind = request.BackupType or "USER"
    lower, upper = request.TimeRangeLowerBound, request.TimeRangeUpperBound
    return [
        backup
        for backup in backups
        if kind in ("ALL", "SYSTEM" if backup.is_system else "USER")
        and (name is None or backup.definition.name == name)
        and (lower is None or backup.created_epoch_seconds >= lower)
        and (upper is None or backup.created_epoch_seconds < upper)
    ]


OPERATION = Operation(
    ListBackupsInput,
    handle,
    asks=asks.no_resource,
    effect=Effect.DESCRIBES,
    location=Location.LEADER,
    arn_errors=BACKUP_ARN_ERRORS,
)
