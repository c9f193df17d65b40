"""DescribeContinuousBackups."""

from __future__ import annotations

from dynactor.api.answers import continuous_backups
from dynactor.api.requests import shapes, structures
from dynactor.api.requests.operation import Call, Operation


class DescribeContinuousBackupsInput(structures.Shape, frozen=True):
    """The members of DescribeContinuousBackups."""

    TableName: shapes.ControlTableName


async def handle(call: Call[DescribeContinuousBackupsInput]) -> bytes:
    """Show point-in-time recovery as disabled, because it is not implemented."""
    return await continuous_backups.describe(call.database, call.request.TableName)


OPERATION = Operation("DescribeContinuousBackups", DescribeContinuousBackupsInput, handle)
