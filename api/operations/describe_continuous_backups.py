"""DescribeContinuousBackups."""

from __future__ import annotations

from dynactor.api.access import asks
from dynactor.api.answers import continuous_backups
from dynactor.api.execution.operation import Effect, Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.foreign_arns import BACKUP_ARN_ERRORS
from dynactor.api.requests.inputs import DescribeContinuousBackupsInput
from dynactor.api.requests.table_arn import table_name


def handle(call: Call[DescribeContinuousBackupsInput]) -> bytes:
    """Show the window of times to which a table can be restored."""
    return continuous_backups.describe(call.database, table_name(call.request.TableName))


OPERATION = Operation(
    DescribeContinuousBackupsInput,
    handle,
    asks=asks.table,
    effect=Effect.DESCRIBES,
    location=Location.HOME,
    arn_errors=BACKUP_ARN_ERRORS,
)
