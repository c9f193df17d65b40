"""The logs that one follower of several logs reads: which are open, and their checkpoints."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dynactor.actors.followers.checkpoint import Checkpoint
from dynactor.actors.followers.table_progress import TableProgress
from dynactor.storage import key_layout
from dynactor.storage.store import Full
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store
from tests.support.streams.partition_log import PartitionLog

SUBSCRIBER = b"subscriber"
PARENT, CHILD, GRANDCHILD = 1, 2, 3


@asynccontextmanager
async def family() -> AsyncIterator[tuple[FaultyStore, TableProgress]]:
    """Three logs: an ended one with a record, an ended child without records, and a grandchild."""
    async with memory_store() as inner:
        store = FaultyStore(inner)
        parent = PartitionLog(store, PARENT)
        child = PartitionLog(store, CHILD, PARENT)
        grandchild = PartitionLog(store, GRANDCHILD, CHILD)
        await parent.write(1)
        parent.feed.end()
        child.feed.end()
        await grandchild.write(1)
        feeds = [parent.feed, child.feed, grandchild.feed]
        yield store, TableProgress(feeds, store, subscriber_id=SUBSCRIBER, reader="reader")


def numbers(logs: TableProgress) -> list[int]:
    return [log.number for log in logs.open]


async def test_a_childs_log_is_opened_once_the_end_of_the_parents_log_is_stored() -> None:
    async with family() as (store, logs):
        await logs.load()
        assert numbers(logs) == [PARENT]
        logs.passed({PARENT: Checkpoint(1, 10)}, 1)
        store.refuse_commits(Full("the disk is full"))
        await logs.try_store()
        assert logs.has_unstored_end
        assert numbers(logs) == []
        store.allow_commits()
        await logs.try_store()
        assert not logs.has_unstored_end
        # The child's log has no records, so it ended immediately.
        assert numbers(logs) == [GRANDCHILD]


async def test_the_end_of_a_log_is_stored_even_if_the_store_refuses_commits_for_long() -> None:
    async with family() as (store, logs):
        await logs.load()
        logs.passed({PARENT: Checkpoint(1, 10)}, 1)
        store.refuse_commits(Full("the disk is full"))
        stopped = asyncio.get_running_loop().create_future()
        storing = asyncio.create_task(logs.store_ends(stopped))
        await asyncio.wait([storing], timeout=0.05)
        assert not storing.done()
        store.allow_commits()
        await storing
        assert numbers(logs) == [GRANDCHILD]


async def test_a_restart_continues_after_the_stored_checkpoints() -> None:
    async with family() as (store, logs):
        await logs.load()
        logs.passed({PARENT: Checkpoint(1, 10), GRANDCHILD: Checkpoint(1, 7)}, 2)
        await logs.try_store()
        feeds = [log.feed for log in logs]
        again = TableProgress(feeds, store, subscriber_id=SUBSCRIBER, reader="reader")
        await again.load()
        assert [log.position for log in again if log.number == GRANDCHILD] == [Checkpoint(1, 7)]
        assert again.lag_records == 0
        key = key_layout.checkpoint(SUBSCRIBER, GRANDCHILD)
        assert await store.latest.load([key]) == [Checkpoint(1, 7).encode()]


async def test_a_wait_for_logs_ends_when_logs_are_added() -> None:
    async with family() as (store, logs):
        waiting = asyncio.create_task(logs.wait_joined())
        await asyncio.sleep(0)
        assert not waiting.done()
        logs.add([PartitionLog(store, 4, GRANDCHILD).feed])
        await waiting
        assert 4 in logs


async def test_a_log_is_older_than_a_destination_only_if_its_changes_are_not_durable() -> None:
    async with memory_store() as store:
        log = PartitionLog(store, PARENT)
        await log.write(1)
        await log.commit(2)
        logs = TableProgress([log.feed], store, subscriber_id=SUBSCRIBER, reader="reader")
        await logs.load()
        assert log.feed.tail == 1
        assert not await logs.are_behind({PARENT: 2})
        assert await logs.are_behind({PARENT: 3})
