"""A database in the test's process as an endpoint of the commands that move items."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from dynactor.actors.database.database import Database
from dynactor.api.clients.client import RequestFailed
from tests.support.servers.in_process import InProcessClient

_STREAMS = frozenset({"DescribeStream", "GetRecords", "GetShardIterator"})


class DatabaseEndpoint:
    """Calls operations without HTTP. ``before`` runs before each call, with its operation."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._tables = InProcessClient(database)
        self._streams = InProcessClient(database, "DynamoDBStreams")
        self.calls: list[str] = []
        self.before: Callable[[str], Awaitable[None]] | None = None

    async def call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request; raises the error of an endpoint."""
        self.calls.append(operation)
        if self.before is not None:
            await self.before(operation)
        client = self._streams if operation in _STREAMS else self._tables
        status, answer = await client(operation, request)
        if status != 200:
            raise RequestFailed(
                answer["__type"].rpartition("#")[2],
                answer.get("message", answer.get("Message", "")),
            )
        return answer

    async def items(self, table_name: str) -> list[dict[str, Any]]:
        """All items of a table, sorted."""
        answer = await self.call("Scan", {"TableName": table_name, "ConsistentRead": True})
        assert "LastEvaluatedKey" not in answer
        return sorted(answer["Items"], key=repr)


async def no_pause(_: float) -> None:
    """Let other tasks run, instead of waiting."""
    await asyncio.sleep(0)
