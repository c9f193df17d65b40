"""A follower of one log: where it starts, and when the followers of child logs start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.followers.partition_follower import PartitionFollower
from dynactor.actors.followers.sink import ChangeOrder, Contract, Gap, MessageSink
from dynactor.actors.followers.stored_checkpoint import encode_position
from dynactor.storage import key_layout
from dynactor.storage.store import Full, Group
from dynactor.streams.change_record import ChangeRecord
from tests.support.stores.stepped_store import SteppedStore, commits_of, pages_of, soon, turns
from tests.support.stores.store import memory_store
from tests.support.streams.partition_log import PartitionLog

FOLLOWER = b"follower"
PARENT, CHILD = 1, 2


class Counters(MessageSink):
    """A sink that records the counters of its changes."""

    contract = Contract(ChangeOrder.ITEM, Gap.REBUILD, trim_delay_bytes=None)

    def __init__(self) -> None:
        self.noted: list[int] = []

    def send(self, records: list[ChangeRecord]) -> tuple[()]:
        self.noted += [record.sequence_number.counter for record in records]
        return ()


class Noting(PartitionFollower):
    """A follower that records the counters of the changes that it applies."""

    def __init__(self, feed: ChangeFeed, after: asyncio.Future[None] | None = None) -> None:
        counters = Counters()
        super().__init__("noting", FOLLOWER, feed, counters, after=after)
        self.noted = counters.noted


@asynccontextmanager
async def stepped() -> AsyncIterator[tuple[SteppedStore, asyncio.TaskGroup, list[Noting]]]:
    """A stepped store, a task group for followers, and the list of followers to stop at the end."""
    followers: list[Noting] = []
    async with memory_store() as inner, asyncio.TaskGroup() as tasks:
        store = SteppedStore(inner)
        try:
            yield store, tasks, followers
        finally:
            store.open_all()
            for follower in followers:
                follower.mailbox.close()


async def test_a_change_recorded_while_a_follower_reads_the_disk_wakes_it() -> None:
    async with stepped() as (store, tasks, followers):
        log = PartitionLog(store, PARENT, begins_at=5)
        follower = Noting(log.feed)
        followers.append(follower)
        reading = store.gate_behind(pages_of(*key_layout.change_range(PARENT)))
        tasks.create_task(follower.run())
        await reading.reached()
        await log.write(6)

        reading.open()
        await turns()
        assert follower.noted == [6]


async def test_a_log_that_ends_while_a_follower_reads_the_disk_is_followed_to_its_end() -> None:
    async with stepped() as (store, tasks, followers):
        log = PartitionLog(store, PARENT, begins_at=5)
        follower = Noting(log.feed)
        followers.append(follower)
        reading = store.gate_behind(pages_of(*key_layout.change_range(PARENT)))
        tasks.create_task(follower.run())
        await reading.reached()
        await log.write(6)
        log.feed.end()

        reading.open()
        await soon(follower.ended.done)
        assert follower.noted == [6]


async def test_a_childs_follower_starts_when_the_end_of_the_parents_log_is_stored() -> None:
    async with stepped() as (store, tasks, followers):
        parent, child = PartitionLog(store, PARENT), PartitionLog(store, CHILD, PARENT)
        await parent.write(1)
        await child.write(1)
        parent.feed.end()
        first = Noting(parent.feed)
        second = Noting(child.feed, first.ended)
        followers.extend([first, second])
        end = key_layout.checkpoint(FOLLOWER, PARENT)
        gate = store.gate_before(commits_of(end))
        tasks.create_task(first.run())
        tasks.create_task(second.run())

        await gate.reached()
        await turns()
        assert (first.noted, second.noted) == ([1], [])

        gate.open()
        await soon(lambda: second.noted == [1])
        assert await store.latest.load([end]) == [encode_position(1)]


async def test_the_end_of_a_log_is_stored_although_the_store_has_another_checkpoint() -> None:
    async with stepped() as (store, tasks, followers):
        parent = PartitionLog(store, PARENT)
        await parent.write(1)
        follower = Noting(parent.feed)
        followers.append(follower)
        tasks.create_task(follower.run())
        await soon(lambda: follower.noted == [1])
        # Store an earlier checkpoint, as if the store was reopened after it lost a commit.
        checkpoint = key_layout.checkpoint(FOLLOWER, PARENT)
        await (await store.commit([Group(checkpoint, None, encode_position(0))]))

        parent.feed.end()
        await soon(follower.ended.done)
        assert await store.latest.load([checkpoint]) == [encode_position(1)]


async def test_a_refused_end_of_a_log_is_stored_before_the_child_starts() -> None:
    async with stepped() as (store, tasks, followers):
        parent = PartitionLog(store, PARENT)
        await parent.write(1)
        parent.feed.end()
        follower = Noting(parent.feed)
        followers.append(follower)
        gate = store.gate_before(commits_of(key_layout.checkpoint(FOLLOWER, PARENT)))
        tasks.create_task(follower.run())
        await gate.reached()
        store.refuse_commits(Full("the disk is full"))
        gate.open()
        await turns()
        assert not follower.ended.done()
        assert follower.log.stored.counter == 0

        store.allow_commits()
        await soon(follower.ended.done)
        assert follower.log.stored.counter == 1
