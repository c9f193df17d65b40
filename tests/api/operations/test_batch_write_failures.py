"""BatchWriteItem if the writes to one table fail: the other writes are awaited."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from dynactor.storage import key_layout
from dynactor.storage.store import Group, Store, StoreError, Unknown
from tests.support.databases.databases import HeldStore, running_database
from tests.support.databases.transacting import until
from tests.support.servers.in_process import InProcessClient
from tests.support.stores.store import memory_store
from tests.support.tables.tables import definition

TABLES = ("first", "second")
PUT = {"PutRequest": {"Item": {"pk": {"S": "a"}}}}


class PartlyBrokenStore(HeldStore):
    """A store that refuses the commits of some partitions, by the keys of their heads.

    The outcome of commits of the ``doubtful`` ones is unknown.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.broken: set[bytes] = set()
        self.doubtful: set[bytes] = set()

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        if any(group.head_key in self.broken for group in groups):
            raise StoreError("a fake fault")
        if any(group.head_key in self.doubtful for group in groups):
            unknown: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            unknown.set_exception(Unknown("a fake fault"))
            return unknown
        return await super().commit(groups)


class Served(NamedTuple):
    """A database with two tables, and its store."""

    ask: InProcessClient
    store: PartlyBrokenStore

    def break_tables(self, *names: str) -> None:
        """Make the store refuse all writes to these tables."""
        for name in names:
            self.store.broken.update(self.heads(name))

    def heads(self, name: str) -> list[bytes]:
        """The keys of the heads of a table's partitions."""
        numbers = self.ask.database.table(name).record.partition_numbers
        return list(map(key_layout.partition_head, numbers))

    def batch(self) -> asyncio.Task[tuple[int, dict[str, Any]]]:
        """Put an item into each table."""
        items = {"RequestItems": {name: [PUT] for name in TABLES}}
        return asyncio.get_running_loop().create_task(self.ask("BatchWriteItem", items))

    async def found(self, name: str) -> dict[str, Any]:
        """The answer of GetItem for the item of ``batch``."""
        _, body = await self.ask("GetItem", {"TableName": name, "Key": {"pk": {"S": "a"}}})
        return body


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    """A database with two tables; fails the test if the error of a task is never retrieved."""
    unseen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
    async with memory_store() as own:
        store = PartlyBrokenStore(own)
        async with running_database(store) as database:
            ask = InProcessClient(database)
            for name in TABLES:
                status, _ = await ask("CreateTable", definition("pk:S", name=name))
                assert status == 200
            yield Served(ask, store)
    gc.collect()
    assert unseen == []


async def half_failed_batch(
    given: Served, failing: str
) -> asyncio.Task[tuple[int, dict[str, Any]]]:
    """A running batch: the writes to one table have failed, the others are held."""
    given.break_tables(failing)
    given.store.hold()
    batch = given.batch()
    await until(lambda: given.store.held == 1)
    # Let the batch get the error, too.
    for _ in range(50):
        await asyncio.sleep(0)
    return batch


async def test_refused_writes_of_one_table_are_unprocessed_if_others_were_made() -> None:
    async with served() as given:
        batch = await half_failed_batch(given, "first")
        assert not batch.done()
        await given.store.release()
        status, body = await batch
        assert (status, body["UnprocessedItems"]) == (200, {"first": [PUT]})
        assert await given.found("second") == {"Item": {"pk": {"S": "a"}}}


@pytest.mark.parametrize(("refused", "doubtful"), [TABLES, TABLES[::-1]])
async def test_a_write_of_unknown_outcome_fails_the_batch(refused: str, doubtful: str) -> None:
    async with served() as given:
        given.break_tables(refused)
        given.store.doubtful.update(given.heads(doubtful))
        status, body = await given.batch()
        assert (status, body["message"]) == (
            500,
            "Whether this was written is unknown: a fake fault",
        )


async def test_the_errors_of_both_tables_are_retrieved() -> None:
    async with served() as given:
        given.break_tables(*TABLES)
        status, body = await given.batch()
        assert (status, body["message"]) == (500, "Nothing was written: a fake fault")


async def test_a_canceled_batch_leaves_no_unretrieved_error() -> None:
    async with served() as given:
        batch = await half_failed_batch(given, "second")
        batch.cancel()
        await asyncio.wait([batch])
        assert batch.cancelled()
        # Delete the task, because its error refers to the replies.
        del batch
        await given.store.release()
