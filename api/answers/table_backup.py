"""Backups of tables: look-up by ARN, and their descriptions."""

from __future__ import annotations

import re
from typing import Any, Final

from dynactor.actors.backups.table_backups import TableBackups
from dynactor.actors.database.database import Database
from dynactor.api.answers.table_description import (
    backup_arn,
    encryption,
    key_schema,
    projection,
    table_arn,
    time_to_live_description,
    wire_time,
)
from dynactor.api.requests.resource_arn import invalid
from dynactor.model.definitions.table import GlobalIndex, TableDefinition, Throughput
from dynactor.model.errors import BackupNotFoundException
from dynactor.model.limits import NAME_CHARACTER, TABLE_NAME_CHARACTERS
from dynactor.model.tables.table_backup import TableBackup, TableBackupId

_FEWEST, _MOST = TABLE_NAME_CHARACTERS
_ARN: Final = re.compile(
    r"arn:[^:]+:dynamodb:[^:]+:[0-9]+:"
    rf"table/({NAME_CHARACTER}{{{_FEWEST},{_MOST}}})/backup/([0-9a-f-]+)\Z",
    re.ASCII,
)


def named(arn: str) -> TableBackupId:
    """The backup's id in an ARN; account and region are ignored. Raises ``ValidationException``."""
    match = _ARN.match(arn)
    if match is None:
        raise invalid(arn, "BackupArn")
    return TableBackupId(match[1], match[2])


def find(database: Database, arn: str) -> TableBackup:
    """The backup with this ARN; raises ``ValidationException`` or ``BackupNotFoundException``."""
    backup = database.part(TableBackups).find(named(arn))
    if backup is None:
        raise BackupNotFoundException(f"Backup not found: {arn}")
    return backup


def details(database: Database, backup: TableBackup, status: str | None = None) -> dict[str, Any]:
    """The BackupDetails of a backup; the size is known once the backup is complete."""
    expires = backup.expires_epoch_seconds
    return {
        "BackupArn": backup_arn(database, backup.backup_id),
        "BackupName": backup.name,
        "BackupSizeBytes": 0 if backup.status == "CREATING" else backup.size_bytes,
        "BackupStatus": status or backup.status,
        "BackupType": "SYSTEM" if backup.is_system else "USER",
        "BackupCreationDateTime": wire_time(backup.created_epoch_seconds),
        **({} if expires is None else {"BackupExpiryDateTime": wire_time(expires)}),
    }


def summary(database: Database, backup: TableBackup) -> dict[str, Any]:
    """A backup as ListBackups shows it."""
    return {
        "TableName": backup.definition.name,
        "TableId": backup.definition.uuid,
        "TableArn": table_arn(database, backup.definition.name),
        **details(database, backup),
    }


def description(
    database: Database, backup: TableBackup, status: str | None = None
) -> dict[str, Any]:
    """The BackupDescription of a backup, with the table as it was at the request."""
    definition = backup.definition
    return {
        "BackupDetails": details(database, backup, status),
        "SourceTableDetails": {
            "TableName": definition.name,
            "TableId": definition.uuid,
            "TableArn": table_arn(database, definition.name),
            "TableSizeBytes": backup.size_bytes,
            "KeySchema": key_schema(definition.key_schema),
            "TableCreationDateTime": wire_time(definition.created_epoch_seconds),
            "ProvisionedThroughput": _units(definition.throughput),
            **_on_demand_throughput(definition),
            "ItemCount": backup.item_count,
            "BillingMode": definition.billing_mode,
        },
        "SourceTableFeatureDetails": _features(database, definition),
    }


def _features(database: Database, definition: TableDefinition) -> dict[str, Any]:
    features: dict[str, Any] = {}
    if definition.local_indexes:
        features["LocalSecondaryIndexes"] = [
            {
                "IndexName": index.name,
                "KeySchema": key_schema(index.key_schema),
                "Projection": projection(index),
            }
            for index in definition.local_indexes
        ]
    if definition.global_indexes:
        features["GlobalSecondaryIndexes"] = [
            {
                "IndexName": index.definition.name,
                "KeySchema": key_schema(index.definition.key_schema),
                "Projection": projection(index.definition),
                "ProvisionedThroughput": _units(index.throughput),
                **_on_demand_throughput(index),
            }
            for index in definition.global_indexes
        ]
    stream = definition.stream
    if stream is not None and stream.enabled:
        features["StreamDescription"] = {
            "StreamEnabled": True,
            "StreamViewType": stream.view_type,
        }
    if definition.time_to_live is not None:
        features["TimeToLiveDescription"] = time_to_live_description(database, definition)
    return features | encryption(database, definition)


def _units(throughput: Throughput) -> dict[str, int]:
    return {
        "ReadCapacityUnits": throughput.read_units,
        "WriteCapacityUnits": throughput.write_units,
    }


def _on_demand_throughput(resource: TableDefinition | GlobalIndex) -> dict[str, Any]:
    limits = resource.on_demand_throughput
    return {} if limits is None else {"OnDemandThroughput": limits}
