"""DescribeContinuousBackups."""

from __future__ import annotations

from msgspec import json

from api import shapes, structures
from api.arn import table_name
from api.operation import Call, Operation
from model.errors import ResourceNotFoundException, TableNotFoundException


class DescribeContinuousBackupsInput(structures.Shape, frozen=True):
    """The members of DescribeContinuousBackups."""

    TableName: shapes.ControlTableName


async def handle(call: Call[DescribeContinuousBackupsInput]) -> bytes:
    """Point-in-time recovery is not built, and shown as switched off."""
    name = table_name(call.request.TableName)
    try:
        await call.database.describe(name)
    except ResourceNotFoundException:
        raise TableNotFoundException(f"Table not found: {name}") from None
    return json.encode(
        {
            "ContinuousBackupsDescription": {
                "ContinuousBackupsStatus": "ENABLED",
                "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "DISABLED"},
            }
        }
    )


OPERATION = Operation("DescribeContinuousBackups", DescribeContinuousBackupsInput, handle)
