"""The store while PostgreSQL is killed, restarted, paused, slow, full, or drops connections."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from dynactor.storage.store import Full, Group, Store, Unavailable, View
from tests.postgresql.audited_writers import AuditedWriters
from tests.postgresql.cutting_proxy import cutting_proxy
from tests.postgresql.disturbances import disturb
from tests.support.environment.left_out import leave_out
from tests.support.servers.postgresql import Postgresql, running_postgresql
from tests.support.stores.store import postgresql_store

# A commit takes 7 messages, or 15 on a connection without prepared statements.
MESSAGES = 24
MIB = 1024 * 1024


@pytest.fixture
def own_postgresql() -> Iterator[Postgresql]:
    """A PostgreSQL server that a test may kill or pause."""
    with running_postgresql() as server:
        yield server


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_commit_survives_a_cut_at_every_message(
    postgresql: Postgresql, is_first: bool
) -> None:
    async with cutting_proxy(postgresql.port) as (proxy, port):
        url = postgresql.url().replace(f":{postgresql.port}/", f":{port}/")
        async with postgresql_store(url) as store:
            uncut = 0
            for messages in range(MESSAGES):
                head = b"\x02%d" % messages
                before = None
                if not is_first:
                    before = b"0"
                    await store.commit([Group(head, None, before)])
                proxy.arm(messages)
                rows = [(b"\x03%d/%d" % (messages, at), b"x") for at in range(3)]
                await (await store.commit([Group(head, before, b"1", puts=rows)]))
                uncut += proxy.disarm()
                found = await store.latest.load([head, *(key for key, _ in rows)])
                assert found == [b"1", b"x", b"x", b"x"]
                # If the commit had been written twice or overlooked, the next commit would be
                # refused.
                await store.commit([Group(head, b"1", b"2")])
            assert proxy.cuts == MESSAGES - uncut
            assert proxy.cuts >= 7


async def read(view: View) -> list[bytes | None]:
    return await view.load([b"l"])


async def test_reads_survive_a_cut_at_every_message(postgresql: Postgresql) -> None:
    async with cutting_proxy(postgresql.port) as (proxy, port):
        url = postgresql.url().replace(f":{postgresql.port}/", f":{port}/")
        async with postgresql_store(url) as store:
            await store.commit([Group(b"\x02", None, b"1", puts=[(b"k", b"v"), (b"l", b"w")])])
            for messages in range(MESSAGES):
                proxy.arm(messages)
                assert await store.latest.load([b"k"]) == [b"v"]
                page = await store.durable().page(b"k", b"m", max_rows=9, max_bytes=999)
                assert [row.value for row in page] == [b"v", b"w"]
                assert await store.in_snapshot(read, calls_once=False) == [b"w"]
            assert proxy.cuts >= 7


@pytest.mark.parametrize("fault", ["kill", "fast stop", "sessions", "pause"])
async def test_no_commit_is_lost_or_written_in_part(own_postgresql: Postgresql, fault: str) -> None:
    async with postgresql_store(own_postgresql.url()) as store:
        writers = AuditedWriters(store)
        async with asyncio.TaskGroup() as group:
            group.create_task(writers.run())
            for _ in range(4):
                await writers.wait_written(200)
                await asyncio.to_thread(disturb, own_postgresql, fault)
            await writers.wait_written(200)
            writers.stop()
        assert await writers.violations() == []
        assert writers.outcomes["conflict"] <= writers.outcomes["unknown"]
        assert store.figures().refusal == ""


async def test_a_store_refuses_commits_while_postgresql_is_down_and_then_continues(
    own_postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("connections", "commits"):
        monkeypatch.setattr(f"dynactor.storage.postgresql.{module}.RETRY_SECONDS", 0.2)
    async with postgresql_store(own_postgresql.url()) as store:
        await store.commit([Group(b"\x02", None, b"1")])
        await asyncio.to_thread(own_postgresql.stop)
        for _ in range(2):
            with pytest.raises(Unavailable):
                await store.commit([Group(b"\x02", b"1", b"2")])
        with pytest.raises(Unavailable):
            await store.latest.load([b"\x02"])
        with pytest.raises(Unavailable):
            await store.in_snapshot(read, calls_once=False)
        assert store.figures().refusal == "Unavailable"
        await asyncio.to_thread(own_postgresql.start)
        await store.commit([Group(b"\x02", b"1", b"2")])
        assert await store.latest.load([b"\x02"]) == [b"2"]
        assert store.figures().refusal == ""


async def test_a_full_disk_refuses_writes_until_there_is_space(
    pytestconfig: pytest.Config,
) -> None:
    if os.geteuid() != 0:
        leave_out(pytestconfig, "the full disk of PostgreSQL: needs the right to mount")
        return
    with running_postgresql(disk_mib=120) as server:
        ballast = server.data.parent / "ballast"
        ballast.write_bytes(bytes(20 * MIB))
        async with postgresql_store(server.url()) as store:
            written = await fill(store)
            with pytest.raises(Full):
                await store.commit([large(written)])
            assert store.figures().refusal == "Full"
            assert store.figures().full_disk_refusals == 2
            # The next commit may show that there is space, and nothing else does.
            async with asyncio.timeout(60):
                while store.figures().refusal:
                    await asyncio.sleep(0.01)
            rows = await store.durable().page(b"\x03", b"\x04", max_rows=1 << 30, max_bytes=1 << 30)
            assert len(rows) == written
            ballast.unlink()
            for number in range(written, written + 5):
                await store.commit([large(number)])
            assert store.figures().refusal == ""


async def fill(store: Store) -> int:
    """Write until the disk is full; return the number of groups."""
    for number in range(200):
        try:
            await store.commit([large(number)])
        except Full:
            return number
    raise AssertionError("the disk is not full")


def large(number: int) -> Group:
    """The group of 1 MiB with this number; all groups have the same head."""
    before = b"%d" % number if number else None
    value = os.urandom(MIB)
    return Group(b"\x02", before, b"%d" % (number + 1), puts=[(b"\x03%04d" % number, value)])
