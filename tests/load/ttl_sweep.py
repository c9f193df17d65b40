"""How fast expired items are swept beside gets: ``python -m tests.load.ttl_sweep --help``.

The server runs on a virtual clock, so that a window without a sweep and one with it follow each
other: the items of all rounds are due within one minute of it, those of a round when it is set
on.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.load.footprint import call, connections, load
from tests.load.generator import Generator, Plan, Report, percentile
from tests.load.index_tables import describe, global_index, wait_quiet
from tests.load.items import create_table, table_item
from tests.load.servers import Server, cpu_seconds
from tests.support.clocked_server import Clocked, clocked_server
from tests.support.wire import Connection

KEPT = "kept"
SWEPT = "swept"
START = 1_800_000_000
DUE_SECONDS = 60
_KEPT_ITEMS = 10_000
_LOADERS = 8
_BATCH_ITEMS = 25
_POLL_SECONDS = 0.05


async def run(clocked: Clocked, options: argparse.Namespace) -> None:
    """Fill both tables, then measure round by round."""
    host, _, port = clocked.endpoint.removeprefix("http://").partition(":")
    server = Server("dynactor", host, int(port), clocked.server.process.pid)
    async with connections(server, 1) as (connection,):
        await call(connection, "CreateTable", create_table(KEPT))
        await call(connection, "CreateTable", _swept_table(options))
        await load(server, KEPT, _KEPT_ITEMS)
        seconds = await _load_due(server, options.items)
        print(f"{options.items:,} items loaded in {seconds:.0f} s", flush=True)
        await wait_quiet(server)
        started_at, cpu_before = perf_counter(), cpu_seconds(server.pid)
        specification = {"Enabled": True, "AttributeName": "expires"}
        body = {"TableName": SWEPT, "TimeToLiveSpecification": specification}
        await call(connection, "UpdateTimeToLive", body)
        described = {"TimeToLiveStatus": "ENABLING"}
        while described["TimeToLiveStatus"] != "ENABLED":
            await asyncio.sleep(_POLL_SECONDS)
            answer = await call(connection, "DescribeTimeToLive", {"TableName": SWEPT})
            described = answer["TimeToLiveDescription"]
        seconds = perf_counter() - started_at
        cpu_us = (cpu_seconds(server.pid) - cpu_before) / options.items * 1e6
        print(f"ENABLED after {seconds:.1f} s, {cpu_us:.0f} µs CPU an item", flush=True)
        print(
            f"{'':10}{'deletes/s':>11}{'CPU µs/delete':>15}{'gets/s':>9}{'kept':>7}"
            f"{'p50 ms':>8}{'p99 ms':>8}{'errors':>8}",
            flush=True,
        )
        for number in range(options.rounds):
            due_at = START + DUE_SECONDS * (number + 1) / options.rounds
            await _round(clocked, server, options, due_at + 1)
        left = (await describe(connection, SWEPT))["ItemCount"]
        print(f"{left:,} items left")


async def _round(
    clocked: Clocked, server: Server, options: argparse.Namespace, due_at: float
) -> None:
    """Gets alone, then with a sweep; what is left of it is swept without them."""
    await wait_quiet(server)
    plan = Plan(server.host, server.port, KEPT, "GetItem", options.connections, options.seconds)
    alone, cpu_alone = await _measured(server, plan)
    _print("gets", None, None, alone, None)

    before = clocked.deleted_items(SWEPT)
    generator = await Generator.start(plan)
    clocked.set(due_at)
    started_at, cpu_before = perf_counter(), cpu_seconds(server.pid)
    report = await generator.measure()
    cpu = cpu_seconds(server.pid) - cpu_before
    seconds = perf_counter() - started_at
    deleted = clocked.deleted_items(SWEPT) - before
    # Gets that were not made cost nothing: what is left is the sweep's.
    cpu_us = (cpu - cpu_alone / alone.requests * report.requests) / max(1, deleted) * 1e6
    share = (report.requests / report.seconds) / (alone.requests / alone.seconds)
    _print("both", deleted / seconds, cpu_us, report, share)

    before, started_at = clocked.deleted_items(SWEPT), perf_counter()
    cpu_before = cpu_seconds(server.pid)
    cpu_after = await wait_quiet(server)
    seconds = perf_counter() - started_at
    deleted = clocked.deleted_items(SWEPT) - before
    if deleted:
        cpu_us = (cpu_after - cpu_before) / deleted * 1e6
        print(f"{'sweep':10}{deleted / seconds:11,.0f}{cpu_us:15.1f}", flush=True)


async def _measured(server: Server, plan: Plan) -> tuple[Report, float]:
    generator = await Generator.start(plan)
    cpu_before = cpu_seconds(server.pid)
    report = await generator.measure()
    return report, cpu_seconds(server.pid) - cpu_before


def _print(
    name: str, rate: float | None, cpu_us: float | None, report: Report, share: float | None
) -> None:
    figures = f"{'':26}" if rate is None else f"{rate:11,.0f}{cpu_us:15.1f}"
    kept = f"{'':7}" if share is None else f"{share:7.0%}"
    times = [percentile(report.latencies, each) / 1e3 for each in (0.5, 0.99)]
    print(
        f"{name:10}{figures}{report.requests / report.seconds:9,.0f}{kept}"
        f"{times[0]:8.1f}{times[1]:8.1f}{report.errors:8}",
        flush=True,
    )


def _swept_table(options: argparse.Namespace) -> dict[str, object]:
    """The table whose items expire, with as many global indexes and a stream as asked for."""
    body = create_table(SWEPT, indexed=options.local_index)
    if options.global_indexes:
        names = {"title": "S", "rank": "N", "price": "N", "version": "N"}
        indexes = list(map(global_index, range(options.global_indexes)))
        used = {key["AttributeName"] for index in indexes for key in index["KeySchema"]}
        known = {each["AttributeName"] for each in body["AttributeDefinitions"]}
        body["AttributeDefinitions"] += [
            {"AttributeName": name, "AttributeType": names[name]} for name in sorted(used - known)
        ]
        body["GlobalSecondaryIndexes"] = indexes
    if options.stream:
        body["StreamSpecification"] = {
            "StreamEnabled": True,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        }
    return body


async def _load_due(server: Server, count: int) -> float:
    """Fill the table whose items expire, evenly over the time in which they are due."""
    starts = iter(range(0, count, _BATCH_ITEMS))
    started_at = perf_counter()

    async def load_some(connection: Connection) -> None:
        for start in starts:
            requests = []
            for number in range(start, start + _BATCH_ITEMS):
                expires = START + DUE_SECONDS * (number * 7_919 % count) // count
                item = table_item(number) | {"expires": {"N": str(expires)}}
                requests.append({"PutRequest": {"Item": item}})
            left = {SWEPT: requests}
            while left:
                answer = await call(connection, "BatchWriteItem", {"RequestItems": left})
                left = answer["UnprocessedItems"]

    async with connections(server, _LOADERS) as opened, asyncio.TaskGroup() as tasks:
        for connection in opened:
            tasks.create_task(load_some(connection))
    return perf_counter() - started_at


def main() -> None:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.load.ttl_sweep", description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10, help="of each window of gets")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--local-index", action="store_true")
    parser.add_argument("--global-indexes", type=int, default=0)
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--deletes-per-second", help="as --ttl-deletes-per-second of the server")
    parser.add_argument("--directory", type=Path, help="on the disk to measure; else temporary")
    options = parser.parse_args()
    if options.directory is not None:
        options.directory.mkdir(parents=True, exist_ok=True)
    rate = options.deletes_per_second
    arguments = ("--ttl-deletes-per-second", rate) if rate else ()
    with (
        TemporaryDirectory(dir=options.directory) as temporary,
        clocked_server(START, *arguments, data_dir=Path(temporary) / "data") as clocked,
    ):
        asyncio.run(run(clocked, options))


if __name__ == "__main__":
    main()
