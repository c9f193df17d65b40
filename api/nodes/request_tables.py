"""Finds the tables of a request before it is decoded, to find their home."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from dynactor.api.execution.operation import Location, Operation
from dynactor.api.http.protocol import Request, plain_body
from dynactor.api.registry import OPERATIONS
from dynactor.api.requests.input_decoder import UNDECODABLE
from dynactor.model.errors import DynamoDBError
from dynactor.model.limits import TABLE_NAME_CHARACTERS
from dynactor.model.partiql.binding import prepare

# The table in the ARN of a table, an index or a stream, and in a shard iterator.
_ARN_TABLE: Final = re.compile(r"arn:[^:]*:dynamodb:[^:]*:[^:]*:table/([^/|]+)")
_LONGEST_NAME: Final = TABLE_NAME_CHARACTERS[1]


class RequestTables(NamedTuple):
    """The tables that a request names. ``is_at_home``: their home executes it, not the leader."""

    names: tuple[str, ...]
    is_at_home: bool


NO_TABLES: Final = RequestTables((), is_at_home=False)


class _TableInput(Struct, frozen=True):
    TableName: str | None = None


class _Actions(Struct, frozen=True):
    ConditionCheck: _TableInput | None = None
    Delete: _TableInput | None = None
    Get: _TableInput | None = None
    Put: _TableInput | None = None
    Update: _TableInput | None = None


class _NamedStatement(Struct, frozen=True):
    Statement: str | None = None


def _itself(text: str) -> Iterator[str]:
    yield text


def _table_texts(table: _TableInput) -> Iterator[str | None]:
    yield table.TableName


def _action_texts(items: list[_Actions]) -> Iterator[str | None]:
    for item in items:
        for action in (item.ConditionCheck, item.Delete, item.Get, item.Put, item.Update):
            yield None if action is None else action.TableName


def _statement_texts(text: str | None) -> Iterator[str | None]:
    if text:
        with suppress(DynamoDBError):
            yield prepare(text).table


def _statements_texts(statements: list[_NamedStatement]) -> Iterator[str | None]:
    for each in statements:
        yield from _statement_texts(each.Statement)


class _NamingMember(NamedTuple):
    """A member that names tables."""

    shape: Any
    # Finds the names and ARNs in its value.
    texts: Callable[[Any], Iterator[str | None]]


# All members that name tables, in any operation.
_MEMBERS: Final = {
    **dict.fromkeys(
        (
            "TableName",
            "StreamArn",
            "ShardIterator",
            "ResourceArn",
            "TableArn",
            "SourceTableName",
            "SourceTableArn",
            "TargetTableName",
        ),
        _NamingMember(str, _itself),
    ),
    "RequestItems": _NamingMember(dict[str, Raw], iter),
    "TransactItems": _NamingMember(list[_Actions], _action_texts),
    "Statement": _NamingMember(str, _statement_texts),
    "Statements": _NamingMember(list[_NamedStatement], _statements_texts),
    "TransactStatements": _NamingMember(list[_NamedStatement], _statements_texts),
    "TableCreationParameters": _NamingMember(_TableInput, _table_texts),
}


class _TableFinder:
    """Finds the tables in the bodies of one operation; ignores the members that it ignores."""

    def __init__(self, operation: Operation) -> None:
        given = operation.input.__struct_fields__
        self._members = [(name, member) for name, member in _MEMBERS.items() if name in given]
        self._is_at_home = operation.location is Location.HOME
        # Most operations name one table.
        self._is_plain = self._is_at_home and [name for name, _ in self._members] == ["TableName"]
        # Operations read null as no value.
        fields = [(name, member.shape | None, None) for name, member in self._members]
        self._decode: Any = msgspec.json.Decoder(msgspec.defstruct("Named", fields)).decode

    def tables(self, body: bytes) -> RequestTables:
        named = self._decode(body)
        if self._is_plain:
            name = named.TableName
            # The cache keeps no long texts, because clients may send any.
            if name and len(name) <= _LONGEST_NAME and ":" not in name:
                return _one_table(name)
        texts = (
            text
            for member, how in self._members
            if (value := getattr(named, member)) is not None
            for text in how.texts(value)
        )
        names = tuple(dict.fromkeys(filter(None, map(_name, texts))))
        return RequestTables(names, self._is_at_home)


# By target, without the operations that need no table.
_READINGS: Final = {
    operation.target: _TableFinder(operation)
    for operation in OPERATIONS.values()
    if operation.location is not Location.LEADER
    and _MEMBERS.keys() & operation.input.__struct_fields__
}


def find_tables(request: Request) -> RequestTables:
    """The tables of a request. A request that can't be read names none."""
    reading = _READINGS.get(request.target)
    if reading is None:
        return NO_TABLES
    try:
        return reading.tables(plain_body(request) if request.content_encoding else request.body)
    except (*UNDECODABLE, DynamoDBError):
        return NO_TABLES


@lru_cache(maxsize=1024)
def _one_table(name: str) -> RequestTables:
    return RequestTables((name,), is_at_home=True)


def _name(text: str | None) -> str:
    if not text or ":" not in text:
        return text or ""
    found = _ARN_TABLE.match(text)
    return found[1] if found else ""
