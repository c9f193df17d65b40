"""A node reads the store before it refuses a request by what it has in memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dynactor.api.http.protocol import JSON_1_0, Answer, Protocol, Request
from dynactor.api.nodes.request_tables import NO_TABLES
from dynactor.api.nodes.runner import Runner
from dynactor.storage.store import Closed
from tests.support.clients.clients import AUTHORIZATION
from tests.support.databases.databases import running_database
from tests.support.databases.fake_operations import ECHO, NO_DATABASE, REFUSE
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store


async def answer(operation: str, *, is_taken_over: bool) -> tuple[Answer, int]:
    """The answer of a home, and the number of reads that it needed."""
    reads = 0

    async def confirm_owner() -> None:
        nonlocal reads
        reads += 1
        if is_taken_over:
            raise Closed("another server has taken over the database")

    runner = Runner(Protocol(NO_DATABASE, [ECHO, REFUSE]))
    tables: Any = SimpleNamespace(confirm_owner=confirm_owner)
    runner.tables = tables
    request = Request(
        f"DynamoDB_20120810.{operation}",
        JSON_1_0,
        AUTHORIZATION,
        *("", "", "", ""),
        b'{"Text":"no such table"}',
    )
    answer = runner.answer(request, NO_TABLES)
    return (answer if isinstance(answer, Answer) else await answer), reads


async def test_a_refusal_of_the_present_home_is_answered() -> None:
    refusal, reads = await answer("Refuse", is_taken_over=False)
    assert (refusal.status, b"no such table" in refusal.body, reads) == (400, True, 1)


async def test_a_refusal_of_a_former_home_is_an_error_that_clients_retry() -> None:
    refusal, _ = await answer("Refuse", is_taken_over=True)
    assert (refusal.status, b"Nothing was written" in refusal.body) == (500, True)


async def test_a_success_needs_no_further_read() -> None:
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
