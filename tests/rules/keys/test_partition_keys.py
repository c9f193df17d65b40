"""S132, S133, S135, S136, S155, S156, S158, S159: properties of a partition key."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from random import Random
from typing import Any

import pytest

from tests.rules.global_indexes.game_scores import (
    GAME_TITLE,
    entries,
    query,
    query_of,
    score,
    scores_table,
    value,
)
from tests.rules.local_indexes.thread import padded, pages, put_all, thread, thread_table, units
from tests.support.clients.clients import WireClient
from tests.support.tables.tables import definition, table

Item = dict[str, dict[str, Any]]
SEGMENTS = 4
MIB = 1024 * 1024


def order(customer: str, number: str, **others: str) -> Item:
    texts = {"Customer": customer, "Order": number} | others
    return {name: {"S": text} for name, text in texts.items()}


def orders_of(wire: WireClient) -> Any:
    return table(wire, "Customer:S", "Order:S")


def segments(wire: WireClient, name: str) -> Iterator[list[Item]]:
    """The items of each segment of a parallel scan."""
    for segment in range(SEGMENTS):
        request = {"TableName": name, "Segment": segment, "TotalSegments": SEGMENTS}
        yield wire("Scan", request)["Items"]


def segment_of_customers(wire: WireClient, name: str) -> dict[str, int]:
    """The segment of each customer; fails if a customer is in two."""
    found: dict[str, int] = {}
    for segment, items in enumerate(segments(wire, name)):
        for item in items:
            assert found.setdefault(item["Customer"]["S"], segment) == segment
    return found


def test_s132_a_primary_key_has_a_partition_key_and_an_optional_sort_key(wire):
    simple = definition("pk:S") | {
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    }
    sort_alone = simple | {"KeySchema": [{"AttributeName": "pk", "KeyType": "RANGE"}]}
    three = definition("pk:S", "sk:S", "more:S")
    three["KeySchema"] = [*three["KeySchema"], {"AttributeName": "more", "KeyType": "RANGE"}]

    with table(wire, "pk:S") as one, table(wire, "pk:S", "sk:S") as two:
        kinds = [
            [
                element["KeyType"]
                for element in wire("DescribeTable", {"TableName": name})["Table"]["KeySchema"]
            ]
            for name in (one, two)
        ]

    assert kinds == [["HASH"], ["HASH", "RANGE"]]
    for wrong in (sort_alone, three):
        assert wire.refused("CreateTable", wrong).type == "ValidationException"


def test_s133_an_item_is_stored_and_found_by_its_primary_key(wire):
    with orders_of(wire) as name:
        for item in (order("a", "1", x="first"), order("a", "2"), order("b", "1")):
            wire("PutItem", {"TableName": name, "Item": item})
        wire("PutItem", {"TableName": name, "Item": order("a", "1", x="second")})

        found = wire("GetItem", {"TableName": name, "Key": order("a", "1")})
        scanned = wire("Scan", {"TableName": name})["Items"]
        missing = wire("GetItem", {"TableName": name, "Key": order("b", "2")})
        part = wire.refused("GetItem", {"TableName": name, "Key": {"Customer": {"S": "a"}}})

    assert found["Item"] == order("a", "1", x="second")
    assert len(scanned) == 3
    assert "Item" not in missing
    assert part.type == "ValidationException"


def test_s135_the_hash_of_the_partition_key_decides_the_partition(wire):
    """A parallel scan shows the partition: items with one partition key are in one segment."""
    customers = [f"customer-{number:03}" for number in range(200)]
    shuffled = Random(135).sample(customers, len(customers))
    with orders_of(wire) as one, orders_of(wire) as other:
        for customer in customers:
            for number in "12":
                wire("PutItem", {"TableName": one, "Item": order(customer, number)})
        for customer in shuffled:
            wire("PutItem", {"TableName": other, "Item": order(customer, customer, x="y" * 500)})

        found = segment_of_customers(wire, one)

        assert segment_of_customers(wire, other) == found
    assert found.keys() == set(customers)
    counts = [list(found.values()).count(segment) for segment in range(SEGMENTS)]
    assert min(counts) > len(customers) / SEGMENTS / 2
    runs = [segment for segment, _ in groupby(found[customer] for customer in customers)]
    assert len(runs) > len(customers) / 2


def test_s136_items_of_a_partition_key_are_consecutive_and_sorted_by_sort_key(wire):
    chance = Random(136)
    written = [order(f"c{number % 20}", f"{number:03}") for number in range(200)]
    with orders_of(wire) as name:
        for item in chance.sample(written, len(written)):
            wire("PutItem", {"TableName": name, "Item": item})

        scanned = wire("Scan", {"TableName": name})["Items"]

    runs = [(c, list(run)) for c, run in groupby(scanned, lambda item: item["Customer"]["S"])]
    assert len(runs) == 20
    for customer, run in runs:
        assert run == [item for item in written if item["Customer"]["S"] == customer]


def test_s155_a_global_index_is_eventually_consistent_and_has_its_own_units(client, wire):
    with scores_table(wire) as name:
        put = wire(
            "PutItem",
            {
                "TableName": name,
                "Item": score("1", "Comet Quest", 7),
                "ReturnConsumedCapacity": "INDEXES",
            },
        )
        entries(client, name, 1)
        read = query(
            client, name, where={"GameTitle": "Comet Quest"}, ReturnConsumedCapacity="INDEXES"
        )
        request = query_of(name, where={"GameTitle": "Comet Quest"}, ConsistentRead=True)
        consistent = wire.refused("Query", request)

    assert units(put) == (2, 1, {GAME_TITLE: 1})
    assert units(read) == (0.5, 0, {GAME_TITLE: 0.5})
    assert consistent.type == "ValidationException"
    assert "Consistent reads are not supported on global secondary indexes" in consistent.message


def test_s156_a_condition_prevents_a_put_from_replacing_an_item(wire):
    with orders_of(wire) as name:
        once = {
            "TableName": name,
            "Item": order("a", "1", x="first"),
            "ConditionExpression": "attribute_not_exists(Customer)",
        }
        wire("PutItem", once)
        refused = wire.refused("PutItem", once | {"Item": order("a", "1", x="second")})
        # The condition applies only to the item with the same partition key and sort key.
        wire("PutItem", once | {"Item": order("a", "2")})

        kept = wire("GetItem", {"TableName": name, "Key": order("a", "1")})["Item"]

    assert refused.type == "ConditionalCheckFailedException"
    assert kept == order("a", "1", x="first")


@pytest.mark.parametrize(
    ("index", "condition", "named"),
    [
        (None, "UserId > :value", "a"),
        (None, "begins_with(UserId, :value)", "a"),
        (None, "UserId BETWEEN :value AND :value", "a"),
        (None, "GameTitle = :value", "a"),
        (GAME_TITLE, "GameTitle > :value", "a"),
        (GAME_TITLE, "TopScore = :value", 1),
    ],
)
def test_s158_a_query_needs_equality_on_the_partition_key(wire, scores, index, condition, named):
    request = {
        "TableName": scores,
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {":value": value(named)},
    }

    refused = wire.refused("Query", request if index is None else request | {"IndexName": index})

    assert refused.type == "ValidationException"


@pytest.fixture(scope="module")
def scores(wire: WireClient) -> Iterator[str]:
    with scores_table(wire) as name:
        yield name


def test_s158_a_scan_needs_no_key(wire, scores):
    wire("PutItem", {"TableName": scores, "Item": score("1", "Comet Quest", 7)})

    found = wire("Scan", {"TableName": scores})["Items"]

    assert found == [score("1", "Comet Quest", 7)]


def test_s159_a_page_of_a_query_has_at_most_1_mb_and_a_key_for_the_next_page(client, wire):
    with thread_table(wire) as name:
        written = put_all(
            client, name, (padded(thread("EC2", f"{n:02}"), "Tags", 100_000) for n in range(25))
        )
        put_all(client, name, [thread("S3", "other")])

        read = list(pages(client, name, "EC2"))

    assert [page["Count"] for page in read] == [11, 11, 3]
    assert all("LastEvaluatedKey" in page for page in read[:-1])
    # The item with which the sum reaches 1 MB is the last one of its page (S45).
    assert 10 * 100_000 < MIB <= 11 * 100_000
    assert [item for page in read for item in page["Items"]] == written
