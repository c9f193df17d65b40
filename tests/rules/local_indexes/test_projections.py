"""S16-S20, S25-S28: creating local secondary indexes, and their projections."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.local_indexes.thread import (
    KEYS,
    LAST_POST,
    last_post_index,
    padded,
    put_all,
    query,
    texts,
    thread,
    thread_table,
    units,
)
from tests.support.clients.clients import WireClient
from tests.support.tables.tables import definition, unique_name, wait_until_active

FULL_THREAD = thread("EC2", "a", "1", Replies="5", Tags="t", Message="m")


def entry_of(client: Any, wire: WireClient, *projection: Any) -> dict[str, Any]:
    """The attributes of a complete thread in an index with this projection."""
    with thread_table(wire, *projection) as name:
        put_all(client, name, [FULL_THREAD])
        [entry] = query(client, name, "EC2", IndexName=LAST_POST)["Items"]
    return entry


def test_s16_keys_only_projects_the_keys_of_table_and_index(client, wire):
    assert entry_of(client, wire, "KEYS_ONLY") == thread("EC2", "a", "1")


def test_s17_include_projects_the_keys_and_the_named_attributes(client, wire):
    entry = entry_of(client, wire, "INCLUDE", ("Replies", "Message", "Missing"))

    assert entry == thread("EC2", "a", "1", Replies="5", Message="m")


def test_s18_all_projects_every_attribute(client, wire):
    assert entry_of(client, wire, "ALL") == FULL_THREAD


@pytest.mark.parametrize("projection", [None, {}])
def test_s19_an_index_without_a_projection_is_refused(wire, projection):
    index = last_post_index()
    del index["Projection"]
    if projection is not None:
        index["Projection"] = projection

    refusal = wire.refused("CreateTable", definition(*KEYS, indexes=(index,)))

    assert refusal.type == "ValidationException"
    assert "rojection" in (refusal.message or "")


@pytest.mark.differs_from_dynamodb_local("it charges fetches that are not made")
def test_s20_projected_attributes_cost_as_if_the_index_were_a_table(client, threads, forum):
    keys = (thread(forum, f"{n}", f"{n}") for n in range(8))
    put_all(client, threads, (padded(item, "Replies", 1_000) for item in keys))
    ask = {"ConsistentRead": True, "ReturnConsumedCapacity": "INDEXES"}

    of_table = query(client, threads, forum, **ask)
    of_index = query(client, threads, forum, IndexName=LAST_POST, **ask)
    of_some = query(
        client, threads, forum, IndexName=LAST_POST, ProjectionExpression="Replies", **ask
    )

    assert units(of_table) == (2.0, 2.0, {})
    assert units(of_index) == (2.0, 0.0, {LAST_POST: 2.0})
    assert units(of_some) == units(of_index)


def test_s25_local_indexes_are_created_only_with_their_table(wire):
    with thread_table(wire) as name:
        refusal = wire.refused(
            "UpdateTable",
            {
                "TableName": name,
                "LocalSecondaryIndexes": [last_post_index() | {"IndexName": "new"}],
            },
        )
        wire("UpdateTable", {"TableName": name, "BillingMode": "PAY_PER_REQUEST"})
        described = wait_until_active(wire, name)["LocalSecondaryIndexes"]

    assert refusal.type == "ValidationException"
    assert [index["IndexName"] for index in described] == [LAST_POST]


def test_s26_deleting_a_table_deletes_its_indexes(client, wire):
    name = unique_name("thread")
    for _ in range(2):
        with thread_table(wire, name=name) as created:
            assert query(client, created, "EC2", IndexName=LAST_POST)["Items"] == []
            put_all(client, created, [thread("EC2", "a", "1")])
            entries = query(client, created, "EC2", IndexName=LAST_POST, ConsistentRead=True)
            assert texts(entries["Items"], "Subject") == ["a"]
        while wire.send("DescribeTable", {"TableName": name}).status == 200:
            continue
        with pytest.raises(client.exceptions.ResourceNotFoundException):
            query(client, name, "EC2", IndexName=LAST_POST)


@pytest.mark.parametrize(
    ("type_name", "posted"),
    [("S", {"S": "1"}), ("N", {"N": "1"}), ("B", {"B": b"1"})],
)
def test_s27_the_index_sort_key_may_be_a_string_number_or_binary(client, wire, type_name, posted):
    keys = (*KEYS[:2], f"LastPostDateTime:{type_name}")
    request = definition(*keys, indexes=(last_post_index(),))
    name = request["TableName"]
    wire("CreateTable", request)
    wait_until_active(wire, name)
    put_all(client, name, [thread("EC2", "a") | {"LastPostDateTime": posted}])

    [entry] = query(client, name, "EC2", IndexName=LAST_POST)["Items"]
    wire("DeleteTable", {"TableName": name})

    assert entry["LastPostDateTime"] == posted


@pytest.mark.parametrize("type_name", ["BOOL", "NULL", "M", "L", "SS", "NS", "BS"])
def test_s27_an_index_sort_key_of_another_type_is_refused(wire, type_name):
    keys = (*KEYS[:2], f"LastPostDateTime:{type_name}")

    refusal = wire.refused("CreateTable", definition(*keys, indexes=(last_post_index(),)))

    assert refusal.type == "ValidationException"


@pytest.mark.differs_from_dynamodb_local("its messages name neither attribute nor index")
@pytest.mark.parametrize("type_name", ["BOOL", "NULL", "M", "L", "SS", "NS", "BS"])
def test_s27_an_item_may_not_give_the_index_sort_key_another_type(client, threads, type_name):
    values = {
        "BOOL": True,
        "NULL": True,
        "M": {"a": {"S": "1"}},
        "L": [{"S": "1"}],
        "SS": ["1"],
        "NS": ["1"],
        "BS": [b"1"],
    }
    item = thread("EC2", "a") | {"LastPostDateTime": {type_name: values[type_name]}}

    with pytest.raises(client.exceptions.ClientError, match="ValidationException") as refused:
        client.put_item(TableName=threads, Item=item)

    assert LAST_POST in str(refused.value)


@pytest.mark.parametrize("projection", ["INCLUDE", "ALL"])
def test_s28_attributes_of_any_type_can_be_projected(client, wire, projection):
    values = {
        "s": {"S": "text"},
        "n": {"N": "-1.5"},
        "b": {"B": b"\x00\xff"},
        "bool": {"BOOL": False},
        "null": {"NULL": True},
        "m": {"M": {"a": {"L": [{"M": {}}]}}},
        "l": {"L": [{"N": "1"}, {"S": ""}]},
        "ss": {"SS": ["a", "b"]},
        "ns": {"NS": ["1", "2"]},
        "bs": {"BS": [b"a", b"b"]},
    }
    item = thread("EC2", "a", "1") | values
    with thread_table(wire, projection, tuple(values)) as name:
        put_all(client, name, [item])
        [entry] = query(client, name, "EC2", IndexName=LAST_POST)["Items"]

    assert entry == item
