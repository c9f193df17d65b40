"""Scan: everything, in segments, in pages, through an index."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import md5
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.tables.tables import local_index, table

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

PARTITIONS = 40
SORTS = 3


@pytest.fixture(scope="module")
def scanned(wire: WireClient) -> Iterator[str]:
    """A table of 120 items in 40 partitions, a third of them in its index."""
    indexes = (local_index("by-n", "pk", "n", "KEYS_ONLY"),)
    with table(wire, "pk:S", "sk:N", "n:N", indexes=indexes) as name:
        items = [
            {"pk": {"S": f"p{number}"}, "sk": {"N": str(sort)}, "v": {"N": str(number)}}
            | ({"n": {"N": str(-number)}} if sort == 0 else {})
            for number in range(PARTITIONS)
            for sort in range(SORTS)
        ]
        for at in range(0, len(items), 25):
            puts = [{"PutRequest": {"Item": item}} for item in items[at : at + 25]]
            wire("BatchWriteItem", {"RequestItems": {name: puts}})
        yield name


EVERYTHING = {(f"p{number}", str(sort)) for number in range(PARTITIONS) for sort in range(SORTS)}


def pages(wire: WireClient, name: str, **members: Any) -> Iterator[dict[str, Any]]:
    request = {"TableName": name, **members}
    while True:
        answer = wire("Scan", request)
        yield answer
        if "LastEvaluatedKey" not in answer:
            return
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def keys(answer: dict[str, Any]) -> list[tuple[str, str]]:
    return [(item["pk"]["S"], item["sk"]["N"]) for item in answer["Items"]]


def test_a_scan_gives_every_item_once(wire: WireClient, scanned: str):
    answer = wire("Scan", {"TableName": scanned})
    found = keys(answer)
    assert set(found) == EVERYTHING
    assert len(found) == len(EVERYTHING)
    assert answer["Count"] == answer["ScannedCount"] == len(EVERYTHING)
    assert "LastEvaluatedKey" not in answer


def test_items_of_a_partition_come_together_and_in_order(wire: WireClient, scanned: str):
    found = keys(wire("Scan", {"TableName": scanned}))
    for at in range(0, len(found), SORTS):
        together = found[at : at + SORTS]
        assert len({partition for partition, _ in together}) == 1
        assert [sort for _, sort in together] == ["0", "1", "2"]


@differs_from_dynamodb_local("its order is its own")
def test_partitions_come_in_the_order_of_dynamodbs_hash(wire: WireClient, scanned: str):
    # MD5 of "Outliers" and the key's bytes, as others measured on DynamoDB.
    found = [
        partition for partition, sort in keys(wire("Scan", {"TableName": scanned})) if sort == "0"
    ]
    assert found == sorted(
        found, key=lambda key: md5(b"Outliers" + key.encode(), usedforsecurity=False).digest()
    )


@pytest.mark.parametrize("limit", [1, 7, 50, 119, 120, 121])
def test_pages_together_are_the_whole_table(wire: WireClient, scanned: str, limit: int):
    whole = keys(wire("Scan", {"TableName": scanned}))
    found = []
    for page in pages(wire, scanned, Limit=limit):
        assert page["ScannedCount"] <= limit
        found += keys(page)
    assert found == whole


@pytest.mark.parametrize("total", [1, 2, 3, 4, 7, 64, 1000])
def test_segments_together_are_the_whole_table(wire: WireClient, scanned: str, total: int):
    found = []
    for segment in range(total):
        if total <= 64 or segment % 9 == 0:
            for page in pages(wire, scanned, Segment=segment, TotalSegments=total, Limit=10):
                found += keys(page)
    assert len(found) == len(set(found))
    if total <= 64:
        assert set(found) == EVERYTHING


def test_segments_divide_the_order_of_the_scan(wire: WireClient, scanned: str):
    whole = keys(wire("Scan", {"TableName": scanned}))
    found = []
    for segment in range(4):
        found += keys(wire("Scan", {"TableName": scanned, "Segment": segment, "TotalSegments": 4}))
    assert found == whole


@differs_from_dynamodb_local("other words")
def test_a_start_key_of_another_segment_is_refused(wire: WireClient, scanned: str):
    first = wire("Scan", {"TableName": scanned, "Segment": 0, "TotalSegments": 4, "Limit": 1})
    request = {
        "TableName": scanned,
        "Segment": 3,
        "TotalSegments": 4,
        "ExclusiveStartKey": first["LastEvaluatedKey"],
    }
    assert wire.refused("Scan", request) == (
        "ValidationException",
        (
            "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use "
            "ExclusiveStartKey with correct Segment. TotalSegments: 4 Segment: 3"
        ),
    )


def test_a_filter_takes_items_away_after_they_were_read(wire: WireClient, scanned: str):
    request = {
        "TableName": scanned,
        "FilterExpression": "v < :v AND sk = :zero",
        "ExpressionAttributeValues": {":v": {"N": "5"}, ":zero": {"N": "0"}},
    }
    answer = wire("Scan", request)
    assert set(keys(answer)) == {(f"p{number}", "0") for number in range(5)}
    assert (answer["Count"], answer["ScannedCount"]) == (5, 120)


def test_a_filter_may_name_the_key(wire: WireClient, scanned: str):
    request = {
        "TableName": scanned,
        "FilterExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": "p7"}},
    }
    assert sorted(keys(wire("Scan", request))) == [("p7", "0"), ("p7", "1"), ("p7", "2")]


def test_an_index_is_scanned_alone(wire: WireClient, scanned: str):
    answer = wire("Scan", {"TableName": scanned, "IndexName": "by-n"})
    assert set(keys(answer)) == {(f"p{number}", "0") for number in range(PARTITIONS)}
    assert all(item.keys() == {"pk", "sk", "n"} for item in answer["Items"])


def test_pages_and_segments_of_an_index_lose_nothing(wire: WireClient, scanned: str):
    found = []
    for segment in range(3):
        for page in pages(
            wire, scanned, IndexName="by-n", Segment=segment, TotalSegments=3, Limit=4
        ):
            found += keys(page)
            if "LastEvaluatedKey" in page:
                assert page["LastEvaluatedKey"].keys() == {"pk", "sk", "n"}
    assert sorted(found) == sorted((f"p{number}", "0") for number in range(PARTITIONS))


def test_count_returns_numbers_alone(wire: WireClient, scanned: str):
    request = {"TableName": scanned, "Select": "COUNT"}
    assert wire("Scan", request) == {"Count": 120, "ScannedCount": 120}


def test_an_empty_table_is_no_error(wire: WireClient):
    with table(wire, "pk:S") as name:
        assert wire("Scan", {"TableName": name}) == {"Items": [], "Count": 0, "ScannedCount": 0}


def test_a_start_key_need_not_exist(wire: WireClient, scanned: str):
    start = {"pk": {"S": "no such partition"}, "sk": {"N": "1"}}
    rest = keys(wire("Scan", {"TableName": scanned, "ExclusiveStartKey": start}))
    whole = keys(wire("Scan", {"TableName": scanned}))
    assert rest == whole[len(whole) - len(rest) :]


def test_a_page_ends_at_1_mb(wire: WireClient):
    with table(wire, "pk:S") as name:
        for number in range(12):
            item = {"pk": {"S": str(number)}, "v": {"S": "x" * 100_000}}
            wire("PutItem", {"TableName": name, "Item": item})
        counts = [page["Count"] for page in pages(wire, name)]
        assert counts == [11, 1]


def test_consistent_reads_are_taken(wire: WireClient, scanned: str):
    assert wire("Scan", {"TableName": scanned, "ConsistentRead": True})["Count"] == 120


@pytest.mark.parametrize(
    ("members", "message"),
    [
        pytest.param(
            {"Segment": 1},
            "The TotalSegments parameter is required but was not present in the request when "
            "Segment parameter is present",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            {"Segment": 0},
            "The TotalSegments parameter is required but was not present in the request when "
            "Segment parameter is present",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            {"TotalSegments": 1},
            "The Segment parameter is required but was not present in the request when parameter "
            "TotalSegments is present",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            {"Segment": 4, "TotalSegments": 4},
            "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
            "Segment: 4 is not less than TotalSegments: 4",
            marks=differs_from_dynamodb_local("other words"),
        ),
        ({"IndexName": "no-such"}, "The table does not have the specified index: no-such"),
        pytest.param(
            {"ExclusiveStartKey": {}},
            "The provided starting key is invalid: The provided key element does not match the "
            "schema",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            {"ExclusiveStartKey": {"pk": {"S": "p"}}},
            "The provided starting key is invalid: The provided key element does not match the "
            "schema",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            {"ExclusiveStartKey": {"pk": {"S": "p"}, "sk": {"S": "1"}}},
            "The provided starting key is invalid: The provided key element does not match the "
            "schema",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            {"ExclusiveStartKey": {"pk": {"S": "p"}, "sk": {"N": "1"}}, "IndexName": "by-n"},
            "The provided starting key is invalid: The provided key element does not match the "
            "schema",
            marks=differs_from_dynamodb_local("other words"),
        ),
    ],
)
def test_a_scan_is_refused(wire: WireClient, scanned: str, members: Any, message: str):
    refusal = wire.refused("Scan", {"TableName": scanned, **members})
    assert refusal == ("ValidationException", message)
