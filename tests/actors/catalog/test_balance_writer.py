"""When the server stores token-bucket balances, which ones, and failures to store them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from dynactor.actors.database.database import Database
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.messages import CreateTable, DeleteTable, UpdateTable
from dynactor.actors.table.table import Table
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import GlobalIndex, TableDefinition, Throughput
from dynactor.model.errors import InternalServerError
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.tables.global_index_rules import GlobalIndexUpdate
from dynactor.model.tables.table_edits import TableEdit
from dynactor.model.throttling.burst_balance import Balance
from dynactor.storage import burst_balances, key_layout
from dynactor.storage.burst_balances import BalancesHead, Resource
from dynactor.storage.store import Full, Group, Store
from tests.support.databases.backed_up import wait_followed
from tests.support.databases.databases import (
    HeldStore,
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.splitting import halve
from tests.support.databases.stored_items import read_item
from tests.support.stores.doubtful_store import DoubtfulStore
from tests.support.stores.store import memory_store

BY_POSTS = "by_posts"
RATE = 5
FULL = 300 * RATE
# The server subtracts a reserve from the stored balance of a partition in use. These are the
# reserves at the rates of this test.
WRITE_RESERVE, READ_RESERVE = 25, 60


class Poison(Message[None], frozen=True):
    """A message that no actor knows."""


class WatchedStore(HeldStore):
    """A store that records the balance rows of each commit, by key; a deleted row is None."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.commits: list[dict[bytes, bytes | None]] = []
        self.failure: Exception | None = None

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        if self.failure is not None and groups[0].head_key == key_layout.BALANCES_HEAD:
            raise self.failure
        start, end = key_layout.BALANCES
        puts: dict[bytes, bytes | None] = {
            key: value for group in groups for key, value in group.puts
        }
        gone = dict.fromkeys(key for group in groups for key in group.deletes)
        rows = {key: value for key, value in (puts | gone).items() if start <= key < end}
        if rows:
            self.commits.append(rows)
        return await super().commit(groups)


@asynccontextmanager
async def watched() -> AsyncIterator[WatchedStore]:
    async with memory_store() as inner:
        yield WatchedStore(inner)


@asynccontextmanager
async def running(
    store: WatchedStore,
    clock: SetClock | None = None,
    definition: TableDefinition | None = None,
    **settings: Any,
) -> AsyncIterator[Database]:
    """A database with enforced limits; the first start creates a table."""
    options = {"throttling": "auto", "partitions_per_table": 1, **settings}
    async with running_database(store, clock or SetClock(), **options) as database:
        if not database.tables:
            await database.ask(CreateTable(definition or provisioned()))
        yield database


def provisioned(write_units: int = RATE, *, index_units: int = 0) -> TableDefinition:
    definition = structs.replace(
        table_definition(), billing_mode="PROVISIONED", throughput=Throughput(RATE, write_units)
    )
    if not index_units:
        return definition
    posts = KeyAttribute("posts", "N")
    index = IndexDefinition(1, BY_POSTS, KeySchema((posts,)), Projection("ALL"))
    return structs.replace(
        definition,
        attribute_definitions=(*definition.attribute_definitions, posts),
        global_indexes=(GlobalIndex(index, throughput=Throughput(RATE, index_units)),),
        next_index_id=2,
    )


async def stored(store: Store) -> dict[Resource, dict[int, Balance]]:
    loaded = await burst_balances.load(store.latest)
    return {resource: dict(rows) for resource, rows in loaded.balances.items()}


async def write(table: Table, times: int = 1) -> None:
    for _ in range(times):
        await table.write(put(thread("EC2", "a")))


def units_left(table: Table) -> dict[int, float | None]:
    """The table's remaining write units, by partition."""
    readings = table.throttle._limits.table.writes.readings(
        table.throttle._clock.now_epoch_seconds()
    )
    return {number: reading.balance_units for number, reading in readings.items()}


async def test_an_idle_server_writes_nothing():
    async with watched() as store:
        clock = SetClock()
        async with running(store, clock) as database:
            for _ in range(3):
                await database.balances.keep()
                clock.step(10)
        assert store.commits == []
        async with running(store, clock) as database:
            await read_item(database.table("Thread"), thread("EC2", "a"))
            clock.step(300)
            # The first may be taken together with that of the read, which keeps a reserve.
            await database.balances.keep()
            await database.balances.keep()
            store.commits.clear()
            for _ in range(3):
                clock.step(10)
                await database.balances.keep()
        assert store.commits == []
        assert await stored(store) == {}


async def test_the_balance_of_a_table_in_use_is_stored_without_its_reserve():
    async with watched() as store:
        clock = SetClock()
        async with running(store, clock) as database:
            table = database.table("Thread")
            await write(table, 100)
            await database.balances.keep()
            ((resource, _),) = (await stored(store)).items()
            assert resource == (table.definition.table_id, 0)
            # The first update after the last write keeps a reserve; another one may have followed.
            rows = [_decoded(row) for rows in store.commits for row in rows.values()]
            assert Balance(FULL, FULL - 100 - WRITE_RESERVE) in rows
            clock.step(10)
            await database.balances.keep()
            assert (await stored(store))[resource] == {1: Balance(FULL, FULL - 50)}
            clock.step(10)
            await database.balances.keep()
            assert await stored(store) == {}


