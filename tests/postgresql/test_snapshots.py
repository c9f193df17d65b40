"""Snapshots on PostgreSQL end after their time limit, and continue after a lost connection."""

from __future__ import annotations

import asyncio

import pytest

from dynactor.storage.postgresql import reader
from dynactor.storage.store import Group, Row, Store, Unavailable, View
from tests.support.servers.postgresql import Postgresql
from tests.support.stores.store import postgresql_store

LIMIT_SECONDS = 0.1


async def filled(store: Store) -> None:
    rows = [(b"\x03%d" % number, b"x") for number in range(9)]
    await (await store.commit([Group(b"\x02head", None, b"1", puts=rows)]))


async def page(view: View) -> list[Row]:
    return await view.page(b"\x03", b"\x04", max_rows=5, max_bytes=1_000)


async def test_a_read_that_takes_too_long_loses_its_snapshot(
    postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "SNAPSHOT_SECONDS", LIMIT_SECONDS)
    tries = 0

    async def read_forever(view: View) -> None:
        nonlocal tries
        tries += 1
        while True:
            await page(view)

    url = postgresql.url()
    async with postgresql_store(url) as store:
        await filled(store)
        with pytest.raises(Unavailable):
            await store.in_snapshot(read_forever, calls_once=False)
        # It is tried again, because the connection may have been lost.
        assert tries > 1
        oldest = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
        assert await asyncio.to_thread(postgresql.sql, oldest) == "0"
        assert len(await store.in_snapshot(page, calls_once=False)) == 5


async def test_a_read_is_repeated_after_its_connection_was_lost(postgresql: Postgresql) -> None:
    tries = 0

    async def read(view: View) -> list[Row]:
        nonlocal tries
        tries += 1
        rows = await page(view)
        if tries == 1:
            await asyncio.to_thread(
                postgresql.sql,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE state = 'idle in transaction'",
            )
        await page(view)
        return rows

    async with postgresql_store(postgresql.url()) as store:
        await filled(store)
        assert len(await store.in_snapshot(read, calls_once=False)) == 5
        assert tries == 2
