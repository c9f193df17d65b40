"""The description of a table's continuous backups, which are not implemented."""

from __future__ import annotations

from msgspec import json

from dynactor.actors.catalog.database import Database
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ResourceNotFoundException, TableNotFoundException


async def describe(database: Database, table: str) -> bytes:
    """Show point-in-time recovery as disabled, because it is not implemented.

    Raises:
        ValidationException: ``table`` is neither a name nor a table's ARN.
        TableNotFoundException: the table does not exist.
    """
    name = table_name(table)
    try:
        await database.describe(name)
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
