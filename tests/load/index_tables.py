"""The tables of the index benchmarks, and their requests besides the load."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.load.footprint import call
from tests.load.items import create_table
from tests.load.servers import Server, cpu_seconds
from tests.support.clients.wire import Connection

# The partition keys of the indexes. Each put has a new title; consecutive puts have different
# ranks.
_KEYS = (("title", "S"), ("rank", "N"), ("price", "N"), ("version", "N"), ("sk", "S"))
_QUIET_SECONDS = 0.2
_QUIET_SHARE = 0.05

BY_TITLE = "global_0"


def global_index(number: int) -> dict[str, Any]:
    """The definition of the global index with that number; it projects all attributes."""
    return {
        "IndexName": f"global_{number}",
        "KeySchema": [
            {"AttributeName": _KEYS[number][0], "KeyType": "HASH"},
            {"AttributeName": "pk", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "ALL"},
    }


def definitions(count: int) -> list[dict[str, str]]:
    """The attribute definitions of a table with this many global indexes."""
    types = {"pk": "S", "sk": "S", **dict(_KEYS[:count])}
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


async def make_table(connection: Connection, name: str, global_indexes: int) -> None:
    """Create a table with this many global indexes and no local one; wait until it is ACTIVE."""
    body = create_table(name, indexed=False) | {"AttributeDefinitions": definitions(global_indexes)}
    if global_indexes:
        body["GlobalSecondaryIndexes"] = list(map(global_index, range(global_indexes)))
    await call(connection, "CreateTable", body)
    while (await describe(connection, name))["TableStatus"] != "ACTIVE":
        await asyncio.sleep(_QUIET_SECONDS)


async def describe(connection: Connection, name: str) -> dict[str, Any]:
    """DescribeTable's answer."""
    described: dict[str, Any] = (await call(connection, "DescribeTable", {"TableName": name}))[
        "Table"
    ]
    return described


async def wait_quiet(server: Server) -> float:
    """Wait until the server is idle; returns its processor time up to then."""
    before = cpu_seconds(server.pid)
    while True:
        await asyncio.sleep(_QUIET_SECONDS)
        now = cpu_seconds(server.pid)
        if now - before < _QUIET_SHARE * _QUIET_SECONDS:
            return now
        before = now
