"""PostgreSQL is killed under a server with indexes and streams: nothing is lost, all goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.support.clients.wire import Answer, Connection
from tests.support.crowds.crashes import address, connected
from tests.support.crowds.indexed_database import IndexedDatabase
from tests.support.crowds.writers import Crowd
from tests.support.servers import server as servers
from tests.support.servers.postgresql import Postgresql, running_postgresql

FEW_ROUNDS = 2
ANSWERS = 600


@pytest.fixture
def own_postgresql(monkeypatch: pytest.MonkeyPatch) -> Iterator[Postgresql]:
    """A PostgreSQL that a test may kill, with the data of all servers that are started."""
    with running_postgresql() as postgresql:
        monkeypatch.setattr(servers, "place_options", postgresql.place_options)
        yield postgresql


async def test_indexes_and_streams_outlive_kills_of_postgresql(
    own_postgresql: Postgresql, tmp_path: Path, rounds: int | None
) -> None:
    draw = Random(1)
    database = IndexedDatabase(
        tmp_path,
        draw,
        *("--gsi-lag", "random:0-0.05:7"),
        *("--shard-roll-seconds", "1", "--keep-streams-seconds", "0.5"),
    )
    await database.make_filled(300)
    for _ in range(rounds or FEW_ROUNDS):
        with database.running() as server:
            async with connected(server) as connection:
                assert await database.violations(connection) == []
                crowd = Crowd(database.history, draw)
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(crowd.run(*address(server)))
                    await crowd.wait_answers(draw.randrange(1, ANSWERS))
                    await asyncio.to_thread(kill_and_start, own_postgresql)
                    await crowd.wait_answers(crowd.answers + draw.randrange(1, ANSWERS))
                    crowd.stopping = True
                # The same server goes on, with all followers.
                assert await database.violations(connection) == []
            assert "actor_given_up" not in server.log, server.log
            assert "Traceback" not in server.log, server.log
            server.kill()
    assert await database.compare_all() == []


async def test_a_server_without_postgresql_answers_errors_and_then_serves_again(
    own_postgresql: Postgresql, tmp_path: Path
) -> None:
    database = IndexedDatabase(tmp_path, Random(1))
    await database.make_filled(25)
    with database.running() as server:
        await asyncio.to_thread(own_postgresql.stop)
        read, write = await asyncio.gather(ask(server, "GetItem"), ask(server, "PutItem"))
        assert (read.status, write.status) == (500, 500)
        assert write.body["message"].startswith("Nothing was written: PostgreSQL")
        await asyncio.to_thread(own_postgresql.start)
        for name in ("GetItem", "PutItem"):
            assert (await ask(server, name)).status == 200
        assert server.stop() == 0
        assert "Traceback" not in server.log, server.log


async def ask(server: servers.Server, operation: str) -> Answer:
    key = {"pk": {"S": "another"}, "sk": {"S": "1"}}
    body = {"Key": key} if operation == "GetItem" else {"Item": key}
    connection = await Connection.open(*address(server))
    try:
        return await connection.call(operation, {"TableName": "crash-a", **body})
    finally:
        await connection.close()


def kill_and_start(postgresql: Postgresql) -> None:
    postgresql.kill()
    postgresql.start()
