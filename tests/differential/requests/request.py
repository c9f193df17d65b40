"""Requests for both servers, and scenarios: tables, their items, and a sequence of requests."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

# These are listed among a request's faults. The first two mark a read that the comparison added
# after a write, to check its effect.
AFTER_UPDATE = "read after the update"
AFTER_STATEMENTS = "read after the statements"
WITHOUT_ACTION = "a legacy update without Action"
_WRITES = re.compile("INSERT|UPDATE|DELETE", re.IGNORECASE)


class Request(NamedTuple):
    """One request. The body is text, because some faults can't be expressed by a dict."""

    operation: str
    body: str
    # The deliberate faults, for the report.
    faults: tuple[str, ...] = ()


class Scenario(NamedTuple):
    """A sequence of requests on the scenario's own tables.

    The setup can be sent again at any time, because it deletes the tables first. So a write that
    only one server accepts does not affect later comparisons.
    """

    name: str
    setup: tuple[Request, ...]
    requests: tuple[Request, ...]
    teardown: tuple[Request, ...]


def request(operation: str, body: dict[str, Any], *faults: str) -> Request:
    """A request with a well-formed body."""
    return Request(operation, json.dumps(body, ensure_ascii=False), faults)


def may_write(sent: Request) -> bool:
    """Whether a request may write without returning the item: statements and transactions."""
    if "Statement" in sent.operation or sent.operation == "ExecuteTransaction":
        return _WRITES.search(sent.body) is not None
    return sent.operation == "TransactWriteItems"


def without_action(body: dict[str, Any]) -> bool:
    """Whether a legacy update omits an Action, whose default is PUT."""
    updates = body.get("AttributeUpdates")
    return isinstance(updates, dict) and any(
        isinstance(update, dict) and update.get("Action") is None for update in updates.values()
    )
