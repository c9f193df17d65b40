"""A node reads the store before it answers or refuses a request by what it has in memory."""

from __future__ import annotations

import asyncio
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from dynactor.api.http.protocol import JSON_1_0, Answer, Protocol, Request
from dynactor.api.nodes.request_rates import RequestRates
from dynactor.api.nodes.request_tables import NO_TABLES
from dynactor.api.nodes.runner import Runner
from dynactor.api.registry import OPERATIONS
from dynactor.api.requests.call import DYNAMODB
from dynactor.model.errors import ValidationException
from dynactor.storage.store import Closed
from tests.support.clients.clients import AUTHORIZATION
from tests.support.databases.databases import running_database
from tests.support.databases.fake_operations import ECHO, NO_DATABASE, REFUSE, EchoInput
from tests.support.databases.fake_operations import operation as fake_operation
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

# Operations that a node answers from memory.
FROM_MEMORY = ("DescribeStream", "DescribeTable", "GetShardIterator", "ListTables")


def request_of(operation: str) -> Request:
    target = OPERATIONS[operation].target if operation in OPERATIONS else f"{DYNAMODB}.{operation}"
    body = b'{"Text":"no such table"}'
    return Request(target, JSON_1_0, AUTHORIZATION, *("", "", "", ""), body)


async def answer(operation: str, *, is_taken_over: bool) -> tuple[Answer, int]:
    """The answer of a home, and the number of reads that it needed."""
    reads = 0

    async def confirm_owner() -> None:
        nonlocal reads
        reads += 1
        if is_taken_over:
            raise Closed("another server has taken over the database")

    operations = [
        ECHO,
        REFUSE,
        *(
            structs.replace(OPERATIONS[name], input=EchoInput, handle=ECHO.handle)
            for name in FROM_MEMORY
        ),
    ]
    runner = Runner(Protocol(NO_DATABASE, operations), RequestRates(perf_counter))
    tables: Any = SimpleNamespace(confirm_owner=confirm_owner)
    runner.tables = tables
    answer = runner.answer(request_of(operation), NO_TABLES)
    return (answer if isinstance(answer, Answer) else await answer), reads


async def test_a_refusal_of_the_present_home_is_answered() -> None:
    refusal, reads = await answer("Refuse", is_taken_over=False)
    assert (refusal.status, b"no such table" in refusal.body, reads) == (400, True, 1)


async def test_a_refusal_of_a_former_home_is_an_error_that_clients_retry() -> None:
    refusal, _ = await answer("Refuse", is_taken_over=True)
    assert (refusal.status, b"Nothing was written" in refusal.body) == (500, True)


async def test_a_home_that_ends_before_its_refusal_still_reads_the_store() -> None:
    gate = asyncio.Event()

    async def refuse_later(_: object) -> bytes:
        await gate.wait()
        raise ValidationException("no such table")

    async def confirm_owner() -> None:
        raise Closed("the store is closed")

    refuse = fake_operation("Refuse", refuse_later)
    runner = Runner(Protocol(NO_DATABASE, [refuse]), RequestRates(perf_counter))
    tables: Any = SimpleNamespace(confirm_owner=confirm_owner)
    runner.tables = tables
    waiting = runner.answer(request_of("Refuse"), NO_TABLES)
    assert not isinstance(waiting, Answer)
    runner.tables = None
    gate.set()
    assert (await waiting).status == 500


@pytest.mark.parametrize("operation", FROM_MEMORY)
async def test_a_former_home_shows_no_tables_and_shards_from_memory(operation: str) -> None:
    shown, reads = await answer(operation, is_taken_over=False)
    assert (shown.status, reads) == (200, 1)
    refusal, _ = await answer(operation, is_taken_over=True)
    assert refusal.status == 500


async def test_another_success_needs_no_further_read() -> None:
    echo, reads = await answer("Echo", is_taken_over=True)
    assert (echo.status, reads) == (200, 0)


async def test_a_database_that_was_taken_over_does_not_confirm_that_it_is_the_owner() -> None:
    async with memory_store() as inner:
        store = FaultyStore(inner)
        async with running_database(store) as database:
            await database.confirm_owner()
            store.refuse_reads(Closed("another server has taken over the database"))
            with pytest.raises(Closed):
                await database.confirm_owner()
            store.allow_reads()
