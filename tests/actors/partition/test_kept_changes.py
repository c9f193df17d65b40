"""The changes that a feed keeps in memory equal the log on disk."""

import gc
import random

from msgspec import structs

from dynactor.actors.feeds.change_feed import ChangeFeed, RecentChanges
from dynactor.actors.indexes.index_changes import index_entry_changes
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import GlobalIndex, TableDefinition
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.values.stored_item import StoredItem
from dynactor.model.writes.write import Delete
from dynactor.streams import change_record
from dynactor.streams.change_record import ChangeRecord
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.stores.store import memory_store

POSTS, LIKES = KeyAttribute("posts", "N"), KeyAttribute("likes", "N")
INDEXES = (
    IndexDefinition(1, "by_posts", KeySchema((POSTS,), ()), Projection("ALL")),
    IndexDefinition(2, "by_likes", KeySchema((LIKES,), (POSTS,)), Projection("KEYS_ONLY")),
    IndexDefinition(3, "by_both", KeySchema((LIKES, POSTS), ()), Projection("INCLUDE", ("note",))),
)


def definition() -> TableDefinition:
    return structs.replace(table_definition(), global_indexes=tuple(map(GlobalIndex, INDEXES)))


async def write_at_random(table: Table, writes: int) -> None:
    source = random.Random(1)
    for _ in range(writes):
        item = thread(f"f{source.randrange(3)}", f"s{source.randrange(3)}")
        if source.randrange(4) == 0:
            await table.write(Delete(item))
            continue
        for name in ("posts", "likes", "note", "other"):
            if source.randrange(3):
                item[name] = {"N": str(source.randrange(3))}
        await table.write(put(item))


async def kept(table: Table) -> list[ChangeRecord]:
    return [
        record
        for feed in await table.followers.feeds()
        for record in await feed.read(0, max_records=9_999, max_bytes=1 << 24)
    ]


async def test_an_index_gets_the_same_changes_from_memory_as_from_the_log():
    async with running_database() as database:
        await database.ask(CreateTable(definition()))
        table = database.table("Thread")
        await write_at_random(table, 500)
        moved = 0
        for record in await kept(table):
            assert set(record.entry_changes) == {1, 2, 3}
            logged = change_record.decode(record.sequence_number, change_record.encode(record))
            assert not logged.entry_changes
            for index in INDEXES:
                found = index_entry_changes(record, index, table.definition.key_schema)
                assert found == index_entry_changes(logged, index, table.definition.key_schema)
                moved += len(found) == 2
        assert moved > 100


async def test_the_garbage_collector_does_not_track_kept_changes():
    """With many objects to scan, a full garbage collection stops the server for 0.1 s."""
    async with running_database() as database:
        await database.ask(CreateTable(definition()))
        table = database.table("Thread")
        await write_at_random(table, 50)
        records = await kept(table)
        # A collection stops tracking tuples and dicts that refer to no tracked objects.
        gc.collect()
        seen = {id(tracked) for tracked in gc.get_objects()}
        for record in records:
            held = [record, record.sequence_number, record.entry_changes]
            held += [image for image in (record.old, record.new) if image is not None]
            held += [image._item for image in held if isinstance(image, StoredItem)]
            held += record.entry_changes.values()
            assert not any(id(one) in seen for one in held if one is not None)


async def test_a_tail_read_before_the_partition_reports_it_does_not_move_back() -> None:
    async with memory_store() as store:
        feed = ChangeFeed(1, store, RecentChanges())
        feed.begin(0)
        # Two batches became durable together, and a reader read the tail before the partition
        # reported either batch.
        feed.begin(2, 20)
        feed.advance(1, [], 10)
        assert (feed.tail, feed.logged_bytes) == (2, 20)
        feed.advance(2, [], 20)
        assert (feed.tail, feed.logged_bytes) == (2, 20)
