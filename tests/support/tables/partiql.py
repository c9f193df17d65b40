"""PartiQL statements for tests, and the equivalent requests of other operations."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from tests.support.clients.clients import WireClient

_LITERAL = re.compile(r"'([^']*)'|(?<![\[\w.])(-?[0-9]+(?:\.[0-9]+)?)\b")
_serialize = TypeSerializer().serialize
_deserialize = TypeDeserializer().deserialize


def typed(values: dict[str, Any]) -> dict[str, Any]:
    """Convert Python values to attribute values."""
    return {name: _serialize(value) for name, value in values.items()}


def plain(item: dict[str, Any]) -> dict[str, Any]:
    """Convert attribute values to Python values; binary values become bytes."""
    return {name: _plain_value(value) for name, value in item.items()}


def _plain_value(value: dict[str, Any]) -> Any:
    match value:
        case {"B": text}:
            return b64decode(text)
        case {"BS": texts}:
            return set(map(b64decode, texts))
        case {"L": elements}:
            return list(map(_plain_value, elements))
        case {"M": members}:
            return plain(members)
        case _:
            return _deserialize(value)


def statement(text: str, *parameters: Any, **members: Any) -> dict[str, Any]:
    """The request for a statement; parameters are Python values."""
    request: dict[str, Any] = {"Statement": text} | members
    if parameters:
        request["Parameters"] = [_serialize(value) for value in parameters]
    return request


def execute(wire: WireClient, text: str, *parameters: Any, **members: Any) -> list[dict[str, Any]]:
    """Run a statement; return its items as Python values."""
    answer = wire("ExecuteStatement", statement(text, *parameters, **members))
    return [plain(item) for item in answer["Items"]]


def pages(
    wire: WireClient, text: str, *parameters: Any, **members: Any
) -> Iterator[dict[str, Any]]:
    """Run a statement; yield its pages, which are requested with NextToken."""
    request = statement(text, *parameters, **members)
    while True:
        answer = wire("ExecuteStatement", request)
        yield answer
        token = answer.get("NextToken")
        if token is None:
            return
        request = request | {"NextToken": token}


def request_of(table: str, **expressions: str) -> dict[str, Any]:
    """A request of Query or Scan, from expressions that contain values as literals.

    ``key``, ``where`` and ``columns`` are the key condition, the filter and the projection.
    """
    names = {
        "key": "KeyConditionExpression",
        "where": "FilterExpression",
        "columns": "ProjectionExpression",
    }
    request: dict[str, Any] = {"TableName": table}
    values: dict[str, Any] = {}

    def placeholder(match: re.Match[str]) -> str:
        text, number = match.groups()
        name = f":v{len(values)}"
        values[name] = {"N": number} if number else {"S": text}
        return name

    for name, expression in expressions.items():
        # Numbers in a projection are list positions, not values.
        written = expression if name == "columns" else _LITERAL.sub(placeholder, expression)
        request[names[name]] = written
    if values:
        request["ExpressionAttributeValues"] = values
    return request
