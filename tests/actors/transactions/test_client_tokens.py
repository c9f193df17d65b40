"""Client tokens: when they are in progress, how long they are valid, and their deletion."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from dynactor.actors.database.database import Database
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.actors.transactions.client_tokens import ClientTokens
from dynactor.api.execution.transaction_requests import CheckedActions, execute
from dynactor.api.requests.call import Call
from dynactor.model.errors import (
    IdempotentParameterMismatchException,
    InternalServerError,
    TransactionInProgressException,
)
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.update import parse_update
from dynactor.model.writes.write import Update
from dynactor.storage import key_layout
from dynactor.storage.rocks.store import open_rocks
from dynactor.storage.store import Group, Store
from tests.support.databases.databases import (
    HeldStore,
    SetClock,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.stored_items import read_item
from tests.support.databases.transacting import actions, stepped, until
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.stores.stepped_store import Load, soon, stepped_database, turns
from tests.support.stores.store import memory_store

TEN_MINUTES = 10 * 60
CONTENT = b"what is asked for"
TOKEN = "token"


def adding(*forums: str) -> list[Update]:
    placeholders = Placeholders(None, {":one": {"N": "1"}})
    return [
        Update(thread(forum, "a"), parse_update("ADD posts :one", placeholders)) for forum in forums
    ]


async def add(
    database: Database, *forums: str, token: str = TOKEN, content: bytes = CONTENT
) -> None:
    """Increment these items in one transaction with a token."""
    table = database.table("Thread")
    found = actions(*((table, write) for write in adding(*forums)))
    call: Call[None] = Call(database, None, "localhost")
    await execute(call, CheckedActions(found, [], None), token, content)


async def outcome(adding: Coroutine[Any, Any, object]) -> BaseException | None:
    """The outcome of the transaction after some turns of the event loop; None if it still runs."""
    async with asyncio.timeout(HANG_SECONDS):
        (error,) = await asyncio.gather(adding, return_exceptions=True)
    return error


async def posts(table: Table, *forums: str) -> list[str]:
    found = [await read_item(table, thread(forum, "a")) for forum in forums]
    return [each.stored.item["posts"]["N"] if each.stored else "" for each in found]


def forums_of_two_partitions(table: Table) -> tuple[str, str]:
    (first, *_), *others = _by_partition(table)
    return first, others[0][0]


def _by_partition(table: Table) -> list[list[str]]:
    found: dict[int, list[str]] = {}
    for number in range(40):
        ((_, action),) = actions((table, adding(f"forum {number}")[0]))
        found.setdefault(table.number_at(action.position), []).append(f"forum {number}")
    return list(found.values())


@pytest.mark.parametrize("in_one", [True, False])
async def test_a_token_is_valid_for_ten_minutes_of_domain_time(*, in_one: bool) -> None:
    clock = SetClock()
    async with running_database(clock=clock) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        forums = forums_of_two_partitions(table)[: 1 if in_one else 2]
        await add(database, *forums)
        clock.step(TEN_MINUTES - 0.001)
        await add(database, *forums)
        assert await posts(table, *forums) == ["1"] * len(forums)
        with pytest.raises(IdempotentParameterMismatchException):
            await add(database, *forums, content=b"another request")
        clock.step(0.001)
        await add(database, *forums, content=b"another request")
        assert await posts(table, *forums) == ["2"] * len(forums)
        await add(database, *forums, content=b"another request")
        assert await posts(table, *forums) == ["2"] * len(forums)


@pytest.mark.parametrize("in_one", [True, False])
async def test_a_token_is_valid_after_a_restart(tmp_path: Path, *, in_one: bool) -> None:
    clock = SetClock()
    for _ in range(3):
        store = await open_rocks(tmp_path / "data")
        async with running_database(store, SetClock(clock.now_epoch_seconds())) as database:
            if "Thread" not in database.table_names():
                await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            forums = forums_of_two_partitions(table)[: 1 if in_one else 2]
            await add(database, *forums)
            assert await posts(table, *forums) == ["1"] * len(forums)
        await store.close()


@pytest.mark.embedded_store("PostgreSQL accepts a commit when it is durable")
@pytest.mark.parametrize("in_one", [True, False])
async def test_a_token_is_in_progress_until_its_transaction_is_durable(*, in_one: bool) -> None:
    async with memory_store() as real:
        store = HeldStore(real)
        async with running_database(store) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            forums = forums_of_two_partitions(table)[: 1 if in_one else 2]
            # The first write of a partition makes an additional commit, so write before the test.
            await add(database, *forums, token="before")
            store.hold()
            running = asyncio.create_task(add(database, *forums))
            await until(lambda: store.held > 0)
            with pytest.raises(TransactionInProgressException, match="already in progress"):
                await add(database, *forums)
            with pytest.raises(IdempotentParameterMismatchException):
                await add(database, *forums, content=b"another request")
            # The client disconnects, but the transaction continues.
            running.cancel()
            await asyncio.wait([running])
            with pytest.raises(TransactionInProgressException):
                await add(database, *forums)
            await store.release()
            await until(lambda: not database.transactions.tokens._running)
            await add(database, *forums)
            assert await posts(table, *forums) == ["2"] * len(forums)


@pytest.mark.embedded_store("reads of PostgreSQL end at different times, so there are two rounds")
async def test_a_token_is_in_progress_while_a_round_commits_its_canceled_request() -> None:
    async with memory_store() as real:
        store = HeldStore(real)
        async with running_database(store) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            forums = forums_of_two_partitions(table)
            leads = [f"{forum} too" for forum in forums_of_two_partitions(table)]
            joined, go_on = asyncio.Event(), asyncio.Event()

            async def pause(step: int) -> None:
                # Step 2 is reached when both prepared transactions have joined the round.
                if step == 2:
                    joined.set()
                    await go_on.wait()

            stepped(database, pause)
            running = [
                asyncio.create_task(add(database, *leads, token="another")),
                asyncio.create_task(add(database, *forums)),
            ]
            await joined.wait()
            running[1].cancel()
            await asyncio.wait(running[1:])
            again = [await outcome(add(database, *forums))]
            store.hold()
            go_on.set()
            await until(lambda: store.held > 0)
            again.append(await outcome(add(database, *forums)))
            assert [type(each) for each in again] == [TransactionInProgressException] * 2
            await store.release()
            await running[0]
            await add(database, *forums)
            assert await posts(table, *forums) == ["1", "1"]
            assert not database.transactions.tokens._running


async def test_a_token_is_in_progress_while_the_store_is_read_for_it() -> None:
    async with stepped_database() as (store, database):
        tokens = database.transactions.tokens
        asked = store.gate_behind(lambda call: isinstance(call, Load) and is_token(call.keys[0]))
        first = asyncio.create_task(tokens.claim(TOKEN, CONTENT))
        await asked.reached()
        second = asyncio.create_task(outcome(tokens.claim(TOKEN, CONTENT)))
        await turns()
        assert second.done()
        assert isinstance(second.result(), TransactionInProgressException)
        asked.open()
        assert not (await first).is_repeated


@pytest.mark.embedded_store("PostgreSQL accepts a commit when it is durable")
async def test_a_token_of_a_transaction_that_never_became_durable_counts_as_new() -> None:
    async with stepped_database() as (store, database):
        await database.ask(CreateTable(table_definition()))
        store.hold_syncs()
        adding = asyncio.create_task(add(database, "EC2"))
        await soon(lambda: store.held_count > 0)
        store.fail_syncs()
        with pytest.raises(InternalServerError, match="unknown"):
            await adding
        assert not (await database.transactions.tokens.claim(TOKEN, CONTENT)).is_repeated


def is_token(key: bytes) -> bool:
    start, _ = key_layout.client_token_range(None, 0)
    return key.startswith(start[:1])


@pytest.mark.embedded_store("PostgreSQL deletes expired tokens a moment later")
async def test_a_token_of_a_node_with_a_faster_clock_is_known_to_the_next_node() -> None:
    border = 3_000_000 * TEN_MINUTES
    async with memory_store() as store:
        before = ClientTokens(store, SetClock(border + 0.1), "000000000000")
        claim = await before.claim(TOKEN, CONTENT)
        await (await store.commit([Group(b"head", None, b"1", puts=[claim.row])]))
        after = ClientTokens(store, SetClock(border - 0.1), "000000000000")
        assert (await after.claim(TOKEN, CONTENT)).is_repeated


async def test_expired_tokens_are_deleted() -> None:
    clock = SetClock()
    async with memory_store() as store, running_database(store, clock) as database:
        await database.ask(CreateTable(table_definition()))
        tokens = database.transactions.tokens
        for number in range(5):
            await add(database, "EC2", token=f"token {number}")
            await tokens.trim()
            clock.step(TEN_MINUTES)
        # The rows of the last 10 minutes, and of the 10 minutes before, are kept.
        await wait_stored(store, ["000000000000/token 3", "000000000000/token 4"])
        await tokens.trim()
        await wait_stored(store, ["000000000000/token 4"])
        clock.step(10 * TEN_MINUTES)
        await tokens.trim()
        await tokens.trim()
        await wait_stored(store, [])
        again = ClientTokens(store, clock, "000000000000")
        await add(database, "EC2", token="token 0")
        assert (await again.claim("token 0", CONTENT)).is_repeated


@pytest.mark.embedded_store("PostgreSQL deletes expired tokens a moment later")
async def test_expired_tokens_are_deleted_periodically() -> None:
    clock = SetClock()
    async with memory_store() as store, running_database(store, clock) as database:
        await database.ask(CreateTable(table_definition()))
        await add(database, "EC2")
        assert len(await stored(store)) == 1
        for _ in range(4):
            clock.step(TEN_MINUTES)
            for _ in range(50):
                await asyncio.sleep(0)
        async with asyncio.timeout(60):
            while await stored(store):
                clock.step(TEN_MINUTES)
                await asyncio.sleep(0.01)


async def wait_stored(store: Store, tokens: list[str]) -> None:
    """Wait until these tokens are stored. PostgreSQL deletes expired ones after the answer."""
    async with asyncio.timeout(60):
        while await stored(store) != tokens:
            await asyncio.sleep(0.001)


async def stored(store: Store) -> list[str]:
    start, _ = key_layout.client_token_range(None, 0)
    rows = await store.durable().page(start, b"\x0b", max_rows=100, max_bytes=1 << 20)
    return [row.key[len(start) + 8 :].decode() for row in rows]
