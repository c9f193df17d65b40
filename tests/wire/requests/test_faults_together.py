"""With two faults in one request, the server reports the one that DynamoDB checks first.

The faults of each operation are listed in DynamoDB's order. A test sends two faults of an operation
in one request, and the error must be that of the earlier fault.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from tests.support.clients.clients import Refusal, WireClient, refusal

pytestmark = pytest.mark.differs_from_dynamodb_local("its stages are others")

Request = dict[str, Any]
Fault = Callable[[Request], None]

KEY = {"pk": {"S": "faults"}, "sk": {"S": "s"}}


def faults(**named: Fault) -> dict[str, Fault]:
    return named


def member(name: str, value: Any) -> Fault:
    def spoil(request: Request) -> None:
        request[name] = value

    return spoil


def inside(outer: str, inner: str, value: Any) -> Fault:
    def spoil(request: Request) -> None:
        request[outer] = {**request.get(outer, {}), inner: value}

    return spoil


def without(outer: str, inner: str) -> Fault:
    def spoil(request: Request) -> None:
        request[outer] = {name: value for name, value in request[outer].items() if name != inner}

    return spoil


def both(*spoilers: Fault) -> Fault:
    def spoil(request: Request) -> None:
        for spoiler in spoilers:
            spoiler(request)

    return spoil


def default(name: str, value: Any) -> Fault:
    def spoil(request: Request) -> None:
        request.setdefault(name, value)

    return spoil


ENUM = member("ReturnConsumedCapacity", "ALL")
NO_TABLE = member("TableName", "no-such-table-anywhere")

# The last fault of each list is a false condition, or an update that is impossible on the item.
ORDERS: dict[str, tuple[Request, dict[str, Fault]]] = {
    "PutItem": (
        {"Item": KEY},
        faults(
            json_type=inside("Item", "j", {"S": 1}),
            constraint=ENUM,
            legacy_beside_expression=both(
                default("ConditionExpression", "attribute_exists(nothing)"),
                member("Expected", {"nothing": {"Exists": False}}),
            ),
            value=inside("Item", "v", {"N": "no number"}),
            return_values=member("ReturnValues", "ALL_NEW"),
            size=inside("Item", "big", {"S": "x" * 410_000}),
            expression=member("ConditionExpression", "attribute_exists("),
            table=NO_TABLE,
            key=without("Item", "sk"),
        ),
    ),
    "UpdateItem": (
        {"Key": KEY},
        faults(
            json_type=inside("Key", "j", {"S": 1}),
            constraint=ENUM,
            legacy_beside_expression=both(
                default("UpdateExpression", "REMOVE nothing"),
                member("AttributeUpdates", {"nothing": {"Action": "DELETE"}}),
            ),
            value=inside("Key", "v", {"N": "no number"}),
            expression=member("UpdateExpression", "REMOVE"),
            table=NO_TABLE,
            key=without("Key", "sk"),
        ),
    ),
    "DeleteItem": (
        {"Key": KEY},
        faults(
            json_type=inside("Key", "j", {"S": 1}),
            constraint=ENUM,
            value=inside("Key", "v", {"N": "no number"}),
            expression=member("ConditionExpression", "attribute_exists("),
            table=NO_TABLE,
            key=without("Key", "sk"),
            condition=default("ConditionExpression", "attribute_exists(nothing)"),
        ),
    ),
    "GetItem": (
        {"Key": KEY},
        faults(
            json_type=inside("Key", "j", {"S": 1}),
            constraint=ENUM,
            legacy_beside_expression=both(
                default("ProjectionExpression", "a"), member("AttributesToGet", ["a"])
            ),
            value=inside("Key", "v", {"N": "no number"}),
            expression=member("ProjectionExpression", "a,"),
            table=NO_TABLE,
            key=without("Key", "sk"),
        ),
    ),
    "Query": (
        {
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": "faults"}},
        },
        faults(
            json_type=member("ScanIndexForward", {}),
            constraint=member("Limit", 0),
            legacy_beside_expression=member("AttributesToGet", ["a"]),
            start_value=member("ExclusiveStartKey", {"pk": {"N": "no number"}}),
            expression=member("FilterExpression", "a ="),
            table=NO_TABLE,
            index=member("IndexName", "no-such-index"),
            start_key=default("ExclusiveStartKey", {"pk": {"S": "faults"}}),
            filter_on_key=default("FilterExpression", "sk = :pk"),
        ),
    ),
    "Scan": (
        {},
        faults(
            json_type=member("ConsistentRead", {}),
            constraint=member("Limit", 0),
            legacy_beside_expression=both(
                default("ProjectionExpression", "a"), member("AttributesToGet", ["a"])
            ),
            start_value=member("ExclusiveStartKey", {"pk": {"N": "no number"}}),
            segments=member("Segment", 1),
            expression=member("FilterExpression", "a ="),
            table=NO_TABLE,
            index=member("IndexName", "no-such-index"),
            start_key=default("ExclusiveStartKey", {"pk": {"S": "faults"}}),
        ),
    ),
}


def pairs() -> list[Any]:
    return [
        pytest.param(operation, first, second, id=f"{operation}-{first}-{second}")
        for operation, (_, named) in ORDERS.items()
        for first, second in combinations(named, 2)
    ]


def refused(wire: WireClient, table: str, operation: str, *names: str) -> Refusal:
    base, named = ORDERS[operation]
    request = {"TableName": table, **base}
    for name in names:
        named[name](request)
    answer = wire.send(operation, request)
    assert answer.status == 400, (names, answer.body[:200])
    return refusal(answer)


@pytest.mark.parametrize(("operation", "first", "second"), pairs())
def test_the_earlier_fault_is_reported(
    wire: WireClient, composite: str, *, operation: str, first: str, second: str
):
    alone = told(refused(wire, composite, operation, first))
    assert told(refused(wire, composite, operation, first, second)) == alone
    assert told(refused(wire, composite, operation, second)) != alone


def told(refusal: Refusal) -> tuple[str, str | None]:
    """A refusal without the list of parameters, which may include the second fault."""
    return refusal.type, refusal.message and refusal.message.partition("Expression parameters")[0]
