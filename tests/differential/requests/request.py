"""A request for both servers, and a scenario: tables, their items, requests in order."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

# A mark among the faults of a read that was added to check an update.
AFTER_UPDATE = "read after the update"
AFTER_STATEMENTS = "read after the statements"
WITHOUT_ACTION = "a legacy update without Action"
_WRITES = re.compile("INSERT|UPDATE|DELETE", re.IGNORECASE)


class Request(NamedTuple):
    """One request; the body is text, because a body may be broken in ways that no dict can."""

    operation: str
    body: str
    # The deliberate faults, for the report.
    faults: tuple[str, ...] = ()


class Scenario(NamedTuple):
    """A sequence of requests on its own tables.

    The setup may be sent again at any moment, because it deletes its tables first. So a write that
    only one server accepts affects no later comparison.
    """

    name: str
    setup: tuple[Request, ...]
    requests: tuple[Request, ...]
    teardown: tuple[Request, ...]


def request(operation: str, body: dict[str, Any], *faults: str) -> Request:
    """A request with a well-formed body."""
    return Request(operation, json.dumps(body, ensure_ascii=False), faults)


def may_write(sent: Request) -> bool:
    """Whether a request may write without a result: statements and transactions."""
    if "Statement" in sent.operation or sent.operation == "ExecuteTransaction":
        return _WRITES.search(sent.body) is not None
    return sent.operation == "TransactWriteItems"


def without_action(body: dict[str, Any]) -> bool:
    """Whether a legacy update omits an Action, whose default is PUT."""
    updates = body.get("AttributeUpdates")
    return isinstance(updates, dict) and any(
        isinstance(update, dict) and update.get("Action") is None for update in updates.values()
    )
