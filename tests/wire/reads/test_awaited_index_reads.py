"""With ``--gsi-lag awaited``, reads of an index are never behind its table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.servers.server import running_server
from tests.support.tables.tables import global_index, key_schema, table, wait_until_indexes_active

pytestmark = pytest.mark.ours_alone("no other server has the option")

# Without waiting, some of this many reads right after a write precede the index's update.
ROUNDS = 40


@pytest.fixture(scope="module")
def awaited() -> Iterator[WireClient]:
    with (
        running_server("--gsi-lag", "awaited") as server,
        closing(WireClient(server.endpoint)) as wire,
    ):
        yield wire


@pytest.fixture
def name(awaited: WireClient) -> Iterator[str]:
    members = {"KeySchema": key_schema("id")}
    indexes = [global_index("by-state", "state")]
    with table(awaited, "id:S", "state:S", GlobalSecondaryIndexes=indexes, **members) as made:
        wait_until_indexes_active(awaited, made)
        yield made


def item(number: int, state: str) -> dict[str, Any]:
    return {"id": {"S": str(number)}, "state": {"S": state}}


def found(wire: WireClient, name: str, state: str) -> int:
    request = {
        "TableName": name,
        "IndexName": "by-state",
        "KeyConditionExpression": "#s = :s",
        "ExpressionAttributeNames": {"#s": "state"},
        "ExpressionAttributeValues": {":s": {"S": state}},
    }
    return wire("Query", request)["Count"]


def test_a_query_sees_every_kind_of_write_that_was_answered(awaited: WireClient, name: str):
    for number in range(ROUNDS):
        awaited("PutItem", {"TableName": name, "Item": item(number, f"new {number}")})
        assert found(awaited, name, f"new {number}") == 1
        change = {
            "TableName": name,
            "Key": {"id": {"S": str(number)}},
            "UpdateExpression": "SET #s = :s",
            "ExpressionAttributeNames": {"#s": "state"},
            "ExpressionAttributeValues": {":s": {"S": f"paid {number}"}},
        }
        awaited("UpdateItem", change)
        assert found(awaited, name, f"new {number}") == 0
        assert found(awaited, name, f"paid {number}") == 1
        awaited("DeleteItem", {"TableName": name, "Key": {"id": {"S": str(number)}}})
        assert found(awaited, name, f"paid {number}") == 0


def test_batches_and_transactions_are_seen_whole(awaited: WireClient, name: str):
    puts = [{"PutRequest": {"Item": item(number, "batch")}} for number in range(25)]
    awaited("BatchWriteItem", {"RequestItems": {name: puts}})
    assert found(awaited, name, "batch") == 25
    together = [{"Put": {"TableName": name, "Item": item(n, "together")}} for n in range(100)]
    awaited("TransactWriteItems", {"TransactItems": together})
    assert found(awaited, name, "together") == 100
    assert found(awaited, name, "batch") == 0


def test_scans_and_statements_wait_too(awaited: WireClient, name: str):
    for number in range(ROUNDS):
        awaited("PutItem", {"TableName": name, "Item": item(number, "open")})
        counted = awaited("Scan", {"TableName": name, "IndexName": "by-state", "Select": "COUNT"})
        assert counted["Count"] == number + 1
        awaited("PutItem", {"TableName": name, "Item": item(number, f"done {number}")})
        statement = f"""SELECT id FROM "{name}"."by-state" WHERE "state" = 'done {number}'"""
        assert len(awaited("ExecuteStatement", {"Statement": statement})["Items"]) == 1
