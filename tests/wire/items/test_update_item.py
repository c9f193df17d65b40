"""UpdateItem: the five ReturnValues, conditions and keys."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient, refusal

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local


def returned(
    wire: WireClient, table: str, pk: str, expression: str, return_values: str, **values: Any
) -> Any:
    """Update an item; return ``Attributes`` of the answer, or None without that member."""
    request = {
        "TableName": table,
        "Key": {"pk": {"S": pk}},
        "UpdateExpression": expression,
        "ReturnValues": return_values,
    }
    if values:
        request["ExpressionAttributeValues"] = {f":{name}": value for name, value in values.items()}
    answer = wire("UpdateItem", request)
    assert answer.keys() <= {"Attributes"}
    return answer.get("Attributes")


def put(wire: WireClient, table: str, pk: str, **attributes: Any) -> dict[str, Any]:
    item = {"pk": {"S": pk}, **attributes}
    wire("PutItem", {"TableName": table, "Item": item})
    return item


ONE = {"N": "1"}
TWO = {"N": "2"}


def test_none_returns_nothing(wire: WireClient, simple: str, pk: str):
    put(wire, simple, pk, a=ONE)
    assert returned(wire, simple, pk, "SET a = :a", "NONE", a=TWO) is None


def test_all_old_returns_the_whole_item_as_it_was(wire: WireClient, simple: str, pk: str):
    item = put(wire, simple, pk, a=ONE, b=ONE)
    assert returned(wire, simple, pk, "SET a = :a", "ALL_OLD", a=TWO) == item


def test_all_old_of_a_new_item_returns_nothing(wire: WireClient, simple: str, pk: str):
    assert returned(wire, simple, pk, "SET a = :a", "ALL_OLD", a=TWO) is None


def test_all_new_returns_the_whole_item_as_it_is(wire: WireClient, simple: str, pk: str):
    item = put(wire, simple, pk, a=ONE, b=ONE)
    expected = item | {"a": TWO}
    assert returned(wire, simple, pk, "SET a = :a", "ALL_NEW", a=TWO) == expected


def test_all_new_of_a_new_item_returns_its_key_too(wire: WireClient, simple: str, pk: str):
    expected = {"pk": {"S": pk}, "a": TWO}
    assert returned(wire, simple, pk, "SET a = :a", "ALL_NEW", a=TWO) == expected


def test_updated_old_returns_the_old_values_of_changed_attributes(
    wire: WireClient, simple: str, pk: str
):
    put(wire, simple, pk, a=ONE, b=ONE)
    assert returned(wire, simple, pk, "SET a = :a, c = :a", "UPDATED_OLD", a=TWO) == {"a": ONE}


def test_updated_new_returns_the_new_values_of_changed_attributes(
    wire: WireClient, simple: str, pk: str
):
    put(wire, simple, pk, a=ONE, b=ONE)
    expected = {"a": TWO, "c": TWO}
    assert returned(wire, simple, pk, "SET a = :a, c = :a", "UPDATED_NEW", a=TWO) == expected


def test_updated_old_of_new_attributes_returns_nothing(wire: WireClient, simple: str, pk: str):
    put(wire, simple, pk, b=ONE)
    assert returned(wire, simple, pk, "SET a = :a", "UPDATED_OLD", a=TWO) is None


def test_updated_new_of_removed_attributes_returns_nothing(wire: WireClient, simple: str, pk: str):
    put(wire, simple, pk, a=ONE, b=ONE)
    assert returned(wire, simple, pk, "REMOVE a", "UPDATED_NEW") is None


def test_updated_old_returns_removed_attributes(wire: WireClient, simple: str, pk: str):
    put(wire, simple, pk, a=ONE, b=ONE)
    assert returned(wire, simple, pk, "REMOVE a", "UPDATED_OLD") == {"a": ONE}


def test_updated_new_returns_an_attribute_set_to_its_old_value(
    wire: WireClient, simple: str, pk: str
):
    put(wire, simple, pk, a=ONE)
    assert returned(wire, simple, pk, "SET a = :a", "UPDATED_NEW", a=ONE) == {"a": ONE}


@differs_from_dynamodb_local("it returns the whole attribute")
def test_updated_returns_only_the_changed_members_of_a_map(wire: WireClient, simple: str, pk: str):
    put(wire, simple, pk, m={"M": {"x": ONE, "y": ONE}})
    assert returned(wire, simple, pk, "SET m.x = :x", "UPDATED_NEW", x=TWO) == {
        "m": {"M": {"x": TWO}}
    }
    assert returned(wire, simple, pk, "SET m.x = :x", "UPDATED_OLD", x=ONE) == {
        "m": {"M": {"x": TWO}}
    }


@differs_from_dynamodb_local("it returns the whole attribute")
def test_updated_returns_only_the_changed_elements_of_a_list(
    wire: WireClient, simple: str, pk: str
):
    put(wire, simple, pk, l={"L": [ONE, ONE, ONE]})
    assert returned(wire, simple, pk, "SET l[1] = :x", "UPDATED_NEW", x=TWO) == {"l": {"L": [TWO]}}
    assert returned(wire, simple, pk, "SET l[1] = :x", "UPDATED_OLD", x=ONE) == {"l": {"L": [TWO]}}


def test_updated_new_leaves_out_an_element_set_beyond_the_end(
    wire: WireClient, simple: str, pk: str
):
    put(wire, simple, pk, l={"L": [ONE]})
    assert returned(wire, simple, pk, "SET l[9] = :x, a = :x", "UPDATED_NEW", x=TWO) == {"a": TWO}
    item = wire("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}})["Item"]
    assert item["l"] == {"L": [ONE, TWO]}


def test_add_returns_the_sum(wire: WireClient, simple: str, pk: str):
    for total in ("1", "2", "3"):
        assert returned(wire, simple, pk, "ADD a :a", "UPDATED_NEW", a=ONE) == {"a": {"N": total}}


def test_an_update_without_expression_returns_by_the_same_rules(
    wire: WireClient, simple: str, pk: str
):
    request = {"TableName": simple, "Key": {"pk": {"S": pk}}, "ReturnValues": "ALL_NEW"}
    assert wire("UpdateItem", request) == {"Attributes": {"pk": {"S": pk}}}
    assert wire("UpdateItem", request | {"ReturnValues": "UPDATED_NEW"}) == {}


def test_a_false_condition_changes_nothing(wire: WireClient, simple: str, pk: str):
    item = put(wire, simple, pk, a=ONE)
    request = {
        "TableName": simple,
        "Key": {"pk": {"S": pk}},
        "UpdateExpression": "SET a = :a",
        "ConditionExpression": "a = :a",
        "ExpressionAttributeValues": {":a": TWO},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    answer = wire.send("UpdateItem", request)
    assert refusal(answer) == ("ConditionalCheckFailedException", "The conditional request failed")
    assert answer.json["Item"] == item
    # With an item, AWS spells the member of the text with a capital letter.
    assert answer.json["Message"] == "The conditional request failed"
    assert "message" not in answer.json
    assert wire("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}})["Item"] == item


def test_the_condition_is_evaluated_on_the_item_before_the_update(
    wire: WireClient, simple: str, pk: str
):
    request = {
        "TableName": simple,
        "Key": {"pk": {"S": pk}},
        "UpdateExpression": "SET nothing.x = :a",
        "ConditionExpression": "attribute_exists(pk)",
        "ExpressionAttributeValues": {":a": TWO},
    }
    assert wire.refused("UpdateItem", request).type == "ConditionalCheckFailedException"


@differs_from_dynamodb_local("other words")
@pytest.mark.parametrize(
    "key",
    [
        {},
        {"pk": {"S": "a"}, "more": {"S": "b"}},
        {"other": {"S": "a"}},
        {"pk": {"N": "1"}},
        {"pk": {"M": {}}},
    ],
)
@pytest.mark.parametrize("operation", ["UpdateItem", "GetItem", "DeleteItem"])
def test_a_key_with_other_attributes_than_the_tables_key_is_refused(
    wire: WireClient, simple: str, operation: str, key: Any
):
    assert wire.refused(operation, {"TableName": simple, "Key": key}) == (
        "ValidationException",
        "The provided key element does not match the schema",
    )


@pytest.mark.parametrize("operation", ["UpdateItem", "GetItem", "DeleteItem"])
def test_an_empty_key_is_refused(wire: WireClient, simple: str, operation: str):
    assert wire.refused(operation, {"TableName": simple, "Key": {"pk": {"S": ""}}}) == (
        "ValidationException",
        (
            "One or more parameter values are not valid. The AttributeValue for a key attribute "
            "cannot contain an empty string value. Key: pk"
        ),
    )


@pytest.mark.parametrize(
    "expression",
    [
        "SET a = :n",
        "ADD a :n",
        "SET a = :null",
        "SET a = :empty",
        "SET k = :empty",
        "SET a = :long",
        "SET b = :n",
        "SET a = n",
    ],
)
@differs_from_dynamodb_local("it lets wrong types of index keys pass in updates")
def test_an_update_that_makes_an_index_key_invalid_is_refused(
    wire: WireClient, indexed: str, pk: str, expression: str
):
    key = {"pk": {"S": pk}, "sk": {"S": "s"}}
    wire("PutItem", {"TableName": indexed, "Item": {**key, "n": ONE}})
    values = {":n": ONE, ":null": {"NULL": True}, ":empty": {"S": ""}, ":long": {"S": "x" * 1025}}
    request: dict[str, Any] = {"TableName": indexed, "Key": key, "UpdateExpression": expression}
    if used := {name: value for name, value in values.items() if name in expression}:
        request["ExpressionAttributeValues"] = used
    assert wire.refused("UpdateItem", request).type == "ValidationException"
    assert wire("GetItem", {"TableName": indexed, "Key": key})["Item"] == {**key, "n": ONE}


def test_a_path_into_an_index_key_is_refused(wire: WireClient, indexed: str):
    request = {
        "TableName": indexed,
        "Key": {"pk": {"S": "p"}, "sk": {"S": "s"}},
        "UpdateExpression": "SET a.x = :one",
        "ExpressionAttributeValues": {":one": ONE},
    }
    assert wire.refused("UpdateItem", request) == (
        "ValidationException",
        (
            "Key attributes must be scalars; list random access '[]' and map lookup '.' are not "
            "allowed: IndexKey: a"
        ),
    )