async def test_balances_are_stored_during_a_burst_and_no_request_waits_for_that():
    async with watched() as store, running(store) as database:
        table = database.table("Thread")
        await write(table, 300)
        # The last row may be on its way.
        resource = Resource(table.definition.table_id, 0)
        while (rows := (await stored(store)).get(resource)) is None or (
            rows[1].write_units > FULL - 300
        ):
            await asyncio.sleep(0.001)
        assert len(store.commits) <= 300 / WRITE_RESERVE + 1


async def test_a_restart_continues_where_the_server_stopped():
    async with watched() as store:
        clock = SetClock()
        async with running(store, clock) as database:
            await write(database.table("Thread"), 200)
        (head,) = await store.latest.load([key_layout.BALANCES_HEAD])
        assert head == burst_balances.encode_head(BalancesHead(clock.now_epoch_seconds()))
        clock.step(10)
        async with running(store, clock) as database:
            assert units_left(database.table("Thread")) == {1: FULL - 150}


async def test_stored_balances_are_updated_before_the_first_request():
    """Otherwise the next start after a crash would add the time without a server twice."""
    async with watched() as store:
        clock = SetClock()
        async with running(store, clock) as database:
            await write(database.table("Thread"), 200)
        clock.step(10)
        store.commits.clear()
        async with running(store, clock):
            assert (await burst_balances.load(store.latest)).head == BalancesHead()
            # Later updates of a table that is not in use keep no reserve.
            (row,) = store.commits[0].values()
            assert _decoded(row) == Balance(FULL - READ_RESERVE, FULL - 150 - WRITE_RESERVE)


async def test_a_table_without_stored_balances_has_full_ones():
    async with memory_store() as inner:
        async with running_database(inner, SetClock(), throttling="auto") as database:
            await database.ask(CreateTable(provisioned()))
        assert (await burst_balances.load(inner.latest)).head_bytes is None
        async with running_database(inner, SetClock(), throttling="auto") as database:
            assert units_left(database.table("Thread")) == {1: FULL}


async def test_a_full_disk_is_logged_and_the_server_continues():
    async with watched() as store:
        clock = SetClock()
        async with running(store, clock) as database:
            table = database.table("Thread")
            store.failure = Full("no space")
            with capture_logs() as logs:
                await write(table, 100)
                await database.balances.keep()
            assert {each["event"] for each in logs} == {"balances_not_stored"}
            assert logs[0]["error"] == "no space"
            # The two attempts are for the balances that fell below their rows, and for all
            # balances.
            assert len(logs) == 2
            assert await stored(store) == {}
            store.failure = None
            await database.balances.keep()
            assert (await stored(store)).popitem()[1][1].write_units == FULL - 100
            await write(table, 100)
            assert (await stored(store)).popitem()[1][1].write_units <= FULL - 200 + 3


async def test_balances_are_stored_after_a_commit_with_an_unknown_outcome():
    async with memory_store() as inner:
        store = DoubtfulStore(inner)
        clock = SetClock()
        options = {"throttling": "auto", "partitions_per_table": 1}
        async with running_database(store, clock, **options) as database:
            await database.ask(CreateTable(provisioned()))
            table = database.table("Thread")
            store.lose_next(key_layout.BALANCES_HEAD)
            await write(table, 100)
            await database.balances.keep()
            with capture_logs() as logs:
                await write(table, 100)
                await database.balances.keep()
            assert logs == []
            assert (await stored(store)).popitem()[1][1].write_units <= FULL - 200 + 3


async def test_the_server_stops_normally_on_a_full_disk():
    async with watched() as store:
        async with running(store) as database:
            await write(database.table("Thread"), 99)
            store.failure = Full("no space")
            with capture_logs() as logs:
                await write(database.table("Thread"))
                await database.balances.keep()
        assert logs
        store.failure = None
        async with running(store) as database:
            # The balance is the same as after a crash.
            left = units_left(database.table("Thread"))[1]
            assert left is not None
            assert FULL - 99 - WRITE_RESERVE <= left <= FULL - 99


async def test_many_partitions_are_stored_in_batches():
    async with watched() as store, running(store, partitions_per_table=1_000) as database:
        table = database.table("Thread")
        for number in table.partitions.map.numbers:
            table.throttle.take_page(number, 1)
        await database.balances.keep()
        assert sum(map(len, store.commits)) == 1_000
        assert max(map(len, store.commits)) <= 256
        assert len((await stored(store)).popitem()[1]) == 1_000


