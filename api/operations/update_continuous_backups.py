"""UpdateContinuousBackups."""

from __future__ import annotations

from dynactor.actors.backups.point_in_time import UpdateRecovery
from dynactor.api.access import asks
from dynactor.api.answers import continuous_backups
from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.foreign_arns import BACKUP_ARN_ERRORS
from dynactor.api.requests.inputs import UpdateContinuousBackupsInput
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import invalid_value
from dynactor.model.limits import RECOVERY_DAYS


async def handle(call: Call[UpdateContinuousBackupsInput]) -> bytes:
    """Enable or disable point-in-time recovery, or change its period."""
    name, wanted = table_name(call.request.TableName), call.request.PointInTimeRecoverySpecification
    period_days = None
    if wanted.PointInTimeRecoveryEnabled:
        period_days = wanted.RecoveryPeriodInDays or RECOVERY_DAYS
    elif wanted.RecoveryPeriodInDays is not None:
        raise invalid_value(
            "RecoveryPeriodInDays cannot be specified when PointInTimeRecoveryEnabled is false"
        )
    await call.database.ask(UpdateRecovery(name, period_days))
    return continuous_backups.describe(call.database, name)


OPERATION = Operation(
    UpdateContinuousBackupsInput, handle, asks=asks.table, arn_errors=BACKUP_ARN_ERRORS
)
