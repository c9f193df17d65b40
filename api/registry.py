"""The operations of the API: a line each, and the names of those that are still to come."""

from __future__ import annotations

from typing import Final

from api.operation import Operation
from api.operations import (
    batch_get_item,
    batch_write_item,
    create_table,
    delete_item,
    delete_table,
    describe_continuous_backups,
    describe_endpoints,
    describe_limits,
    describe_table,
    describe_time_to_live,
    get_item,
    list_tables,
    list_tags_of_resource,
    put_item,
    query,
    scan,
    tag_resource,
    untag_resource,
    update_item,
    update_table,
)

_BUILT: Final[tuple[Operation, ...]] = (
    batch_get_item.OPERATION,
    batch_write_item.OPERATION,
    create_table.OPERATION,
    delete_item.OPERATION,
    delete_table.OPERATION,
    describe_continuous_backups.OPERATION,
    describe_endpoints.OPERATION,
    describe_limits.OPERATION,
    describe_table.OPERATION,
    describe_time_to_live.OPERATION,
    get_item.OPERATION,
    list_tables.OPERATION,
    list_tags_of_resource.OPERATION,
    put_item.OPERATION,
    query.OPERATION,
    scan.OPERATION,
    tag_resource.OPERATION,
    untag_resource.OPERATION,
    update_item.OPERATION,
    update_table.OPERATION,
)

OPERATIONS: Final = {operation.name: operation for operation in _BUILT}

# Of DynamoDB's service models (2012-08-10); a test compares.
_OF_DYNAMODB: Final = frozenset(
    (
        "BatchExecuteStatement",
        "CreateBackup",
        "CreateGlobalTable",
        "DeleteBackup",
        "DeleteResourcePolicy",
        "DescribeBackup",
        "DescribeContributorInsights",
        "DescribeExport",
        "DescribeGlobalTable",
        "DescribeGlobalTableSettings",
        "DescribeImport",
        "DescribeKinesisStreamingDestination",
        "DescribeTableReplicaAutoScaling",
        "DisableKinesisStreamingDestination",
        "EnableKinesisStreamingDestination",
        "ExecuteStatement",
        "ExecuteTransaction",
        "ExportTableToPointInTime",
        "GetResourcePolicy",
        "ImportTable",
        "ListBackups",
        "ListContributorInsights",
        "ListExports",
        "ListGlobalTables",
        "ListImports",
        "PutResourcePolicy",
        "RestoreTableFromBackup",
        "RestoreTableToPointInTime",
        "SearchVectors",
        "TransactGetItems",
        "TransactWriteItems",
        "UpdateContinuousBackups",
        "UpdateContributorInsights",
        "UpdateGlobalTable",
        "UpdateGlobalTableSettings",
        "UpdateKinesisStreamingDestination",
        "UpdateTableReplicaAutoScaling",
        "UpdateTimeToLive",
    )
)
_OF_DYNAMODB_STREAMS: Final = frozenset(
    ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
)
NOT_IMPLEMENTED: Final = _OF_DYNAMODB | _OF_DYNAMODB_STREAMS
