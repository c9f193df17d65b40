"""A disk that refuses a share of all writes: reads continue, and writes resume with free space.

Other processes may use and free space at any time. So the disk may be full again at any write, also
while the server reopens its engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import pytest

from tests.support.clients.wire import Answer, Connection
from tests.support.histories.history import History
from tests.support.servers.server import Server
from tests.support.writers.crashes import CrashingDatabase, address, connected
from tests.support.writers.whole_database import violations
from tests.support.writers.writers import Writers

TABLE = "crash-a"
FEW_ROUNDS = 2
# The rounds with ``--rounds``, as in `make crash`; each takes some seconds.
MANY_ROUNDS = 10
PERCENTS = (12, 39, 100)
# More than the table has partitions, so each partition probably gets a write.
COLLECTIONS = 16
WRITER_COUNT = 8
REFUSALS = 500
ANSWERS = 400
LONGEST_SECONDS = 5.0
# After a commit to the catalog of unknown outcome, all tables restart.
RETRIED = ("full", "this table is restarting, try again")
# RocksDB may flush unsynced changes before the store stops its background work after a failed sync.
FLUSHED = "restart the server: changes without a sync were flushed and can't be undone"

shares = pytest.mark.parametrize("percent", PERCENTS)


def item(collection: int, payload: str = "") -> dict[str, Any]:
    # The concurrent writers use other items.
    return {"pk": {"S": f"probe{collection}"}, "sk": {"S": "1"}, "payload": {"S": payload}}


async def put(connection: Connection, collection: int, payload: str) -> Answer:
    body = {"TableName": TABLE, "Item": item(collection, payload)}
    return await connection.call("PutItem", body)


class RestartNeeded(Exception):
    """The store takes no writes until a restart, because unsynced changes were flushed."""


class Reader:
    """Sends all kinds of reads, one after another, until ``is_ending`` is set."""

    def __init__(self) -> None:
        self.reads = 0
        self.is_ending = False

    async def run(self, connection: Connection) -> None:
        while not self.is_ending:
            for operation, body in self._requests(self.reads % COLLECTIONS):
                answer = await connection.call(operation, body)
                assert answer.status == 200, answer
            self.reads += 1

    def _requests(self, collection: int) -> list[tuple[str, dict[str, Any]]]:
        pk = item(collection)["pk"]
        query = {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": pk}}
        return [
            ("GetItem", {"TableName": TABLE, "Key": {"pk": pk, "sk": {"S": "1"}}}),
            ("Query", {"TableName": TABLE, "IndexName": "by_rank", **query}),
            ("Query", {"TableName": TABLE, "ConsistentRead": True, **query}),
            ("Scan", {"TableName": TABLE, "Limit": 100, "ConsistentRead": True}),
            ("DescribeTable", {"TableName": TABLE}),
        ]


@asynccontextmanager
async def used(server: Server, writers: Writers) -> AsyncIterator[Reader]:
    """Run the writers and a reader on the server within the context."""
    reader = Reader()
    async with connected(server) as connection, asyncio.TaskGroup() as tasks:
        tasks.create_task(writers.run(*address(server)))
        tasks.create_task(reader.run(connection))
        await writers.wait_answers(ANSWERS)
        yield reader
        writers.stopping = reader.is_ending = True


async def wait_written(server: Server, payload: str) -> float:
    """Write to each item collection until the write is accepted; return the seconds this took.

    Raises:
        RestartNeeded: the store asks for a restart.
    """
    began = monotonic()
    async with connected(server) as connection:
        for collection in range(COLLECTIONS):
            while (answer := await put(connection, collection, payload)).status != 200:
                assert answer.status == 500, answer
                if FLUSHED in answer.body["message"]:
                    raise RestartNeeded
                assert any(text in answer.body["message"] for text in RETRIED), answer
                # SDKs wait even longer before a retry.
                await asyncio.sleep(0.01)
    return monotonic() - began


async def read_back(server: Server) -> set[str]:
    async with connected(server) as connection:
        found = set()
        for collection in range(COLLECTIONS):
            key = {name: item(collection)[name] for name in ("pk", "sk")}
            answer = await connection.call("GetItem", {"TableName": TABLE, "Key": key})
            found.add(answer.body["Item"]["payload"]["S"])
            assert (
                await connection.call("DeleteItem", {"TableName": TABLE, "Key": key})
            ).status == 200
        return found


async def audit(server: Server, history: History, payload: str) -> None:
    """Every item collection has the last write of the test, and all other data fits the history."""
    assert await read_back(server) == {payload}
    async with connected(server) as connection:
        assert await violations(connection, history) == []


@shares
async def test_reads_continue_and_writes_resume(
    tmp_path: Path, rounds: int | None, percent: int
) -> None:
    database = CrashingDatabase(tmp_path, Random(percent), power=True)
    await database.make()
    power = database.power
    assert power is not None
    writers = Writers(database.history, Random(percent), WRITER_COUNT)
    with database.running() as server:
        await wait_written(server, "first")
        needs_restart = False
        async with used(server, writers) as reader:
            for number in range(min(rounds or FEW_ROUNDS, MANY_ROUNDS)):
                usual_seconds = await wait_written(server, "usual")
                power.fill_disk(percent)
                reads, refusals = reader.reads, writers.refusals
                while writers.refusals < refusals + REFUSALS or reader.reads == reads:
                    await writers.wait_answers(writers.answers + 1)
                power.free_disk()
                try:
                    seconds = await wait_written(server, f"{number}")
                except RestartNeeded:
                    needs_restart = True
                    break
                limit_seconds = LONGEST_SECONDS + 3 * usual_seconds
                assert seconds < limit_seconds, f"round {number}\n{server.log}"
        assert "Traceback" not in server.log, server.log
        if not needs_restart:
            await audit(server, database.history, f"{number}")
        server.kill()
    if needs_restart:
        with database.running() as server:
            await wait_written(server, "restarted")
            await audit(server, database.history, "restarted")
            server.kill()
    power.cut()
    assert await database.compare() == []


@shares
async def test_exactly_the_acknowledged_writes_survive_a_kill(
    tmp_path: Path, rounds: int | None, percent: int
) -> None:
    database = CrashingDatabase(tmp_path, Random(percent), power=True)
    await database.make()
    power = database.power
    assert power is not None
    for _ in range(min(rounds or FEW_ROUNDS, MANY_ROUNDS)):
        assert await database.crash(fault=lambda: power.fill_disk(percent)) == []
        power.free_disk()
        database.cut_power()
    assert await database.compare() == []
