"""A table as DescribeTable and the other operations on tables show it."""

from __future__ import annotations

from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

from dynactor.actors.database.database import Database
from dynactor.actors.table.state import TableState
from dynactor.model.definitions.index import IndexDefinition
from dynactor.model.definitions.table import (
    TABLE_INDEX_ID,
    GlobalIndex,
    IndexStatus,
    TableDefinition,
    TableStatus,
    Throughput,
)
from dynactor.model.keys.key import KeySchema
from dynactor.model.tables import throughput_rules
from dynactor.model.tables.table_backup import TableBackupId
from dynactor.model.tables.time_to_live import shown_status

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
        "KeySchema": key_schema(definition.key_schema),
        "TableStatus": _status(database, definition),
        "CreationDateTime": wire_time(definition.created_epoch_seconds),
        "ProvisionedThroughput": _provisioned_throughput(
            definition.throughput, database.clock.now_epoch_seconds()
        ),
        "TableSizeBytes": state.size_bytes,
        "ItemCount": state.item_count,
        "TableArn": table_arn(database, definition.name),
        "TableId": definition.uuid,
        **_billing_mode(definition),
        **_local_indexes(database, state),
        **_global_indexes(database, state),
        **_stream(database, definition),
        **encryption(database, definition),
        **_table_class(definition),
        **_restore_summary(database, definition),
        "DeletionProtectionEnabled": definition.deletion_protection,
        **_on_demand_throughput(definition.on_demand_throughput),
        "WarmThroughput": _warm_throughput(
            throughput_rules.shown_warm_throughput(definition),
            definition.status,
            is_growing=TABLE_INDEX_ID in state.growing or "WARM_THROUGHPUT" in definition.changing,
        ),
    }


def created_table_description(database: Database, state: TableState) -> dict[str, Any]:
    """The TableDescription of CreateTable, which shows only a requested WarmThroughput."""
    description = table_description(database, state)
    if not state.definition.warm_throughput:
        del description["WarmThroughput"]
    for index in description.get("GlobalSecondaryIndexes", ()):
        made = state.definition.global_index(index["IndexName"])
        if made is None or not made.warm_throughput:
            del index["WarmThroughput"]
    return description


def deleted_table_description(database: Database, state: TableState) -> dict[str, Any]:
    """The TableDescription of DeleteTable, which shows no schema, indexes or creation time."""
    description = table_description(database, state)
    return {name: value for name, value in description.items() if name not in _NOT_OF_DELETED}


_NOT_OF_DELETED: Final = frozenset(
    {
        "AttributeDefinitions",
        "KeySchema",
        "LocalSecondaryIndexes",
        "GlobalSecondaryIndexes",
        "CreationDateTime",
        "WarmThroughput",
    }
)


def table_arn(database: Database, name: str) -> str:
    """The ARN that the server shows for a table."""
    return database.settings.table_arns + name


def stream_arn(database: Database, name: str, label: str) -> str:
    """The ARN that the server shows for a stream of a table."""
    return f"{table_arn(database, name)}/stream/{label}"


def backup_arn(database: Database, backup_id: TableBackupId) -> str:
    """The ARN that the server shows for a backup of a table."""
    return f"{table_arn(database, backup_id.table_name)}/backup/{backup_id.label}"


def key_schema(schema: KeySchema) -> list[dict[str, str]]:
    """A key schema in the API's form."""
    return [
        *({"AttributeName": attribute.name, "KeyType": "HASH"} for attribute in schema.partition),
        *({"AttributeName": attribute.name, "KeyType": "RANGE"} for attribute in schema.sort),
    ]


def _provisioned_throughput(throughput: Throughput, now_epoch_seconds: float) -> dict[str, Any]:
    times = {
        "LastIncreaseDateTime": throughput.last_increase_epoch_seconds,
        "LastDecreaseDateTime": throughput.last_decrease_epoch_seconds,
    }
    return {
        **{name: wire_time(time) for name, time in times.items() if time is not None},
        "NumberOfDecreasesToday": throughput_rules.decreases_today(throughput, now_epoch_seconds),
        "ReadCapacityUnits": throughput.read_units,
        "WriteCapacityUnits": throughput.write_units,
    }


