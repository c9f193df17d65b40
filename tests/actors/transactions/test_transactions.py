"""Transactions of several partitions: their locks, and that they are applied as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.partition.item_locks import Join, Prepare, Release, Transact, TransactionPart
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.messages import CreateTable, DeleteTable
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import StreamSettings, TimeToLive
from dynactor.model.errors import (
    ConditionalCheckFailedException,
    InternalServerError,
    ResourceNotFoundException,
    TransactionCanceledException,
    TransactionConflictException,
)
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.update import parse_update
from dynactor.model.values.item import Item
from dynactor.model.writes.transaction import Action
from dynactor.model.writes.write import Delete, Put, Update
from dynactor.storage.rocks.store import open_rocks
from dynactor.storage.store import Full, Group
from dynactor.streams.change_record import Origin, stored_bytes
from tests.support.databases.databases import (
    HeldStore,
    put,
    redefine,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.stored_items import items
from tests.support.databases.transacting import (
    actions,
    check,
    condition,
    read,
    stepped,
    transact,
    until,
)
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

TTL = TimeToLive("ends", "ENABLED", 0.0)
STREAM = StreamSettings("2026", "NEW_AND_OLD_IMAGES")
NOT_THERE = "attribute_not_exists(forum)"


async def two_tables(database: Database, **members: Any) -> tuple[Table, Table]:
    tables = []
    for name in ("Thread", "Reply"):
        definition = structs.replace(table_definition(name, **members))
        await database.ask(CreateTable(definition))
        tables.append(database.table(name))
    return tables[0], tables[1]


def part_of(table: Table, *writes: Any, name: bytes = b"transaction") -> TransactionPart:
    found = [action for _, action in actions(*((table, write) for write in writes))]
    return TransactionPart(name, len(found), tuple(found))


async def hold(table: Table, *writes: Any, name: bytes = b"transaction") -> Action:
    """Prepare writes of one partition, as a coordinator does."""
    part = part_of(table, *writes, name=name)
    await table.send(part.actions[0].position, Prepare(part))
    return part.actions[0]


def codes(error: pytest.ExceptionInfo[TransactionCanceledException]) -> list[str]:
    return [reason.code for reason in error.value.reasons]


# -- locks ----------------------------------------------------------------------------------------


async def test_other_writes_wait_for_the_lock_of_a_transaction() -> None:
    async with running_database() as database:
        table, _ = await two_tables(database)
        old, new = thread("EC2", "a", posts=1), thread("EC2", "a", posts=2)
        await table.write(put(old))
        action = await hold(table, put(new))

        for write in (put(new), Delete(thread("EC2", "a")), Update(thread("EC2", "a"))):
            with pytest.raises(TransactionConflictException, match="ongoing for the item"):
                await table.write(write)
        with pytest.raises(TransactionCanceledException) as refused:
            await transact(
                database,
                (table, put(thread("S3", "a"))),
                (table, check(thread("EC2", "a"))),
                (table, put(thread("EC2", "b"))),
            )
        assert codes(refused) == ["None", "TransactionConflict", "None"]
        reason = refused.value.reasons[1]
        assert reason.message == "Transaction is ongoing for the item"
        assert await items(table, thread("EC2", "a"), thread("S3", "a")) == [old, None]
        assert table.throttle.transaction_conflicts == 4
        assert table.throttle.traffic is not None
        (window,) = table.throttle.traffic.windows()
        for counted in (window.partitions["conflicts"], window.items["conflicts"]):
            assert [weight for _, weight in counted.keys] == [4]
        assert window.items["conflicts"].keys[0][0] == action.position
        # Other items of the collection are not locked.
        await table.write(put(thread("EC2", "b")))

        await table.send(action.position, Release(b"transaction"), always=True)
        await table.write(put(new))
        assert await items(table, thread("EC2", "a")) == [new]


async def test_reads_continue_and_see_all_earlier_commits() -> None:
    async with running_database() as database:
        table, other = await two_tables(database)
        old, new = thread("EC2", "a", posts=1), thread("EC2", "a", posts=2)
        await table.write(put(old))
        await other.write(put(old))
        seen = []

        async def look(_step: int) -> None:
            seen.append(await items(table, old) + await items(other, old))

        stepped(database, look)
        await transact(database, (table, put(new)), (other, put(new)))
        # In the last step the transaction is committed, and may or may not be durable.
        assert seen[:2] == [[old, old], [old, old]]
        assert seen[2] in ([old, old], [new, new])
        assert await items(table, old) + await items(other, old) == [new, new]


async def test_a_transaction_of_reads_conflicts_with_one_of_writes() -> None:
    async with running_database() as database:
        table, other = await two_tables(database)
        a, b = thread("EC2", "a"), thread("EC2", "b")
        caught: list[list[str]] = []

        async def look(_step: int) -> None:
            with pytest.raises(TransactionCanceledException) as refused:
                await read(database, (table, b), (other, a))
            caught.append(codes(refused))

        stepped(database, look)
        await transact(database, (table, put(a)), (other, put(a)))
        assert caught == [["None", "TransactionConflict"]] * 3
        assert other.throttle.transaction_conflicts == 3
        assert await read(database, (table, b), (table, a), (other, a)) == [None, a, a]


async def test_time_to_live_skips_locked_items() -> None:
    async with running_database() as database:
        table, _ = await two_tables(database)
        now = int(database.clock.now_epoch_seconds())
        await redefine(database, table, time_to_live=TTL)
        old = thread("EC2", "a", ends=now - 100)
        other = thread("EC2", "b", ends=now - 100)
        await transact(database, (table, put(old)), (table, put(other)))
        held = await hold(table, check(old))
        positions = [
            action.position for _, action in actions((table, put(old)), (table, put(other)))
        ]
        number = table.number_at(held.position)
        expired = await table.expire(number, "ends", tuple(positions))
        assert (expired.deleted_items, expired.held) == (1, (held.position,))
        assert await items(table, old, other) == [old, None]
        await table.send(held.position, Release(b"transaction"), always=True)
        assert (await table.expire(number, "ends", tuple(positions))).deleted_items == 1
        assert await items(table, old) == [None]


# -- all or nothing -------------------------------------------------------------------------------


class RecordingStore(HeldStore):
    """A store that records the number of groups of each commit."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.commits: list[int] = []

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        durable = await super().commit(groups)
        if groups:
            self.commits.append(len(groups))
        return durable


