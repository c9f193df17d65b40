"""A time limit may terminate a connection between two messages of a statement."""

from __future__ import annotations

from typing import Any

import pytest

from dynactor.storage.postgresql import commits
from dynactor.storage.postgresql.address import parse_address
from dynactor.storage.postgresql.connections import Connections
from dynactor.storage.postgresql.errors import Lost
from dynactor.storage.postgresql.store import open_postgresql
from dynactor.storage.postgresql.views import SnapshotView
from dynactor.storage.store import Group, Unavailable, Unknown, View
from tests.support.servers.postgresql import Postgresql
from tests.support.stores.store import postgresql_store

HEAD = b"\x02a"


async def ask_after_the_limit(connection: Any) -> None:
    """Send a message of a statement on a connection that the time limit has just terminated."""
    connection.terminate()
    connection._protocol.bind_execute()


async def test_a_connection_that_is_terminated_within_a_statement_counts_as_lost(
    postgresql: Postgresql,
) -> None:
    connections = Connections(parse_address(postgresql.url()), 1)
    with pytest.raises(Lost):
        await connections.run_once(ask_after_the_limit)
    await connections.close()


async def test_a_snapshot_ends_with_its_connection(postgresql: Postgresql) -> None:
    async def read(view: View) -> None:
        assert isinstance(view, SnapshotView)
        await view._run(ask_after_the_limit)

    async with postgresql_store(postgresql.url()) as store:
        with pytest.raises(Unavailable):
            await store.in_snapshot(read, calls_once=False)


async def test_the_locks_of_a_terminated_connection_end_without_an_error(
    postgresql: Postgresql,
) -> None:
    async with postgresql_store(postgresql.url()) as store:
        async with store.locked([HEAD]) as locked:
            locked._connection.terminate()  # type: ignore[attr-defined]
        async with store.locked([HEAD]) as again:
            assert await again.load([HEAD]) == [None]


async def test_a_commit_whose_connection_is_terminated_has_an_unknown_outcome(
    postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(commits, "_DOUBT_SECONDS", 0.0)

    async def send_after_the_limit(connection: Any, *_: object) -> None:
        await ask_after_the_limit(connection)

    async with open_postgresql(postgresql.url()) as store:
        monkeypatch.setattr("asyncpg.Connection.fetchval", send_after_the_limit)
        with pytest.raises(Unknown):
            await (await store.commit([Group(HEAD, None, b"1")]))
        monkeypatch.undo()
