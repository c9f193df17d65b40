"""Compares two answers to one request, and describes their difference."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from tests.differential.requests.request import AFTER_STATEMENTS, AFTER_UPDATE, Request

WRITES = frozenset(
    (
        "PutItem",
        "UpdateItem",
        "DeleteItem",
        "BatchWriteItem",
        "CreateTable",
        "UpdateTable",
        "DeleteTable",
    )
)
TRANSACTIONS = frozenset(("TransactWriteItems", "TransactGetItems", "ExecuteTransaction"))
_PLAIN = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?")


class Difference(NamedTuple):
    """A request that this server and DynamoDB Local answer differently."""

    scenario: str
    request: Request
    ours: dict[str, Any]
    local: dict[str, Any]

    @property
    def body(self) -> dict[str, Any]:
        """The request's body."""
        body: dict[str, Any] = json.loads(self.request.body)
        return body

    @property
    def our_message(self) -> str:
        """This server's error message; empty for a success."""
        return str(self.ours.get("message", ""))

    @property
    def local_message(self) -> str:
        """DynamoDB Local's error message; empty for a success."""
        return str(self.local.get("message", ""))

    @property
    def our_error(self) -> str:
        """The name of this server's error; empty for a success."""
        return str(self.ours.get("error", ""))

    @property
    def local_error(self) -> str:
        """The name of DynamoDB Local's error; empty for a success."""
        return str(self.local.get("error", ""))

    @property
    def paths(self) -> frozenset[str]:
        """The paths where two successful answers differ; ``*`` replaces positions and map keys."""
        if self.our_error or self.local_error:
            return frozenset()
        return frozenset(_paths(self.ours["result"], self.local["result"], ""))

    @property
    def signature(self) -> str:
        """A summary of the difference; equal summaries mean probably the same kind."""
        if self.our_error or self.local_error:
            return f"ours: {_form(self.ours)}\n   local: {_form(self.local)}"
        return f"{self.request.operation} results differ at {', '.join(sorted(self.paths))}"


def spoils_state(difference: Difference) -> bool:
    """Whether the two servers may now hold different data."""
    faults = difference.request.faults
    if AFTER_UPDATE in faults or AFTER_STATEMENTS in faults:
        return any(path.startswith(".Item") for path in difference.paths)
    if "Statement" in difference.request.operation or difference.request.operation in TRANSACTIONS:
        return bool(difference.our_error) != bool(difference.local_error) or any(
            path.startswith(".Responses[].Error (") for path in difference.paths
        )
    return difference.request.operation in WRITES and (
        bool(difference.our_error) != bool(difference.local_error)
        or any(path.startswith((".Attributes", ".Table")) for path in difference.paths)
    )


def _form(answer: dict[str, Any]) -> str:
    if "error" not in answer:
        return "success"
    message = str(answer["message"])
    message = re.sub(r"'[^']*'", "'…'", message)
    message = re.sub(r"\{[^{}]*\}", "{…}", message)
    message = re.sub(r"\[[^\[\]]*\]", "[…]", message)
    message = re.sub(r'"[^"]*"', '"…"', message)
    message = re.sub(
        r"(name|operand type|key|function|operator|value): [^\s,;]+", r"\1: …", message
    )
    return f"{answer['status']} {answer['error']}: {message[:300]}"


def _paths(ours: Any, local: Any, path: str, *, is_number: bool = False) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(local, dict):
        for name in ours.keys() | local.keys():
            # The path has the names of members, such as Item, and an asterisk for an attribute
            # name.
            member = name.isalpha() and name[0].isupper() and not name.isupper()
            step = name if member else "*"
            if name not in ours:
                yield f"{path}.{step} (local only)"
            elif name not in local:
                yield f"{path}.{step} (ours only)"
            else:
                is_number = name in {"N", "NS"}
                yield from _paths(ours[name], local[name], f"{path}.{step}", is_number=is_number)
    elif isinstance(ours, list) and isinstance(local, list):
        if len(ours) != len(local):
            yield f"{path} (length)"
        else:
            for one, other in zip(ours, local, strict=True):
                yield from _paths(one, other, f"{path}[]", is_number=is_number)
    elif ours != local:
        is_notation = is_number and _is_plain(ours) and _same_number(ours, local)
        yield f"{path} (notation)" if is_notation else path


def _is_plain(number: str) -> bool:
    """Whether a number is written as DynamoDB returns numbers."""
    return number != "-0" and _PLAIN.fullmatch(number) is not None


def _same_number(ours: str, local: str) -> bool:
    try:
        return Decimal(ours) == Decimal(local)
    except InvalidOperation:
        return False
