"""Operations on the account and on settings: limits, endpoints, continuous backups, policies."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import botocore
import pytest

from tests.support.clients.clients import WireClient
from tests.support.tables.tables import table, unique_name

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local


def test_limits_are_numbers(wire: WireClient):
    limits = wire("DescribeLimits", {})
    assert limits.keys() == {
        "AccountMaxReadCapacityUnits",
        "AccountMaxWriteCapacityUnits",
        "TableMaxReadCapacityUnits",
        "TableMaxWriteCapacityUnits",
    }
    assert all(isinstance(limit, int) and limit > 0 for limit in limits.values())


@differs_from_dynamodb_local("it names a host of AWS")
def test_the_endpoint_is_the_host_of_the_request(wire: WireClient):
    answer = wire.send("DescribeEndpoints", {}, {"Host": "localhost:8123"})
    assert answer.json == {
        "Endpoints": [{"Address": "localhost:8123", "CachePeriodInMinutes": 1440}]
    }


@differs_from_dynamodb_local("it knows no backups")
def test_continuous_backups_are_described(wire: WireClient, simple: str):
    assert wire("DescribeContinuousBackups", {"TableName": simple}) == {
        "ContinuousBackupsDescription": {
            "ContinuousBackupsStatus": "ENABLED",
            "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "DISABLED"},
        }
    }


@differs_from_dynamodb_local("it knows no backups")
def test_the_backups_of_an_unknown_table_are_not_found(wire: WireClient):
    name = unique_name()
    assert wire.refused("DescribeContinuousBackups", {"TableName": name}) == (
        "TableNotFoundException",
        f"Table not found: {name}",
    )


@differs_from_dynamodb_local("it knows no backups")
def test_continuous_backups_can_be_disabled(wire: WireClient, simple: str):
    off = {"TableName": simple, "PointInTimeRecoverySpecification": recovery(enabled=False)}
    answer = wire("UpdateContinuousBackups", off)
    assert answer == wire("DescribeContinuousBackups", {"TableName": simple})


@differs_from_dynamodb_local("it knows no backups")
@pytest.mark.parametrize("days", [0, 36])
def test_backups_are_kept_for_1_to_35_days(wire: WireClient, simple: str, days: int):
    asked = recovery(enabled=True) | {"RecoveryPeriodInDays": days}
    refusal = wire.refused(
        "UpdateContinuousBackups",
        {"TableName": simple, "PointInTimeRecoverySpecification": asked},
    )
    assert refusal.type == "ValidationException"
    assert "pointInTimeRecoverySpecification.recoveryPeriodInDays" in refusal.message


@differs_from_dynamodb_local("it knows no backups")
def test_the_backups_of_an_unknown_table_are_not_disabled(wire: WireClient):
    name = unique_name()
    off = {"TableName": name, "PointInTimeRecoverySpecification": recovery(enabled=False)}
    assert wire.refused("UpdateContinuousBackups", off) == (
        "TableNotFoundException",
        f"Table not found: {name}",
    )


def recovery(*, enabled: bool) -> dict[str, Any]:
    """A PointInTimeRecoverySpecification."""
    return {"PointInTimeRecoveryEnabled": enabled}


@differs_from_dynamodb_local("it knows no policies")
def test_a_table_has_no_policy(wire: WireClient, simple: str):
    arn = wire("DescribeTable", {"TableName": simple})["Table"]["TableArn"]
    refusal = wire.refused("GetResourcePolicy", {"ResourceArn": arn})
    assert refusal.type == "PolicyNotFoundException"
    assert arn in refusal.message


@differs_from_dynamodb_local("it knows no policies")
@pytest.mark.parametrize("stream", ["", "/stream/2026-01-01T00:00:00.000"])
def test_the_policy_of_a_missing_resource_is_not_found(wire: WireClient, simple: str, stream: str):
    table_arn = wire("DescribeTable", {"TableName": simple})["Table"]["TableArn"]
    arn = f"{table_arn.rpartition('/')[0]}/{unique_name()}{stream}"
    refusal = wire.refused("GetResourcePolicy", {"ResourceArn": arn})
    assert refusal.type == "ResourceNotFoundException"


@differs_from_dynamodb_local("it knows no policies")
def test_a_stream_has_no_policy(wire: WireClient):
    stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    with table(wire, "pk:S", StreamSpecification=stream) as name:
        arn = wire("DescribeTable", {"TableName": name})["Table"]["LatestStreamArn"]
        refusal = wire.refused("GetResourcePolicy", {"ResourceArn": arn})
    assert refusal.type == "PolicyNotFoundException"


NOTHING = {
    "ListBulkOperations": "BulkOperationsSummaryList",
    "ListExports": "ExportSummaries",
    "ListImports": "ImportSummaryList",
    "ListGlobalTables": "GlobalTables",
}


@pytest.mark.ours_alone("AWS has what its user has made")
@pytest.mark.parametrize(("operation", "member"), NOTHING.items())
def test_resources_that_nobody_made_are_listed_as_empty(
    wire: WireClient, operation: str, member: str
):
    assert wire(operation, {}) == {member: []}


@differs_from_dynamodb_local("it knows neither exports nor imports")
@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("ListBulkOperations", {"MaxResults": 26}),
        ("ListBulkOperations", {"NextToken": "of nobody"}),
        ("ListExports", {"MaxResults": 26}),
        ("ListExports", {"MaxResults": 0}),
        ("ListExports", {"NextToken": "of nobody"}),
        ("ListExports", {"TableArn": "arn:aws:s3:::bucket"}),
        ("ListImports", {"PageSize": 26}),
        ("ListImports", {"NextToken": "of nobody"}),
        ("ListImports", {"NextToken": "0123456789abcdef" * 7}),
        ("ListImports", {"TableArn": "no table"}),
        ("ListGlobalTables", {"Limit": 0}),
        ("ListGlobalTables", {"ExclusiveStartGlobalTableName": "no table"}),
    ],
)
def test_invalid_requests_for_lists_are_refused(
    wire: WireClient, operation: str, members: dict[str, Any]
):
    assert wire.refused(operation, members).type == "ValidationException"


def test_time_to_live_is_described_as_disabled(wire: WireClient, simple: str):
    assert wire("DescribeTimeToLive", {"TableName": simple}) == {
        "TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}
    }


def test_the_time_to_live_of_an_unknown_table_is_not_found(wire: WireClient):
    refusal = wire.refused("DescribeTimeToLive", {"TableName": unique_name()})
    assert refusal.type == "ResourceNotFoundException"


IMPLEMENTED = frozenset({
    "BatchExecuteStatement", "BatchGetItem", "BatchWriteItem", "CancelBulkOperation",
    "CreateBackup", "CreateGlobalTable", "CreateTable", "DeleteBackup", "DeleteItem",
    "DeleteResourcePolicy", "DeleteTable", "DescribeBackup", "DescribeBulkOperation",
    "DescribeContinuousBackups", "DescribeContributorInsights", "DescribeEndpoints",
    "DescribeExport", "DescribeGlobalTable", "DescribeGlobalTableSettings", "DescribeImport",
    "DescribeKinesisStreamingDestination", "DescribeLimits", "DescribeTable",
    "DescribeTableReplicaAutoScaling", "DescribeTimeToLive", "DisableKinesisStreamingDestination",
    "EnableKinesisStreamingDestination", "ExecuteStatement", "ExecuteTransaction",
    "ExportTableToPointInTime", "GetItem", "GetResourcePolicy", "ImportTable", "ListBackups",
    "ListBulkOperations", "ListContributorInsights", "ListExports", "ListGlobalTables",
    "ListImports", "ListTables", "ListTagsOfResource", "PutItem", "PutResourcePolicy", "Query",
    "RestoreTableFromBackup", "RestoreTableToPointInTime", "Scan", "StartBulkPutItems",
    "TagResource", "TransactGetItems", "TransactWriteItems", "UntagResource",
    "UpdateContinuousBackups", "UpdateContributorInsights", "UpdateGlobalTable",
    "UpdateGlobalTableSettings", "UpdateItem", "UpdateKinesisStreamingDestination", "UpdateTable",
    "UpdateTableReplicaAutoScaling", "UpdateTimeToLive",
})  # fmt: skip


def operations_of_the_model() -> list[str]:
    """Every operation in botocore's service model."""
    model = Path(botocore.__file__).parent / "data/dynamodb/2012-08-10/service-2.json.gz"
    return sorted(json.loads(gzip.decompress(model.read_bytes()))["operations"])


@pytest.mark.ours_alone("AWS has them all")
@pytest.mark.parametrize(
    "operation", [name for name in operations_of_the_model() if name not in IMPLEMENTED]
)
def test_an_operation_that_is_not_implemented_is_reported(wire: WireClient, operation: str):
    answer = wire.send(operation, {})
    assert answer.status in (400, 501)
    assert "not implemented" in answer.json["message"].lower()
    assert operation in answer.json["message"]
