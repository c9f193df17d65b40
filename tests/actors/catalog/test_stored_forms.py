"""This version reads the data that earlier versions stored."""

from __future__ import annotations

import asyncio

from msgspec import msgpack, structs

from dynactor.actors.catalog.catalog_owner import CatalogOwner
from dynactor.actors.catalog.catalog_upgrade import upgrade
from dynactor.actors.followers import checkpoint
from dynactor.actors.followers.checkpoint import Checkpoint
from dynactor.actors.table.messages import CreateTable
from dynactor.model.definitions.table import Restoration, StreamingDestination, Throughput
from dynactor.model.tables.table_backup import TableBackup
from dynactor.storage import catalog, key_layout, table_backups
from dynactor.storage.catalog import (
    CatalogHead,
    EndedLog,
    PartitionHead,
    PartitionRange,
    TableRecord,
)
from dynactor.storage.store import Group
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.stores.store import memory_store


def test_a_head_without_a_log_size_is_read():
    old = msgpack.encode(
        {"counter": 7, "item_counts": {0: 3}, "sizes_bytes": {0: 100}, "applied": {2: 5}}
    )
    head = catalog.decode_partition_head(old)
    assert head == PartitionHead(7, {0: 3}, {0: 100}, {2: 5}, logged_bytes=0)
    assert catalog.decode_partition_head(catalog.encode_partition_head(head)) == head


async def test_a_catalog_without_separate_heads_of_tables_is_read():
    async with memory_store() as store:
        old = msgpack.encode({"next_table_id": 4, "next_partition_number": 9, "commits": 7})
        await (await store.commit([Group(key_layout.CATALOG_HEAD, None, old)]))
        loaded = await upgrade(store, await catalog.load(store.latest))
        assert (loaded.head, loaded.version) == (CatalogHead(4, 9), 1)
        owner = CatalogOwner(store)
        owner.adopt(loaded)
        await owner.change(head=CatalogHead(5, 9))
        loaded = await catalog.load(store.latest)
        assert (loaded.head, loaded.version) == (CatalogHead(5, 9), 2)


async def test_partitions_of_before_heads_were_made_with_their_table_get_heads():
    async with memory_store() as store:
        async with running_database(store) as database:
            await database.ask(CreateTable(table_definition()))
            await database.table("Thread").write(put(thread("EC2", "a")))
            numbers = database.table("Thread").record.partition_numbers
        keys = list(map(key_layout.partition_head, numbers))
        heads = await store.latest.load(keys)
        new = catalog.encode_partition_head(PartitionHead())
        unused = [key for key, head in zip(keys, heads, strict=True) if head == new]
        assert len(unused) == 3
        (head,) = await store.latest.load([key_layout.CATALOG_HEAD])
        older = Group(
            key_layout.CATALOG_HEAD, head, head, deletes=[*unused, key_layout.CATALOG_VERSION]
        )
        await (await store.commit([older]))
        async with running_database(store) as database:
            assert await store.latest.load(keys) == heads
            assert (await catalog.load(store.latest)).version
            for number in range(20):
                await database.table("Thread").write(put(thread(f"{number}", "a")))
            assert (await database.describe("Thread")).item_count == 21


async def test_an_update_that_was_stored_without_its_kind_is_completed():
    async with memory_store() as store:
        async with running_database(store) as database:
            await database.ask(CreateTable(table_definition()))
        key = key_layout.table_record("Thread")
        (stored,) = await store.latest.load([key])
        assert stored is not None
        record = msgpack.decode(stored)
        del record["definition"]["changing"]
        record["definition"] |= {
            "status": "UPDATING",
            "billing_mode": "PROVISIONED",
            "throughput": msgpack.decode(msgpack.encode(Throughput(1, 1))),
            "pending_throughput": msgpack.decode(msgpack.encode(Throughput(7, 7))),
        }
        await (await store.commit([Group(key, stored, msgpack.encode(record))]))
        async with running_database(store) as database:
            for _ in range(1_000):
                await asyncio.sleep(0)
            definition = (await database.describe("Thread")).definition
            assert (definition.status, definition.throughput) == ("ACTIVE", Throughput(7, 7))


def test_a_table_record_from_before_splits_existed_is_read():
    record = TableRecord(
        table_definition(), (PartitionRange(1, b""),), {1: (PartitionRange(2, b""),)}
    )
    old = msgpack.decode(catalog.encode_record(record))
    del old["ended_logs"]
    read = catalog.decode_record(msgpack.encode(old))
    assert read == record
    assert read.log_numbers == [1]


def test_a_table_record_with_an_ended_log_is_encoded_and_decoded():
    ended = EndedLog(1, 9, 300, (3, 4), (b"follower",))
    ranges = (PartitionRange(3, b""), PartitionRange(4, b"\x80"))
    record = TableRecord(table_definition(), ranges, ended_logs=(ended,))
    read = catalog.decode_record(catalog.encode_record(record))
    assert read == record
    assert read.log_numbers == [1, 3, 4]
    assert read.ended_log(1) == ended
    assert read.ended_log(3) is None


def test_a_table_record_from_before_restores_existed_is_read():
    record = TableRecord(table_definition(), (PartitionRange(1, b""),))
    old = msgpack.decode(catalog.encode_record(record))
    del old["definition"]["restoration"]
    assert catalog.decode_record(msgpack.encode(old)) == record


def test_the_record_of_a_table_in_a_restore_is_encoded_and_decoded():
    restoration = Restoration("Thread", "00001795271187040-d1dff77b", 7, 1_795_271_187.04)
    definition = structs.replace(table_definition("Copy"), restoration=restoration)
    record = TableRecord(definition, (PartitionRange(1, b""),))
    read = catalog.decode_record(catalog.encode_record(record))
    assert read == record
    assert read.definition.restore_phase == "ITEMS"


async def test_records_of_backups_are_read_in_the_order_of_their_creation():
    def backup(table_name: str, label: str) -> TableBackup:
        definition = table_definition(table_name)
        return TableBackup(label, "nightly", 7, definition, 1_795_271_187.04, 3, 100, "AVAILABLE")

    made = [backup("Thread", "2-b"), backup("Thread", "1-a"), backup("Reply", "3-c")]
    async with memory_store() as store:
        puts = [table_backups.row(each) for each in made]
        await (await store.commit([Group(b"\x00", None, b"head", puts)]))
        assert await table_backups.load(store.latest) == [made[2], made[1], made[0]]


def test_the_heads_of_children_have_the_values_of_their_parent():
    parent = PartitionHead(7, {0: 10, 1: 3}, {0: 101, 1: 7}, {2: 5}, 900)
    first, second = parent.divided(0.25)
    assert first == PartitionHead(0, {0: 2, 1: 1}, {0: 25, 1: 2}, {2: 5})
    assert second == PartitionHead(0, {0: 8, 1: 2}, {0: 76, 1: 5}, {2: 5})


def test_a_destination_record_without_a_partition_count_is_read():
    old = msgpack.encode({"destination_id": 1, "topic": "threads", "status": "ACTIVE"})
    destination = msgpack.decode(old, type=StreamingDestination)
    assert destination == StreamingDestination(1, "threads", "ACTIVE")
    assert not destination.needs_snapshot


def test_a_checkpoint_is_encoded_and_decoded():
    stored = Checkpoint(12, 3_456).encode()
    assert checkpoint.decode(stored) == Checkpoint(12, 3_456)
    assert checkpoint.decode(None) == Checkpoint(0, 0)
    # Followers of some kinds store only a counter.
    assert checkpoint.decode((12).to_bytes(8, "big")) == Checkpoint(12, 0)
