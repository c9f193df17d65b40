"""Creates and restores backups of tables through the API, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.tables.tables import Call, unique_name, wait_until_active


def back_up(call: Call, table_name: str, name: str = "before-migration") -> str:
    """Create a backup of a table and wait until it is AVAILABLE; returns its ARN."""
    request = {"TableName": table_name, "BackupName": name}
    arn: str = call("CreateBackup", request)["BackupDetails"]["BackupArn"]
    wait_until_available(call, arn)
    return arn


def wait_until_available(call: Call, arn: str) -> dict[str, Any]:
    """Poll until a backup is AVAILABLE, and return its description."""
    while True:
        description: dict[str, Any] = call("DescribeBackup", {"BackupArn": arn})
        description = description["BackupDescription"]
        if description["BackupDetails"]["BackupStatus"] == "AVAILABLE":
            return description


@contextmanager
def restored(call: Call, arn: str, **overrides: Any) -> Iterator[str]:
    """Restore a table, wait until it is ACTIVE, and delete it afterwards."""
    name = unique_name("restored")
    call("RestoreTableFromBackup", {"TargetTableName": name, "BackupArn": arn, **overrides})
    wait_until_active(call, name)
    yield name
    call("DeleteTable", {"TableName": name})


def items_of(call: Call, table_name: str, **members: Any) -> list[dict[str, Any]]:
    """All items of a table or index in a stable order."""
    items: list[dict[str, Any]] = []
    request = {"TableName": table_name, **members}
    while True:
        page = call("Scan", request)
        items += page["Items"]
        if "LastEvaluatedKey" not in page:
            return sorted(items, key=repr)
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
