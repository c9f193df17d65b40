"""A follower of several logs keeps its sink correct despite splits, crashes and a full disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random

import anyio
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.followers.round_follower import SnapshotSource
from dynactor.actors.followers.stored_checkpoint import first_checkpoints
from dynactor.actors.followers.table_progress import TableProgress
from dynactor.actors.runtime.supervisor import Supervisor
from dynactor.actors.table.followers import ActorFollowing
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import StreamSettings
from dynactor.model.values import item as items
from dynactor.model.writes.write import Delete
from dynactor.storage.store import Full, Group, Store
from dynactor.storage.subscriber_names import index_subscriber
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.mirrored import MirrorActor, MirrorSender
from tests.support.databases.replays import items_of
from tests.support.databases.splitting import splitting
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

# An id that no index of a table has.
SUBSCRIBER_ID = 0x7000_0000


async def write(table: Table, writes: int, seed: int = 3) -> None:
    draw = Random(seed)
    for _ in range(writes):
        item = thread(f"f{draw.randrange(12)}", f"s{draw.randrange(6)}")
        if draw.random() < 0.2:
            await table.write(Delete(item))
        else:
            await table.write(put({**item, "n": {"N": str(draw.randrange(1_000_000))}}))


@asynccontextmanager
async def mirrored(
    store: Store, sender: MirrorSender
) -> AsyncIterator[tuple[Database, Table, MirrorActor]]:
    """A database on a store with a mirrored table; the table is created and filled once."""
    async with running_database(store) as database, anyio.create_task_group() as tasks:
        is_new = not database.table_names()
        if is_new:
            settings = StreamSettings("", "NEW_AND_OLD_IMAGES")
            await database.ask(CreateTable(structs.replace(table_definition(), stream=settings)))
            await write(database.table("Thread"), 300)
        table = database.table("Thread")
        subscriber = index_subscriber(table.definition.table_id, SUBSCRIBER_ID)
        if is_new:
            tails = {feed.partition_number: feed.tail for feed in await table.followers.feeds()}
            rows = first_checkpoints(subscriber, tails)
            await (await store.commit([Group(b"\x7f", None, b"", puts=rows)]))
        feeds = await table.followers.feeds_for(subscriber)
        logs = TableProgress(feeds, store, subscriber_id=subscriber, reader="mirror")
        source = SnapshotSource(store, SetClock(), "Thread")
        actor = MirrorActor(logs, sender, source, is_new=is_new)
        supervisor = Supervisor(tasks)
        table.followers.attach(subscriber, ActorFollowing(actor, supervisor))
        supervisor.start(actor)
        try:
            yield database, table, actor
        finally:
            await table.followers.detach(subscriber)


def mirror(sender: MirrorSender) -> dict[bytes, object]:
    """The items of a consumer that skips messages older than its state."""
    key_schema = table_definition().key_schema
    latest: dict[bytes, tuple[int, bytes | None]] = {}
    for key, version, image in sender.delivered:
        if not key and image is None:
            latest.clear()
            continue
        item_key = key or items.encode(key_schema.extract_key(items.decode(image or b"")))
        if version > latest.get(item_key, (0, None))[0]:
            latest[item_key] = version, image
    return {key: items.decode(image) for key, (_, image) in latest.items() if image is not None}


async def assert_mirrored(actor: MirrorActor, sender: MirrorSender, table: Table) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while actor.follower.needs_snapshot or actor.logs.lag_records:
            await asyncio.sleep(0)
    assert mirror(sender) == await items_of(table)


async def test_the_mirror_is_right_over_splits_and_failed_deliveries() -> None:
    sender = MirrorSender(fails_every=3)
    async with memory_store() as store:
        async with mirrored(store, sender) as (database, table, actor):
            async with splitting(database, table, 12):
                await write(table, 600)
            await assert_mirrored(actor, sender, table)
        async with mirrored(store, sender) as (_, table, actor):
            await write(table, 100, seed=4)
            await assert_mirrored(actor, sender, table)


async def test_the_mirror_is_right_after_crashes() -> None:
    # These deliveries crash the actor during the snapshot and after it.
    sender = MirrorSender(crashes=(1, 3, 7, 9))
    async with (
        memory_store() as store,
        mirrored(store, sender) as (database, table, actor),
    ):
        async with splitting(database, table, 8):
            await write(table, 300)
        await assert_mirrored(actor, sender, table)
        assert actor.follower.snapshots >= 2


class FullForCheckpoints(FaultyStore):
    """A store that refuses most commits of the mirror's checkpoints, as on a full disk."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.refused = 0

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        of_mirror = index_subscriber(1, SUBSCRIBER_ID)
        if any(group.head_key[1:].startswith(of_mirror) for group in groups):
            self.refused += 1
            if self.refused % 4:
                raise Full("the disk is full: played by a test")
        return await super().commit(groups)


async def test_the_logs_of_children_are_read_once_the_end_of_the_parents_log_is_stored() -> None:
    sender = MirrorSender()
    async with memory_store() as inner:
        store = FullForCheckpoints(inner)
        async with mirrored(store, sender) as (database, table, actor):
            async with splitting(database, table, 8):
                await write(table, 300)
            await assert_mirrored(actor, sender, table)
        assert store.refused > 3


async def test_a_log_is_kept_until_the_checkpoint_after_it_is_stored() -> None:
    sender = MirrorSender()
    async with memory_store() as store, mirrored(store, sender) as (_, table, actor):
        await assert_mirrored(actor, sender, table)
        before = await table.followers.floors()
        await write(table, 50)
        await assert_mirrored(actor, sender, table)
        # The changes were too few to store a checkpoint after them.
        assert await table.followers.floors() == before
        await write(table, 500)
        await assert_mirrored(actor, sender, table)
        behind = await table.followers.floors()
        assert sum(behind.values()) > sum(before.values()) + 300