def _billing_mode(definition: TableDefinition) -> dict[str, Any]:
    """The BillingModeSummary of a table that is or was on-demand.

    The time of the update appears once the table is ACTIVE. It is missing in the answers of
    CreateTable in AWS's documentation, and in the answers of CreateTable and UpdateTable that
    dynalite's authors recorded.
    """
    since = definition.on_demand_since_epoch_seconds
    if since is None and definition.billing_mode == "PROVISIONED":
        return {}
    summary: dict[str, Any] = {"BillingMode": definition.billing_mode}
    if since is not None and definition.status != "CREATING":
        summary["LastUpdateToPayPerRequestDateTime"] = wire_time(since)
    return {"BillingModeSummary": summary}


def _local_indexes(database: Database, state: TableState) -> dict[str, Any]:
    definition = state.definition
    if not definition.local_indexes:
        return {}
    arn = table_arn(database, definition.name)
    return {
        "LocalSecondaryIndexes": [
            {
                "IndexName": index.name,
                "KeySchema": key_schema(index.key_schema),
                "Projection": projection(index),
                **_index_counters(state, index.name),
                "IndexArn": f"{arn}/index/{index.name}",
            }
            for index in definition.local_indexes
        ]
    }


def _global_indexes(database: Database, state: TableState) -> dict[str, Any]:
    """The global indexes of a table; none while the table is being deleted."""
    definition = state.definition
    if not definition.global_indexes or definition.status == "DELETING":
        return {}
    arn = table_arn(database, definition.name)
    now = database.clock.now_epoch_seconds()
    return {
        "GlobalSecondaryIndexes": [
            _global_index(state, index, arn, now) for index in definition.global_indexes
        ]
    }


def _global_index(
    state: TableState, index: GlobalIndex, arn_of_table: str, now_epoch_seconds: float
) -> dict[str, Any]:
    table, definition = state.definition, index.definition
    # Indexes in CreateTable have the table's state while it is CREATING.
    status = "CREATING" if table.status == "CREATING" else index.status
    filled = {} if index.backfilling is None else {"Backfilling": index.backfilling}
    warm = throughput_rules.at_least_warm(
        table.billing_mode, index.throughput, index.warm_throughput
    )
    return {
        "IndexName": definition.name,
        "KeySchema": key_schema(definition.key_schema),
        "Projection": projection(definition),
        "IndexStatus": status,
        **filled,
        "ProvisionedThroughput": _provisioned_throughput(index.throughput, now_epoch_seconds),
        **_index_counters(state, definition.name),
        "IndexArn": f"{arn_of_table}/index/{definition.name}",
        **_on_demand_throughput(index.on_demand_throughput),
        "WarmThroughput": _warm_throughput(
            warm, status, is_growing=definition.index_id in state.growing
        ),
    }


def _index_counters(state: TableState, name: str) -> dict[str, int]:
    """The counters of an index; none right after it was added."""
    counters = state.indexes.get(name)
    return {
        "IndexSizeBytes": counters.size_bytes if counters else 0,
        "ItemCount": counters.item_count if counters else 0,
    }


def _stream(database: Database, definition: TableDefinition) -> dict[str, Any]:
    """The current or last stream; a disabled one has only its ARN."""
    stream = definition.stream
    if stream is None:
        return {}
    specification = {"StreamEnabled": True, "StreamViewType": stream.view_type}
    return {
        **({"StreamSpecification": specification} if stream.enabled else {}),
        "LatestStreamLabel": stream.label,
        "LatestStreamArn": stream_arn(database, definition.name, stream.label),
    }


