"""Commits that take long stop no other commits when a node joins or leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest

from dynactor.storage.postgresql.store import OwnedStore, open_postgresql, open_share
from dynactor.storage.store import Group
from tests.postgresql.sessions import Session, sessions
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.servers.postgresql import Postgresql, running_postgresql

HEAD, OTHER = b"\x02a", b"\x02b"
WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' ORDER BY backend_start"


@pytest.fixture
def own_postgresql() -> Iterator[Postgresql]:
    """A PostgreSQL server whose standby may be away."""
    with running_postgresql() as server:
        yield server


def ignore_loss() -> None:
    """Take no notice of a takeover."""


async def write(store: OwnedStore, key: bytes, before: bytes | None, after: bytes) -> None:
    await (await store.commit([Group(key, before, after)]))


async def lock_head(session: Session) -> None:
    """Let all commits that change the head wait until the session's transaction ends."""
    await session.begin()
    locking = session._statements.lock(0)
    assert await session.connection.fetch(locking, [HEAD])


async def test_a_node_joins_and_is_fenced_during_a_commit_that_does_not_end(
    postgresql: Postgresql,
) -> None:
    url = postgresql.url()
    async with open_postgresql(url, is_shared=True) as leader, sessions(url, 1) as (blocking,):
        await write(leader, HEAD, None, b"1")
        await lock_head(blocking)
        slow = asyncio.create_task(write(leader, HEAD, b"1", b"2"))
        await blocking.wait_blocking()
        with anyio.fail_after(HANG_SECONDS):
            async with open_share(url, taken_over=ignore_loss) as share:
                await write(share, OTHER, None, b"1")
                await blocking.wait_blocking()
                assert await leader.fence(share.epoch, only_ended=False)
                await write(leader, OTHER, b"1", b"2")
        assert not slow.done()
        await blocking.end()
        # PostgreSQL has ended the commit, and the leader has repeated it.
        await slow
        assert await leader.latest.load([HEAD, OTHER]) == [b"2", b"2"]


def set_standby(postgresql: Postgresql, name: str) -> None:
    postgresql.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
    postgresql.sql("SELECT pg_reload_conf()")


@contextmanager
def standby_away(postgresql: Postgresql) -> Iterator[None]:
    """Let commits wait for a standby until the context ends."""
    set_standby(postgresql, "away")
    try:
        yield
    finally:
        set_standby(postgresql, "")


def wait_session(postgresql: Postgresql, *, after: str = "") -> str:
    """Wait until a session waits for the standby, another one than ``after``; return its number."""
    while True:
        numbers = set(postgresql.sql(WAITING).split()) - {after}
        if numbers:
            return numbers.pop()


async def test_a_commit_is_acknowledged_only_once_the_standby_has_it_although_its_session_ended(
    own_postgresql: Postgresql,
) -> None:
    async with open_postgresql(own_postgresql.url()) as store:
        with standby_away(own_postgresql):
            commit = asyncio.create_task(write(store, HEAD, None, b"1"))
            number = await asyncio.to_thread(wait_session, own_postgresql)
            own_postgresql.sql(f"SELECT pg_terminate_backend({number})")
            # The primary has the commit, but a standby that is promoted now would not.
            again = asyncio.to_thread(wait_session, own_postgresql, after=number)
            waited: set[asyncio.Future[Any]] = {asyncio.create_task(again), commit}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            assert not commit.done()
        await commit
        assert await store.latest.load([HEAD]) == [b"1"]


async def test_a_node_that_joins_ends_no_commit_that_waits_for_the_standby(
    own_postgresql: Postgresql, capsys: pytest.CaptureFixture[str]
) -> None:
    url = own_postgresql.url()

    async def join() -> None:
        async with open_share(url, taken_over=ignore_loss):
            pass

    async with open_postgresql(url, is_shared=True) as leader:
        await join()
        with standby_away(own_postgresql):
            commit = asyncio.create_task(write(leader, HEAD, None, b"1"))
            number = await asyncio.to_thread(wait_session, own_postgresql)
            joining = asyncio.create_task(join())
            shown = ""
            with anyio.fail_after(HANG_SECONDS):
                while shown.count("slow_commits_ended") < 2:
                    await anyio.sleep(0.1)
                    shown += capsys.readouterr().out
            assert own_postgresql.sql(WAITING) == number
            assert not joining.done()
        await joining
        await commit
