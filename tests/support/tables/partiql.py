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
    """Attribute values of Python's own values."""
    return {name: _serialize(value) for name, value in values.items()}


def plain(item: dict[str, Any]) -> dict[str, Any]:
    """Python's own values of attribute values, binaries as bytes."""
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
    """A request for a statement; parameters are Python's own values."""
    request: dict[str, Any] = {"Statement": text} | members
    if parameters:
        request["Parameters"] = [_serialize(value) for value in parameters]
    return request


def execute(wire: WireClient, text: str, *parameters: Any, **members: Any) -> list[dict[str, Any]]:
    """The items that a statement returns, as Python's own values."""
    answer = wire("ExecuteStatement", statement(text, *parameters, **members))
    return [plain(item) for item in answer["Items"]]


def pages(
    wire: WireClient, text: str, *parameters: Any, **members: Any
) -> Iterator[dict[str, Any]]:
    """All answers to a statement; each request has the NextToken of the previous answer."""
    request = statement(text, *parameters, **members)
    while True:
        answer = wire("ExecuteStatement", request)
        yield answer
        token = answer.get("NextToken")
        if token is None:
            return
        request = request | {"NextToken": token}


def request_of(table: str, **expressions: str) -> dict[str, Any]:
    """The members of a Query or Scan; values are literals in its expressions.

    ``key``, ``where`` and ``columns`` are its key condition, filter and projection.
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
        # Positions in paths of a projection are not values.
        written = expression if name == "columns" else _LITERAL.sub(placeholder, expression)
        request[names[name]] = written
    if values:
        request["ExpressionAttributeValues"] = values
    return request
