"""A write is acknowledged and visible only when it is durable."""

import asyncio

import pytest
from msgspec import structs

from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.pages import ReadRange, read_page
from dynactor.model.definitions.table import StreamSettings
from dynactor.model.errors import ConditionalCheckFailedException, InternalServerError
from dynactor.model.expressions.condition_binding import parse_condition
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.key_conditions import key_range
from dynactor.model.reads.page import PageRules
from dynactor.model.writes.write import Delete, Put
from dynactor.storage.store import Full
from tests.support.databases.databases import (
    HeldStore,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.stored_items import read_item
from tests.support.stores.stepped_store import soon, stepped_database, turns
from tests.support.stores.store import memory_store

pytestmark = pytest.mark.embedded_store("PostgreSQL accepts a commit when it is durable")

SCAN = ReadRange(key_range.WHOLE, PageRules(), by_partition=True)


class Poison(Message[None], frozen=True):
    """A message that no partition knows."""


async def test_no_write_is_acknowledged_or_visible_before_it_is_durable():
    async with memory_store() as real:
        store = HeldStore(real)
        async with running_database(store) as database:
            await database.ask(CreateTable(table_definition(local_sort_keys=["posts"])))
            table = database.table("Thread")
            await table.write(put(thread("EC2", "a", posts=1)))
            store.hold()
            reply = table.submit(put(thread("EC2", "a", posts=2)))
            await turns()
            assert not reply.done()
            found = (await read_item(table, thread("EC2", "a"))).stored
            assert found.item["posts"] == {"N": "1"}
            index = table.definition.local_indexes[0]
            for request in (SCAN, ReadRange(key_range.WHOLE, PageRules(), index=index)):
                (item,) = (await read_page(table, request)).items
                assert b'"posts":{"N":"1"}' in item
            await store.release()
            await reply
            found = (await read_item(table, thread("EC2", "a"))).stored
            assert found.item["posts"] == {"N": "2"}


async def test_the_answer_of_a_failed_condition_waits_until_the_write_it_saw_is_durable():
    async with memory_store() as real:
        store = HeldStore(real)
        async with running_database(store) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            store.hold()
            first = table.submit(put(thread("EC2", "a")))
            await turns()
            condition = parse_condition(
                "attribute_not_exists(forum)", Placeholders(None, None), kind="ConditionExpression"
            )
            item = thread("EC2", "a", posts=9)
            second = table.submit(Put(item, 1, condition=condition))
            await turns()
            assert not first.done()
            assert not second.done()
            await store.release()
            await first
            with pytest.raises(ConditionalCheckFailedException):
                await second


async def test_writes_of_one_batch_see_each_other():
    async with running_database() as database:
        await database.ask(CreateTable(table_definition(local_sort_keys=["posts"])))
        table = database.table("Thread")
        replies = [
            table.submit(put(thread("EC2", "a", posts=1))),
            table.submit(Delete({"forum": {"S": "EC2"}, "subject": {"S": "a"}})),
            table.submit(put(thread("EC2", "a", posts=3))),
        ]
        for reply in replies:
            await reply
        state = await database.describe("Thread")
        assert (state.item_count, state.indexes["by_posts"].item_count) == (1, 1)
        (item,) = (await read_page(table, SCAN)).items
        assert b'"posts":{"N":"3"}' in item


async def test_a_refused_commit_has_no_effect_and_the_next_one_succeeds():
    async with memory_store() as real:
        store = HeldStore(real)
        async with running_database(store) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            store.refusal = Full("no space")
            with pytest.raises(InternalServerError, match="disk is full"):
                await table.write(put(thread("EC2", "a")))
            assert (await read_page(table, SCAN)).items == []
            store.refusal = None
            await table.write(put(thread("EC2", "b")))
            (item,) = (await read_page(table, SCAN)).items
            assert b'"subject":{"S":"b"}' in item
            assert (await database.describe("Thread")).item_count == 1


async def test_closing_a_table_waits_until_its_last_write_is_answered():
    async with stepped_database() as (store, database):
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        store.hold_syncs()
        written = table.submit(put(thread("EC2", "a")))
        await soon(lambda: store.held_count > 0)
        closing = asyncio.create_task(table.close())
        await turns()
        assert not closing.done()

        await store.release_syncs()
        await closing
        assert written.done()


async def test_the_tail_of_a_log_does_not_move_when_a_partition_restarts_before_a_sync():
    async with stepped_database(partitions_per_table=1) as (store, database):
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await table.write(put(thread("EC2", "a", posts=1)))
        [number] = table.partitions.map.numbers
        feed = table.followers.feed(number)
        store.hold_syncs()
        first = table.submit(put(thread("EC2", "a", posts=2)))
        await soon(lambda: store.held_count == 1)
        with pytest.raises(InternalServerError):
            await table.partitions[number].ask(Poison())
        second = table.submit(put(thread("EC2", "a", posts=3)))
        await soon(lambda: store.held_count == 2)
        assert feed.tail == 1

        await store.release_syncs()
        await asyncio.gather(first, second)
        assert feed.tail == 3


async def test_followers_of_a_table_never_see_a_change_whose_sync_failed():
    streamed = structs.replace(table_definition(), stream=StreamSettings("", "NEW_AND_OLD_IMAGES"))
    async with stepped_database() as (store, database):
        await database.ask(CreateTable(streamed))
        table = database.table("Thread")
        await table.write(put(thread("EC2", "a", posts=1)))
        [feed] = [feed for feed in await table.followers.feeds() if feed.tail]
        store.hold_syncs()
        unknown = table.submit(put(thread("EC2", "a", posts=2)))
        while not store.held_count:
            await asyncio.sleep(0)

        store.fail_syncs()
        with pytest.raises(InternalServerError, match="unknown"):
            await unknown

        assert feed.tail == 1
        assert len(await feed.read(0, max_records=9, max_bytes=1 << 20)) == 1
