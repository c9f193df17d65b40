"""kill -9 during transactions: each has all its effects or none, and once if it is retried.

Every transaction increments its client's own counter and a shared one, in two tables, and puts a
marker item in each table. After a kill, the marker items show which transactions were committed.
These must include all acknowledged ones, and the counters must match. Unanswered transactions are
retried with their client tokens.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

from tests.support.clients.wire import Connection, ConnectionLost
from tests.support.servers.server import Server, running_server
from tests.support.tables.tables import definition
from tests.support.writers.crashes import address

FEW_ROUNDS = 3
CLIENTS = 12
TABLES = ("first", "second")
_MANY_PARTITIONS = ("--partitions-per-table", "5")
# Errors after which a client retries its transaction.
_AGAIN = ("TransactionInProgressException", "InternalServerError", "ThrottlingException")


def transaction(client: int, number: int, shared: int) -> dict[str, Any]:
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


class Writers:
    """The clients and the answers to them, over all kills."""

    def __init__(self, draw: Random) -> None:
        self._draw = draw
        self._next = [0] * CLIENTS
        self.answered: set[tuple[int, int]] = set()
        self.unanswered: dict[int, tuple[int, dict[str, Any]]] = {}
        self.conflicts = 0
        self.answers = 0

    async def run(self, server: Server) -> None:
        """Send transactions until the server has ended."""
        async with asyncio.TaskGroup() as tasks:
            for client in range(CLIENTS):
                tasks.create_task(self._client(server, client))

    async def _client(self, server: Server, client: int) -> None:
        try:
            connection = await Connection.open(*address(server))
        except ConnectionLost:
            return
        try:
            while True:
                if client not in self.unanswered:
                    number = self._next[client]
                    self._next[client] += 1
                    shared = self._draw.randrange(4)
                    self.unanswered[client] = (number, transaction(client, number, shared))
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
        except ConnectionLost:
            pass
        finally:
            await connection.close()


async def found(connection: Connection, table: str) -> dict[str, dict[str, Any]]:
    items: dict[str, dict[str, Any]] = {}
    request: dict[str, Any] = {"TableName": table, "ConsistentRead": True}
    while True:
        answer = await connection.call("Scan", request)
        assert answer.status == 200, answer
        items.update((item["pk"]["S"], item) for item in answer.body["Items"])
        if "LastEvaluatedKey" not in answer.body:
            return items
        request["ExclusiveStartKey"] = answer.body["LastEvaluatedKey"]


async def compare(server: Server, writers: Writers) -> None:
    """Check that each transaction is complete or missing, and no acknowledged one is missing."""
    connection = await Connection.open(*address(server))
    first, second = [await found(connection, table) for table in TABLES]
    await connection.close()
    marks = [{name for name in items if name.startswith("mark")} for items in (first, second)]
    assert marks[0] == marks[1]
    assert {f"mark {client} {number}" for client, number in writers.answered} <= marks[0]
    for client in range(CLIENTS):
        own = sum(name.startswith(f"mark {client} ") for name in marks[0])
        assert count_of(first, f"client {client}") == own
    for shared in range(4):
        told = sum(second[name]["shared"]["N"] == str(shared) for name in marks[1])
        assert count_of(second, f"shared {shared}") == told


def count_of(items: dict[str, dict[str, Any]], name: str) -> int:
    return int(items[name]["n"]["N"]) if name in items else 0


async def test_kill_9_leaves_each_transaction_complete_or_without_effect(
    tmp_path: Path, rounds: int | None
) -> None:
    draw = Random(6)
    writers = Writers(draw)
    directory = tmp_path / "data"
    for number in range(rounds or FEW_ROUNDS):
        with running_server(*_MANY_PARTITIONS, data_dir=directory) as server:
            if number == 0:
                connection = await Connection.open(*address(server))
                for table in TABLES:
                    answer = await connection.call("CreateTable", definition("pk:S", name=table))
                    assert answer.status == 200, answer
                await connection.close()
            await compare(server, writers)
            before = writers.answers
            wanted = draw.randrange(50, 500)
            running = asyncio.create_task(writers.run(server))
            while writers.answers < before + wanted and not running.done():
                await asyncio.sleep(0.001)
            server.kill()
            await running
    with running_server(data_dir=directory) as server:
        await compare(server, writers)
        # A retry with the client token must not repeat a transaction that was committed.
        connection = await Connection.open(*address(server))
        for client, (number, request) in list(writers.unanswered.items()):
            answer = await connection.call("TransactWriteItems", request)
            assert answer.status == 200, answer
            writers.answered.add((client, number))
        await connection.close()
        await compare(server, writers)
        assert server.stop() == 0, server.log
    assert len(writers.answered) > 50
    assert writers.conflicts > 0
