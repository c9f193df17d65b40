"""The table of nodes on PostgreSQL: who may join, and the removal of a member that has failed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
import pytest

from dynactor.model.members import Beat
from dynactor.storage.postgresql.members import PostgresqlMembers, open_members
from dynactor.storage.postgresql.store import open_postgresql, open_share
from dynactor.storage.store import Unavailable
from tests.support.servers.postgresql import Postgresql
from tests.support.stores.store import postgresql_store

_END_SECONDS: Final = 10.0


@asynccontextmanager
async def joined(url: str, name: str, address: str = "n1:1") -> AsyncIterator[PostgresqlMembers]:
    members = await open_members(url, name, address, "1")
    try:
        assert await members.join()
        yield members
    finally:
        await members.close()


class OneStatement:
    """A connection that breaks after one statement."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._is_used = False

    def is_closed(self) -> bool:
        return False

    def terminate(self) -> None:
        pass

    async def fetch(self, *arguments: Any, **options: Any) -> Any:
        if self._is_used:
            raise OSError("the connection broke")
        self._is_used = True
        return await self._connection.fetch(*arguments, **options)


async def beat(members: PostgresqlMembers, epoch: int = 0) -> Beat:
    return await members.beat(epoch, 0, is_leaving=False)


async def test_only_a_node_at_the_same_address_takes_over_a_name(postgresql: Postgresql) -> None:
    url = postgresql.url()
    async with joined(url, "n1") as first:
        other = await open_members(url, "n1", "n2:1", "1")
        assert not await other.join()
        await other.close()
        assert (await beat(first)).is_member
        async with joined(url, "n1") as again:
            assert not (await beat(first)).is_member
            assert [each.incarnation for each in (await beat(again)).members] == [
                again.me.incarnation
            ]


async def test_a_member_that_renewed_its_row_is_not_removed(postgresql: Postgresql) -> None:
    url = postgresql.url()
    async with joined(url, "n1") as first, joined(url, "n2", "n2:1") as second:
        seen = (await beat(second)).members[0]
        await beat(first)
        assert not await second.remove(seen)
        assert await second.remove((await beat(second)).members[0])
        assert [each.name for each in (await beat(second)).members] == ["n2"]


@asynccontextmanager
async def home_and_other(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[PostgresqlMembers]:
    """The second of two members; the first one is the home."""
    # The owner would lock again at its next beat.
    monkeypatch.setattr("dynactor.storage.postgresql.ownership._BEAT_SECONDS", 3_600)
    async with (
        postgresql_store(url) as store,
        joined(url, "n1") as home,
        joined(url, "n2", "n2:1") as other,
    ):
        await beat(home, store.epoch)  # type: ignore[attr-defined]
        yield other


async def test_one_statement_removes_the_home_and_ends_its_session(
    postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgresql.url()
    async with home_and_other(url, monkeypatch) as other:
        (seen, _) = (await beat(other)).members
        assert (seen.is_leader, await other.is_owned()) == (True, True)
        connection = other._connection
        other._connection = OneStatement(connection)
        with suppress(Unavailable):
            await other.remove(seen)
        other._connection = connection
        assert (await beat(other)).leader is None
        # PostgreSQL ends the session a moment after the statement.
        with anyio.fail_after(_END_SECONDS):
            while await other.is_owned():
                pass


async def test_a_home_that_restarts_ends_the_session_of_its_failed_machine(
    postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgresql.url()
    async with home_and_other(url, monkeypatch) as other:
        async with joined(url, "n3", "n3:1"):
            assert await other.is_owned()
        async with joined(url, "n1"):
            # PostgreSQL ends the session a moment after the statement.
            with anyio.fail_after(_END_SECONDS):
                while await other.is_owned():
                    pass


async def test_a_later_owner_keeps_its_session(postgresql: Postgresql) -> None:
    url = postgresql.url()
    async with joined(url, "n1") as home, joined(url, "n2", "n2:1") as other:
        async with postgresql_store(url) as store:
            await beat(home, store.epoch)  # type: ignore[attr-defined]
        (seen, _) = (await beat(other)).members
        async with postgresql_store(url):
            assert await other.remove(seen)
            assert await other.is_owned()


async def test_a_renewal_returns_the_present_epoch_of_the_share_of_a_node(
    postgresql: Postgresql,
) -> None:
    url = postgresql.url()
    async with (
        open_postgresql(url, is_shared=True) as leader,
        open_share(url, taken_over=lambda: None) as share,
        joined(url, "n1") as members,
    ):
        assert (await beat(members)).share_epoch == 0
        shown = await members.beat(0, share.epoch, is_leaving=False)
        assert shown.share_epoch == share.epoch
        assert await leader.fence(share.epoch, only_ended=False)
        shown = await members.beat(0, share.epoch, is_leaving=False)
        assert shown.share_epoch > share.epoch
