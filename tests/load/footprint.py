"""Memory, disk and table churn of this server: ``python -m tests.load.footprint --help``."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from tests.load.items import create_table, key, table_item
from tests.load.servers import Server, cpu_seconds, directory_on, dynactor, resident_megabytes
from tests.support.clients.wire import Connection

_LOADERS = 8
_BATCH_ITEMS = 25
_DISK_DEADLINE_SECONDS = 120


@asynccontextmanager
async def connections(server: Server, count: int) -> AsyncIterator[list[Connection]]:
    """Connections, closed at the end."""
    async with AsyncExitStack() as stack:
        opened = []
        for _ in range(count):
            opened.append(await Connection.open(server.host, server.port))
            stack.push_async_callback(opened[-1].close)
        yield opened


async def call(connection: Connection, operation: str, body: dict[str, Any]) -> dict[str, Any]:
    """A request that must succeed."""
    answer = await connection.call(operation, body)
    if answer.status != 200:
        raise RuntimeError(f"{operation}: {answer}")
    return answer.body


async def load(
    server: Server, table: str, count: int, *, connection_count: int = _LOADERS
) -> float:
    """Fill a table with items of 300 B by BatchWriteItem; returns the seconds it took."""
    starts = iter(range(0, count, _BATCH_ITEMS))
    started_at = perf_counter()
    async with connections(server, connection_count) as opened, asyncio.TaskGroup() as tasks:
        for connection in opened:
            tasks.create_task(_load(connection, table, starts))
    return perf_counter() - started_at


async def _load(connection: Connection, table: str, starts: Iterator[int]) -> None:
    for start in starts:
        items = [table_item(number) for number in range(start, start + _BATCH_ITEMS)]
        left = {table: [{"PutRequest": {"Item": item}} for item in items]}
        while left:
            answer = await call(connection, "BatchWriteItem", {"RequestItems": left})
            left = answer["UnprocessedItems"]


async def many_items(directory: Path, count: int) -> None:
    """Resident memory with many items, then the disk space after their table is deleted."""
    with dynactor(directory) as server:
        async with connections(server, 1) as (connection,):
            await call(connection, "CreateTable", create_table("large"))
        cpu_before = cpu_seconds(server.pid)
        seconds = await load(server, "large", count)
        cpu = (cpu_seconds(server.pid) - cpu_before) / count * 1e6
        print(
            f"{count:,} items loaded in {seconds:.0f} s: {count / seconds:,.0f} items/s, "
            f"{cpu:.0f} µs CPU each"
        )
        _print_resident(server, "after the load")
        async with connections(server, 1) as (connection,):
            for number in range(0, count, max(1, count // 10_000)):
                get = {"TableName": "large", "Key": key(number)}
                found = await call(connection, "GetItem", get)
                if found["Item"] != table_item(number):
                    raise RuntimeError(f"item {number} is {found}")
            _print_resident(server, "after 10,000 gets")
            pages, read = await _scan(connection, "large")
            if read != count:
                raise RuntimeError(f"the scan shows {read:,} of {count:,} items")
            _print_resident(server, f"after a scan of {pages} pages")
    with _start_timed(directory) as server:
        _print_resident(server, "after the restart")
        async with connections(server, 1) as (connection,):
            await _delete(connection, "large", directory)


async def _delete(connection: Connection, table: str, directory: Path) -> None:
    """Delete the table, recreate it, wait until its disk space is reclaimed."""
    before = disk_megabytes(directory)
    started_at = perf_counter()
    await call(connection, "DeleteTable", {"TableName": table})
    print(f"DeleteTable: {(perf_counter() - started_at) * 1e3:,.0f} ms")
    await call(connection, "CreateTable", create_table(table))
    _, read = await _scan(connection, table)
    if read:
        raise RuntimeError(f"the table made again shows {read} items of the old one")
    print("the table made again shows nothing of the old one")
    after = before
    while after > before / 20 and perf_counter() - started_at < _DISK_DEADLINE_SECONDS:
        await asyncio.sleep(0.5)
        after = disk_megabytes(directory)
    seconds = perf_counter() - started_at
    print(f"disk: {before:,.0f} MB before, {after:,.0f} MB {seconds:.1f} s after DeleteTable")


def _print_resident(server: Server, when: str) -> None:
    print(f"resident {when}: {resident_megabytes(server.pid):,.0f} MB")


async def _scan(connection: Connection, table: str) -> tuple[int, int]:
    pages, items = 0, 0
    body: dict[str, Any] = {"TableName": table, "Select": "COUNT"}
    while True:
        answer = await call(connection, "Scan", body)
        pages += 1
        items += answer["Count"]
        if "LastEvaluatedKey" not in answer:
            return pages, items
        body["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


async def churn(directory: Path, count: int) -> None:
    """Repeat CreateTable, PutItem, GetItem and DeleteTable, and print their duration."""
    times = []
    with dynactor(directory) as server:
        async with connections(server, 1) as (connection,):
            for number in range(count):
                name = f"churn{number % 10}"
                started_at = perf_counter()
                await call(connection, "CreateTable", create_table(name))
                put = {"TableName": name, "Item": table_item(number)}
                await call(connection, "PutItem", put)
                get = {"TableName": name, "Key": key(number)}
                found = await call(connection, "GetItem", get)
                await call(connection, "DeleteTable", {"TableName": name})
                times.append(perf_counter() - started_at)
                if found["Item"] != put["Item"]:
                    raise RuntimeError(f"not what was put: {found}")
        times.sort()
        print(
            f"churn of {count} tables: p50 {median(times) * 1e3:.1f} ms, "
            f"p99 {times[int(count * 0.99)] * 1e3:.1f} ms; "
            f"resident {resident_megabytes(server.pid):,.0f} MB"
        )


async def idle_tables(directory: Path, count: int) -> None:
    """Resident memory of idle tables, and the start time of a server with them."""
    with dynactor(directory) as server:
        async with connections(server, 1) as (connection,):
            started_at = perf_counter()
            for number in range(count):
                await call(connection, "CreateTable", create_table(f"idle{number:05}"))
            seconds = perf_counter() - started_at
            print(f"{count:,} tables made in {seconds:.1f} s")
            _print_resident(server, "with them")
    with _start_timed(directory) as server:
        async with connections(server, 1) as (connection,):
            answer = await call(connection, "DescribeTable", {"TableName": f"idle{count - 1:05}"})
            assert answer["Table"]["TableStatus"] == "ACTIVE"
        _print_resident(server, "after the restart")


@contextmanager
def _start_timed(directory: Path) -> Iterator[Server]:
    started_at = perf_counter()
    with dynactor(directory) as server:
        print(f"start: {perf_counter() - started_at:.2f} s")
        yield server


def disk_megabytes(directory: Path) -> float:
    """The disk space of all files in a directory."""
    size_bytes = 0
    for path in directory.rglob("*"):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue  # a compaction has just deleted it
        size_bytes += status.st_blocks * 512
    return size_bytes / 1e6


def main() -> None:
    """Parse the options and run the measurement."""
    parser = argparse.ArgumentParser(prog="python -m tests.load.footprint", description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--churn", type=int, default=500, help="how many tables in a row")
    parser.add_argument("--tables", type=int, default=2_500, help="idle ones")
    parser.add_argument("--directory", type=Path, help="on the disk to measure; else temporary")
    options = parser.parse_args()
    parts: list[tuple[Callable[[Path, int], Coroutine[Any, Any, None]], int]] = [
        (churn, options.churn),
        (idle_tables, options.tables),
        (many_items, options.items),
    ]
    for part, count in parts:
        if count:
            with directory_on(options.directory) as directory:
                asyncio.run(part(directory / "data", count))


if __name__ == "__main__":
    main()