async def test_all_partitions_are_committed_in_one_batch() -> None:
    async with memory_store() as real:
        store = RecordingStore(real)
        async with running_database(store) as database:
            table, other = await two_tables(database)
            store.commits.clear()
            keys = [thread(f"forum {number}", "a") for number in range(30)]
            numbers = {
                table.number_at(action.position)
                for _, action in actions(*((table, put(key)) for key in keys))
            }
            assert len(numbers) == 4
            await transact(
                database,
                *((table, put(key)) for key in keys),
                *((other, put(key)) for key in keys),
            )
            # The first write of each partition made a separate commit of one group.
            assert [groups for groups in store.commits if groups > 1] == [8]
            assert await items(table, *keys) + await items(other, *keys) == keys * 2


@pytest.mark.embedded_store("PostgreSQL accepts a commit when it is durable")
async def test_no_transaction_is_acknowledged_or_visible_before_it_is_durable() -> None:
    async with memory_store() as real:
        store = HeldStore(real)
        async with running_database(store) as database:
            table, other = await two_tables(database)
            key, other_key = thread("EC2", "a"), thread("S3", "b")
            await transact(database, (table, put(key)), (other, put(key)))
            store.hold()
            new = thread("EC2", "a", posts=1)
            running = asyncio.create_task(
                transact(database, (table, put(new)), (other, put(new)), (other, put(other_key)))
            )
            await until(lambda: store.held >= 1)
            for _ in range(50):
                await asyncio.sleep(0)
            assert not running.done()
            assert await items(table, key) + await items(other, key) == [key, key]
            # The transaction has released its locks, so this write is decided after it.
            behind = table.submit(Delete(key, condition("attribute_exists(posts)")))
            for _ in range(50):
                await asyncio.sleep(0)
            assert not behind.done()
            await store.release()
            await running
            await behind
            assert await items(table, key) + await items(other, key) == [None, new]


