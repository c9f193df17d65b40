"""ExclusiveStartKey: valid keys for a Query or Scan, and pages without LastEvaluatedKey."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.lanes import LanesClient
from tests.support.tables.tables import global_index, local_index, table

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

INVALID = "The provided starting key is invalid"
NO_MATCH = "The provided key element does not match the schema"
OUTSIDE = "The provided starting key is outside query boundaries based on provided conditions"
NOT_IN_RANGE = "The provided starting key does not match the range key predicate"
AT_MOST_ONE = "The query can return at most one row and cannot be restarted"


def text(**values: str) -> dict[str, Any]:
    return {name: {"S": value} for name, value in values.items()}


@pytest.fixture(scope="module")
def indexed_twice(wire: WireClient) -> Iterator[str]:
    """A table with the index ``local`` on ``a`` and the index ``global`` on ``g`` and ``h``."""
    with table(
        wire,
        "pk:S",
        "sk:S",
        "a:S",
        "g:S",
        "h:N",
        indexes=(local_index("local", "pk", "a"),),
        GlobalSecondaryIndexes=[global_index("global", "g", "h", projection="KEYS_ONLY")],
    ) as name:
        yield name


# -- of one item nothing is left ------------------------------------------------------------


@pytest.mark.parametrize("forward", [True, False])
def test_a_full_page_of_a_table_without_sort_key_has_no_last_evaluated_key(
    wire: WireClient, lanes: LanesClient, simple: str, pk: str, *, forward: bool
):
    wire("PutItem", {"TableName": simple, "Item": text(pk=pk)})
    request = {
        "TableName": simple,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": text(**{":pk": pk}),
        "Limit": 1,
        "ScanIndexForward": forward,
    }
    assert lanes("Query", request) == {"Items": [text(pk=pk)], "Count": 1, "ScannedCount": 1}
    filtered = request | {"FilterExpression": "attribute_exists(nothing)"}
    assert lanes("Query", filtered) == {"Items": [], "Count": 0, "ScannedCount": 1}


def test_a_scan_of_such_a_table_has_one(wire: WireClient, simple: str, pk: str):
    for suffix in "ab":
        wire("PutItem", {"TableName": simple, "Item": text(pk=pk + suffix)})
    page = wire("Scan", {"TableName": simple, "Limit": 1})
    assert page["LastEvaluatedKey"].keys() == {"pk"}
    wire("Scan", {"TableName": simple, "ExclusiveStartKey": page["LastEvaluatedKey"]})


@differs_from_dynamodb_local("it answers an empty page")
@pytest.mark.parametrize(
    ("key_type", "value", "shown"),
    [
        ("S", {"S": "it"}, "{S:it}"),
        ("N", {"N": "1e2"}, "{N:100}"),
        ("B", {"B": "AAAA"}, "{B:java.nio.HeapByteBuffer[pos=0 lim=3 cap=3]}"),
    ],
)
def test_nothing_follows_the_one_item_of_a_partition_key(
    lanes: LanesClient, wire: WireClient, key_type: str, value: dict[str, Any], shown: str
):
    with table(wire, f"pk:{key_type}") as name:
        request = {
            "TableName": name,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": value},
            "ExclusiveStartKey": {"pk": value},
        }
        assert lanes.refused("Query", request) == (
            "ValidationException",
            (
                "The provided exclusive start key is invalid: ExclusiveStartKey: "
                f"{{pk=AttributeValue: {shown}}}"
            ),
        )


@differs_from_dynamodb_local("other words")
def test_the_item_of_another_partition_key_is_outside_the_query(lanes: LanesClient, simple: str):
    request = {
        "TableName": simple,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": text(**{":pk": "p"}),
        "ExclusiveStartKey": text(pk="other"),
    }
    assert lanes.refused("Query", request) == ("ValidationException", OUTSIDE)


# -- of another partition key ---------------------------------------------------------------


@differs_from_dynamodb_local("one message for all")
@pytest.mark.parametrize(
    ("condition", "pk", "sk", "message"),
    [
        ("sk = :s", "other", "m", AT_MOST_ONE),
        ("sk = :s", "other", "n", NOT_IN_RANGE),
        ("sk = :s", "p", "n", NOT_IN_RANGE),
        ("sk > :s", "other", "n", AT_MOST_ONE),
        ("sk > :s", "other", "m", NOT_IN_RANGE),
        ("sk > :s", "p", "m", NOT_IN_RANGE),
        ("begins_with(sk, :s)", "other", "mn", AT_MOST_ONE),
        ("begins_with(sk, :s)", "other", "n", NOT_IN_RANGE),
    ],
)
def test_a_start_key_must_fit_the_sort_condition_and_the_partition_key(
    lanes: LanesClient, composite: str, *, condition: str, pk: str, sk: str, message: str
):
    request = {
        "TableName": composite,
        "KeyConditionExpression": f"pk = :p AND {condition}",
        "ExpressionAttributeValues": text(**{":p": "p", ":s": "m"}),
        "ExclusiveStartKey": text(pk=pk, sk=sk),
    }
    assert lanes.refused("Query", request) == ("ValidationException", message)


@differs_from_dynamodb_local("one message for all")
@pytest.mark.parametrize(("h", "message"), [({"N": "2"}, AT_MOST_ONE), ({"N": "1"}, NOT_IN_RANGE)])
def test_so_it_must_in_a_global_index(
    lanes: LanesClient, indexed_twice: str, h: dict[str, Any], message: str
):
    request = {
        "TableName": indexed_twice,
        "IndexName": "global",
        "KeyConditionExpression": "g = :g AND h > :h",
        "ExpressionAttributeValues": {":g": {"S": "g"}, ":h": {"N": "1"}},
        "ExclusiveStartKey": {**text(pk="p", sk="s", g="other"), "h": h},
    }
    assert lanes.refused("Query", request) == ("ValidationException", message)


# -- of the index that is scanned -----------------------------------------------------------


@differs_from_dynamodb_local("other words")
@pytest.mark.parametrize(
    ("index", "start", "message"),
    [
        # An index key of another type, alone and with others.
        ("global", {"g": {"N": "1"}}, NO_MATCH),
        ("global", {**text(pk="p", sk="s", g="g"), "h": {"S": "1"}}, NO_MATCH),
        ("local", {**text(pk="p"), "a": {"N": "1"}}, NO_MATCH),
        # Invalid or missing names.
        ("global", text(z="z"), f"{INVALID}: {NO_MATCH}"),
        ("global", text(pk="p", sk="s"), f"{INVALID}: {NO_MATCH}"),
        ("local", text(pk="p", sk="s"), f"{INVALID}: {NO_MATCH}"),
        ("local", text(pk="p", sk="s", a="a", z="z"), f"{INVALID}: {NO_MATCH}"),
        # A table's key of another type.
        ("local", {**text(pk="p", a="a"), "sk": {"N": "1"}}, f"{INVALID}: {NO_MATCH}"),
        (None, text(pk="p"), f"{INVALID}: {NO_MATCH}"),
    ],
)
def test_a_scan_continues_after_keys_of_its_table_or_index(
    lanes: LanesClient, indexed_twice: str, index: str | None, start: Any, message: str
):
    request = {"TableName": indexed_twice, "ExclusiveStartKey": start}
    if index is not None:
        request["IndexName"] = index
    assert lanes.refused("Scan", request) == ("ValidationException", message)
