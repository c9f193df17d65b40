"""Metrics of queues: each rises when requests wait, and falls back to 0."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from dynactor.actors.database.database import Database
from dynactor.actors.table.messages import CreateTable
from dynactor.api.admin.metrics.exposition import exposition
from dynactor.api.admin.metrics.server import server_figures
from dynactor.api.execution.operation import Operation
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.request_figures import RequestFigures
from dynactor.api.requests.call import Call
from dynactor.model.latency_histogram import LatencyHistogram
from dynactor.storage.rocks.reads import DiskReads
from dynactor.storage.rocks.store import open_rocks
from dynactor.storage.store import Group, Store
from tests.support.clients.raw_http import head, raw_connection, request
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.fake_operations import ECHO, NO_DATABASE, EchoInput, echo_server
from tests.support.databases.fake_operations import operation as fake_operation
from tests.support.databases.transacting import until
from tests.support.stores.store import memory_store

LARGE_BODY = b'{"Text":"%s"}' % (b"x" * 100_000)
MEMORY_BYTES = 150_000
PIPELINED = 3


async def scraped(
    database: Database, requests: RequestFigures | None = None, store: Store | None = None
) -> dict[str, float]:
    """The samples by name without the prefix ``dynactor_``, and by the kind of actor."""
    figures = server_figures(
        requests or RequestFigures(), (store or database._store).figures(), LatencyHistogram()
    )
    body, _ = await exposition(database, figures, "")
    return {
        " ".join([sample.name.removeprefix("dynactor_"), *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


async def test_messages_in_mailboxes_are_counted_by_kind_of_actor():
    async with running_database(partitions_per_table=1) as database:
        for name in ("One", "Two"):
            await database.ask(CreateTable(table_definition(name)))
        for name, count in (("One", 2), ("Two", 3)):
            for number in range(count):
                database.table(name).submit(put(thread("EC2", str(number))))
        found = await scraped(database)
        assert found["mailbox_messages table_partition"] == 5
        assert found["longest_mailbox_messages table_partition"] == 3
        assert found["mailbox_messages index_partition"] == 0
        await database.table("Two").write(put(thread("EC2", "last")))
        await database.table("One").write(put(thread("EC2", "last")))
        assert (await scraped(database))["mailbox_messages table_partition"] == 0


async def test_waiting_changes_of_tables_are_counted_in_the_databases_mailbox():
    async with running_database() as database:
        assert (await scraped(database))["mailbox_messages database"] == 0
        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(database.ask(CreateTable(table_definition(f"Table{number}"))))
            await asyncio.sleep(0)
            found = await scraped(database)
            assert found["mailbox_messages database"] > 0
            assert found["longest_mailbox_messages database"] > 0


@asynccontextmanager
async def scraped_server(
    *operations: Operation, **settings: int
) -> AsyncIterator[tuple[str, RequestFigures]]:
    """A server with these operations; yields its endpoint and its figures."""
    protocol = Protocol(NO_DATABASE, operations)
    async with echo_server(protocol=protocol, **settings) as endpoint:
        yield endpoint, protocol.figures


async def test_large_requests_that_wait_for_memory_are_counted():
    async with (
        running_database() as database,
        scraped_server(ECHO, large_requests_bytes=MEMORY_BYTES) as (endpoint, figures),
        raw_connection(endpoint) as first,
        raw_connection(endpoint) as second,
    ):
        assert (await scraped(database, figures))["requests_waiting_for_memory"] == 0
        # The memory suffices for one of the two requests.
        for connection in (first, second):
            connection.send(head("Echo", len(LARGE_BODY)))
        await until(lambda: figures.queues().requests_waiting_for_memory == 1)
        assert (await scraped(database, figures))["requests_waiting_for_memory"] == 1
        for connection in (first, second):
            connection.send(LARGE_BODY)
        for connection in (first, second):
            assert (await connection.answer()).status == 200
        assert (await scraped(database, figures))["requests_waiting_for_memory"] == 0


class Watch:
    """An operation that records the number of waiting pipelined requests."""

    def __init__(self) -> None:
        self.figures = RequestFigures()
        self.seen: list[int] = []

    def handle(self, _call: Call[EchoInput]) -> bytes:
        self.seen.append(self.figures.queues().pipelined_requests_waiting)
        return b"{}"


async def test_pipelined_requests_that_wait_for_their_turn_are_counted():
    watch = Watch()
    async with (
        running_database() as database,
        scraped_server(fake_operation("Watch", watch.handle)) as (endpoint, watch.figures),
        raw_connection(endpoint) as first,
        raw_connection(endpoint) as second,
    ):
        for connection in (first, second):
            connection.send(request("Watch") * PIPELINED)
        for connection in (first, second):
            for _ in range(PIPELINED):
                await connection.answer()
        # At most the request of the other connection waited.
        assert max(watch.seen) == 1
        assert (await scraped(database, watch.figures))["pipelined_requests_waiting"] == 0


async def test_answers_that_a_client_does_not_read_are_counted():
    async def large(_call: Call[EchoInput]) -> bytes:
        return b"x" * 20_000_000

    async with (
        running_database() as database,
        scraped_server(fake_operation("Large", large)) as (endpoint, figures),
        raw_connection(endpoint) as client,
    ):
        assert (await scraped(database, figures))["connections_behind"] == 0
        client.writer.transport.pause_reading()
        client.send(request("Large"))
        await until(lambda: figures.queues().connections_behind == 1)
        found = await scraped(database, figures)
        assert found["connections_behind"] == 1
        assert 0 < found["unsent_answer_bytes"] < 20_100_000
        client.writer.transport.resume_reading()
        await client.answer()
        await until(lambda: figures.queues().connections_behind == 0)
        assert (await scraped(database, figures))["unsent_answer_bytes"] == 0


async def test_commits_that_are_not_durable_yet_are_counted():
    async with memory_store() as store:
        durable = [
            await store.commit([Group(b"head" + name, None, b"1", [(name, b"row")])])
            for name in (b"one", b"two")
        ]
        assert store.figures().waiting_commits == 2
        async with running_database() as database:
            assert (await scraped(database, store=store))["commits_waiting_for_sync"] == 2
            await asyncio.gather(*durable)
            assert (await scraped(database, store=store))["commits_waiting_for_sync"] == 0


async def test_reads_that_wait_for_a_thread_are_counted(tmp_path: Path):
    reads = DiskReads(lambda: 0)
    store = await open_rocks(tmp_path, reads=reads)
    try:
        await (await store.commit([Group(b"head", None, b"1", [(b"key", b"row")])]))
        # No reading thread exists yet, so the load waits.
        rows = store.latest._rows()  # type: ignore[attr-defined]
        load = asyncio.create_task(reads.load(rows, [b"key"]))
        await asyncio.sleep(0)
        async with running_database() as database:
            assert (await scraped(database, store=store))["reads_waiting_for_thread"] == 1
            reads.make_threads()
            # The next read passes all waiting reads to threads.
            assert await reads.load(rows, [b"key"]) == [b"row"]
            assert await load == [b"row"]
            assert (await scraped(database, store=store))["reads_waiting_for_thread"] == 0
    finally:
        await store.close()