@pytest.mark.embedded_store("PostgreSQL accepts a commit when it is durable")
async def test_the_answer_of_a_refused_transaction_waits_until_the_item_it_read_is_durable() -> (
    None
):
    async with memory_store() as real:
        store = HeldStore(real)
        async with running_database(store) as database:
            table, other = await two_tables(database)
            key = thread("EC2", "a")
            await transact(database, (table, put(thread("S3", "a"))), (other, put(key)))
            store.hold()
            written = table.submit(put(key))
            await until(lambda: store.held == 1)
            refused = asyncio.create_task(
                transact(
                    database,
                    (table, check(key, NOT_THERE)),
                    (other, put(thread("EC2", "b"))),
                )
            )
            for _ in range(50):
                await asyncio.sleep(0)
            assert not refused.done()
            await store.release()
            await written
            with pytest.raises(TransactionCanceledException) as caught:
                await refused
            assert codes(caught) == ["ConditionalCheckFailed", "None"]


@pytest.mark.parametrize("writes_in_one", [True, False])
async def test_a_transaction_whose_commit_is_refused_has_no_effect_and_releases_its_locks(
    *, writes_in_one: bool
) -> None:
    async with memory_store() as real:
        store = FaultyStore(real)
        async with running_database(store) as database:
            table, other = await two_tables(database)
            second = table if writes_in_one else other
            old, new = thread("EC2", "a", posts=1), thread("EC2", "a", posts=2)
            await transact(database, (table, put(old)), (other, put(old)))
            store.refuse_commits(Full("the disk is full"))
            writes = [(table, put(new))]
            if not writes_in_one:
                writes.append((second, put(new)))
            with pytest.raises(InternalServerError, match="Nothing was written"):
                await transact(database, *writes)
            store.allow_commits()
            assert await items(table, old) + await items(other, old) == [old, old]
            await transact(database, *writes)
            await table.write(put(old))
            assert await items(table, old) == [old]


@pytest.mark.embedded_store("PostgreSQL accepts a commit when it is durable")
async def test_after_a_failed_sync_the_outcome_of_a_transaction_is_unknown() -> None:
    async with memory_store() as real:
        store = FaultyStore(real)
        async with running_database(store) as database:
            table, other = await two_tables(database)
            key = thread("EC2", "a")
            await transact(database, (table, put(key)), (other, put(key)))
            store.hold_syncs()
            new = thread("EC2", "a", posts=1)
            running = asyncio.create_task(transact(database, (table, put(new)), (other, put(new))))
            await until(lambda: store.held_count >= 1)
            store.fail_syncs()
            with pytest.raises(InternalServerError, match="unknown"):
                await running
            assert await items(table, key) + await items(other, key) == [key, key]
            with pytest.raises(InternalServerError, match="Nothing was written"):
                await table.write(put(new))


async def test_change_records_of_a_transaction_have_its_id_and_their_positions_in_it() -> None:
    async with running_database() as database:
        table, other = await two_tables(database)
        for each in (table, other):
            await redefine(database, each, stream=STREAM)
        old, new = thread("EC2", "a", posts=1), thread("EC2", "a", posts=2)
        await table.write(put(old))
        await transact(
            database,
            (other, put(old)),
            (table, check(thread("S3", "a"), "attribute_not_exists(forum)")),
            (table, put(new)),
            (other, Delete(thread("S3", "none"))),
        )
        await transact(database, (table, Delete(old)))
        found = []
        # The tails of the logs may advance after the transaction is answered.
        feeds = await table.followers.feeds() + await other.followers.feeds()
        await until(lambda: sum(feed.tail for feed in feeds) == 4)
        for feed in feeds:
            found += await feed.read(0, max_records=9, max_bytes=1 << 20)
        of_transactions = [record for record in found if record.origin is Origin.TRANSACTION]
        places = [record.transaction for record in of_transactions]
        assert len(found) == 4
        assert all(place is not None for place in places)
        told = sorted(
            (record.transaction.ordinal, record.transaction.total, record.key["forum"]["S"])
            for record in of_transactions
            if record.transaction is not None
        )
        assert told == [(0, 1, "EC2"), (0, 4, "EC2"), (2, 4, "EC2")]
        assert len({place.transaction_id for place in places if place}) == 2
        for record in of_transactions:
            if record.new is not None:
                assert record.new.version == record.sequence_number.packed()


async def test_a_table_that_gets_a_follower_during_a_transaction_records_the_change() -> None:
    async with running_database() as database:
        table, other = await two_tables(database)
        key = thread("EC2", "a")

        async def follow(step: int) -> None:
            if step == 0:
                await redefine(database, table, stream=STREAM)

        stepped(database, follow)
        await transact(database, (table, put(key)), (other, put(key)))
        feeds = await table.followers.feeds()
        await until(lambda: any(feed.tail for feed in feeds))
        records = []
        for feed in feeds:
            records += await feed.read(0, max_records=9, max_bytes=1 << 20)
        assert [record.key for record in records] == [key]


