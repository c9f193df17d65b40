"""ConsumedCapacity: the units of each operation, in total and by index."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.tables.tables import table

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

KIB = 1024


def sized(pk: str, size_bytes: int, sort: str = "s", **attributes: Any) -> dict[str, Any]:
    """An item of ``size_bytes``, without its other attributes."""
    filler = size_bytes - len("pk") - len(pk) - len("sk") - len(sort) - len("v")
    return {
        "pk": {"S": pk},
        "sk": {"S": sort},
        "v": {"S": "x" * filler},
    } | attributes


def key(pk: str, sort: str = "s") -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sort}}


def cost(wire: WireClient, operation: str, request: dict[str, Any], kind: str = "TOTAL") -> Any:
    return wire(operation, request | {"ReturnConsumedCapacity": kind})["ConsumedCapacity"]


def total(table_name: str, units: float) -> dict[str, Any]:
    return {"TableName": table_name, "CapacityUnits": units}


def test_nothing_is_reported_unless_requested(wire: WireClient, composite: str, pk: str):
    request = {"TableName": composite, "Item": sized(pk, 100)}
    assert wire("PutItem", request) == {}
    assert wire("PutItem", request | {"ReturnConsumedCapacity": "NONE"}) == {}


@pytest.mark.parametrize(
    ("size_bytes", "units"),
    [(100, 1.0), (KIB, 1.0), (KIB + 1, 2.0), (10 * KIB, 10.0), (10 * KIB + 1, 11.0)],
)
def test_a_put_costs_a_unit_for_each_kb(
    wire: WireClient, composite: str, pk: str, *, size_bytes: int, units: float
):
    request = {"TableName": composite, "Item": sized(pk, size_bytes)}
    assert cost(wire, "PutItem", request) == total(composite, units)


def test_a_write_costs_the_size_of_the_larger_of_old_and_new_item(
    wire: WireClient, composite: str, pk: str
):
    wire("PutItem", {"TableName": composite, "Item": sized(pk, 5 * KIB)})
    smaller = {"TableName": composite, "Item": sized(pk, 100)}
    assert cost(wire, "PutItem", smaller) == total(composite, 5.0)
    update = {
        "TableName": composite,
        "Key": key(pk),
        "UpdateExpression": "SET v = :v",
        "ExpressionAttributeValues": {":v": {"S": "x" * 3 * KIB}},
    }
    assert cost(wire, "UpdateItem", update) == total(composite, 4.0)
    assert cost(wire, "DeleteItem", {"TableName": composite, "Key": key(pk)}) == total(
        composite, 4.0
    )


def test_deleting_a_missing_item_costs_one_unit(wire: WireClient, composite: str, pk: str):
    request = {"TableName": composite, "Key": key(pk)}
    assert cost(wire, "DeleteItem", request) == total(composite, 1.0)


def test_an_update_that_creates_nothing_costs_one_unit(wire: WireClient, composite: str, pk: str):
    request = {"TableName": composite, "Key": key(pk), "UpdateExpression": "REMOVE v"}
    assert cost(wire, "UpdateItem", request) == total(composite, 1.0)


@pytest.mark.parametrize(
    ("size_bytes", "eventual", "strong"),
    [(100, 0.5, 1.0), (4 * KIB, 0.5, 1.0), (4 * KIB + 1, 1.0, 2.0), (20 * KIB, 2.5, 5.0)],
)
def test_a_get_costs_a_unit_for_each_4_kb_and_half_if_eventually_consistent(
    wire: WireClient, composite: str, pk: str, *, size_bytes: int, eventual: float, strong: float
):
    wire("PutItem", {"TableName": composite, "Item": sized(pk, size_bytes)})
    request = {"TableName": composite, "Key": key(pk)}
    assert cost(wire, "GetItem", request) == total(composite, eventual)
    assert cost(wire, "GetItem", request | {"ConsistentRead": True}) == total(composite, strong)


def test_a_projection_does_not_reduce_the_cost_of_a_get(wire: WireClient, composite: str, pk: str):
    wire("PutItem", {"TableName": composite, "Item": sized(pk, 20 * KIB)})
    request = {"TableName": composite, "Key": key(pk), "ProjectionExpression": "pk"}
    assert cost(wire, "GetItem", request) == total(composite, 2.5)


def test_a_missing_item_costs_half_a_unit_or_one(wire: WireClient, composite: str, pk: str):
    request = {"TableName": composite, "Key": key(pk)}
    assert cost(wire, "GetItem", request) == total(composite, 0.5)
    assert cost(wire, "GetItem", request | {"ConsistentRead": True}) == total(composite, 1.0)


def test_with_indexes_the_units_of_the_table_are_reported_separately(
    wire: WireClient, composite: str, pk: str
):
    put = {"TableName": composite, "Item": sized(pk, 100)}
    expected = total(composite, 1.0) | {"Table": {"CapacityUnits": 1.0}}
    assert cost(wire, "PutItem", put, "INDEXES") == expected
    get = {"TableName": composite, "Key": key(pk), "ConsistentRead": True}
    assert cost(wire, "GetItem", get, "INDEXES") == expected


def test_a_put_costs_a_unit_in_each_index_that_gets_an_entry(
    wire: WireClient, indexed: str, pk: str
):
    item = sized(pk, 100, a={"S": "a"}, k={"N": "1"})
    report = cost(wire, "PutItem", {"TableName": indexed, "Item": item}, "INDEXES")
    assert report == total(indexed, 3.0) | {
        "Table": {"CapacityUnits": 1.0},
        "LocalSecondaryIndexes": {
            "by-all": {"CapacityUnits": 1.0},
            "by-keys": {"CapacityUnits": 1.0},
        },
    }


def test_a_put_without_index_keys_costs_only_units_of_the_table(
    wire: WireClient, indexed: str, pk: str
):
    request = {"TableName": indexed, "Item": sized(pk, 100)}
    assert cost(wire, "PutItem", request, "INDEXES") == total(indexed, 1.0) | {
        "Table": {"CapacityUnits": 1.0}
    }


def test_changing_an_index_key_costs_two_writes_and_removing_it_one(
    wire: WireClient, indexed: str, pk: str
):
    wire("PutItem", {"TableName": indexed, "Item": sized(pk, 100, k={"N": "1"})})
    move = {
        "TableName": indexed,
        "Key": key(pk),
        "UpdateExpression": "SET k = :k",
        "ExpressionAttributeValues": {":k": {"N": "2"}},
    }
    assert cost(wire, "UpdateItem", move, "INDEXES") == total(indexed, 3.0) | {
        "Table": {"CapacityUnits": 1.0},
        "LocalSecondaryIndexes": {"by-keys": {"CapacityUnits": 2.0}},
    }
    remove = {"TableName": indexed, "Key": key(pk), "UpdateExpression": "REMOVE k"}
    assert cost(wire, "UpdateItem", remove, "INDEXES") == total(indexed, 2.0) | {
        "Table": {"CapacityUnits": 1.0},
        "LocalSecondaryIndexes": {"by-keys": {"CapacityUnits": 1.0}},
    }


def test_a_write_that_changes_no_projected_attribute_costs_no_units_of_the_index(
    wire: WireClient, indexed: str, pk: str
):
    wire("PutItem", {"TableName": indexed, "Item": sized(pk, 100, k={"N": "1"}, a={"S": "a"})})
    update = {
        "TableName": indexed,
        "Key": key(pk),
        "UpdateExpression": "SET z = :z",
        "ExpressionAttributeValues": {":z": {"S": "z"}},
    }
    report = cost(wire, "UpdateItem", update, "INDEXES")
    assert report == total(indexed, 2.0) | {
        "Table": {"CapacityUnits": 1.0},
        "LocalSecondaryIndexes": {"by-all": {"CapacityUnits": 1.0}},
    }


def query(pk: str, table_name: str, **members: Any) -> dict[str, Any]:
    return {
        "TableName": table_name,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": pk}},
    } | members


def test_a_query_rounds_up_the_total_size_of_its_items(wire: WireClient, composite: str, pk: str):
    for sort in range(8):
        wire("PutItem", {"TableName": composite, "Item": sized(pk, KIB, str(sort))})
    request = query(pk, composite)
    assert cost(wire, "Query", request) == total(composite, 1.0)
    assert cost(wire, "Query", request | {"ConsistentRead": True}) == total(composite, 2.0)
    assert cost(wire, "Query", request | {"Limit": 5}) == total(composite, 1.0)
    assert cost(wire, "Query", request | {"Limit": 4}) == total(composite, 0.5)
    filtered = request | {"FilterExpression": "attribute_not_exists(v)"}
    assert cost(wire, "Query", filtered) == total(composite, 1.0)
    assert cost(wire, "Query", request | {"Select": "COUNT"}) == total(composite, 1.0)


@differs_from_dynamodb_local("it charges nothing")
def test_an_empty_query_costs_half_a_unit(wire: WireClient, composite: str, pk: str):
    assert cost(wire, "Query", query(pk, composite)) == total(composite, 0.5)


def test_an_index_query_costs_the_size_of_entries(wire: WireClient, indexed: str, pk: str):
    for sort in range(4):
        item = sized(pk, 5 * KIB, str(sort), k={"N": str(sort)})
        wire("PutItem", {"TableName": indexed, "Item": item})
    request = query(pk, indexed, IndexName="by-keys")
    assert cost(wire, "Query", request) == total(indexed, 0.5)
    report = cost(wire, "Query", request | {"ConsistentRead": True}, "INDEXES")
    assert report == total(indexed, 1.0) | {
        "Table": {"CapacityUnits": 0.0},
        "LocalSecondaryIndexes": {"by-keys": {"CapacityUnits": 1.0}},
    }


@differs_from_dynamodb_local("it charges fetches otherwise")
def test_a_fetch_from_the_table_costs_the_whole_size_of_each_item(
    wire: WireClient, indexed: str, pk: str
):
    for sort in range(4):
        item = sized(pk, 5 * KIB, str(sort), k={"N": str(sort)})
        wire("PutItem", {"TableName": indexed, "Item": item})
    request = query(pk, indexed, IndexName="by-keys", ProjectionExpression="v")
    report = cost(wire, "Query", request | {"ConsistentRead": True}, "INDEXES")
    assert report == total(indexed, 9.0) | {
        "Table": {"CapacityUnits": 8.0},
        "LocalSecondaryIndexes": {"by-keys": {"CapacityUnits": 1.0}},
    }
    assert cost(wire, "Query", request) == total(indexed, 4.5)


@differs_from_dynamodb_local("it charges nothing for a missing item")
def test_a_batch_get_rounds_up_the_size_of_each_item(wire: WireClient, composite: str, pk: str):
    for sort in ("a", "b"):
        wire("PutItem", {"TableName": composite, "Item": sized(pk, 100, sort)})
    keys = [key(pk, sort) for sort in ("a", "b", "missing")]
    request = {"RequestItems": {composite: {"Keys": keys}}}
    assert cost(wire, "BatchGetItem", request) == [total(composite, 1.5)]
    strong = {"RequestItems": {composite: {"Keys": keys, "ConsistentRead": True}}}
    assert cost(wire, "BatchGetItem", strong) == [total(composite, 3.0)]
    assert cost(wire, "BatchGetItem", strong, "INDEXES") == [
        total(composite, 3.0) | {"Table": {"CapacityUnits": 3.0}}
    ]


def test_a_batch_write_reports_each_table(wire: WireClient, composite: str, indexed: str, pk: str):
    requests = {
        composite: [{"PutRequest": {"Item": sized(pk, KIB + 1, sort)}} for sort in "ab"],
        indexed: [{"PutRequest": {"Item": sized(pk, 100, k={"N": "1"})}}],
    }
    reports = cost(wire, "BatchWriteItem", {"RequestItems": requests}, "INDEXES")
    by_table = {report["TableName"]: report for report in reports}
    assert by_table[composite] == total(composite, 4.0) | {"Table": {"CapacityUnits": 4.0}}
    assert by_table[indexed] == total(indexed, 2.0) | {
        "Table": {"CapacityUnits": 1.0},
        "LocalSecondaryIndexes": {"by-keys": {"CapacityUnits": 1.0}},
    }


def test_a_scan_costs_the_size_of_the_items_it_reads(wire: WireClient):
    with table(wire, "pk:S", "sk:S") as name:
        for sort in range(8):
            wire("PutItem", {"TableName": name, "Item": sized("p", 4 * KIB, str(sort))})
        units = cost(wire, "Scan", {"TableName": name})["CapacityUnits"]
        strong = cost(wire, "Scan", {"TableName": name, "ConsistentRead": True})["CapacityUnits"]
        # A scan reads at least one page of each of the 4 partitions.
        assert units >= 4.0
        assert strong == 2 * units
