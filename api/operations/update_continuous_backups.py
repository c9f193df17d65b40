"""UpdateContinuousBackups."""

from __future__ import annotations

from dynactor.api.answers import continuous_backups
from dynactor.api.requests import shapes, structures
from dynactor.api.requests.operation import Call, Operation
from dynactor.model.errors import ValidationException


class UpdateContinuousBackupsInput(structures.Shape, frozen=True):
    """The members of UpdateContinuousBackups."""

    TableName: shapes.ControlTableName
    PointInTimeRecoverySpecification: structures.PointInTimeRecoverySpecificationShape


async def handle(call: Call[UpdateContinuousBackupsInput]) -> bytes:
    """Accept a request to disable point-in-time recovery, which is always disabled.

    Enabling it is refused, because users would rely on a recovery that does not exist.
    """
    request = call.request
    answer = await continuous_backups.describe(call.database, request.TableName)
    if request.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled:
        raise ValidationException("Point-in-time recovery is not supported yet")
    return answer


OPERATION = Operation("UpdateContinuousBackups", UpdateContinuousBackupsInput, handle)