# -- faults during a transaction ------------------------------------------------------------------


class Poison(Message[None], frozen=True):
    """A message that no partition knows."""


async def crash(table: Table, key: Item) -> None:
    """Crash and restart the partition of this item."""
    _, action = actions((table, put(key)))[0]
    with pytest.raises(InternalServerError):
        await table.send(action.position, Poison())


async def test_a_restarted_partition_knows_no_transaction() -> None:
    async with running_database() as database:
        table, other = await two_tables(database)
        key = thread("EC2", "a")

        async def die(step: int) -> None:
            if step == 0:
                await crash(other, key)

        stepped(database, die)
        with pytest.raises(InternalServerError, match="Nothing was written: a partition restarted"):
            await transact(database, (table, put(key)), (other, put(key)))
        assert await items(table, key) + await items(other, key) == [None, None]
        stepped(database, lambda _: asyncio.sleep(0))
        await transact(database, (table, put(key)), (other, put(key)))
        assert await items(table, key) + await items(other, key) == [key, key]


async def test_messages_of_an_unknown_transaction_have_no_effect_on_a_partition() -> None:
    async with running_database() as database:
        table, _ = await two_tables(database)
        key = thread("EC2", "a")
        action = await hold(table, put(key))
        position = action.position
        number = table.number_at(position)
        assert await table.join(number, Join(b"round", (b"another",))) is None
        assert await table.join(number, Join(b"round", (b"transaction", b"another"))) is None
        await table.send(position, Release(b"another"), always=True)
        with pytest.raises(TransactionConflictException):
            await table.write(put(key))
        await table.send(position, Release(b"transaction"), always=True)
        assert await table.join(number, Join(b"round", (b"transaction",))) is None
        await table.write(put(key))


@pytest.mark.parametrize("step", [0, 1, 2])
async def test_a_canceled_request_holds_no_locks(step: int) -> None:
    async with running_database() as database:
        table, other = await two_tables(database)
        key, new = thread("EC2", "a"), thread("EC2", "a", posts=1)
        reached = asyncio.Event()

        async def stop(at: int) -> None:
            if at == step:
                reached.set()
                await asyncio.get_running_loop().create_future()

        stepped(database, stop)
        running = asyncio.create_task(transact(database, (table, put(key)), (other, put(key))))
        await reached.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        stepped(database, lambda _: asyncio.sleep(0))
        await transact(database, (table, put(new)), (other, put(new)))
        await asyncio.gather(table.write(put(new)), other.write(put(new)))
        assert await items(table, key) + await items(other, key) == [new, new]


@pytest.mark.parametrize("turns", range(30))
async def test_a_request_may_be_canceled_at_any_moment(turns: int) -> None:
    async with running_database() as database:
        table, other = await two_tables(database)
        key, new = thread("EC2", "a"), thread("EC2", "a", posts=1)
        await transact(database, (table, put(key)), (other, put(key)))
        running = asyncio.create_task(transact(database, (table, put(new)), (other, put(new))))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running])
        found = []
        for _ in range(2):
            await asyncio.gather(
                table.write(put(thread("EC2", "b"))), other.write(put(thread("EC2", "b")))
            )
            found.append(await items(table, key) + await items(other, key))
        assert found[0] in ([key, key], [new, new])
        assert found[0] == found[1]
        await asyncio.gather(table.write(put(key)), other.write(put(key)))


async def test_a_table_that_is_deleted_meanwhile_cancels_the_transaction() -> None:
    async with running_database() as database:
        table, other = await two_tables(database)
        key = thread("EC2", "a")

        async def delete(step: int) -> None:
            if step == 0:
                await database.ask(DeleteTable("Reply"))

        stepped(database, delete)
        with pytest.raises((ResourceNotFoundException, InternalServerError)):
            await transact(database, (table, put(key)), (other, put(key)))
        assert await items(table, key) == [None]
        await table.write(put(key))


