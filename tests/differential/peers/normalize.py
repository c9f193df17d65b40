"""Removes permitted differences from answers: ids, times, regions, unspecified order."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

from tests.differential.peers.peer import Answer
from tests.differential.requests.request import Request

_FREE = re.compile(r"(DateTime|TableId|TimeStamp)$")
_ARN = re.compile(r"arn:aws:dynamodb:[a-z0-9-]+:[0-9]+:")
_DETECTED = re.compile(r"([0-9]+ validation errors? detected: )(Value .*)", re.DOTALL)
_SETS = ("SS", "NS", "BS")
# Members of a map in a message are sorted, because DynamoDB Local prints them in hash order.
_COMMA = re.compile(", ?")
_BRACES = re.compile(r"\{([^{}]*)\}")


def normalize(request: Request, answer: Answer) -> dict[str, Any]:
    """The normalized answer: the status, and an error or a result."""
    body = answer.body
    if answer.status != 200:
        if not isinstance(body, dict):
            return {"status": answer.status, "error": "no JSON", "message": body}
        return {
            "status": answer.status,
            "error": str(body.get("__type", "")).rpartition("#")[2],
            "message": _message(body.get("message", body.get("Message", ""))),
        } | {
            name: _value(name, member)
            for name, member in body.items()
            if name not in ("__type", "message", "Message")
        }
    result = _value("", body)
    if isinstance(result, dict):
        _order(request, result)
    return {"status": answer.status, "result": result}


def _message(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    counted = _DETECTED.match(text)
    if counted is not None:
        # Violated constraints are sorted, because DynamoDB Local lists them in hash order, too.
        text = counted[1] + "; ".join(sorted(counted[2].split("; ")))
    text = _ARN.sub("arn:aws:dynamodb:REGION:ACCOUNT:", text)
    return _BRACES.sub(lambda found: "{" + ", ".join(sorted(_COMMA.split(found[1]))) + "}", text)


def _value(name: str, node: Any) -> Any:
    if isinstance(node, dict):
        made = {key: _value(key, member) for key, member in node.items() if not _FREE.search(key)}
        for set_type in _SETS:
            if isinstance(made.get(set_type), list):
                key = _number if set_type == "NS" else str
                made[set_type] = sorted(made[set_type], key=key)
        return made
    if isinstance(node, list):
        return [_value(name, member) for member in node]
    if isinstance(node, str):
        return _ARN.sub("arn:aws:dynamodb:REGION:ACCOUNT:", node)
    return node


def _number(member: Any) -> tuple[Decimal, str]:
    """The sort key of a number in a set: its value, or its text if it is no number."""
    try:
        return Decimal(member), ""
    except (InvalidOperation, TypeError):
        return Decimal(0), str(member)


def _text(node: Any) -> str:
    """The sort key of a part of an answer, which does not depend on the notation of numbers."""
    return json.dumps(without_spelling(node), sort_keys=True)


def without_spelling(node: Any) -> Any:
    """A part of an answer in which equal numbers have the same notation."""
    if isinstance(node, dict):
        return {
            name: _plain(member)
            if name == "N"
            else [*map(_plain, member)]
            if name == "NS" and isinstance(member, list)
            else without_spelling(member)
            for name, member in node.items()
        }
    if isinstance(node, list):
        return [without_spelling(member) for member in node]
    return node


def _plain(number: Any) -> Any:
    try:
        value = Decimal(number)
        return str(value.normalize()) if value else "0"
    except (InvalidOperation, TypeError):
        return number


def _order(request: Request, result: dict[str, Any]) -> None:
    """Sort the parts whose order DynamoDB does not specify."""
    for name in ("AttributeDefinitions", "LocalSecondaryIndexes"):
        for described in ("TableDescription", "Table"):
            table = result.get(described)
            if isinstance(table, dict) and isinstance(table.get(name), list):
                table[name].sort(key=_text)
    responses = result.get("Responses")
    if isinstance(responses, dict):
        for rows in responses.values():
            rows.sort(key=_text)
    if isinstance(result.get("Tags"), list):
        result["Tags"].sort(key=_text)
    if request.operation == "Scan" and "LastEvaluatedKey" not in result and "Items" in result:
        result["Items"].sort(key=_text)
    # Tokens are opaque and differ between the servers.
    if "NextToken" in result:
        result["NextToken"] = "there is one"
