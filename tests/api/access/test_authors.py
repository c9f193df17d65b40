"""The records of changes name the access key of the caller."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.access.callers import Callers
from tests.support.access.deciding import policy
from tests.support.access.tenants import CREATE, item, key
from tests.support.databases.databases import running_database

PUT = {"TableName": "Notes", "Item": item("ann", "1")}
DELETE = {"TableName": "Notes", "Key": key("ann", "1")}
UPDATE = {
    **DELETE,
    "UpdateExpression": "SET changes = :c",
    "ExpressionAttributeValues": {":c": {"N": "1"}},
}
INSERT = {"Statement": "INSERT INTO Notes VALUE {'tenant': 'ann', 'id': '1'}"}
WRITES: dict[str, dict[str, Any]] = {
    "PutItem": PUT,
    "UpdateItem": UPDATE,
    "BatchWriteItem": {"RequestItems": {"Notes": [{"PutRequest": {"Item": PUT["Item"]}}]}},
    "TransactWriteItems": {"TransactItems": [{"Put": PUT}]},
    "ExecuteStatement": INSERT,
    "BatchExecuteStatement": {"Statements": [INSERT]},
    "ExecuteTransaction": {"TransactStatements": [INSERT]},
}


async def authors(callers: Callers) -> list[str]:
    """The access keys in the stream of the table, the oldest change first."""
    (stream,) = (await callers.call("root", "ListStreams", {})).body["Streams"]
    described = await callers.call("root", "DescribeStream", {"StreamArn": stream["StreamArn"]})
    found = []
    for shard in described.body["StreamDescription"]["Shards"]:
        request = {
            "StreamArn": stream["StreamArn"],
            "ShardId": shard["ShardId"],
            "ShardIteratorType": "TRIM_HORIZON",
        }
        iterator = await callers.call("root", "GetShardIterator", request)
        records = await callers.call("root", "GetRecords", iterator.body)
        found += [one["dynactor"]["AccessKeyId"] for one in records.body["Records"]]
    return found


@pytest.mark.parametrize("operation", WRITES)
async def test_a_change_names_its_caller(operation: str):
    async with running_database() as database:
        callers = Callers(database)
        for name in ("root", "ann", "bob"):
            callers.add(name, policy({}))
        await callers.call("root", "CreateTable", CREATE)
        assert (await callers.call("ann", operation, WRITES[operation])).status == 200
        assert (await callers.call("bob", "DeleteItem", DELETE)).status == 200
        assert await authors(callers) == ["AKIAann", "AKIAbob"]
