"""What is told of a table's continuous backups: there are none."""

from __future__ import annotations

from msgspec import json

from dynactor.actors.catalog.database import Database
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ResourceNotFoundException, TableNotFoundException


async def describe(database: Database, table: str) -> bytes:
    """Point-in-time recovery is not built, and shown as switched off.

    Raises:
        ValidationException: the text is neither a name nor a table's ARN.
        TableNotFoundException: there is no such table.
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
