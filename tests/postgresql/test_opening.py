"""Each fault of PostgreSQL at the start of the server is reported in one sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dynactor.storage.data_directory import FORMAT_VERSION
from dynactor.storage.postgresql.address import parse_address
from dynactor.storage.postgresql.connections import connect
from dynactor.storage.postgresql.errors import cannot_open
from dynactor.storage.postgresql.schema import open_schema
from dynactor.storage.postgresql.sql import Statements
from dynactor.storage.store import CannotOpen, Closed, Group, View
from tests.support.servers.postgresql import Postgresql
from tests.support.servers.server import run_command
from tests.support.stores.store import postgresql_store


async def refusal(url: str) -> str:
    """The message with which opening this URL is refused."""
    with pytest.raises(CannotOpen) as raised:
        async with postgresql_store(url):
            pass
    return str(raised.value)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("mysql://host/database", "--store must be a URL like postgresql://user@host/dynactor"),
        ("postgresql://host", "names no database"),
        ("postgresql://[::1/database", "--store is not a URL"),
        ("postgresql://host/database?schema=pg_catalog", "can't use the schema 'pg_catalog'"),
    ],
)
def test_a_malformed_url_is_reported(url: str, told: str) -> None:
    with pytest.raises(CannotOpen, match=told):
        parse_address(url)


def test_messages_show_no_password() -> None:
    address = parse_address("postgresql://me:secret@one:5432,two/data?schema=s")
    assert address.shown == "PostgreSQL at one:5432,two, database data, schema s"


async def test_a_missing_server_is_reported(postgresql: Postgresql) -> None:
    url = postgresql.url().replace(f":{postgresql.port}/", ":1/")
    assert "PostgreSQL at 127.0.0.1:1 can't be used" in await refusal(url)


def test_a_message_of_the_driver_becomes_one_sentence() -> None:
    error = OSError("make sure the certificate exists and is readable.")
    told = cannot_open(error, user="me", database="data", hosts="host")
    assert "exists and is readable. Start it" in str(told)


async def test_a_missing_database_is_reported(postgresql: Postgresql) -> None:
    told = await refusal(postgresql.url(database="nowhere"))
    assert told == "PostgreSQL has no database nowhere. Create it with: createdb nowhere"


async def test_a_wrong_password_is_reported(postgresql: Postgresql) -> None:
    rules = postgresql.data / "pg_hba.conf"
    before = rules.read_text()
    postgresql.sql("CREATE ROLE locked LOGIN PASSWORD 'right'")
    rules.write_text("host all locked all scram-sha-256\n" + before)
    postgresql.sql("SELECT pg_reload_conf()")
    try:
        url = postgresql.url().replace("postgres@", "locked:wrong@")
        assert "refuses the password of user locked" in await refusal(url)
    finally:
        rules.write_text(before)
        postgresql.sql("SELECT pg_reload_conf(); DROP ROLE locked")


async def test_missing_permission_is_reported(postgresql: Postgresql) -> None:
    postgresql.sql("CREATE ROLE guest LOGIN")
    told = await refusal(postgresql.url().replace("postgres@", "guest@"))
    assert "User guest lacks a privilege that dynactor needs" in told
    assert "Make the user the owner of the database" in told


async def test_synchronous_commit_off_is_refused(postgresql: Postgresql) -> None:
    postgresql.sql("CREATE ROLE hasty LOGIN SUPERUSER")
    postgresql.sql("ALTER ROLE hasty SET synchronous_commit = off")
    told = await refusal(postgresql.url().replace("postgres@", "hasty@"))
    assert "synchronous_commit is off" in told


async def test_a_schema_with_tables_of_another_program_is_refused(postgresql: Postgresql) -> None:
    postgresql.sql("CREATE SCHEMA theirs; CREATE TABLE theirs.rows (a int)")
    told = await refusal(postgresql.url("theirs"))
    assert "holds tables that dynactor did not make" in told
    assert postgresql.sql("SELECT count(*) FROM theirs.rows") == "0"


async def test_an_empty_schema_is_accepted(postgresql: Postgresql) -> None:
    postgresql.sql("CREATE SCHEMA prepared")
    async with postgresql_store(postgresql.url("prepared")) as store:
        await (await store.commit([Group(b"\x00", None, b"1")]))
        assert await store.latest.load([b"\x00"]) == [b"1"]


async def test_a_schema_of_a_later_version_is_refused(postgresql: Postgresql) -> None:
    url = postgresql.url("later")
    async with postgresql_store(url):
        pass
    postgresql.sql("COMMENT ON SCHEMA later IS 'dynactor data, format 99'")
    told = await refusal(url)
    assert f"has format 99, this dynactor knows formats up to {FORMAT_VERSION}." in told


async def test_the_schema_of_an_earlier_version_is_upgraded(
    postgresql: Postgresql,
) -> None:
    url = postgresql.url("earlier")
    async with postgresql_store(url) as store:
        await store.commit([Group(b"\x00", None, b"1")])
    postgresql.sql("COMMENT ON SCHEMA earlier IS 'dynactor data, format 1'")
    async with postgresql_store(url) as store:
        await store.commit([Group(b"\x00", b"1", b"2")])
    comment = postgresql.sql("SELECT obj_description('earlier'::regnamespace, 'pg_namespace')")
    assert comment == f"dynactor data, format {FORMAT_VERSION}"


async def test_an_old_postgresql_is_refused() -> None:
    class Old:
        async def fetchrow(self, _query: str) -> dict[str, Any]:
            return {"version": 130_021}

    with pytest.raises(CannotOpen, match="This is PostgreSQL 13, dynactor needs 14 or newer"):
        await open_schema(Old(), parse_address("postgresql://host/data"))


async def test_a_second_server_is_refused_while_the_first_runs(postgresql: Postgresql) -> None:
    url = postgresql.url()
    async with postgresql_store(url) as first:
        told = await refusal(url)
        assert "is in use by process" in told
        assert "Stop that server first" in told
        await first.commit([Group(b"\x00", None, b"1")])
    async with postgresql_store(url) as second:
        assert await second.latest.load([b"\x00"]) == [b"1"]


async def test_a_server_that_lost_its_lock_writes_nothing_beside_the_next(
    postgresql: Postgresql,
) -> None:
    url = postgresql.url()
    async with postgresql_store(url) as first:
        await first.commit([Group(b"\x00", None, b"1")])
        # End the sessions as a broken network would; the first server continues to run.
        postgresql.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'dynactor'"
        )
        async with postgresql_store(url) as second:
            for _ in range(2):
                with pytest.raises(Closed, match="another server has taken over"):
                    await first.commit([Group(b"\x00", b"1", b"first")])
            assert first.figures().refusal == "Closed"
            await second.commit([Group(b"\x00", b"1", b"2")])
            assert await second.latest.load([b"\x00"]) == [b"2"]


async def test_a_server_reads_nothing_after_another_has_taken_over(
    postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first server would notice it at its next beat.
    monkeypatch.setattr("dynactor.storage.postgresql.ownership._BEAT_SECONDS", 3_600)
    url = postgresql.url()
    keys, bounds = [b"\x00", b"\x03"], {"max_rows": 10, "max_bytes": 1_000}
    reads: list[Callable[[View], Awaitable[object]]] = [
        lambda view: view.load(keys),
        lambda view: view.page(b"\x00", b"\x03", **bounds),
        lambda view: view.page(b"\x03", b"\x04", reverse=True, **bounds),
        lambda view: view.load_with_page(keys, b"\x03", b"\x04", **bounds),
    ]
    async with postgresql_store(url) as first:
        for read in reads:
            await read(first.durable())
        postgresql.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'dynactor'"
        )
        async with postgresql_store(url) as second:
            for read in reads:
                with pytest.raises(Closed, match="another server has taken over"):
                    await read(first.durable())
                with pytest.raises(Closed, match="another server has taken over"):
                    await first.in_snapshot(read, calls_once=False)
                await read(second.durable())


def test_the_server_prints_the_fault_and_exits(postgresql: Postgresql) -> None:
    ended = run_command("serve", "--port", "0", "--store", postgresql.url(database="nowhere"))
    assert ended.returncode == 1
    assert ended.stderr.endswith(
        "dynactor: PostgreSQL has no database nowhere. Create it with: createdb nowhere\n"
    )


def test_without_the_optional_driver_the_error_names_the_extra(
    postgresql: Postgresql, tmp_path: Any
) -> None:
    (tmp_path / "asyncpg.py").write_text("raise ModuleNotFoundError(name='asyncpg')")
    ended = run_command(
        "serve", "--port", "0", "--store", postgresql.url(), PYTHONPATH=str(tmp_path)
    )
    assert ended.returncode == 1
    assert "--store needs asyncpg: install it by pip install 'dynactor[postgresql]'" in ended.stderr


async def test_a_server_takes_its_lock_when_the_previous_session_has_ended(
    postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynactor.storage.postgresql.ownership._BEAT_SECONDS", 0.01)
    monkeypatch.setattr("dynactor.storage.postgresql.ownership._LOCK_SECONDS", 0.0)
    url = postgresql.url("kept")
    async with asyncio.timeout(60), postgresql_store(url):
        # This session holds the lock, like a session of a server that is gone.
        statements = Statements("kept")
        lingering = await connect(parse_address(url))
        postgresql.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid IN "
            "(SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted)"
        )
        while not await lingering.fetchval(statements.try_lock):
            pass
        await lingering.close()
        held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
        while await asyncio.to_thread(postgresql.sql, held) == "0":
            pass
        assert "is in use by" in await refusal(url)
