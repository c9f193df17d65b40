"""Finds the tables of a request before it is decoded, to find their home."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from dynactor.api.http.protocol import Request, plain_body
from dynactor.api.requests.operation import DYNAMODB, DYNAMODB_STREAMS
from dynactor.model.errors import DynamoDBError
from dynactor.model.partiql.binding import prepare

# Operations that the home of their tables executes. All others need the leader, because they
# concern all tables, or what belongs to no single table.
_AT_HOME: Final = frozenset(
    f"{DYNAMODB}.{name}"
    for name in (
        "BatchExecuteStatement",
        "BatchGetItem",
        "BatchWriteItem",
        # If there is such a table, its home refuses to create it again.
        "CreateTable",
        "DeleteItem",
        "DeleteResourcePolicy",
        "DescribeContinuousBackups",
        "DescribeContributorInsights",
        "DescribeKinesisStreamingDestination",
        "DescribeTable",
        "DescribeTimeToLive",
        "ExecuteStatement",
        "ExecuteTransaction",
        "GetItem",
        "GetResourcePolicy",
        "ListTagsOfResource",
        "PutItem",
        "PutResourcePolicy",
        "Query",
        "Scan",
        "TagResource",
        "TransactGetItems",
        "TransactWriteItems",
        "UntagResource",
        "UpdateItem",
        "UpdateTable",
        "UpdateTimeToLive",
    )
) | frozenset(
    f"{DYNAMODB_STREAMS}.{name}" for name in ("DescribeStream", "GetRecords", "GetShardIterator")
)
# Operations that list what the leader has, even if they name a table.
_LISTS: Final = frozenset(
    f"{service}.{name}"
    for service, names in (
        (DYNAMODB, ("ListBackups", "ListContributorInsights", "ListExports", "ListImports")),
        (DYNAMODB_STREAMS, ("ListStreams",)),
    )
    for name in names
)
# The table in the ARN of a table, an index or a stream, and in a shard iterator.
_ARN_TABLE: Final = re.compile(r"arn:[^|]*?:table/([^/|]+)")


class RequestTables(NamedTuple):
    """The tables that a request names. ``is_at_home``: their home executes it, not the leader."""

    names: tuple[str, ...]
    is_at_home: bool


NO_TABLES: Final = RequestTables((), is_at_home=False)


class _Action(Struct, frozen=True):
    TableName: str = ""


class _Statement(Struct, frozen=True):
    Statement: str = ""


class _Named(Struct):
    """The members of all operations that name tables."""

    TableName: str = ""
    RequestItems: dict[str, Raw] | None = None
    TransactItems: list[dict[str, _Action]] | None = None
    Statement: str = ""
    Statements: list[_Statement] | None = None
    TransactStatements: list[_Statement] | None = None
    StreamArn: str = ""
    ShardIterator: str = ""
    ResourceArn: str = ""
    TableArn: str = ""
    SourceTableName: str = ""
    SourceTableArn: str = ""
    TargetTableName: str = ""
    TableCreationParameters: _Action = _Action()


_decode: Final = msgspec.json.Decoder(_Named).decode


def tables_of(request: Request) -> RequestTables:
    """The tables of a request. A request that can't be read names none."""
    target = request.target
    if target in _LISTS:
        return NO_TABLES
    try:
        body = plain_body(request) if request.content_encoding else request.body
        named = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, DynamoDBError):
        return NO_TABLES
    is_at_home = target in _AT_HOME
    name = named.TableName
    if is_at_home and name and ":" not in name:
        return _of_one(name)
    names = tuple(dict.fromkeys(filter(None, map(_name, _texts(named)))))
    return RequestTables(names, is_at_home)


@lru_cache(maxsize=1024)
def _of_one(name: str) -> RequestTables:
    return RequestTables((name,), is_at_home=True)


def _name(text: str) -> str:
    if ":" not in text:
        return text
    found = _ARN_TABLE.match(text)
    return found[1] if found else ""


def _texts(named: _Named) -> Iterator[str]:
    yield from (
        named.TableName,
        named.StreamArn,
        named.ShardIterator,
        named.ResourceArn,
        named.TableArn,
        named.SourceTableName,
        named.SourceTableArn,
        named.TargetTableName,
        named.TableCreationParameters.TableName,
    )
    yield from named.RequestItems or ()
    for item in named.TransactItems or ():
        yield from (action.TableName for action in item.values())
    statements = (*(named.Statements or ()), *(named.TransactStatements or ()))
    for text in (named.Statement, *(each.Statement for each in statements)):
        if text:
            with suppress(DynamoDBError):
                yield prepare(text).table or ""