def projection(index: IndexDefinition) -> dict[str, Any]:
    """An index's projection in the API's form."""
    projection = index.projection
    if not projection.non_key_attributes:
        return {"ProjectionType": projection.type}
    return {
        "ProjectionType": projection.type,
        "NonKeyAttributes": list(projection.non_key_attributes),
    }


def encryption(database: Database, definition: TableDefinition) -> dict[str, Any]:
    """The encryption as requested. Encryption of the disk is left to the operating system."""
    if "SSE" in definition.changing:
        return {"SSEDescription": {"Status": "UPDATING"}}
    specification = definition.sse_specification
    if specification is None:
        return {}
    key = specification.get("KMSMasterKeyId", _OWN_KEY)
    settings = database.settings
    account_keys = f"arn:aws:kms:{settings.region}:{settings.account_id}:"
    if not key.startswith("arn:"):
        key = account_keys + (key if key.startswith("alias/") else f"key/{key}")
    # The service shows the key of an alias. There are no keys here, so its id is made of the alias.
    before, alias, name = key.partition(":alias/")
    if alias:
        key = f"{before}:key/{uuid5(NAMESPACE_URL, f'{before}{alias}{name}')}"
    return {"SSEDescription": {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": key}}


# The key of the service that encrypts tables without a key of their own.
_OWN_KEY: Final = "alias/aws/dynamodb"


def time_to_live_description(database: Database, definition: TableDefinition) -> dict[str, str]:
    """The TimeToLiveDescription of a table."""
    settings = definition.time_to_live
    if settings is None:
        return {"TimeToLiveStatus": "DISABLED"}
    status = shown_status(settings.status, database.settings.time_to_live.transition_seconds)
    if status == "DISABLED":
        return {"TimeToLiveStatus": status}
    return {"TimeToLiveStatus": status, "AttributeName": settings.attribute_name}


def _table_class(definition: TableDefinition) -> dict[str, Any]:
    if definition.table_class is None:
        return {}
    changed = definition.table_class_changed_epoch_seconds
    return {
        "TableClassSummary": {
            "TableClass": definition.table_class,
            **({} if changed is None else {"LastUpdateDateTime": wire_time(changed)}),
        }
    }


def _restore_summary(database: Database, definition: TableDefinition) -> dict[str, Any]:
    """The backup or table from which a table is being restored, until it is complete."""
    restoration = definition.restoration
    if restoration is None or restoration.import_id is not None or restoration.phase == "DONE":
        return {}
    source = TableBackupId(restoration.source_table, restoration.backup_label)
    restored_to = restoration.restored_to_epoch_seconds
    return {
        "RestoreSummary": {
            **(
                {} if restored_to is not None else {"SourceBackupArn": backup_arn(database, source)}
            ),
            "SourceTableArn": table_arn(database, source.table_name),
            "RestoreDateTime": wire_time(
                restoration.began_epoch_seconds if restored_to is None else restored_to
            ),
            "RestoreInProgress": True,
        }
    }


def _status(database: Database, definition: TableDefinition) -> TableStatus:
    """The status to show. In DynamoDB Local 3.3 a table stays ACTIVE while an index is added."""
    settings = database.settings
    is_hidden = settings.is_like_dynamodb_local and not settings.table_transition_seconds
    return "ACTIVE" if is_hidden and definition.status == "UPDATING" else definition.status


def _on_demand_throughput(limits: dict[str, Any] | None) -> dict[str, Any]:
    return {} if limits is None else {"OnDemandThroughput": limits}


def _warm_throughput(
    units_per_second: dict[str, int], status: TableStatus | IndexStatus, *, is_growing: bool
) -> dict[str, Any]:
    is_warm = status == "ACTIVE" and not is_growing
    return {**units_per_second, "Status": "ACTIVE" if is_warm else "UPDATING"}


def wire_time(epoch_seconds: float) -> float:
    """A time in the API's form."""
    return round(epoch_seconds, _TIME_DIGITS)
