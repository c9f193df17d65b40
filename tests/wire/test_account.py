"""Operations that tell of the account and of settings: limits, endpoints, backups, TTL."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import botocore
import pytest

from tests.support.clients import WireClient
from tests.support.tables import unique_name

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
def test_the_endpoint_is_the_host_that_was_asked(wire: WireClient):
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


def test_time_to_live_is_described_as_disabled(wire: WireClient, simple: str):
    assert wire("DescribeTimeToLive", {"TableName": simple}) == {
        "TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}
    }


def test_the_time_to_live_of_an_unknown_table_is_not_found(wire: WireClient):
    refusal = wire.refused("DescribeTimeToLive", {"TableName": unique_name()})
    assert refusal.type == "ResourceNotFoundException"


IMPLEMENTED = frozenset({
    "BatchExecuteStatement", "BatchGetItem", "BatchWriteItem", "CreateTable", "DeleteItem",
    "DeleteTable",
    "DescribeContinuousBackups", "DescribeContributorInsights", "DescribeEndpoints",
    "DescribeKinesisStreamingDestination",
    "DescribeLimits", "DescribeTable", "DescribeTimeToLive",
    "DisableKinesisStreamingDestination", "EnableKinesisStreamingDestination",
    "ExecuteStatement", "ExecuteTransaction", "GetItem",
    "ListContributorInsights", "ListTables", "ListTagsOfResource", "PutItem", "Query",
    "Scan", "TagResource", "TransactGetItems", "TransactWriteItems", "UntagResource",
    "UpdateContributorInsights", "UpdateItem",
    "UpdateKinesisStreamingDestination", "UpdateTable", "UpdateTimeToLive",
})  # fmt: skip


def operations_of_the_model() -> list[str]:
    """Every operation that botocore knows."""
    model = Path(botocore.__file__).parent / "data/dynamodb/2012-08-10/service-2.json.gz"
    return sorted(json.loads(gzip.decompress(model.read_bytes()))["operations"])


@pytest.mark.ours_alone("AWS has them all")
@pytest.mark.parametrize(
    "operation", [name for name in operations_of_the_model() if name not in IMPLEMENTED]
)
def test_an_operation_that_is_not_there_yet_says_so(wire: WireClient, operation: str):
    answer = wire.send(operation, {})
    assert answer.status in (400, 501)
    assert "not implemented" in answer.json["message"].lower()
    assert operation in answer.json["message"]
