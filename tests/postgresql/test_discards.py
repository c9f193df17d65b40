"""Discarded ranges on PostgreSQL: deleted in pieces, beside other commits, and after a restart."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dynactor.storage.postgresql import discards
from dynactor.storage.postgresql.address import parse_address
from dynactor.storage.store import Group, Store
from tests.support.servers.postgresql import Postgresql
from tests.support.stores.rows import MANY
from tests.support.stores.store import postgresql_store

ROWS = 3_000
PIECE_ROWS = 100
RANGE = (b"\x03a", b"\x03b")


async def fill(store: Store) -> None:
    rows = [(b"\x03a%06d" % number, b"x" * 50) for number in range(ROWS)]
    await (await store.commit([Group(b"\x02fill", None, b"1", puts=rows)]))


async def count(store: Store) -> int:
    return len(await store.durable().page(*RANGE, max_rows=MANY, max_bytes=MANY))


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discards, "_MOST_ROWS", PIECE_ROWS)


@pytest.mark.usefixtures("small_pieces")
async def test_commits_go_on_between_the_pieces(postgresql: Postgresql) -> None:
    async with postgresql_store(postgresql.url()) as store:
        await fill(store)
        counts = [ROWS]
        await (await store.commit([Group(b"\x02drop", None, b"0", discards=[RANGE])]))
        commits = 0
        while counts[-1]:
            head = b"%d" % commits
            await (await store.commit([Group(b"\x02drop", head, b"%d" % (commits + 1))]))
            commits += 1
            counts.append(await count(store))
        assert counts == sorted(counts, reverse=True)
        # At most a few pieces are deleted between two commits.
        assert len(set(counts)) > 5
        await store.reclaim(*RANGE)


@pytest.mark.usefixtures("small_pieces")
async def test_the_next_start_continues(postgresql: Postgresql) -> None:
    url = postgresql.url()
    async with postgresql_store(url) as store:
        await fill(store)
        await (await store.commit([Group(b"\x02drop", None, b"0", discards=[RANGE])]))
        while await count(store) == ROWS:
            await asyncio.sleep(0)
    async with postgresql_store(url) as store:
        left = await count(store)
        await store.reclaim(*RANGE)
        assert 0 < left < ROWS
        assert await count(store) == 0
    assert await pending(postgresql, url) == "0"


async def test_a_killed_postgresql_loses_no_range(postgresql: Postgresql, monkeypatch: Any) -> None:
    monkeypatch.setattr(discards, "_MOST_ROWS", PIECE_ROWS)
    monkeypatch.setattr(discards, "DISCARD_SECONDS", 0.05)
    url = postgresql.url()
    async with postgresql_store(url) as store:
        await fill(store)
        await (await store.commit([Group(b"\x02drop", None, b"0", discards=[RANGE])]))
        for _ in range(3):
            await asyncio.to_thread(
                postgresql.sql,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'dynactor'",
            )
        await store.reclaim(*RANGE)
        assert await count(store) == 0
    assert await pending(postgresql, url) == "0"


async def pending(postgresql: Postgresql, url: str) -> str:
    schema = parse_address(url).schema
    return await asyncio.to_thread(postgresql.sql, f"SELECT count(*) FROM {schema}.discards")
