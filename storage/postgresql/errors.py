"""Converts the errors of asyncpg to the store's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import asyncpg

from dynactor.storage.postgresql.sql import INSERT_COLLISION, OWNED_BY_ANOTHER, READ_BY_ANOTHER
from dynactor.storage.store import (
    CannotOpen,
    Damaged,
    Full,
    Retry,
    StoreError,
    TakenOver,
    Unavailable,
)

# Errors that a statement or a connection may end with, except bugs.
FAILURES: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)

_FULL: Final = "53100"
_READ_ONLY: Final = "25006"
_LOCK_TIMEOUT: Final = "55P03"
# The transaction was rolled back because of concurrent transactions.
_ROLLED_BACK: Final = frozenset({"40001", "40P01", _LOCK_TIMEOUT})
# Classes of SQLSTATE: connection, resources, operator intervention, system.
_UNAVAILABLE: Final = ("08", "53", "57", "58")
_DAMAGED: Final = frozenset({"XX001", "XX002"})
# Errors that the operator has to correct before the server starts, by SQLSTATE.
_SETUP: Final = {
    "28P01": "PostgreSQL refuses the password of user {user}. Correct the URL of --store, or "
    "PGPASSWORD",
    "28000": "PostgreSQL refuses user {user}: {text}. Correct pg_hba.conf or the URL of --store",
    "3D000": "PostgreSQL has no database {database}. Create it with: createdb {database}",
    "42501": "User {user} lacks a privilege that dynactor needs in database {database}: {text}. "
    "Make the user the owner of the database",
    "53300": "PostgreSQL has no connection left: raise max_connections there",
}


class Lost(Unavailable):
    """The connection ended during a statement; whether PostgreSQL executed it is unknown."""


class InsertCollision(Retry):
    """Another session inserted the same row at the same time."""


def translate(error: Exception) -> StoreError:
    """The store's error for a statement's."""
    if isinstance(error, StoreError):
        return error
    code = _code(error)
    if code == _READ_ONLY:
        return Lost("PostgreSQL takes no writes at this moment")
    # The texts of the driver and of the operating system help nobody who sends requests.
    if code is None or code.startswith(("08", "57P")):
        return Lost("PostgreSQL: the connection was lost")
    if code in (OWNED_BY_ANOTHER, READ_BY_ANOTHER):
        return TakenOver("another server has taken over the database")
    text = f"PostgreSQL: {_text(error)}"
    if code == _FULL:
        return Full(text)
    if code == INSERT_COLLISION:
        return InsertCollision(text)
    if code in _ROLLED_BACK:
        return Retry(text)
    if code in _DAMAGED:
        return Damaged(text)
    if code.startswith(_UNAVAILABLE):
        return Unavailable(text)
    return Damaged(text)


@contextmanager
def terminable(connection: Any) -> Iterator[None]:
    """Run statements on a connection that may be terminated between two of their messages.

    A terminated connection of asyncpg has no protocol any more. It raises
    ``asyncpg.ConnectionDoesNotExistError``.
    """
    try:
        yield
    except AttributeError as error:
        if not connection.is_closed():
            raise
        raise asyncpg.ConnectionDoesNotExistError("the connection was terminated") from error


def is_lock_timeout(error: Exception) -> bool:
    """Whether a statement has waited too long for a lock."""
    return _code(error) == _LOCK_TIMEOUT


def ends_connection(error: Exception) -> bool:
    """Whether a connection is unusable after this error."""
    return isinstance(translate(error), Lost)


def cannot_open(error: Exception, *, user: str, database: str, hosts: str) -> CannotOpen:
    """The error for the person who starts the server."""
    advice = _SETUP.get(_code(error) or "")
    text = _text(error).rstrip(".")
    if advice is not None:
        return CannotOpen(advice.format(user=user, database=database, text=text))
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return CannotOpen(
            f"PostgreSQL at {hosts} takes no writes, because it is a standby or read-only. Promote "
            "it, or name the primary in the URL of --store"
        )
    return CannotOpen(
        f"PostgreSQL at {hosts} can't be used: {text}. Start it, or correct the URL of --store"
    )


def _code(error: Exception) -> str | None:
    if isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError):
        return None
    code: Any = getattr(error, "sqlstate", None)
    return None if code is None else str(code)


def _text(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
