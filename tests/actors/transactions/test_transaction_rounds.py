"""Transactions that are prepared at the same time share a commit, but have separate outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.runtime.mailbox import Mailbox, Message
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.model.errors import InternalServerError
from dynactor.storage.store import Conflict, Group
from tests.support.databases.databases import (
    HeldStore,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.splitting import halve
from tests.support.databases.stored_items import items
from tests.support.databases.transacting import actions, stepped, transact, until
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.stores.store import memory_store

MANY = 10
ONE_ROUND = pytest.mark.embedded_store(
    "reads of PostgreSQL end at different times, so the transactions form several rounds"
)


class CountingStore(HeldStore):
    """A store that records the number of groups of each shared commit, and may refuse them."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.commits: list[int] = []
        self.refuses_more_groups_than = 1_000

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        if len(groups) > self.refuses_more_groups_than:
            raise Conflict("somebody else owns these rows")
        durable = await super().commit(groups)
        # Not a new table, whose partitions begin.
        if len(groups) > 1 and all(group.expected_head is not None for group in groups):
            self.commits.append(len(groups))
        return durable


class Poison(Message[None], frozen=True):
    """A message that no partition knows."""


async def two_tables(database: Database) -> tuple[Table, Table]:
    for name in ("Thread", "Reply"):
        await database.ask(CreateTable(structs.replace(table_definition(name))))
    return database.table("Thread"), database.table("Reply")


def forums(table: Table) -> list[list[str]]:
    """Forums by their partition."""
    found: dict[int, list[str]] = {}
    for number in range(60):
        ((_, action),) = actions((table, put(thread(f"forum {number}", "a"))))
        found.setdefault(table.number_at(action.position), []).append(f"forum {number}")
    return list(found.values())


@ONE_ROUND
async def test_many_concurrent_transactions_share_a_commit() -> None:
    async with memory_store() as real:
        store = CountingStore(real)
        async with running_database(store) as database:
            table, other = await two_tables(database)
            keys = [thread(f"forum {number}", "a", posts=number) for number in range(MANY)]
            done = await asyncio.gather(
                *(transact(database, (table, put(key)), (other, put(key))) for key in keys)
            )
            assert [len(each) for each in done] == [2] * MANY
            assert len(store.commits) == 1
            assert await items(table, *keys) + await items(other, *keys) == keys * 2


async def test_transactions_of_a_round_succeed_although_one_cannot_be_joined() -> None:
    async with running_database() as database:
        table, other = await two_tables(database)
        (lost, *_), (kept, second, *_), *_ = forums(other)
        lost_key, kept_key, second_key = (thread(each, "a") for each in (lost, kept, second))
        prepared = 0
        died = asyncio.Event()

        async def die(_step: int) -> None:
            nonlocal prepared
            prepared += 1
            if prepared == 1:
                await until(lambda: prepared == 3)
                _, action = actions((other, put(lost_key)))[0]
                with pytest.raises(InternalServerError):
                    await other.send(action.position, Poison())
                died.set()
            await died.wait()

        stepped(database, die)
        outcomes = await asyncio.gather(
            *(
                transact(database, (table, put(key)), (other, put(key)))
                for key in (lost_key, kept_key, second_key)
            ),
            return_exceptions=True,
        )
        assert isinstance(outcomes[0], InternalServerError)
        assert "a partition restarted" in outcomes[0].message
        assert [type(each) for each in outcomes[1:]] == [list, list]
        keys = [lost_key, kept_key, second_key]
        assert await items(table, *keys) == await items(other, *keys) == [None, *keys[1:]]
        # All locks are released.
        await asyncio.gather(*(each.write(put(key)) for each in (table, other) for key in keys))


async def test_transactions_that_cannot_be_committed_together_are_committed_one_by_one() -> None:
    async with memory_store() as real:
        store = CountingStore(real)
        async with running_database(store) as database:
            table, other = await two_tables(database)
            (first, *_), (second, *_), *_ = forums(table)
            keys = [thread(first, "a"), thread(second, "a")]
            await asyncio.gather(*(each.write(put(key)) for each in (table, other) for key in keys))
            store.refuses_more_groups_than = 2
            await asyncio.gather(
                *(transact(database, (table, put(key)), (other, put(key))) for key in keys)
            )
            assert store.commits == [2, 2]


@ONE_ROUND
@pytest.mark.parametrize("step", range(MANY, MANY + 2))
@pytest.mark.parametrize("leader", [True, False])
async def test_a_canceled_transaction_cancels_no_other(step: int, *, leader: bool) -> None:
    async with running_database() as database:
        table, other = await two_tables(database)
        keys = [thread(f"forum {number}", "a") for number in range(MANY)]
        reached, go_on = asyncio.Event(), asyncio.Event()

        async def pause(at: int) -> None:
            if at == step:
                reached.set()
                await go_on.wait()

        stepped(database, pause)
        running = [
            asyncio.create_task(transact(database, (table, put(key)), (other, put(key))))
            for key in keys
        ]
        await reached.wait()
        running[0 if leader else 5].cancel()
        await asyncio.sleep(0)
        go_on.set()
        async with asyncio.timeout(60):
            await asyncio.wait(running)
        assert [each.cancelled() for each in running].count(True) == 1
        assert [each.exception() for each in running if not each.cancelled()] == [None] * (MANY - 1)
        found = await items(table, *keys)
        assert found == await items(other, *keys)
        assert found.count(None) <= 1
        async with asyncio.timeout(60):
            await asyncio.gather(*(each.write(put(key)) for each in (table, other) for key in keys))


@ONE_ROUND
@pytest.mark.parametrize("order", [[0, 5], [5, 0], range(MANY)], ids=str)
async def test_a_transaction_canceled_together_with_the_leader_delays_no_split(
    order: Sequence[int],
) -> None:
    async with running_database() as database:
        table, other = await two_tables(database)
        keys = [thread(f"forum {number}", "a") for number in range(MANY)]
        reached = asyncio.Event()

        async def pause(at: int) -> None:
            # All transactions are in the round, and all partitions have joined it.
            if at == MANY:
                reached.set()
                await asyncio.Event().wait()

        stepped(database, pause)
        running = [
            asyncio.create_task(transact(database, (table, put(key)), (other, put(key))))
            for key in keys
        ]
        await reached.wait()
        for place in order:
            running[place].cancel()
        async with asyncio.timeout(HANG_SECONDS):
            await asyncio.wait(running)
            assert [each.cancelled() for each in running].count(True) == len(order)
            # A split waits until its partition knows the outcome of the round.
            for each in (table, other):
                await halve(database, each, each.record.partitions[0].number)
            await transact(database, (table, put(keys[5])), (other, put(keys[5])))


async def test_a_priority_message_is_processed_before_all_waiting_ones() -> None:
    mailbox = Mailbox(1)
    mailbox.put_nowait(Poison())
    first = mailbox.put_nowait(Poison(), always=True, first=True)
    taken = await mailbox.take(2, 2)
    assert [envelope.reply is first for envelope in taken] == [True, False]
