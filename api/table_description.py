"""A table as DescribeTable and the other operations on tables show it."""

from __future__ import annotations

from typing import Any

from actors.database import Database, TableState
from model import throughput_rules
from model.index import IndexDefinition
from model.key import KeySchema
from model.table import TableDefinition

# DynamoDB's times have milliseconds.
_TIME_DIGITS = 3


def table_description(database: Database, state: TableState) -> dict[str, Any]:
    """The TableDescription of a table; members that do not apply are left out."""
    definition = state.definition
    return {
        "AttributeDefinitions": [
            {"AttributeName": attribute.name, "AttributeType": attribute.type}
            for attribute in definition.attribute_definitions
        ],
        "TableName": definition.name,
        "KeySchema": _key_schema(definition.key_schema),
        "TableStatus": definition.status,
        "CreationDateTime": _time(definition.created_epoch_seconds),
        "ProvisionedThroughput": _provisioned_throughput(definition),
        "TableSizeBytes": state.size_bytes,
        "ItemCount": state.item_count,
        "TableArn": table_arn(database, definition.name),
        "TableId": definition.uuid,
        **_billing_mode(definition),
        **_local_indexes(database, state),
        **_encryption(database, definition),
        **_table_class(definition),
        "DeletionProtectionEnabled": definition.deletion_protection,
        **_on_demand_throughput(definition),
        "WarmThroughput": {
            **throughput_rules.warm_of(definition),
            "Status": "ACTIVE" if definition.status == "ACTIVE" else "UPDATING",
        },
    }


def deleted_table_description(database: Database, state: TableState) -> dict[str, Any]:
    """The TableDescription of DeleteTable, which shows neither schema nor creation time."""
    description = table_description(database, state)
    for name in ("AttributeDefinitions", "KeySchema", "CreationDateTime", "WarmThroughput"):
        del description[name]
    return description


def table_arn(database: Database, name: str) -> str:
    """The ARN that the server shows for a table."""
    settings = database.settings
    return f"arn:aws:dynamodb:{settings.region}:{settings.account_id}:table/{name}"


def _key_schema(schema: KeySchema) -> list[dict[str, str]]:
    return [
        *({"AttributeName": attribute.name, "KeyType": "HASH"} for attribute in schema.partition),
        *({"AttributeName": attribute.name, "KeyType": "RANGE"} for attribute in schema.sort),
    ]


def _provisioned_throughput(definition: TableDefinition) -> dict[str, Any]:
    throughput = definition.throughput
    times = {
        "LastIncreaseDateTime": throughput.last_increase_epoch_seconds,
        "LastDecreaseDateTime": throughput.last_decrease_epoch_seconds,
    }
    return {
        **{name: _time(time) for name, time in times.items() if time is not None},
        "NumberOfDecreasesToday": throughput.decreases_today,
        "ReadCapacityUnits": throughput.read_units,
        "WriteCapacityUnits": throughput.write_units,
    }


def _billing_mode(definition: TableDefinition) -> dict[str, Any]:
    """Shown only of a table that is or once was on-demand."""
    since = definition.on_demand_since_epoch_seconds
    if since is None:
        return {}
    return {
        "BillingModeSummary": {
            "BillingMode": definition.billing_mode,
            "LastUpdateToPayPerRequestDateTime": _time(since),
        }
    }


def _local_indexes(database: Database, state: TableState) -> dict[str, Any]:
    definition = state.definition
    if not definition.local_indexes:
        return {}
    arn = table_arn(database, definition.name)
    return {
        "LocalSecondaryIndexes": [
            {
                "IndexName": index.name,
                "KeySchema": _key_schema(index.key_schema),
                "Projection": _projection(index),
                "IndexSizeBytes": state.indexes[index.name].size_bytes,
                "ItemCount": state.indexes[index.name].item_count,
                "IndexArn": f"{arn}/index/{index.name}",
            }
            for index in definition.local_indexes
        ]
    }


def _projection(index: IndexDefinition) -> dict[str, Any]:
    projection = index.projection
    if not projection.non_key_attributes:
        return {"ProjectionType": projection.type}
    return {
        "ProjectionType": projection.type,
        "NonKeyAttributes": list(projection.non_key_attributes),
    }


def _encryption(database: Database, definition: TableDefinition) -> dict[str, Any]:
    """Shown back as it was asked for: the data on disk is the operating system's to encrypt."""
    specification = definition.sse_specification
    if specification is None:
        return {}
    key = specification.get("KMSMasterKeyId", "alias/aws/dynamodb")
    settings = database.settings
    if not key.startswith("arn:"):
        key = key if key.startswith("alias/") else f"key/{key}"
        key = f"arn:aws:kms:{settings.region}:{settings.account_id}:{key}"
    return {"SSEDescription": {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": key}}


def _table_class(definition: TableDefinition) -> dict[str, Any]:
    if definition.table_class is None:
        return {}
    changed = definition.table_class_changed_epoch_seconds
    return {
        "TableClassSummary": {
            "TableClass": definition.table_class,
            **({} if changed is None else {"LastUpdateDateTime": _time(changed)}),
        }
    }


def _on_demand_throughput(definition: TableDefinition) -> dict[str, Any]:
    limits = definition.on_demand_throughput
    return {} if limits is None else {"OnDemandThroughput": limits}


def _time(epoch_seconds: float) -> float:
    return round(epoch_seconds, _TIME_DIGITS)