async def test_an_index_has_its_own_rows_and_a_deleted_one_has_no_rows():
    async with watched() as store, running(store, None, provisioned(index_units=7)) as database:
        table = database.table("Thread")
        await table.write(put(thread("EC2", "a", posts=1)))
        await wait_followed(table)
        # The first may be taken together with that of the index's write, which keeps a reserve.
        await database.balances.keep()
        await database.balances.keep()
        rows = await stored(store)
        assert [resource.index_id for resource in rows] == [0, 1]
        ((_, balance),) = rows[Resource(table.definition.table_id, 1)].items()
        assert balance == Balance(FULL, 7 * 300 - 1)
        await database.ask(UpdateTable("Thread", TableEdit(index_deletes=(BY_POSTS,))))
        while table.definition.global_indexes:
            await asyncio.sleep(0.001)
        await database.balances.keep()
        assert [resource.index_id for resource in await stored(store)] == [0]


async def test_a_deleted_table_leaves_no_rows():
    async with watched() as store:
        async with running(store) as database:
            await write(database.table("Thread"))
            await database.balances.keep()
            await database.ask(DeleteTable("Thread"))
            assert await stored(store) == {}
            await database.balances.keep()
            assert await stored(store) == {}
        assert await stored(store) == {}


async def test_a_table_that_becomes_on_demand_leaves_no_rows():
    async with watched() as store, running(store) as database:
        await write(database.table("Thread"))
        await database.balances.keep()
        edit = TableEdit(billing_mode="PAY_PER_REQUEST")
        await database.ask(UpdateTable("Thread", edit))
        await database.balances.keep()
        assert await stored(store) == {}


async def test_a_split_writes_the_balance_rows_of_the_children():
    async with watched() as store, running(store) as database:
        table = database.table("Thread")
        await write(table, 500)
        await database.balances.keep()
        store.commits.clear()
        children = await halve(database, table, 1)
        keys = [key_layout.balance(table.definition.table_id, 0, number) for number in children]
        with_split = store.commits[0]
        assert with_split.keys() == set(keys)
        units = [balance.write_units for balance in map(_decoded, with_split.values())]
        assert units == [(FULL - 500) / 2] * 2
        assert units_left(table) == dict.fromkeys(children, (FULL - 500) / 2)
        await database.balances.keep()
        assert (await stored(store)).popitem()[1].keys() == set(children)


def _decoded(row: bytes | None) -> Balance:
    assert row is not None
    return burst_balances.decode(row)


async def test_an_increase_of_units_writes_rows_for_full_partitions():
    async with watched() as store, running(store) as database:
        table = database.table("Thread")
        edit = TableEdit(throughput=Throughput(RATE, 100))
        await database.ask(UpdateTable("Thread", edit))
        assert [_decoded(row) for row in store.commits[0].values()] == [Balance(FULL, FULL)]
        assert units_left(table) == {1: FULL}


async def test_an_increase_of_units_after_a_transition_writes_rows_for_full_partitions():
    definition = provisioned(index_units=RATE)
    settings = {"table_transition_seconds": 0.01}
    async with watched() as store, running(store, None, definition, **settings) as database:
        table = await settled(database)
        throughput = Throughput(RATE, 100)
        update = GlobalIndexUpdate(BY_POSTS, throughput)
        edit = TableEdit(throughput=throughput, index_updates=(update,))
        await database.ask(UpdateTable("Thread", edit))
        assert store.commits == []
        await settled(database)
        full = Balance(FULL, FULL)
        assert {key: _decoded(row) for key, row in store.commits[0].items()} in (
            {key_layout.balance(1, 0, 1): full},
            {key_layout.balance(1, 1, 2): full},
            {key_layout.balance(1, 0, 1): full, key_layout.balance(1, 1, 2): full},
        )
        assert units_left(table) == {1: FULL}


async def settled(database: Database) -> Table:
    """Wait until the table and its indexes are ACTIVE; return the table."""
    table = database.table_in_any_state("Thread")
    definition = table.definition
    while {definition.status, *(each.status for each in definition.global_indexes)} != {"ACTIVE"}:
        await asyncio.sleep(0.001)
        definition = table.definition
    return table


async def test_a_decrease_of_units_writes_no_rows():
    async with watched() as store, running(store) as database:
        edit = TableEdit(throughput=Throughput(RATE, 1))
        await database.ask(UpdateTable("Thread", edit))
        assert store.commits == []


async def test_tables_keep_their_balances_after_a_crash_of_the_databases_actor():
    async with watched() as store, running(store) as database:
        await write(database.table("Thread"), 100)
        await database.balances.keep()
        with pytest.raises(InternalServerError):
            await database.actor.mailbox.put_nowait(Poison())
        await database.describe("Thread")
        assert units_left(database.table("Thread")) == {1: FULL - 100}


async def test_the_writer_continues_after_a_crash():
    async with watched() as store, running(store) as database:
        store.failure = RuntimeError("a bug")
        await write(database.table("Thread"))
        with pytest.raises(InternalServerError):
            await database.balances.keep()
        store.failure = None
        await database.balances.keep()
        assert (await stored(store)).popitem()[1][1].write_units == FULL - 1


@pytest.mark.parametrize("mode", ["observe", "off"])
async def test_balances_are_stored_if_limits_are_observed_but_not_if_they_are_off(mode):
    async with watched() as store, running(store, throttling=mode) as database:
        await write(database.table("Thread"))
        await database.balances.keep()
        assert bool(await stored(store)) == (mode == "observe")
