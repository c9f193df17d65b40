"""An index partition ignores duplicate and late messages, also those with deletes."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from dynactor.actors.partition.index_partition import ApplyChanges, Backfill, index_partition
from dynactor.actors.runtime.supervisor import Supervisor
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.limits import INDEX_ENTRY_OVERHEAD_BYTES
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import catalog, codec, key_layout
from dynactor.storage.store import Store
from dynactor.streams.entry_change import EntryChange
from tests.support.stores.store import memory_store

INDEX = IndexDefinition(
    1, "by_posts", KeySchema((KeyAttribute("posts", "N"),), ()), Projection("ALL")
)
PREFIX = key_layout.row_prefix(7, 1)
NUMBER = 12


def value(counter: int) -> bytes:
    return codec.encode(
        StoredItem.of({"n": {"N": str(counter)}, "s": {"S": "s" * counter}}, counter)
    )


def history(source: random.Random, first: int, count: int) -> list[EntryChange]:
    """Changes of a few rows, so that each is put and deleted many times."""
    changes = []
    rows: dict[bytes, bytes] = {}
    for counter in range(first, first + count):
        position = b"row%d" % source.randrange(5)
        stood = rows.pop(position, None)
        new = value(counter) if source.randrange(3) else None
        if new is not None:
            rows[position] = new
        replaced_bytes = None if stood is None else codec.size_bytes(stood)
        changes.append(EntryChange(counter, position, new, replaced_bytes))
    return changes


def outcome(changes: list[EntryChange]) -> dict[bytes, bytes]:
    rows: dict[bytes, bytes] = {}
    for change in changes:
        if change.value is None:
            rows.pop(change.position, None)
        else:
            rows[change.position] = change.value
    return rows


@asynccontextmanager
async def store_with_head() -> AsyncIterator[Store]:
    """A store in which the partition has begun."""
    async with memory_store() as store:
        await (await store.commit([catalog.new_head(NUMBER)]))
        yield store


async def stored(store: Store) -> dict[bytes, bytes]:
    rows = await store.durable().page(
        PREFIX, key_layout.prefix_end(PREFIX), max_rows=1000, max_bytes=1 << 20
    )
    return {row.key[len(PREFIX) :]: row.value for row in rows}


@pytest.mark.parametrize("seed", range(20))
async def test_duplicate_and_late_changes_of_a_log_have_no_effect(seed):
    source = random.Random(seed)
    changes = history(source, 1, 60)
    runs = [tuple(changes[at : at + 7]) for at in range(0, len(changes), 7)]

    def message(run: tuple[EntryChange, ...]) -> ApplyChanges:
        # The result must not depend on ``follows_all``, without which the partition reads the
        # replaced entries itself.
        return ApplyChanges(3, run, follows_all=bool(source.randrange(2)))

    async with store_with_head() as store, anyio.create_task_group() as task_group:
        supervisor = Supervisor(task_group)
        partition = index_partition(NUMBER, INDEX, PREFIX, store, copy_messages=True)
        supervisor.start(partition)
        replies = []
        for at, run in enumerate(runs):
            replies.append(partition.mailbox.put_nowait(message(run)))
            # Repeat messages, as a restarted follower does, and deliver old ones late.
            for _ in range(source.randrange(3)):
                late = runs[source.randrange(at + 1)]
                replies.append(partition.mailbox.put_nowait(message(late)))
            if source.randrange(2):
                await asyncio.sleep(0)
        await asyncio.gather(*replies)
        assert await stored(store) == outcome(changes)
        await supervisor.stop(partition)
        (head,) = await store.durable().load([key_layout.partition_head(NUMBER)])
        counted = catalog.decode_partition_head(head)
        entries = outcome(changes).values()
        assert counted.item_counts[INDEX.index_id] == len(entries)
        assert counted.sizes_bytes[INDEX.index_id] == sum(
            codec.size_bytes(entry) + INDEX_ENTRY_OVERHEAD_BYTES for entry in entries
        )
        assert counted.applied == {3: 60}


async def test_changes_of_different_logs_are_distinguished():
    async with store_with_head() as store, anyio.create_task_group() as task_group:
        supervisor = Supervisor(task_group)
        partition = index_partition(NUMBER, INDEX, PREFIX, store, copy_messages=True)
        supervisor.start(partition)
        put_late = EntryChange(2, b"row", value(2))
        await partition.mailbox.put_nowait(ApplyChanges(3, (EntryChange(9, b"other", value(9)),)))
        await partition.mailbox.put_nowait(ApplyChanges(4, (put_late,)))
        assert await stored(store) == {b"other": value(9), b"row": value(2)}
        await supervisor.stop(partition)


@pytest.mark.parametrize("seed", range(20))
async def test_a_duplicate_late_or_restarted_backfill_counts_each_entry_once(seed):
    source = random.Random(seed)
    rows = [(b"item%03d" % number, b"row%03d" % number) for number in range(60)]

    def message(first: int, last: int) -> Backfill:
        part = rows[first:last]
        entries = tuple((position, value(int(position[3:]) + 1)) for _, position in part)
        return Backfill(entries, (part[0][0], part[-1][0]))

    async with store_with_head() as store, anyio.create_task_group() as task_group:
        supervisor = Supervisor(task_group)
        begins_at = 0
        # The first backfill is interrupted. The second one continues from an earlier cursor.
        for ends_at in (source.randrange(20, 50), len(rows)):
            partition = index_partition(NUMBER, INDEX, PREFIX, store, copy_messages=True)
            supervisor.start(partition)
            sent: list[Backfill] = []
            replies = []
            at = begins_at
            while at < ends_at:
                until = min(ends_at, at + source.randrange(1, 9))
                sent.append(message(at, until))
                replies.append(partition.mailbox.put_nowait(sent[-1]))
                # Some messages are duplicated, and some restart from an earlier entry with another
                # length.
                if source.randrange(3) == 0:
                    replies.append(partition.mailbox.put_nowait(source.choice(sent)))
                at = (
                    max(begins_at, until - source.randrange(6))
                    if source.randrange(4) == 0
                    else until
                )
                if source.randrange(2):
                    await asyncio.sleep(0)
            await asyncio.gather(*replies)
            await supervisor.stop(partition)
            begins_at = source.randrange(ends_at - 10)
        entries = await stored(store)
        assert list(entries) == [position for _, position in rows]
        (head,) = await store.durable().load([key_layout.partition_head(NUMBER)])
        counted = catalog.decode_partition_head(head)
        assert counted.item_counts[INDEX.index_id] == len(rows)
        assert counted.sizes_bytes[INDEX.index_id] == sum(
            codec.size_bytes(entry) + INDEX_ENTRY_OVERHEAD_BYTES for entry in entries.values()
        )
