"""Global tables of the version 2017.11.29, which has ended on AWS, and auto scaling of replicas."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient

pytestmark = pytest.mark.differs_from_dynamodb_local("it knows no global tables")

NOT_SUPPORTED = (
    "One or more parameter values were invalid: DynamoDB global tables version 2017.11.29 is not "
    "supported. We recommend using DynamoDB global tables version 2019.11.21, instead of version "
    "2017.11.29 (Legacy)."
)
REGION = {"RegionName": "eu-west-1"}


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("CreateGlobalTable", {"ReplicationGroup": [REGION]}),
        ("UpdateGlobalTable", {"ReplicaUpdates": [{"Create": REGION}]}),
    ],
)
def test_no_global_table_is_created(wire: WireClient, operation: str, members: Any):
    request = {"GlobalTableName": "no-such-table-anywhere", **members}
    assert wire.refused(operation, request) == ("ValidationException", NOT_SUPPORTED)
    assert wire("ListGlobalTables", {}) == {"GlobalTables": []}


def test_an_update_of_no_regions_is_refused(wire: WireClient, simple: str):
    request = {"GlobalTableName": simple, "ReplicaUpdates": []}
    assert wire.refused("UpdateGlobalTable", request) == (
        "ValidationException",
        "One or more parameter values were invalid",
    )


@pytest.mark.parametrize(
    ("operation", "members", "before"),
    [
        ("DescribeGlobalTable", {}, "Global table not found: "),
        ("DescribeGlobalTableSettings", {}, ""),
        ("UpdateGlobalTableSettings", {"GlobalTableBillingMode": "PAY_PER_REQUEST"}, ""),
        ("UpdateGlobalTable", {"ReplicaUpdates": [{"Delete": REGION}]}, ""),
    ],
)
def test_no_table_is_a_global_table(
    wire: WireClient, simple: str, operation: str, members: Any, before: str
):
    for name in (simple, "no-such-table-anywhere"):
        assert wire.refused(operation, {"GlobalTableName": name, **members}) == (
            "GlobalTableNotFoundException",
            f"{before}Global table with name: '{name}' does not exist.",
        )


@pytest.mark.parametrize(
    "operation", ["DescribeTableReplicaAutoScaling", "UpdateTableReplicaAutoScaling"]
)
def test_no_table_has_auto_scaling_of_replicas(wire: WireClient, simple: str, operation: str):
    arn = wire("DescribeTable", {"TableName": simple})["Table"]["TableArn"]
    for name in (simple, arn):
        assert wire.refused(operation, {"TableName": name}) == (
            "ResourceNotFoundException",
            f"Global table with name: '{simple}' does not exist.",
        )


def test_faults_of_a_request_are_reported_first(wire: WireClient):
    refusal = wire.refused("CreateGlobalTable", {"GlobalTableName": "ab"})
    assert refusal.type == "ValidationException"
    assert refusal.message is not None
    assert refusal.message.startswith("2 validation errors detected: ")
