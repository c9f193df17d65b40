"""Shares: several nodes write one database, each its own tables, until the leader fences one."""

from __future__ import annotations

from contextlib import suppress

import pytest

from dynactor.storage.postgresql.store import OwnedStore, open_postgresql, open_share
from dynactor.storage.store import Closed, Group, TakenOver
from tests.support.servers.postgresql import Postgresql

KEY = b"\x02" + bytes(8)


async def write(store: OwnedStore, before: bytes | None, after: bytes) -> None:
    await (await store.commit([Group(KEY, before, after)]))


def ignore_loss() -> None:
    """Take no notice of a takeover."""


async def test_a_fenced_share_writes_and_reads_nothing_but_the_leader_does(
    postgresql: Postgresql,
) -> None:
    url = postgresql.url()
    async with (
        open_postgresql(url, is_shared=True) as leader,
        open_share(url, taken_over=ignore_loss) as share,
        open_share(url, taken_over=ignore_loss) as other,
    ):
        await write(share, None, b"1")
        await write(other, b"1", b"2")
        assert await leader.share_epochs() == {share.epoch, other.epoch}
        assert not await leader.fence(share.epoch, only_ended=True)
        assert await leader.fence(share.epoch, only_ended=False)
        with pytest.raises(TakenOver, match="taken over"):
            await write(share, b"2", b"3")
        # The node opens another share by itself.
        with pytest.raises(TakenOver, match="taken over the database: send the request again"):
            await write(share, b"2", b"3")
        async with open_share(url, taken_over=ignore_loss) as reading:
            assert await leader.fence(reading.epoch, only_ended=False)
            with pytest.raises(TakenOver, match="taken over"):
                await reading.latest.load([KEY])
        await write(leader, b"2", b"4")
        await write(other, b"4", b"5")
        assert await other.latest.load([KEY]) == [b"5"]


async def test_the_next_node_gets_the_share_of_an_ended_one_with_a_higher_epoch(
    postgresql: Postgresql,
) -> None:
    url = postgresql.url()
    async with open_postgresql(url, is_shared=True) as leader:
        async with open_share(url, taken_over=ignore_loss) as share:
            first = share.epoch
        assert await leader.fence(first, only_ended=True)
        async with open_share(url, taken_over=ignore_loss) as share:
            assert share.epoch > first + 1
            assert await leader.share_epochs() == {share.epoch}
            assert await leader.fence(first, only_ended=True)


async def test_a_server_alone_ends_all_shares(postgresql: Postgresql) -> None:
    url = postgresql.url()
    async with open_postgresql(url, is_shared=True):
        pass
    async with open_share(url, taken_over=ignore_loss) as share, open_postgresql(url) as alone:
        with pytest.raises(TakenOver, match="taken over"):
            await write(share, None, b"1")
        await write(alone, None, b"2")


async def test_a_former_leader_fences_no_share(postgresql: Postgresql) -> None:
    url = postgresql.url("former")
    async with (
        open_postgresql(url, is_shared=True) as former,
        open_share(url, taken_over=ignore_loss) as share,
    ):
        postgresql.sql('UPDATE "former".nodes SET epoch = epoch + 1 WHERE slot = 1')
        # It may have noticed already.
        with suppress(Closed):
            assert not await former.fence(share.epoch, only_ended=False)
        await write(share, None, b"1")
