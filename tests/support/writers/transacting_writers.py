"""Clients that send transactions, over faults, and a check that each has all effects or none.

Every transaction increments its client's own counter and a shared one, in two tables, and puts a
marker item in each table. The marker items show which transactions were committed. These must
include all acknowledged ones, and the counters must match. Unanswered transactions are retried with
their client tokens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from tests.support.clients.wire import Connection, ConnectionLost
from tests.support.servers.server import Server
from tests.support.tables.tables import definition
from tests.support.writers.crashes import connected

CLIENTS = 12
TABLES = ("first", "second")
_SHARED = 4
# Errors after which a client retries its transaction.
_AGAIN = ("TransactionInProgressException", "InternalServerError", "ThrottlingException")

_Items = dict[str, dict[str, Any]]


def _transaction(client: int, number: int, shared: int) -> dict[str, Any]:
    """The request, which is the same in each attempt."""

    def count(table: str, name: str) -> dict[str, Any]:
        return {
            "Update": {
                "TableName": table,
                "Key": {"pk": {"S": name}},
                "UpdateExpression": "ADD n :one",
                "ExpressionAttributeValues": {":one": {"N": "1"}},
            }
        }

    name = f"mark {client} {number}"
    mark = {"pk": {"S": name}, "shared": {"N": str(shared)}}
    actions = [count(TABLES[0], f"client {client}"), count(TABLES[1], f"shared {shared}")]
    actions += [{"Put": {"TableName": table, "Item": mark}} for table in TABLES]
    return {"TransactItems": actions, "ClientRequestToken": f"{client}-{number}"}


class TransactingWriters:
    """The clients and the answers to them, over all faults."""

    def __init__(self, draw: Random) -> None:
        self.answered: set[tuple[int, int]] = set()
        self.unanswered: dict[int, tuple[int, dict[str, Any]]] = {}
        self.conflicts = 0
        self.answers = 0
        self.stopping = False
        self._draw = draw
        self._next = [0] * CLIENTS

    async def make_tables(self, connection: Connection) -> None:
        """Create the two tables."""
        for table in TABLES:
            answer = await connection.call("CreateTable", definition("pk:S", name=table))
            assert answer.status == 200, answer

    async def run(self, server: Server) -> None:
        """Send transactions until the server has ended or ``stopping`` is set."""
        self.stopping = False
        async with asyncio.TaskGroup() as tasks:
            for client in range(CLIENTS):
                tasks.create_task(self._client(server, client))

    async def run_on(self, next_address: Callable[[], Awaitable[tuple[str, int] | None]]) -> None:
        """Send transactions to one server after another, until there is no next address."""
        async with asyncio.TaskGroup() as tasks:
            for client in range(CLIENTS):
                tasks.create_task(self._moving_client(next_address, client))

    async def _moving_client(
        self, next_address: Callable[[], Awaitable[tuple[str, int] | None]], client: int
    ) -> None:
        while (address := await next_address()) is not None:
            try:
                connection = await Connection.open(*address)
            except ConnectionLost:
                await asyncio.sleep(0)
                continue
            try:
                await self._attempt(connection, client)
            except ConnectionLost:
                continue
            finally:
                await connection.close()

    async def _client(self, server: Server, client: int) -> None:
        try:
            async with connected(server) as connection:
                while not self.stopping:
                    await self._attempt(connection, client)
        except ConnectionLost:
            return

    async def _attempt(self, connection: Connection, client: int) -> None:
        if client not in self.unanswered:
            number = self._next[client]
            self._next[client] += 1
            shared = self._draw.randrange(_SHARED)
            self.unanswered[client] = (number, _transaction(client, number, shared))
        number, request = self.unanswered[client]
        answer = await connection.call("TransactWriteItems", request)
        self.answers += 1
        if answer.status == 200:
            self.answered.add((client, number))
            del self.unanswered[client]
        elif answer.error == "TransactionCanceledException":
            codes = {reason["Code"] for reason in answer.body["CancellationReasons"]}
            assert codes <= {"None", "TransactionConflict"}, answer
            self.conflicts += 1
        else:
            assert answer.error in _AGAIN, answer

    async def complete(self, connection: Connection) -> None:
        """Retry the unanswered transactions with their tokens; each must succeed."""
        for client, (number, request) in list(self.unanswered.items()):
            answer = await connection.call("TransactWriteItems", request)
            assert answer.status == 200, answer
            self.answered.add((client, number))
            del self.unanswered[client]

    async def violations(self, connection: Connection) -> list[str]:
        """The transactions that are lost or half done. No writes meanwhile."""
        first, second = [await _found(connection, table) for table in TABLES]
        marks = {name for name in first if name.startswith("mark")}
        found = [
            f"the mark {name} is in one table only"
            for name in marks ^ {name for name in second if name.startswith("mark")}
        ]
        known = [*self.answered, *((client, at) for client, (at, _) in self.unanswered.items())]
        names = {f"mark {client} {number}" for client, number in known}
        found += [f"nobody sent {name}" for name in marks - names]
        answered = {f"mark {client} {number}" for client, number in self.answered}
        found += [f"{name} is lost" for name in answered - marks]
        for client in range(CLIENTS):
            own = sum(name.startswith(f"mark {client} ") for name in marks)
            found += _miscounted(first, f"client {client}", own)
        for shared in range(_SHARED):
            told = sum(
                name in marks and item["shared"]["N"] == str(shared)
                for name, item in second.items()
            )
            found += _miscounted(second, f"shared {shared}", told)
        return found


async def _found(connection: Connection, table: str) -> _Items:
    items: _Items = {}
    request: dict[str, Any] = {"TableName": table, "ConsistentRead": True}
    while True:
        answer = await connection.call("Scan", request)
        assert answer.status == 200, answer
        items.update((item["pk"]["S"], item) for item in answer.body["Items"])
        if "LastEvaluatedKey" not in answer.body:
            return items
        request["ExclusiveStartKey"] = answer.body["LastEvaluatedKey"]


def _miscounted(items: _Items, name: str, expected: int) -> list[str]:
    count = int(items[name]["n"]["N"]) if name in items else 0
    return [] if count == expected else [f"{name} counts {count} transactions of {expected}"]
