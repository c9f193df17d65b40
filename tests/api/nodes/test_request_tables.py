"""The tables of a request are found before the request is decoded."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import json, structs

from dynactor.api.execution.operation import Location
from dynactor.api.http.protocol import JSON_1_0, Request
from dynactor.api.nodes.request_tables import _MEMBERS, _one_table, find_tables
from dynactor.api.registry import OPERATIONS
from dynactor.api.requests.hints import shape_members

# The leader executes these, because they concern all tables, or what belongs to no single table.
AT_LEADER = {
    "CancelBulkOperation",
    "CreateBackup",
    "CreateGlobalTable",
    "DeleteBackup",
    "DeleteTable",
    "DescribeBackup",
    "DescribeBulkOperation",
    "DescribeEndpoints",
    "DescribeExport",
    "DescribeGlobalTable",
    "DescribeGlobalTableSettings",
    "DescribeImport",
    "DescribeLimits",
    "DescribeTableReplicaAutoScaling",
    "DisableKinesisStreamingDestination",
    "EnableKinesisStreamingDestination",
    "ExportTableToPointInTime",
    "ImportTable",
    "ListBackups",
    "ListBulkOperations",
    "ListContributorInsights",
    "ListExports",
    "ListGlobalTables",
    "ListImports",
    "ListStreams",
    "ListTables",
    "RestoreTableFromBackup",
    "RestoreTableToPointInTime",
    "StartBulkPutItems",
    "UpdateContinuousBackups",
    "UpdateContributorInsights",
    "UpdateGlobalTable",
    "UpdateGlobalTableSettings",
    "UpdateKinesisStreamingDestination",
    "UpdateTableReplicaAutoScaling",
}
# Members that name no table, or something of the leader.
NO_TABLE = {
    "BackupArn",
    "BackupName",
    "BulkOperationArn",
    "ExclusiveStartBackupArn",
    "ExclusiveStartGlobalTableName",
    "ExclusiveStartStreamArn",
    "ExclusiveStartTableName",
    "ExportArn",
    "GlobalTableName",
    "GlobalTableSourceArn",
    "ImportArn",
    "IndexName",
    "RegionName",
    "TableClass",
}

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/one"
STREAM = f"{ARN}/stream/2026-01-01T00:00:00.000"


def request(operation: str, body: bytes, service: str = "DynamoDB") -> Request:
    return Request(f"{service}_20120810.{operation}", JSON_1_0, *("", "", "", "", ""), body)


def found(operation: str, service: str = "DynamoDB", **members: Any) -> tuple[set[str], bool]:
    tables = find_tables(request(operation, json.encode(members), service))
    return set(tables.names), tables.is_at_home


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("PutItem", {"TableName": "one", "Item": {"pk": {"S": "TableName"}}}),
        ("Query", {"TableName": ARN, "IndexName": "two"}),
        ("BatchGetItem", {"RequestItems": {"one": {}, ARN: {}}}),
        ("TransactWriteItems", {"TransactItems": [{"Put": {"TableName": "one", "Item": {}}}]}),
        ("ExecuteStatement", {"Statement": 'SELECT * FROM "one"."index" WHERE pk = ?'}),
        ("BatchExecuteStatement", {"Statements": [{"Statement": "DELETE FROM one WHERE pk = 1"}]}),
        ("ExecuteTransaction", {"TransactStatements": [{"Statement": "UPDATE one SET a=1"}]}),
        ("ListTagsOfResource", {"ResourceArn": ARN}),
        ("GetResourcePolicy", {"ResourceArn": STREAM}),
        ("UpdateTable", {"TableName": "one"}),
        ("CreateTable", {"TableName": "one"}),
    ],
)
def test_an_operation_on_a_table_is_executed_at_its_home(
    operation: str, members: dict[str, Any]
) -> None:
    assert found(operation, **members) == ({"one"}, True)


def test_streams_are_read_at_the_home_of_their_table() -> None:
    service = "DynamoDBStreams"
    assert found("DescribeStream", service, StreamArn=STREAM) == ({"one"}, True)
    assert found("GetRecords", service, ShardIterator=f"{STREAM}|1|abc") == ({"one"}, True)


def test_a_transaction_names_all_its_tables() -> None:
    items = [{"Update": {"TableName": "one"}}, {"ConditionCheck": {"TableName": "two"}}]
    assert found("TransactWriteItems", TransactItems=items) == ({"one", "two"}, True)


@pytest.mark.parametrize(
    ("operation", "members", "names"),
    [
        ("DeleteTable", {"TableName": "one"}, {"one"}),
        ("CreateBackup", {"TableName": "one", "BackupName": "b"}, {"one"}),
        ("ExportTableToPointInTime", {"TableArn": ARN}, {"one"}),
        (
            "RestoreTableToPointInTime",
            {"SourceTableName": "one", "TargetTableName": "two"},
            {"one", "two"},
        ),
        ("ImportTable", {"TableCreationParameters": {"TableName": "one"}}, {"one"}),
        ("ListTables", {}, set()),
        ("ListBackups", {"TableName": "one"}, set()),
    ],
)
def test_the_leader_executes_what_concerns_more_than_a_table(
    operation: str, members: dict[str, Any], names: set[str]
) -> None:
    assert found(operation, **members) == (names, False)


def test_each_operation_has_a_place() -> None:
    at_home = {name for name, each in OPERATIONS.items() if each.location is Location.HOME}
    assert OPERATIONS.keys() - at_home == AT_LEADER


def test_each_member_with_the_name_of_a_table_is_read() -> None:
    for operation in OPERATIONS.values():
        for member in shape_members(operation.input):
            if member.name.endswith(("Arn", "Name", "Statement", "Statements", "Items")):
                assert member.name in _MEMBERS or member.name in NO_TABLE, operation.name


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("PutItem", {"TableName": "one", "Statement": 5, "StreamArn": [], "RequestItems": "a"}),
        ("CreateTable", {"TableName": "one", "TransactItems": [{"Put": {"TableName": "two"}}]}),
        ("BatchGetItem", {"RequestItems": {"one": {}}, "TableName": "two"}),
        (
            "TransactWriteItems",
            {
                "TransactItems": [{"Put": {"TableName": "one"}, "Delete": None, "Note": "two"}],
                "TableName": "two",
            },
        ),
        ("ExecuteStatement", {"Statement": "SELECT * FROM one", "TableName": "two"}),
        ("Query", {"TableName": "arn:a|b:dynamodb:table/two:0:table/one"}),
    ],
)
def test_members_that_an_operation_ignores_are_ignored(
    operation: str, members: dict[str, Any]
) -> None:
    assert found(operation, **members) == ({"one"}, True)


def test_null_is_no_value() -> None:
    members: dict[str, Any] = {
        "SourceTableName": None,
        "SourceTableArn": ARN,
        "TargetTableName": "two",
    }
    assert found("RestoreTableToPointInTime", **members) == ({"one", "two"}, False)


def test_the_name_of_any_length_is_found_and_long_ones_are_not_cached() -> None:
    name = "t" * 1_000_000
    assert found("PutItem", TableName=name) == ({name}, True)
    cached = _one_table.cache_info().currsize
    for letter in "abc":
        found("PutItem", TableName=letter * 256)
    assert _one_table.cache_info().currsize == cached


def test_a_request_that_cannot_be_read_names_no_table() -> None:
    deep = b'{"TableName":"one","Item":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert find_tables(request("PutItem", deep)).names == ()
    for body in (b"", b"{", b"[]", b'{"TableName":1}', b"\xff"):
        assert find_tables(request("PutItem", body)).names == ()
    packed = structs.replace(request("PutItem", b"no gzip"), content_encoding="gzip")
    assert find_tables(packed).names == ()
    assert found("ExecuteStatement", Statement="SELECT") == (set(), True)
