"""The envelope in which single writes report a request's faults."""

from __future__ import annotations

from typing import Final

_SINGLE_WRITES: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem"})


def enveloped(message: str) -> str:
    """A fault that needs no table, as PutItem, UpdateItem and DeleteItem report it."""
    return f"1 validation error detected: {message}"


def told_by(operation: str, message: str) -> str:
    """A fault that needs no table, as an operation reports it."""
    return enveloped(message) if operation in _SINGLE_WRITES else message
