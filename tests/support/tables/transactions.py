"""Transactions for tests: short forms of requests, and cancellation reasons."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.support.clients.clients import WireClient
from tests.support.tables.partiql import typed


class Reason(NamedTuple):
    """One reason of a canceled transaction."""

    code: str
    message: str | None = None
    item: dict[str, Any] | None = None


NONE = Reason("None")
FAILED = Reason("ConditionalCheckFailed", "The conditional request failed")


def put(table: str, condition: str = "", **attributes: Any) -> dict[str, Any]:
    """A put of Python values, with an optional condition that has no placeholders."""
    action: dict[str, Any] = {"TableName": table, "Item": typed(attributes)}
    if condition:
        action["ConditionExpression"] = condition
    return {"Put": action}


def delete(table: str, **key: Any) -> dict[str, Any]:
    """A delete of the item with this key."""
    return {"Delete": {"TableName": table, "Key": typed(key)}}


def update(table: str, expression: str, values: dict[str, Any], **key: Any) -> dict[str, Any]:
    """An update; the keys of ``values`` are placeholders without the colon."""
    action: dict[str, Any] = {"TableName": table, "Key": typed(key), "UpdateExpression": expression}
    if values:
        action["ExpressionAttributeValues"] = placeholders(values)
    return {"Update": action}


def check(table: str, condition: str, values: dict[str, Any], **key: Any) -> dict[str, Any]:
    """A condition check; the keys of ``values`` are placeholders without the colon."""
    action: dict[str, Any] = {
        "TableName": table,
        "Key": typed(key),
        "ConditionExpression": condition,
    }
    if values:
        action["ExpressionAttributeValues"] = placeholders(values)
    return {"ConditionCheck": action}


def get(table: str, **key: Any) -> dict[str, Any]:
    """A get of the item with this key."""
    return {"Get": {"TableName": table, "Key": typed(key)}}


def with_item(action: dict[str, Any]) -> dict[str, Any]:
    """The same action, which returns the item if its condition is false."""
    ((kind, members),) = action.items()
    return {kind: members | {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}}


def placeholders(values: dict[str, Any]) -> dict[str, Any]:
    """Python values as attribute values, by their placeholders."""
    return {f":{name}": value for name, value in typed(values).items()}


def write(wire: WireClient, *actions: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Run a transaction that must succeed."""
    return wire("TransactWriteItems", {"TransactItems": list(actions), **members})


def read(wire: WireClient, *gets: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Run a transaction of reads that must succeed."""
    return wire("TransactGetItems", {"TransactItems": list(gets), **members})


def cancelled(
    wire: WireClient,
    *actions: dict[str, Any],
    operation: str = "TransactWriteItems",
    **members: Any,
) -> list[Reason]:
    """Run a transaction that must be canceled; return the reasons."""
    name = "TransactStatements" if operation == "ExecuteTransaction" else "TransactItems"
    answer = wire.send(operation, {name: list(actions), **members})
    assert answer.status == 400, answer.body
    body = answer.json
    assert body["__type"] == "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", body
    reasons = [
        Reason(reason["Code"], reason.get("Message"), reason.get("Item"))
        for reason in body["CancellationReasons"]
    ]
    codes = ", ".join(reason.code for reason in reasons)
    assert body["Message"] == (
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
    )
    return reasons


def refused(
    wire: WireClient,
    *actions: dict[str, Any],
    operation: str = "TransactWriteItems",
    **members: Any,
) -> tuple[str, str | None]:
    """Run a transaction that must be refused as a whole; return the error."""
    name = "TransactStatements" if operation == "ExecuteTransaction" else "TransactItems"
    refusal = wire.refused(operation, {name: list(actions), **members})
    return refusal.type, refusal.message
