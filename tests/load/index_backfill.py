"""The speed of an added index's backfill: ``python -m tests.load.index_backfill --help``."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from time import perf_counter

from tests.load.footprint import call, connections, load
from tests.load.generator import percentile
from tests.load.index_requests import OpenLoop, Plan
from tests.load.index_tables import definitions, describe, global_index, make_table, wait_quiet
from tests.load.servers import Server, cpu_seconds, directory_on, dynactor
from tests.support.clients.wire import Connection

TABLE = "filled"
_POLL_SECONDS = 0.05


async def run(server: Server, options: argparse.Namespace) -> None:
    """Load the table, then add indexes to it."""
    async with connections(server, 1) as (connection,):
        await make_table(connection, TABLE, 0)
        seconds = await load(server, TABLE, options.items)
        print(f"{options.items:,} items loaded in {seconds:.0f} s")
        print(
            f"{'':10}{'items/s':>10}{'CPU µs/item':>13}{'seconds':>9}{'entries':>11}"
            f"{'get p50':>9}{'get p99':>9}{'put p50':>9}{'put p99':>9}{'errors':>8}"
            "   (milliseconds)",
            flush=True,
        )
        for _ in range(options.rounds):
            await _idle(server, connection, options)
            await _under_load(server, connection, options)


async def _idle(server: Server, connection: Connection, options: argparse.Namespace) -> None:
    await wait_quiet(server)
    cpu_before = cpu_seconds(server.pid)
    seconds, entries = await _fill(connection)
    cpu = cpu_seconds(server.pid) - cpu_before
    print(
        f"{'idle':10}{options.items / seconds:10,.0f}{cpu / options.items * 1e6:13.1f}"
        f"{seconds:9.1f}{entries:11,}",
        flush=True,
    )
    await _delete(connection)


async def _under_load(server: Server, connection: Connection, options: argparse.Namespace) -> None:
    """Measure a backfill during requests, less the processor time of the requests alone."""
    plan = Plan(
        server.host,
        server.port,
        TABLE,
        options.puts_per_second,
        options.gets_per_second,
        options.items,
    )
    await wait_quiet(server)
    requests = await OpenLoop.start(plan)
    cpu_before = cpu_seconds(server.pid)
    await asyncio.sleep(options.alone_seconds)
    cpu_of_requests = (cpu_seconds(server.pid) - cpu_before) / options.alone_seconds
    alone = await requests.stop()

    requests = await OpenLoop.start(plan)
    cpu_before = cpu_seconds(server.pid)
    seconds, entries = await _fill(connection)
    cpu = cpu_seconds(server.pid) - cpu_before - cpu_of_requests * seconds
    report = await requests.stop()
    filled = (
        f"{options.items / seconds:10,.0f}{cpu / options.items * 1e6:13.1f}"
        f"{seconds:9.1f}{entries:11,}"
    )
    for name, row, figures in (("requests", alone, f"{'':43}"), ("both", report, filled)):
        times = [
            percentile(of, share) / 1e3 for of in (row.gets, row.puts) for share in (0.5, 0.99)
        ]
        print(
            f"{name:10}{figures}" + "".join(f"{time:9.1f}" for time in times) + f"{row.errors:8}",
            flush=True,
        )
    await _delete(connection)


async def _fill(connection: Connection) -> tuple[float, int]:
    """Add the index; returns the backfill's duration and its number of entries."""
    index = global_index(0)
    body = {
        "TableName": TABLE,
        "AttributeDefinitions": definitions(1),
        "GlobalSecondaryIndexUpdates": [{"Create": index}],
    }
    await call(connection, "UpdateTable", body)
    started_at = perf_counter()
    while True:
        (shown,) = (await describe(connection, TABLE))["GlobalSecondaryIndexes"]
        if shown["IndexStatus"] == "ACTIVE":
            return perf_counter() - started_at, shown["ItemCount"]
        if not shown["Backfilling"]:
            started_at = perf_counter()
        await asyncio.sleep(_POLL_SECONDS)


async def _delete(connection: Connection) -> None:
    update = {"Delete": {"IndexName": global_index(0)["IndexName"]}}
    body = {"TableName": TABLE, "GlobalSecondaryIndexUpdates": [update]}
    await call(connection, "UpdateTable", body)
    while (await describe(connection, TABLE)).get("GlobalSecondaryIndexes"):
        await asyncio.sleep(_POLL_SECONDS)


def main() -> None:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.load.index_backfill", description=__doc__
    )
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--gets-per-second", type=float, default=1_000)
    parser.add_argument("--puts-per-second", type=float, default=200)
    parser.add_argument("--alone-seconds", type=float, default=5, help="of requests alone")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--directory", type=Path, help="on the disk to measure; else temporary")
    options = parser.parse_args()
    with (
        directory_on(options.directory) as temporary,
        dynactor(temporary / "data") as server,
    ):
        asyncio.run(run(server, options))


if __name__ == "__main__":
    main()
