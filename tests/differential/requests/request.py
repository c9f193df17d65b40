"""A request as both servers get it, and a scenario: tables, their items, requests in order."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

# Told among the faults of a read that was added to see what an update did.
AFTER_UPDATE = "read after the update"
AFTER_STATEMENTS = "read after the statements"
WITHOUT_ACTION = "a legacy update without Action"
_WRITES = re.compile("INSERT|UPDATE|DELETE", re.IGNORECASE)


class Request(NamedTuple):
    """One request: the body is text, for a body may be broken in ways no dict can be."""

    operation: str
    body: str
    # What was broken on purpose, for the reader of a report.
    faults: tuple[str, ...] = ()


class Scenario(NamedTuple):
    """A run of requests on tables of their own.

    The set-up may be sent again at any moment: it deletes its tables first. So a write that
    one server accepts and the other refuses spoils no later comparison.
    """

    name: str
    setup: tuple[Request, ...]
    requests: tuple[Request, ...]
    teardown: tuple[Request, ...]


def request(operation: str, body: dict[str, Any], *faults: str) -> Request:
    """A request with a well-formed body."""
    return Request(operation, json.dumps(body, ensure_ascii=False), faults)


def may_write(sent: Request) -> bool:
    """Whether a request writes with no answer that tells what: statements and transactions."""
    if "Statement" in sent.operation or sent.operation == "ExecuteTransaction":
        return _WRITES.search(sent.body) is not None
    return sent.operation == "TransactWriteItems"


def without_action(body: dict[str, Any]) -> bool:
    """Whether some legacy update leaves its Action to the default, PUT."""
    updates = body.get("AttributeUpdates")
    return isinstance(updates, dict) and any(
        isinstance(update, dict) and update.get("Action") is None for update in updates.values()
    )
