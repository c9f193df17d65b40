"""The prefix that PutItem, UpdateItem and DeleteItem add to validation messages."""

from __future__ import annotations

from typing import Final

_SINGLE_WRITES: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem"})


def enveloped(message: str) -> str:
    """The message of a fault found before the table is read, with the prefix of single writes."""
    return f"1 validation error detected: {message}"


def as_reported_by(operation: str, message: str) -> str:
    """The message of a fault found before the table is read, as this operation reports it."""
    return enveloped(message) if operation in _SINGLE_WRITES else message
