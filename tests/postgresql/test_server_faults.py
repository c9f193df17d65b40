"""A server with indexes and streams loses nothing and continues when PostgreSQL is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.support.clients.wire import Answer, Connection
from tests.support.servers import admin
from tests.support.servers import server as servers
from tests.support.servers.postgresql import Postgresql, running_postgresql
from tests.support.writers.crashes import address, connected
from tests.support.writers.indexed_database import IndexedDatabase
from tests.support.writers.writers import Writers

FEW_ROUNDS = 2
ANSWERS = 600


@pytest.fixture
def own_postgresql(monkeypatch: pytest.MonkeyPatch) -> Iterator[Postgresql]:
    """A PostgreSQL server that a test may kill; the test's dynactor servers store data there."""
    with running_postgresql() as postgresql:
        monkeypatch.setattr(servers, "place_options", postgresql.place_options)
        yield postgresql


async def test_indexes_and_streams_survive_kills_of_postgresql(
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
                writers = Writers(database.history, draw)
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(writers.run(*address(server)))
                    await writers.wait_answers(draw.randrange(1, ANSWERS))
                    await asyncio.to_thread(kill_and_start, own_postgresql)
                    await writers.wait_answers(writers.answers + draw.randrange(1, ANSWERS))
                    writers.stopping = True
                # The same server continues, with all its followers.
                assert await database.violations(connection) == []
            assert "actor_given_up" not in server.log, server.log
            assert "Traceback" not in server.log, server.log
            server.kill()
    assert await database.compare_all() == []


async def test_a_server_answers_errors_while_postgresql_is_down_and_then_serves_again(
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


async def test_an_idle_server_is_ready_only_while_postgresql_answers(
    own_postgresql: Postgresql, tmp_path: Path
) -> None:
    def wait_ready(status: int) -> None:
        while admin.ask(port, "/ready").status != status:
            continue

    with servers.running_server("--admin-port", "0", data_dir=tmp_path) as server:
        port = admin.admin_port(server)
        async with asyncio.timeout(60):
            await asyncio.to_thread(wait_ready, 200)
            await asyncio.to_thread(own_postgresql.stop)
            await asyncio.to_thread(wait_ready, 503)
            await asyncio.to_thread(own_postgresql.start)
            await asyncio.to_thread(wait_ready, 200)
        assert server.process.poll() is None


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
