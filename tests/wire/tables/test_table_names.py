"""Valid and invalid table names and ARNs."""

from __future__ import annotations

import pytest

from tests.support.clients.clients import WireClient

KEY = {"pk": {"S": "a"}}


@pytest.fixture(scope="module")
def arn(wire: WireClient, simple: str) -> str:
    described = wire("DescribeTable", {"TableName": simple})["Table"]
    text: str = described["TableArn"]
    return text


@pytest.mark.parametrize(
    "operation", ["GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan"]
)
def test_every_operation_accepts_an_arn(wire: WireClient, arn: str, operation: str):
    members = {
        "PutItem": {"Item": KEY},
        "Query": {
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": "a"}},
        },
        "Scan": {},
    }.get(operation, {"Key": KEY})
    assert wire.send(operation, {"TableName": arn, **members}).status == 200


@pytest.mark.parametrize(
    "name",
    ["", "a", "ab", "a" * 256, "a b", "a/b", "a#b", "é" * 3, "a:b", "table\n", "../../etc/passwd"],
)
@pytest.mark.parametrize("operation", ["GetItem", "DescribeTable", "DeleteTable"])
def test_a_bad_name_is_a_validation_error(wire: WireClient, operation: str, name: str):
    members = {"Key": KEY} if operation == "GetItem" else {}
    assert wire.refused(operation, {"TableName": name, **members}).type == "ValidationException"


@pytest.mark.parametrize(
    "name",
    [
        "arn:",
        "arn:aws",
        "arn:aws:dynamodb:us-east-1:000000000000",
        "arn:aws:dynamodb:us-east-1:000000000000:table/",
        "arn:aws:dynamodb:us-east-1:000000000000:table/ab",
        "arn:aws:dynamodb:us-east-1:000000000000:table/a b c",
    ],
)
def test_a_malformed_arn_is_a_validation_error(wire: WireClient, name: str):
    assert wire.refused("GetItem", {"TableName": name, "Key": KEY}).type == "ValidationException"


@pytest.mark.differs_from_dynamodb_local("other words")
@pytest.mark.parametrize("name", ["foo:bar", "foo:bar:baz:0:table/films"])
def test_a_name_with_a_colon_is_parsed_as_an_arn(wire: WireClient, name: str):
    assert wire.refused("GetItem", {"TableName": name, "Key": KEY}) == (
        "ValidationException",
        "ARNs must start with 'arn:'",
    )


def test_an_arn_of_an_unknown_table_is_not_found(wire: WireClient, arn: str):
    other = arn.rpartition("/")[0] + "/no-such-table-anywhere"
    request = {"TableName": other, "Key": KEY}
    assert wire.refused("GetItem", request).type == "ResourceNotFoundException"


def test_a_query_of_an_index_of_an_unknown_table_reports_the_table(wire: WireClient):
    request = {
        "TableName": "no-such-table-anywhere",
        "IndexName": "no-such-index",
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": "a"}},
    }
    assert wire.refused("Query", request).type == "ResourceNotFoundException"
