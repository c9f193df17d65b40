"""Describing, listing, deleting and recreating tables."""

from __future__ import annotations

import pytest

from tests.support.clients.clients import WireClient
from tests.support.tables.tables import (
    definition,
    local_index,
    table,
    unique_name,
    wait_until_active,
)

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local


@differs_from_dynamodb_local("other words")
@pytest.mark.parametrize("operation", ["DescribeTable", "DeleteTable"])
def test_an_unknown_table_is_not_found(wire: WireClient, operation: str):
    name = unique_name()
    assert wire.refused(operation, {"TableName": name}) == (
        "ResourceNotFoundException",
        f"Requested resource not found: Table: {name} not found",
    )


def test_a_table_is_described_by_its_arn_too(wire: WireClient, indexed: str):
    by_name = wire("DescribeTable", {"TableName": indexed})
    by_arn = wire("DescribeTable", {"TableName": by_name["Table"]["TableArn"]})
    assert by_arn == by_name


def test_items_and_bytes_are_counted(wire: WireClient):
    index = local_index("by-a", "pk", "a", "KEYS_ONLY")
    with table(wire, "pk:S", "sk:S", "a:S", indexes=(index,)) as name:
        for number in range(4):
            item = {"pk": {"S": "p"}, "sk": {"S": str(number)}, "v": {"S": "x" * 100}}
            if number < 3:
                item["a"] = {"S": "a"}
            wire("PutItem", {"TableName": name, "Item": item})
        wire("DeleteItem", {"TableName": name, "Key": {"pk": {"S": "p"}, "sk": {"S": "0"}}})
        described = wire("DescribeTable", {"TableName": name})["Table"]
        assert described["ItemCount"] == 3
        assert described["TableSizeBytes"] >= 3 * 107
        assert described["LocalSecondaryIndexes"][0]["ItemCount"] == 2


def test_a_deleted_table_is_gone(wire: WireClient):
    request = definition("pk:S")
    name = request["TableName"]
    wire("CreateTable", request)
    wait_until_active(wire, name)
    wire("PutItem", {"TableName": name, "Item": {"pk": {"S": "a"}}})
    description = wire("DeleteTable", {"TableName": name})["TableDescription"]
    assert description["TableName"] == name
    while wire.send("DescribeTable", {"TableName": name}).status == 200:
        pass
    for operation, members in (
        ("GetItem", {"Key": {"pk": {"S": "a"}}}),
        ("PutItem", {"Item": {"pk": {"S": "a"}}}),
        ("Scan", {}),
    ):
        refusal = wire.refused(operation, {"TableName": name, **members})
        assert refusal.type == "ResourceNotFoundException"


@differs_from_dynamodb_local("its answer has all members")
def test_the_answer_to_delete_table_is_short(wire: WireClient):
    request = definition("pk:S", "sk:S", "a:S", indexes=(local_index("by-a", "pk", "a"),))
    wire("CreateTable", request)
    wait_until_active(wire, request["TableName"])
    answer = wire("DeleteTable", {"TableName": request["TableName"]})
    assert answer["TableDescription"]["TableStatus"] == "DELETING"
    missing = {"KeySchema", "AttributeDefinitions", "LocalSecondaryIndexes", "CreationDateTime"}
    assert not missing & answer["TableDescription"].keys()


def test_a_recreated_table_has_no_items_of_the_old_one(wire: WireClient):
    name = unique_name()
    for text in ("first", "second", "third"):
        request = definition("pk:S", "sk:S", "a:S", indexes=(local_index("by-a", "pk", "a"),))
        wire("CreateTable", request | {"TableName": name})
        wait_until_active(wire, name)
        assert wire("Scan", {"TableName": name})["Count"] == 0
        assert wire("Scan", {"TableName": name, "IndexName": "by-a"})["Count"] == 0
        item = {"pk": {"S": text}, "sk": {"S": "s"}, "a": {"S": "a"}}
        wire("PutItem", {"TableName": name, "Item": item})
        assert wire("Scan", {"TableName": name})["Items"] == [item]
        wire("DeleteTable", {"TableName": name})
        while wire.send("DescribeTable", {"TableName": name}).status == 200:
            pass


def test_tables_are_listed_in_order_and_in_pages(wire: WireClient):
    prefix = unique_name("listed")
    names = [f"{prefix}-{number}" for number in range(5)]
    for name in reversed(names):
        wire("CreateTable", definition("pk:S", name=name))
    listed = wire("ListTables", {"ExclusiveStartTableName": f"{prefix}-"})["TableNames"]
    assert listed[:5] == names
    first = wire("ListTables", {"ExclusiveStartTableName": names[0], "Limit": 2})
    assert first == {"TableNames": names[1:3], "LastEvaluatedTableName": names[2]}
    second = wire("ListTables", {"ExclusiveStartTableName": names[2], "Limit": 1})
    assert second["TableNames"] == names[3:4]
    for name in names:
        wait_until_active(wire, name)
        wire("DeleteTable", {"TableName": name})


def test_a_page_of_list_tables_has_at_most_100_names(wire: WireClient):
    prefix = unique_name("many")
    names = [f"{prefix}-{number:03}" for number in range(101)]
    for name in names:
        wire("CreateTable", definition("pk:S", name=name))
    answer = wire("ListTables", {"ExclusiveStartTableName": f"{prefix}-"})
    assert answer["TableNames"] == names[:100]
    assert answer["LastEvaluatedTableName"] == names[99]
    for name in names:
        wait_until_active(wire, name)
        wire("DeleteTable", {"TableName": name})


def test_the_last_page_has_no_last_evaluated_table(wire: WireClient, simple: str):
    answer = wire("ListTables", {"ExclusiveStartTableName": "zzzzzzzz"})
    assert answer == {"TableNames": []}
    everything = []
    request = {"Limit": 100}
    while True:
        answer = wire("ListTables", request)
        everything += answer["TableNames"]
        if "LastEvaluatedTableName" not in answer:
            break
        request = {"Limit": 100, "ExclusiveStartTableName": answer["LastEvaluatedTableName"]}
    assert simple in everything
    assert everything == sorted(everything)


def test_tables_can_be_created_and_deleted_repeatedly(wire: WireClient):
    for _ in range(50):
        with table(wire, "pk:S") as name:
            wire("PutItem", {"TableName": name, "Item": {"pk": {"S": "a"}}})
            assert wire("GetItem", {"TableName": name, "Key": {"pk": {"S": "a"}}})
