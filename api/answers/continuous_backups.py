"""The description of a table's continuous backups."""

from __future__ import annotations

from math import floor
from typing import Any

from msgspec import json

from dynactor.actors.database.database import Database
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import PointInTimeRecovery
from dynactor.model.errors import ResourceNotFoundException, TableNotFoundException


def source_table(database: Database, name: str, given: str | None = None) -> Table:
    """The table with this name in any state; ``TableNotFoundException`` shows ``given``."""
    try:
        return database.table_in_any_state(name)
    except ResourceNotFoundException:
        raise TableNotFoundException(f"Table not found: {given or name}") from None


def describe(database: Database, name: str) -> bytes:
    """Show the window of times for restores of a table; raises ``TableNotFoundException``."""
    recovery = source_table(database, name).definition.point_in_time_recovery
    return json.encode(
        {
            "ContinuousBackupsDescription": {
                "ContinuousBackupsStatus": "ENABLED",
                "PointInTimeRecoveryDescription": _description(
                    recovery, database.clock.now_epoch_seconds()
                ),
            }
        }
    )


def _description(recovery: PointInTimeRecovery | None, now: float) -> dict[str, Any]:
    if recovery is None:
        return {"PointInTimeRecoveryStatus": "DISABLED"}
    # Whole seconds, because botocore rounds the times of requests down.
    return {
        "PointInTimeRecoveryStatus": "ENABLED",
        "RecoveryPeriodInDays": recovery.period_days,
        "EarliestRestorableDateTime": floor(recovery.earliest_epoch_seconds(now)),
        "LatestRestorableDateTime": floor(now),
    }
