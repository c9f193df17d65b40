"""The delayed store of the histories keeps the contract of the storage port."""

from __future__ import annotations

import asyncio

from dynactor.storage.store import Group
from tests.support.stores.history_store import DelayedStore, Delays
from tests.support.stores.store import memory_store

DELAYS = Delays(1, 0.005)


def group(counter: int) -> Group:
    """The commit with this number of one partition; its row has the number as value."""
    return Group(
        head_key=b"head",
        expected_head=b"%d" % (counter - 1) if counter > 1 else None,
        head=b"%d" % counter,
        puts=[(b"row", b"%d" % counter)],
    )


async def test_acknowledged_writes_are_visible() -> None:
    async with memory_store() as inner:
        store = DelayedStore(inner, DELAYS)
        for counter in range(1, 20):
            await (await store.commit([group(counter)]))
            assert await store.durable().load([b"row"]) == [b"%d" % counter]
        await store.close()


async def test_the_owner_sees_accepted_writes_and_a_reader_does_not() -> None:
    async with memory_store() as inner:
        store = DelayedStore(inner, DELAYS)
        durable = await store.commit([group(1)])
        view = store.durable()
        assert await store.latest.load([b"row"]) == [b"1"]
        await durable
        assert await view.load([b"row"]) == [None], "a view is of its moment"
        await store.close()


async def test_commits_complete_in_the_order_of_their_acceptance() -> None:
    async with memory_store() as inner:
        store = DelayedStore(inner, DELAYS)
        answered: list[int] = []
        commits: list[asyncio.Future[None]] = []
        for counter in range(1, 20):
            commit = await store.commit([group(counter)])
            commit.add_done_callback(lambda _, counter=counter: answered.append(counter))
            commits.append(commit)
        await asyncio.gather(*commits)
        await store.close()

    assert answered == list(range(1, 20))
