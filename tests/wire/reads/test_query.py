"""Query: one partition, in order, narrowed by the sort key."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.lanes import LanesClient
from tests.support.tables.tables import global_index, key_schema, table, unique_name

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local


def query(wire: WireClient, table: str, pk: str, **members: Any) -> dict[str, Any]:
    request: dict[str, Any] = {
        "TableName": table,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": pk}},
    } | members
    request["ExpressionAttributeValues"] = {
        ":pk": {"S": pk},
        **request["ExpressionAttributeValues"],
    }
    return wire("Query", request)


def sort_keys(answer: dict[str, Any]) -> list[str]:
    return [next(iter(item["sk"].values())) for item in answer["Items"]]


@pytest.fixture(scope="module")
def letters(wire: WireClient, composite: str) -> str:
    """A partition with the sort keys a, ab, abc, b, ba, c and an attribute of the same text."""
    pk = unique_name("letters")
    for sort in ("c", "a", "ba", "abc", "b", "ab"):
        item = {"pk": {"S": pk}, "sk": {"S": sort}, "v": {"S": sort}, "n": {"N": str(len(sort))}}
        wire("PutItem", {"TableName": composite, "Item": item})
    return pk


@pytest.fixture(scope="module")
def numbers(wire: WireClient, numeric: str) -> str:
    """A partition with numeric sort keys of every kind."""
    pk = unique_name("numbers")
    texts = (
        "0",
        "1",
        "-1",
        "10",
        "9",
        "100",
        "-10",
        "-9.5",
        "0.5",
        "-0.5",
        "1e-130",
        "-1e-130",
        "9e125",
        "-9e125",
        "1." + "0" * 36 + "1",
        "99",
        "0.05",
        "12345678901234567890",
    )
    for text in texts:
        wire("PutItem", {"TableName": numeric, "Item": {"pk": {"S": pk}, "sk": {"N": text}}})
    return pk


def test_a_partition_comes_in_the_order_of_its_sort_key(
    wire: WireClient, composite: str, letters: str
):
    answer = query(wire, composite, letters)
    assert sort_keys(answer) == ["a", "ab", "abc", "b", "ba", "c"]
    assert answer["Count"] == 6
    assert answer["ScannedCount"] == 6
    assert "LastEvaluatedKey" not in answer


def test_a_partition_comes_backwards_too(wire: WireClient, composite: str, letters: str):
    answer = query(wire, composite, letters, ScanIndexForward=False)
    assert sort_keys(answer) == ["c", "ba", "b", "abc", "ab", "a"]


def test_numbers_are_ordered_by_value(wire: WireClient, numeric: str, numbers: str):
    found = [Decimal(text) for text in sort_keys(query(wire, numeric, numbers))]
    assert len(found) == 18
    assert found == sorted(found)
    backwards = [
        Decimal(t) for t in sort_keys(query(wire, numeric, numbers, ScanIndexForward=False))
    ]
    assert backwards == found[::-1]


def test_strings_are_ordered_by_their_utf_8(wire: WireClient, composite: str, pk: str):
    texts = ["a", "A", "z", "é", "漢", "\uffff", "😀", "\x00", "a\x00", "a\x00b", "aa"]
    for text in texts:
        item = {"pk": {"S": pk}, "sk": {"S": text}}
        wire("PutItem", {"TableName": composite, "Item": item})
    assert sort_keys(query(wire, composite, pk)) == sorted(texts, key=lambda text: text.encode())


def test_binaries_are_ordered_by_unsigned_bytes(wire: WireClient, binary: str, pk: str):
    raws = [
        b"\x00",
        b"\x00\x00",
        b"\x00\x01",
        b"\x01",
        b"\x7f",
        b"\x80",
        b"\xff",
        b"\xff\x00",
        b"a",
    ]
    partition = {"B": base64.b64encode(pk.encode()).decode()}
    for raw in raws:
        item = {"pk": partition, "sk": {"B": base64.b64encode(raw).decode()}}
        wire("PutItem", {"TableName": binary, "Item": item})
    request = {
        "TableName": binary,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": partition},
    }
    found = [base64.b64decode(text) for text in sort_keys(wire("Query", request))]
    assert found == sorted(raws)


@pytest.mark.parametrize(
    ("condition", "values", "expected"),
    [
        ("sk = :x", {":x": "b"}, ["b"]),
        ("sk = :x", {":x": "bb"}, []),
        ("sk < :x", {":x": "b"}, ["a", "ab", "abc"]),
        ("sk <= :x", {":x": "b"}, ["a", "ab", "abc", "b"]),
        ("sk > :x", {":x": "b"}, ["ba", "c"]),
        ("sk >= :x", {":x": "b"}, ["b", "ba", "c"]),
        (":x > sk", {":x": "b"}, ["a", "ab", "abc"]),
        (":x >= sk", {":x": "b"}, ["a", "ab", "abc", "b"]),
        (":x < sk", {":x": "b"}, ["ba", "c"]),
        (":x = sk", {":x": "b"}, ["b"]),
        ("sk BETWEEN :x AND :y", {":x": "ab", ":y": "b"}, ["ab", "abc", "b"]),
        ("sk BETWEEN :x AND :y", {":x": "aa", ":y": "bz"}, ["ab", "abc", "b", "ba"]),
        ("sk BETWEEN :x AND :x", {":x": "b"}, ["b"]),
        ("begins_with(sk, :x)", {":x": "a"}, ["a", "ab", "abc"]),
        ("begins_with(sk, :x)", {":x": "ab"}, ["ab", "abc"]),
        ("begins_with(sk, :x)", {":x": "z"}, []),
        ("(sk = :x)", {":x": "b"}, ["b"]),
        ("sk > :x", {":x": "zzz"}, []),
        ("sk < :x", {":x": "A"}, []),
    ],
)
@pytest.mark.parametrize("forward", [True, False])
def test_the_sort_key_narrows_the_answer(
    wire: WireClient,
    composite: str,
    letters: str,
    *,
    condition: str,
    values: Any,
    expected: Any,
    forward: bool,
):
    answer = query(
        wire,
        composite,
        letters,
        KeyConditionExpression=f"pk = :pk AND {condition}",
        ExpressionAttributeValues={name: {"S": text} for name, text in values.items()},
        ScanIndexForward=forward,
    )
    assert sort_keys(answer) == (expected if forward else expected[::-1])
    assert answer["ScannedCount"] == len(expected)


@pytest.mark.parametrize(
    ("condition", "low", "high"),
    [
        ("sk BETWEEN :x AND :y", "-1", "1"),
        ("sk BETWEEN :x AND :y", "-9.50", "1e2"),
        ("sk BETWEEN :x AND :y", "1", "1"),
    ],
)
def test_numbers_are_compared_by_value(
    wire: WireClient, numeric: str, numbers: str, *, condition: str, low: str, high: str
):
    everything = sort_keys(query(wire, numeric, numbers))
    answer = query(
        wire,
        numeric,
        numbers,
        KeyConditionExpression=f"pk = :pk AND {condition}",
        ExpressionAttributeValues={":x": {"N": low}, ":y": {"N": high}},
    )
    within = [text for text in everything if Decimal(low) <= Decimal(text) <= Decimal(high)]
    assert sort_keys(answer) == within


@pytest.mark.parametrize(
    "condition",
    [
        "pk = :pk AND sk = :b",
        "sk = :b AND pk = :pk",
        "(pk = :pk) AND (sk = :b)",
        ":pk = pk and sk=:b",
    ],
)
def test_a_key_condition_may_be_written_in_many_ways(
    wire: WireClient, composite: str, letters: str, condition: str
):
    answer = query(
        wire,
        composite,
        letters,
        KeyConditionExpression=condition,
        ExpressionAttributeValues={":b": {"S": "b"}},
    )
    assert sort_keys(answer) == ["b"]


def test_an_empty_partition_is_no_error(wire: WireClient, composite: str, pk: str):
    assert query(wire, composite, pk) == {"Items": [], "Count": 0, "ScannedCount": 0}


def test_a_filter_takes_items_away_after_they_were_read(
    wire: WireClient, composite: str, letters: str
):
    answer = query(
        wire,
        composite,
        letters,
        FilterExpression="n > :n",
        ExpressionAttributeValues={":n": {"N": "1"}},
    )
    assert sort_keys(answer) == ["ab", "abc", "ba"]
    assert (answer["Count"], answer["ScannedCount"]) == (3, 6)


def test_a_limit_counts_items_before_the_filter(wire: WireClient, composite: str, letters: str):
    answer = query(
        wire,
        composite,
        letters,
        FilterExpression="n > :n",
        ExpressionAttributeValues={":n": {"N": "5"}},
        Limit=2,
    )
    assert (answer["Count"], answer["ScannedCount"]) == (0, 2)
    assert answer["LastEvaluatedKey"] == {"pk": {"S": letters}, "sk": {"S": "ab"}}


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5])
def test_pages_together_are_the_whole_answer(
    wire: WireClient, composite: str, letters: str, limit: int, forward: bool
):
    found: list[str] = []
    members: dict[str, Any] = {}
    while True:
        answer = query(wire, composite, letters, Limit=limit, ScanIndexForward=forward, **members)
        found += sort_keys(answer)
        assert answer["Count"] <= limit
        if "LastEvaluatedKey" not in answer:
            break
        assert answer["Count"] == limit
        members["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
    expected = ["a", "ab", "abc", "b", "ba", "c"]
    assert found == (expected if forward else expected[::-1])


def test_a_page_that_ends_with_the_last_item_has_a_last_evaluated_key(
    wire: WireClient, composite: str, letters: str
):
    answer = query(wire, composite, letters, Limit=6)
    assert answer["LastEvaluatedKey"] == {"pk": {"S": letters}, "sk": {"S": "c"}}
    rest = query(wire, composite, letters, ExclusiveStartKey=answer["LastEvaluatedKey"])
    assert rest == {"Items": [], "Count": 0, "ScannedCount": 0}


def test_a_start_key_need_not_exist(wire: WireClient, composite: str, letters: str):
    start = {"pk": {"S": letters}, "sk": {"S": "aaa"}}
    assert sort_keys(query(wire, composite, letters, ExclusiveStartKey=start))[0] == "ab"
    backwards = query(wire, composite, letters, ExclusiveStartKey=start, ScanIndexForward=False)
    assert sort_keys(backwards) == ["a"]


def test_a_page_ends_at_1_mb(wire: WireClient, composite: str, pk: str):
    for number in range(12):
        item = {"pk": {"S": pk}, "sk": {"S": f"{number:02}"}, "v": {"S": "x" * 100_000}}
        wire("PutItem", {"TableName": composite, "Item": item})
    first = query(wire, composite, pk)
    # The item that makes the sum exceed 1 MB is the last of its page.
    assert first["Count"] == 11
    assert first["LastEvaluatedKey"] == {"pk": {"S": pk}, "sk": {"S": "10"}}
    rest = query(wire, composite, pk, ExclusiveStartKey=first["LastEvaluatedKey"])
    assert sort_keys(rest) == ["11"]
    assert "LastEvaluatedKey" not in rest
    counted = query(wire, composite, pk, Select="COUNT")
    assert counted["Count"] == 11
    assert "Items" not in counted
    backwards = query(wire, composite, pk, ScanIndexForward=False)
    assert sort_keys(backwards)[-1] == "01"


@differs_from_dynamodb_local("it counts what is left after filter and projection")
def test_a_page_is_counted_before_filter_and_projection(wire: WireClient, composite: str, pk: str):
    for number in range(12):
        item = {"pk": {"S": pk}, "sk": {"S": f"{number:02}"}, "v": {"S": "x" * 100_000}}
        wire("PutItem", {"TableName": composite, "Item": item})
    answer = query(
        wire,
        composite,
        pk,
        FilterExpression="attribute_not_exists(v)",
        ProjectionExpression="sk",
    )
    assert (answer["Count"], answer["ScannedCount"]) == (0, 11)
    assert answer["LastEvaluatedKey"] == {"pk": {"S": pk}, "sk": {"S": "10"}}


def test_count_returns_numbers_alone(wire: WireClient, composite: str, letters: str):
    assert query(wire, composite, letters, Select="COUNT") == {"Count": 6, "ScannedCount": 6}


def test_a_table_without_sort_key_answers_one_item(wire: WireClient, simple: str, pk: str):
    wire("PutItem", {"TableName": simple, "Item": {"pk": {"S": pk}}})
    assert query(wire, simple, pk)["Items"] == [{"pk": {"S": pk}}]


def test_an_index_with_one_key_attribute_takes_one_condition(wire: WireClient):
    index = global_index("by-a", "a")
    members = {"GlobalSecondaryIndexes": [index], "KeySchema": key_schema("pk")}
    with table(wire, "pk:S", "a:S", **members) as name:
        request = {
            "TableName": name,
            "IndexName": "by-a",
            "KeyConditionExpression": "a = :v AND b = :v",
            "ExpressionAttributeValues": {":v": {"S": "x"}},
        }
        assert wire.refused("Query", request) == (
            "ValidationException",
            "Query key condition not supported",
        )


TOO_MANY = (
    "The number of query conditions (3) exceeds the number of key attributes defined in the schema "
    "(2)"
)
ONE_PER_KEY = (
    "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per "
    "key"
)
NESTED = "KeyConditionExpressions cannot contain nested operations"

REFUSED: list[Any] = [
    ("", "Invalid KeyConditionExpression: The expression can not be empty;"),
    ("pk", 'Invalid KeyConditionExpression: Syntax error; token: "<EOF>", near: "pk"'),
    ("((pk = :p))", "Invalid KeyConditionExpression: The expression has redundant parentheses;"),
    (
        "#p = :p",
        (
            "Invalid KeyConditionExpression: An expression attribute name used in the document "
            "path "
            "is not defined; attribute name: #p"
        ),
    ),
    (
        "pk = :q",
        (
            "Invalid KeyConditionExpression: An expression attribute value used in expression is "
            "not "
            "defined; attribute value: :q"
        ),
    ),
    (
        "pk = :p AND begins_with(sk, :n)",
        (
            "Invalid KeyConditionExpression: Incorrect operand type for operator or function; "
            "operator or function: begins_with, operand type: N"
        ),
    ),
    (
        "pk = :p AND sk BETWEEN :s AND :r",
        (
            "Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be "
            "greater "
            "than or equal to lower bound; lower bound operand: AttributeValue: {S:s}, upper bound "
            "operand: AttributeValue: {S:r}"
        ),
    ),
    (
        "pk = :p AND begins_with(:s, sk)",
        (
            "Invalid condition in KeyConditionExpression: begins_with operator must have the key "
            "attribute as its first operand"
        ),
    ),
    *[
        (condition, f"Invalid operator used in KeyConditionExpression: {operator}")
        for condition, operator in (
            ("pk = :p AND sk <> :s", "<>"),
            ("pk <> :p", "<>"),
            ("pk = :p AND sk IN (:s)", "IN"),
            ("pk = :p OR sk = :s", "OR"),
            ("NOT pk = :p", "NOT"),
            ("pk = :p AND NOT sk = :s", "NOT"),
            ("pk = :p AND attribute_exists(sk)", "attribute_exists"),
            ("pk = :p AND contains(sk, :s)", "contains"),
        )
    ],
    ("pk > :p", "Query key condition not supported"),
    ("begins_with(pk, :p)", "Query key condition not supported"),
    ("pk BETWEEN :p AND :s", "Query key condition not supported"),
    pytest.param(
        "sk = :s",
        "Query condition missed key schema element: pk",
        marks=differs_from_dynamodb_local("it names no element"),
    ),
    pytest.param(
        "pk = :p AND v = :s",
        "Query condition missed key schema element: sk",
        marks=differs_from_dynamodb_local("it names no element"),
    ),
    *[
        pytest.param(condition, message, marks=differs_from_dynamodb_local("older words"))
        for condition, message in (
            ("pk = :p AND sk = :s AND v = :n", TOO_MANY),
            ("pk = :p AND sk > :r AND v = :s", TOO_MANY),
            ("pk = :p AND pk = :p", ONE_PER_KEY),
            ("pk = :p AND sk > :r AND sk < :s", ONE_PER_KEY),
        )
    ],
    (
        "pk = :n",
        (
            "One or more parameter values were invalid: Condition parameter type does not match "
            "schema type"
        ),
    ),
    (
        "pk = :p AND sk < :n",
        (
            "One or more parameter values were invalid: Condition parameter type does not match "
            "schema type"
        ),
    ),
    (
        "pk = sk",
        (
            "Invalid condition in KeyConditionExpression: Multiple attribute names used in one "
            "condition"
        ),
    ),
    (":p = :s", "Invalid condition in KeyConditionExpression: No key attribute specified"),
    (
        "pk = :p AND :r = :s",
        "Invalid condition in KeyConditionExpression: No key attribute specified",
    ),
    ("size(pk) = :n", NESTED),
    ("pk = :p AND size(sk) BETWEEN :n AND :n", NESTED),
    (
        "pk = :p AND :n BETWEEN size(sk) AND size(pk)",
        (
            "Invalid condition in KeyConditionExpression: BETWEEN operator must have the key "
            "attribute as its first operand"
        ),
    ),
]


@pytest.mark.parametrize(("condition", "message"), REFUSED)
def test_a_key_condition_is_refused(
    lanes: LanesClient, composite: str, condition: str, message: str
):
    values = {":p": {"S": "p"}, ":r": {"S": "r"}, ":s": {"S": "s"}, ":n": {"N": "1"}}
    request: dict[str, Any] = {"TableName": composite, "KeyConditionExpression": condition}
    if used := {name: value for name, value in values.items() if name in condition}:
        request["ExpressionAttributeValues"] = used
    assert lanes.refused("Query", request) == ("ValidationException", message)


@pytest.mark.parametrize(
    "condition", ["sk = :s", "sk > :s", "sk BETWEEN :p AND :s", "begins_with(sk, :s)"]
)
def test_a_sort_condition_has_at_most_the_size_of_a_sort_key(
    lanes: LanesClient, composite: str, condition: str
):
    def request(size_bytes: int) -> dict[str, Any]:
        return {
            "TableName": composite,
            "KeyConditionExpression": f"pk = :p AND {condition}",
            "ExpressionAttributeValues": {":p": {"S": "p"}, ":s": {"S": "é" * (size_bytes // 2)}},
        }

    assert lanes("Query", request(1024))["Items"] == []
    assert lanes.refused("Query", request(1026)) == (
        "ValidationException",
        (
            "One or more parameter values were invalid: Aggregated size of all range keys has "
            "exceeded the size limit of 1024 bytes"
        ),
    )


def test_a_partition_key_that_is_too_long_has_no_items(lanes: LanesClient, composite: str):
    request = {
        "TableName": composite,
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "p" * 2_049}},
    }
    assert lanes("Query", request) == {"Items": [], "Count": 0, "ScannedCount": 0}


@differs_from_dynamodb_local("it looks for the table first")
def test_a_key_condition_that_no_key_has_is_refused_before_a_missing_table(wire: WireClient):
    request = {
        "TableName": unique_name(),
        "KeyConditionExpression": "pk <> :p",
        "ExpressionAttributeValues": {":p": {"S": "p"}},
        "Select": "SPECIFIC_ATTRIBUTES",
    }
    message = "Invalid operator used in KeyConditionExpression: <>"
    assert wire.refused("Query", request) == ("ValidationException", message)


@pytest.mark.parametrize("condition", ["pk.x = :p", "pk[0] = :p"])
def test_a_path_into_a_key_is_refused(wire: WireClient, composite: str, condition: str):
    request = {
        "TableName": composite,
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {":p": {"S": "p"}},
    }
    assert wire.refused("Query", request).type == "ValidationException"


def test_a_query_without_key_condition_is_refused(wire: WireClient, composite: str):
    assert wire.refused("Query", {"TableName": composite}) == (
        "ValidationException",
        (
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the "
            "request."
        ),
    )


@pytest.mark.parametrize("name", ["pk", "sk"])
def test_a_filter_may_not_name_the_key(wire: WireClient, composite: str, name: str):
    request = {
        "TableName": composite,
        "KeyConditionExpression": "pk = :p",
        "FilterExpression": f"v = :p OR {name} = :p",
        "ExpressionAttributeValues": {":p": {"S": "p"}},
    }
    assert wire.refused("Query", request) == (
        "ValidationException",
        (
            "Filter Expression can only contain non-primary key attributes: "
            f"Primary key attribute: {name}"
        ),
    )


def test_the_key_condition_refuses_legacy_attributes_to_get(wire: WireClient, composite: str):
    request = {
        "TableName": composite,
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "p"}},
        "AttributesToGet": ["v"],
    }
    assert wire.refused("Query", request) == (
        "ValidationException",
        (
            "Can not use both expression and non-expression parameters in the same request: "
            "Non-expression parameters: {AttributesToGet} Expression parameters: "
            "{KeyConditionExpression}"
        ),
    )


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({}, "The provided starting key is invalid"),
        pytest.param(
            {"pk": {"S": "p"}},
            "The provided starting key is invalid",
            marks=differs_from_dynamodb_local("other words"),
        ),
        ({"pk": {"S": "p"}, "v": {"S": "s"}}, "The provided starting key is invalid"),
        pytest.param(
            {"pk": {"S": "p"}, "sk": {"S": "s"}, "v": {"S": "s"}},
            "The provided starting key is invalid",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            {"pk": {"S": "other"}, "sk": {"S": "s"}},
            "The provided starting key is outside query boundaries based on provided conditions",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            {"pk": {"S": "p"}, "sk": {"N": "1"}},
            "The provided key element does not match the schema",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            {"pk": {"S": "p"}, "sk": {}},
            "The provided starting key is invalid: Supplied AttributeValue is empty, must contain "
            "exactly one of the supported datatypes",
            marks=differs_from_dynamodb_local("without its first words"),
        ),
    ],
)
def test_a_start_key_that_is_not_the_querys_is_refused(
    wire: WireClient, composite: str, start: Any, message: str
):
    request = {
        "TableName": composite,
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "p"}},
        "ExclusiveStartKey": start,
    }
    assert wire.refused("Query", request) == ("ValidationException", message)


@pytest.mark.parametrize("start", ["a", "b"])
def test_a_start_key_outside_the_sort_condition_is_refused(
    wire: WireClient, composite: str, start: str
):
    request = {
        "TableName": composite,
        "KeyConditionExpression": "pk = :p AND sk > :s",
        "ExpressionAttributeValues": {":p": {"S": "p"}, ":s": {"S": "b"}},
        "ExclusiveStartKey": {"pk": {"S": "p"}, "sk": {"S": start}},
    }
    assert wire.refused("Query", request) == (
        "ValidationException",
        "The provided starting key does not match the range key predicate",
    )


@pytest.mark.parametrize(
    ("members", "parameter", "unused"),
    [
        ({"ExpressionAttributeNames": {"#s": "sk"}}, "ExpressionAttributeNames", "#s"),
        ({"ExpressionAttributeValues": {":b": {"S": "b"}}}, "ExpressionAttributeValues", ":b"),
        (
            {
                "KeyConditionExpression": "#p = :pk",
                "ExpressionAttributeNames": {"#p": "pk", "#s": "sk"},
            },
            "ExpressionAttributeNames",
            "#s",
        ),
        (
            {
                "KeyConditionExpression": "pk = :pk AND #s > :b",
                "ExpressionAttributeNames": {"#s": "sk", "#p": "pk"},
                "ExpressionAttributeValues": {":b": {"S": "b"}},
            },
            "ExpressionAttributeNames",
            "#p",
        ),
    ],
)
def test_unused_placeholders_of_an_ordinary_query_are_refused(
    wire: WireClient, composite: str, members: dict[str, Any], parameter: str, unused: str
):
    request = {"TableName": composite, "KeyConditionExpression": "pk = :pk"} | members
    values = {":pk": {"S": "a"}, **members.get("ExpressionAttributeValues", {})}
    refusal = wire.refused("Query", request | {"ExpressionAttributeValues": values})
    message = f"Value provided in {parameter} unused in expressions: keys: {{{unused}}}"
    assert refusal == ("ValidationException", message)
