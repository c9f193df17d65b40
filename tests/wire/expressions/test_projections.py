"""Projection expressions, and the four values of Select."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.tables.tables import unique_name

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

DOCUMENT: dict[str, Any] = {
    "s": {"S": "text"},
    "m": {"M": {"x": {"N": "1"}, "y": {"M": {"z": {"S": "deep"}, "w": {"NULL": True}}}}},
    "l": {"L": [{"S": "0"}, {"M": {"a": {"S": "1a"}, "b": {"S": "1b"}}}, {"S": "2"}, {"S": "3"}]},
    "a.b": {"S": "dotted"},
}


@pytest.fixture(scope="module")
def key(wire: WireClient, composite: str) -> dict[str, Any]:
    """The key of an item with nested attributes."""
    key = {"pk": {"S": unique_name("pk")}, "sk": {"S": "s"}}
    wire("PutItem", {"TableName": composite, "Item": {**key, **DOCUMENT}})
    return key


@pytest.mark.parametrize(
    ("projection", "names", "expected"),
    [
        ("s", None, {"s": {"S": "text"}}),
        ("nothing", None, {}),
        ("s, nothing", None, {"s": {"S": "text"}}),
        ("sk", None, {"sk": {"S": "s"}}),
        ("m", None, {"m": DOCUMENT["m"]}),
        ("m.x", None, {"m": {"M": {"x": {"N": "1"}}}}),
        ("m.y.z", None, {"m": {"M": {"y": {"M": {"z": {"S": "deep"}}}}}}),
        (
            "m.x, m.y.w",
            None,
            {"m": {"M": {"x": {"N": "1"}, "y": {"M": {"w": {"NULL": True}}}}}},
        ),
        ("m.nothing", None, {}),
        ("m.x.nothing", None, {}),
        ("s.x", None, {}),
        ("s[0]", None, {}),
        ("m[0]", None, {}),
        ("l.x", None, {}),
        ("l[0]", None, {"l": {"L": [{"S": "0"}]}}),
        ("l[2]", None, {"l": {"L": [{"S": "2"}]}}),
        ("l[3], l[0]", None, {"l": {"L": [{"S": "0"}, {"S": "3"}]}}),
        ("l[9]", None, {}),
        ("l[1].a", None, {"l": {"L": [{"M": {"a": {"S": "1a"}}}]}}),
        ("l[1].b, l[1].a", None, {"l": {"L": [{"M": {"a": {"S": "1a"}, "b": {"S": "1b"}}}]}}),
        (
            "l[1].b, l[3], s",
            None,
            {"l": {"L": [{"M": {"b": {"S": "1b"}}}, {"S": "3"}]}, "s": {"S": "text"}},
        ),
        ("#s", {"#s": "s"}, {"s": {"S": "text"}}),
        ("#m.#x", {"#m": "m", "#x": "x"}, {"m": {"M": {"x": {"N": "1"}}}}),
        ("#dotted", {"#dotted": "a.b"}, {"a.b": {"S": "dotted"}}),
        ("  s  ,  m.x  ", None, {"s": {"S": "text"}, "m": {"M": {"x": {"N": "1"}}}}),
    ],
)
def test_a_projection_returns_the_selected_paths(
    wire: WireClient,
    composite: str,
    key: dict[str, Any],
    *,
    projection: str,
    names: Any,
    expected: Any,
):
    members = {"ProjectionExpression": projection} | (
        {"ExpressionAttributeNames": names} if names else {}
    )
    got = wire("GetItem", {"TableName": composite, "Key": key, **members})
    assert got == {"Item": expected}
    query = {
        "TableName": composite,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": key["pk"]},
        **members,
    }
    assert wire("Query", query)["Items"] == [expected]
    batch = wire("BatchGetItem", {"RequestItems": {composite: {"Keys": [key], **members}}})
    assert batch["Responses"][composite] == [expected]


REFUSED: list[Any] = [
    ("", "The expression can not be empty;"),
    ("s,", 'Syntax error; token: "<EOF>", near: ","'),
    ("s s", 'Syntax error; token: "s", near: "s s"'),
    (":s", 'Syntax error; token: ":s", near: ":s"'),
    ("size(s)", 'Syntax error; token: "(", near: "size(s"'),
    ("l[x]", 'Syntax error; token: "x", near: "[x]"'),
    ("comment", "Attribute name is a reserved keyword; reserved keyword: comment"),
    ("s, Name", "Attribute name is a reserved keyword; reserved keyword: Name"),
    (
        "#s",
        "An expression attribute name used in the document path is not defined; attribute name: #s",
    ),
    *[
        (
            projection,
            (
                f"Two document paths {how} with each other; must remove or rewrite one of these "
                f"paths; path one: {one}, path two: {two}"
            ),
        )
        for projection, how, one, two in (
            ("s, s", "overlap", "[s]", "[s]"),
            ("m.x, m", "overlap", "[m, x]", "[m]"),
            ("m, m.x", "overlap", "[m]", "[m, x]"),
            ("l[0], l[0]", "overlap", "[l, [0]]", "[l, [0]]"),
            ("m.x, m[0]", "conflict", "[m, x]", "[m, [0]]"),
        )
    ],
]


@pytest.mark.parametrize(("projection", "message"), REFUSED)
def test_an_invalid_projection_is_refused(
    wire: WireClient, composite: str, projection: str, message: str
):
    request = {"TableName": composite, "ProjectionExpression": projection}
    assert wire.refused("Scan", request) == (
        "ValidationException",
        f"Invalid ProjectionExpression: {message}",
    )


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"Select": "SPECIFIC_ATTRIBUTES"},
            (
                "Must specify the AttributesToGet or ProjectionExpression when choosing to get "
                "SPECIFIC_ATTRIBUTES"
            ),
        ),
        (
            {"Select": "ALL_PROJECTED_ATTRIBUTES"},
            "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
        ),
        (
            {"Select": "COUNT", "ProjectionExpression": "v"},
            "Cannot specify the ProjectionExpression when choosing to get only the Count",
        ),
        (
            {"Select": "ALL_ATTRIBUTES", "ProjectionExpression": "v"},
            "Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES",
        ),
        (
            {
                "Select": "ALL_PROJECTED_ATTRIBUTES",
                "ProjectionExpression": "v",
                "IndexName": "by-all",
            },
            "Cannot specify the ProjectionExpression when choosing to get ALL_PROJECTED_ATTRIBUTES",
        ),
        (
            {"Select": "COUNT", "AttributesToGet": ["v"]},
            "Cannot specify the AttributesToGet when choosing to get only the Count",
        ),
    ],
)
@pytest.mark.differs_from_dynamodb_local("no prefix for a Query")
@pytest.mark.parametrize("operation", ["Query", "Scan"])
def test_contradictory_select_and_projection_are_refused(
    wire: WireClient, indexed: str, operation: str, members: Any, message: str
):
    request: dict[str, Any] = {"TableName": indexed, **members}
    if operation == "Query" and "AttributesToGet" in members:
        request["KeyConditions"] = {
            "pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "p"}]}
        }
    elif operation == "Query":
        request["KeyConditionExpression"] = "pk = :pk"
        request["ExpressionAttributeValues"] = {":pk": {"S": "p"}}
    reported = f"1 validation error detected: {message}" if operation == "Query" else message
    assert wire.refused(operation, request) == ("ValidationException", reported)


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("ALL_ATTRIBUTES", {"pk", "sk", "b", "x", "z"}),
        ("ALL_PROJECTED_ATTRIBUTES", {"pk", "sk", "b", "x"}),
    ],
)
def test_select_determines_the_attributes_that_an_index_query_returns(
    wire: WireClient, indexed: str, pk: str, select: str, expected: set[str]
):
    item = {
        "pk": {"S": pk},
        "sk": {"S": "s"},
        "b": {"B": "AA=="},
        "x": {"S": "x"},
        "z": {"S": "z"},
    }
    wire("PutItem", {"TableName": indexed, "Item": item})
    request = {
        "TableName": indexed,
        "IndexName": "by-some",
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": pk}},
        "Select": select,
    }
    assert wire("Query", request)["Items"][0].keys() == expected


def test_specific_attributes_returns_the_attributes_of_the_projection(
    wire: WireClient, composite: str, key: dict[str, Any]
):
    request = {
        "TableName": composite,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": key["pk"]},
        "ProjectionExpression": "s",
        "Select": "SPECIFIC_ATTRIBUTES",
    }
    assert wire("Query", request)["Items"] == [{"s": {"S": "text"}}]
