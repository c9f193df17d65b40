"""Which of two faults in one action of a transaction is reported."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.lanes import LanesClient

pytestmark = pytest.mark.differs_from_dynamodb_local("its order is another")

TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels "
    "beyond supported limit"
)
EMPTY_NAME = "Empty attribute name"
ONE = {"N": "1"}


def nested(levels: int, kind: str) -> dict[str, Any]:
    value: dict[str, Any] = {"S": "x"}
    for _ in range(levels):
        value = {"L": [value]} if kind == "L" else {"M": {"m": value}}
    return value


def told(lanes: LanesClient, kind: str, action: dict[str, Any]) -> str | None:
    refusal = lanes.refused("TransactWriteItems", {"TransactItems": [{kind: action}]})
    assert refusal.type == "ValidationException"
    return refusal.message


@pytest.mark.parametrize("levels", [40, 100])
@pytest.mark.parametrize("kind", ["L", "M"])
def test_an_empty_name_is_reported_before_a_value_that_nests_too_deep(
    lanes: LanesClient, simple: str, levels: int, kind: str
):
    key = {"pk": {"S": "p"}}
    deep = nested(levels, kind)
    assert told(lanes, "Put", {"TableName": simple, "Item": {**key, "d": deep}}) == TOO_DEEP
    assert told(lanes, "Put", {"TableName": simple, "Item": {**key, "": ONE}}) == EMPTY_NAME
    for item in ({**key, "": ONE, "d": deep}, {**key, "d": deep, "": ONE}):
        assert told(lanes, "Put", {"TableName": simple, "Item": item}) == EMPTY_NAME


@pytest.mark.parametrize("kind", ["L", "M"])
def test_nesting_is_reported_before_an_empty_name_in_a_map(
    lanes: LanesClient, simple: str, kind: str
):
    key = {"pk": {"S": "p"}}
    inner, deep = {"M": {"": ONE}}, nested(40, kind)
    assert told(lanes, "Put", {"TableName": simple, "Item": {**key, "m": inner}}) == EMPTY_NAME
    for item in ({**key, "m": inner, "d": deep}, {**key, "d": deep, "m": inner}):
        assert told(lanes, "Put", {"TableName": simple, "Item": item}) == TOO_DEEP
    both = {"M": {"": ONE, "d": deep}}
    assert told(lanes, "Put", {"TableName": simple, "Item": {**key, "b": both}}) == TOO_DEEP


@pytest.mark.parametrize("kind", ["Delete", "ConditionCheck", "Update"])
@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"ConditionExpression": "a ="}, "Invalid ConditionExpression: Syntax error; token: "),
        (
            {"ConditionExpression": "attribute_exists(" + "a" * 4_109 + ")"},
            "Invalid ConditionExpression: Expression size has exceeded the maximum allowed size;",
        ),
        (
            {
                "ConditionExpression": "attribute_exists(a)",
                "ExpressionAttributeValues": {":unused": ONE},
            },
            "Value provided in ExpressionAttributeValues unused in expressions: keys: {:unused}",
        ),
        ({"ConditionExpression": "attribute_exists(a)"}, TOO_DEEP),
    ],
)
def test_an_expression_is_reported_before_a_key_that_nests_too_deep(
    lanes: LanesClient, simple: str, *, kind: str, members: Any, message: str
):
    action = {"TableName": simple, "Key": {"pk": nested(100, "L")}, **members}
    if kind == "Update":
        action["UpdateExpression"] = "REMOVE b"
    assert str(told(lanes, kind, action)).startswith(message)


def test_an_update_is_reported_before_its_key_too(lanes: LanesClient, simple: str):
    action = {
        "TableName": simple,
        "Key": {"pk": nested(100, "M")},
        "UpdateExpression": "SET",
        "ConditionExpression": "a =",
    }
    assert str(told(lanes, "Update", action)).startswith("Invalid UpdateExpression: Syntax error")


@pytest.mark.parametrize(
    ("projection", "message"),
    [("a,", "Invalid ProjectionExpression: Syntax error; token: "), ("a", TOO_DEEP)],
)
def test_a_projection_is_reported_before_a_key_that_nests_too_deep(
    lanes: LanesClient, simple: str, projection: str, message: str
):
    get = {
        "TableName": simple,
        "Key": {"pk": nested(100, "L")},
        "ProjectionExpression": projection,
    }
    refusal = lanes.refused("TransactGetItems", {"TransactItems": [{"Get": get}]})
    assert str(refusal.message).startswith(message)