async def test_writes_and_transactions_of_one_batch_see_each_other() -> None:
    async with running_database() as database:
        table, _ = await two_tables(database)
        key = thread("EC2", "a")
        absent = Put(key, 10, condition("attribute_not_exists(forum)"))
        first = table.submit(absent)
        part = part_of(table, check(key), put(thread("EC2", "b")))
        second = table.send(part.actions[0].position, Transact(part))
        third = table.submit(Put(thread("EC2", "b"), 10, condition("attribute_exists(forum)")))
        results = await asyncio.gather(first, second, third)
        assert [type(result).__name__ for result in results] == ["Written", "Accepted", "Written"]


async def test_followers_get_a_committed_transaction_once_it_is_durable_even_on_a_full_disk() -> (
    None
):
    async with memory_store() as real:
        store = FaultyStore(real)
        async with running_database(store) as database:
            tables = await two_tables(database)
            for each in tables:
                await redefine(database, each, stream=STREAM)
            key = thread("EC2", "a")
            await asyncio.gather(*(each.write(put(key)) for each in tables))
            feeds = [feed for each in tables for feed in await each.followers.feeds() if feed.tail]
            heard = [feed.wait_addition() for feed in feeds]

            async def fill(step: int) -> None:
                if step == 1:
                    store.hold_syncs()
                elif step == 2:
                    store.refuse_commits(Full("the disk is full"))

            stepped(database, fill)
            writes = [(each, put(thread("EC2", "a", posts=1))) for each in tables]
            deciding = asyncio.create_task(transact(database, *writes))
            # The 3 held commits are the round's, and one that each of the 2 partitions makes after
            # it.
            await until(lambda: store.held_count == 3)
            assert [feed.tail for feed in feeds] == [1, 1]
            await store.release_syncs()
            await asyncio.gather(deciding, *heard)
            assert [feed.tail for feed in feeds] == [2, 2]


async def test_the_maintenance_of_logs_finds_a_transaction_committed_before_the_disk_was_full() -> (
    None
):
    async with memory_store() as real:
        store = FaultyStore(real)
        async with running_database(store) as database:
            tables = await two_tables(database)
            for each in tables:
                await redefine(database, each, stream=STREAM)
            key = thread("EC2", "a")
            await asyncio.gather(*(each.write(put(key)) for each in tables))

            async def fill(step: int) -> None:
                if step == 2:
                    store.refuse_commits(Full("the disk is full"), is_silent=True)

            stepped(database, fill)
            await transact(database, *((each, put(thread("EC2", "a", posts=1))) for each in tables))
            store.allow_commits()
            feeds = await tables[0].followers.feeds()
            (feed,) = [feed for feed in feeds if feed.tail]
            assert feed.tail == 2
            records = await feed.read(0, max_records=9, max_bytes=1 << 20)
            assert [record.sequence_number.counter for record in records] == [1, 2]
            assert feed.logged_bytes == sum(map(stored_bytes, records))


@pytest.mark.parametrize("writes_nothing_first", [False, True])
async def test_a_follower_misses_no_change_if_the_disk_is_full_after_the_commit(
    *, writes_nothing_first: bool
) -> None:
    async with memory_store() as real:
        store = FaultyStore(real)
        async with running_database(store) as database:
            table, other = await two_tables(database)
            for each in (table, other):
                await redefine(database, each, stream=STREAM)
            key = thread("EC2", "a")
            await asyncio.gather(table.write(put(key)), other.write(put(key)))
            feeds = await table.followers.feeds()
            (feed,) = [feed for feed in feeds if feed.tail]

            async def fill(step: int) -> None:
                if step == 2:
                    store.refuse_commits(Full("the disk is full"), is_silent=True)

            stepped(database, fill)
            new, last = thread("EC2", "a", posts=1), thread("EC2", "a", posts=2)
            await transact(database, (table, put(new)), (other, put(new)))
            # The partitions know the outcome, but could not commit that their logs are longer.
            with pytest.raises(InternalServerError, match="the disk is full"):
                await table.write(put(last))
            store.allow_commits()
            if writes_nothing_first:
                # This write has no change record, but its commit reports the new tail of the log.
                failing = structs.replace(put(last), condition=condition(NOT_THERE))
                heard = feed.wait_addition()
                with pytest.raises(ConditionalCheckFailedException):
                    await table.write(failing)
                assert heard.done()
            await table.write(put(last))
            for after in range(3):
                records = await feed.read(after, max_records=9, max_bytes=1 << 20)
                numbers = [record.sequence_number.counter for record in records]
                assert numbers == [1, 2, 3][after:]
            assert records[-1].old is not None
            assert records[-1].old.item == new


