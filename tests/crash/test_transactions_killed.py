"""kill -9 during transactions: each is done as a whole or not at all, and once if it is retried.

Every transaction increments its client's own counter and a shared one, in two tables, and leaves a
mark in each. After a kill, the marks show the completed ones. They must include the acknowledged
ones, and the counters must match the marks. Unanswered transactions are retried with their tokens.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

from tests.support.clients.wire import Connection, ConnectionLost
from tests.support.crowds.crashes import address
from tests.support.servers.server import Server, running_server
from tests.support.tables.tables import definition

FEW_ROUNDS = 3
CLIENTS = 12
TABLES = ("first", "second")
_MANY_PARTITIONS = ("--partitions-per-table", "5")
# Errors after which a client retries its transaction.
_AGAIN = ("TransactionInProgressException", "InternalServerError", "ThrottlingException")


def transaction(client: int, number: int, shared: int) -> dict[str, Any]:
    """The request, equal in each attempt."""

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


class Crowd:
    """Clients and their answers, over all kills."""

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


async def compare(server: Server, crowd: Crowd) -> None:
    """Check that each transaction is all or nothing, and that all acknowledged ones are there."""
    connection = await Connection.open(*address(server))
    first, second = [await found(connection, table) for table in TABLES]
    await connection.close()
    marks = [{name for name in items if name.startswith("mark")} for items in (first, second)]
    assert marks[0] == marks[1]
    assert {f"mark {client} {number}" for client, number in crowd.answered} <= marks[0]
    for client in range(CLIENTS):
        own = sum(name.startswith(f"mark {client} ") for name in marks[0])
        assert count_of(first, f"client {client}") == own
    for shared in range(4):
        told = sum(second[name]["shared"]["N"] == str(shared) for name in marks[1])
        assert count_of(second, f"shared {shared}") == told


def count_of(items: dict[str, dict[str, Any]], name: str) -> int:
    return int(items[name]["n"]["N"]) if name in items else 0


async def test_kill_9_leaves_transactions_whole_or_not_at_all(
    tmp_path: Path, rounds: int | None
) -> None:
    draw = Random(6)
    crowd = Crowd(draw)
    directory = tmp_path / "data"
    for number in range(rounds or FEW_ROUNDS):
        with running_server(*_MANY_PARTITIONS, data_dir=directory) as server:
            if number == 0:
                connection = await Connection.open(*address(server))
                for table in TABLES:
                    answer = await connection.call("CreateTable", definition("pk:S", name=table))
                    assert answer.status == 200, answer
                await connection.close()
            await compare(server, crowd)
            before = crowd.answers
            wanted = draw.randrange(50, 500)
            running = asyncio.create_task(crowd.run(server))
            while crowd.answers < before + wanted and not running.done():
                await asyncio.sleep(0.001)
            server.kill()
            await running
    with running_server(data_dir=directory) as server:
        await compare(server, crowd)
        # Unanswered transactions are retried with their tokens, and are done once.
        connection = await Connection.open(*address(server))
        for client, (number, request) in list(crowd.unanswered.items()):
            answer = await connection.call("TransactWriteItems", request)
            assert answer.status == 200, answer
            crowd.answered.add((client, number))
        await connection.close()
        await compare(server, crowd)
        assert server.stop() == 0, server.log
    assert len(crowd.answered) > 50
    assert crowd.conflicts > 0