# -- concurrent transactions ----------------------------------------------------------------------


ACCOUNTS = 40
BALANCE = 100


def account(number: int) -> Item:
    return thread(f"account {number}", "a")


def transfer(number: int, amount: int) -> Update:
    placeholders = Placeholders(None, {":amount": {"N": str(amount)}})
    return Update(account(number), parse_update("ADD posts :amount", placeholders))


@pytest.mark.parametrize("seed", range(6))
async def test_no_money_is_created_or_lost_and_no_client_waits_forever(seed: int) -> None:
    draw = Random(seed)
    async with memory_store() as store, running_database(store) as database:
        tables = await two_tables(database, local_sort_keys=("posts",) if seed % 2 else ())
        places = [(tables[number % 2], number) for number in range(ACCOUNTS)]
        await transact(
            database,
            *(
                (table, put(thread(f"account {number}", "a", posts=BALANCE)))
                for table, number in places
            ),
        )

        async def pause(_step: int) -> None:
            for _ in range(draw.randrange(3)):
                await asyncio.sleep(0)

        stepped(database, pause)
        done = conflicts = 0

        async def client() -> None:
            nonlocal done, conflicts
            for _ in range(25):
                chosen = draw.sample(places, draw.randrange(2, 5))
                amounts = [draw.randrange(1, 10) for _ in chosen[1:]]
                amounts.append(-sum(amounts))
                running = asyncio.ensure_future(
                    transact(
                        database,
                        *(
                            (table, transfer(number, amount))
                            for (table, number), amount in zip(chosen, amounts, strict=True)
                        ),
                    )
                )
                if draw.random() < 0.1:
                    for _ in range(draw.randrange(20)):
                        await asyncio.sleep(0)
                    running.cancel()
                try:
                    await running
                except TransactionCanceledException:
                    conflicts += 1
                except asyncio.CancelledError:
                    pass
                else:
                    done += 1

        async def reader() -> None:
            for _ in range(100):
                try:
                    found = await read(
                        database, *((table, account(number)) for table, number in places)
                    )
                except TransactionCanceledException:
                    await asyncio.sleep(0)
                    continue
                assert sum(int(each["posts"]["N"]) for each in found if each) == ACCOUNTS * BALANCE

        async with asyncio.timeout(60):
            await asyncio.gather(*(client() for _ in range(8)), reader(), reader())
        assert done > 20
        assert conflicts > 0
        total = 0
        for table, number in places:
            (found,) = await items(table, account(number))
            assert found is not None
            total += int(found["posts"]["N"])
        assert total == ACCOUNTS * BALANCE
        # All locks are released.
        await asyncio.gather(*(table.write(transfer(number, 0)) for table, number in places))


async def test_transactions_are_visible_after_a_restart(tmp_path: Path) -> None:
    keys = [thread(f"forum {number}", "a", posts=number) for number in range(20)]
    store = await open_rocks(tmp_path / "data")
    async with running_database(store) as database:
        table, other = await two_tables(database, local_sort_keys=("posts",))
        await transact(
            database, *((table, put(key)) for key in keys), *((other, put(key)) for key in keys)
        )
        before = [await database.describe(name) for name in ("Thread", "Reply")]
    await store.close()
    store = await open_rocks(tmp_path / "data")
    async with running_database(store) as database:
        for name, state in zip(("Thread", "Reply"), before, strict=True):
            table = database.table(name)
            assert await items(table, *keys) == keys
            after = await database.describe(name)
            assert (after.item_count, after.size_bytes) == (state.item_count, state.size_bytes)
            assert after.item_count == len(keys)
            assert after.indexes == state.indexes
    await store.close()


async def test_some_of_many_concurrent_transactions_on_hot_items_succeed() -> None:
    async with running_database(partitions_per_table=7) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        draw = Random(1)
        hot = [thread(f"forum {number}", "a") for number in range(20)]
        done = 0

        async def transact_often() -> None:
            nonlocal done
            for _ in range(20):
                with suppress(TransactionCanceledException):
                    await transact(database, *((table, put(item)) for item in draw.sample(hot, 10)))
                    done += 1

        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            for _ in range(64):
                tasks.create_task(transact_often())
        # In each round of attempts, at least one transaction must succeed.
        assert done >= 20
