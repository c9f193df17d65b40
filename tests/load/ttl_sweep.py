"""The speed of sweeping expired items beside gets: ``python -m tests.load.ttl_sweep --help``.

The server runs on a virtual clock, so windows with and without a sweep alternate. All items expire
within one minute of the virtual clock. Each round advances the clock to the expiry of its share of
the items.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from tests.load.footprint import call, connections, load
from tests.load.generator import Generator, Plan, Report, percentile
from tests.load.index_tables import describe, global_index, wait_quiet
from tests.load.items import create_table, table_item
from tests.load.servers import Server, cpu_seconds, directory_on
from tests.support.clients.wire import Connection
from tests.support.servers.clocked_server import Clocked, clocked_server

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
            f"{'gets/CPU s':>12}{'left':>7}{'p50 ms':>8}{'p99 ms':>8}{'errors':>8}",
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
    """Measure gets alone, then gets during a sweep; the rest of the sweep runs without gets."""
    await wait_quiet(server)
    plan = Plan(server.host, server.port, KEPT, "GetItem", options.connections, options.seconds)
    alone = await _measured(server, await Generator.start(plan))
    _print("gets", f"{'':26}", alone)

    before = clocked.deleted_items(SWEPT)
    generator = await Generator.start(plan)
    clocked.set(due_at)
    both = await _measured(server, generator)
    deleted = clocked.deleted_items(SWEPT) - before
    # Subtract the processor time of the gets, measured alone; the rest is that of the sweep.
    sweep_seconds = both.cpu_seconds - both.report.requests / alone.gets_per_cpu_second
    rate = deleted / both.report.seconds
    _print(
        "both",
        f"{rate:11,.0f}{sweep_seconds / max(1, deleted) * 1e6:15.1f}",
        both,
        kept=both.gets_per_second / alone.gets_per_second,
        left=1 - sweep_seconds / both.report.seconds,
    )

    before, started_at = clocked.deleted_items(SWEPT), perf_counter()
    cpu_before = cpu_seconds(server.pid)
    while clocked.metric("dynactor_time_to_live_lag_seconds", SWEPT):
        await asyncio.sleep(_POLL_SECONDS)
    seconds = perf_counter() - started_at
    deleted = clocked.deleted_items(SWEPT) - before
    if deleted:
        cpu_us = (cpu_seconds(server.pid) - cpu_before) / deleted * 1e6
        print(f"{'sweep':10}{deleted / seconds:11,.0f}{cpu_us:15.1f}", flush=True)


class _Window(NamedTuple):
    """The gets of one window, and the server's processor time."""

    report: Report
    cpu_seconds: float

    @property
    def gets_per_second(self) -> float:
        return self.report.requests / self.report.seconds

    @property
    def gets_per_cpu_second(self) -> float:
        """The gets per second of processor time, which other processes do not change."""
        return self.report.requests / self.cpu_seconds


async def _measured(server: Server, generator: Generator) -> _Window:
    cpu_before = cpu_seconds(server.pid)
    report = await generator.measure()
    return _Window(report, cpu_seconds(server.pid) - cpu_before)


def _print(
    name: str,
    of_sweep: str,
    window: _Window,
    *,
    kept: float | None = None,
    left: float | None = None,
) -> None:
    """Print the results; ``left`` is the share of one processor that a sweep leaves to gets."""
    kept_text, left_text = (f"{'':7}" if each is None else f"{each:7.0%}" for each in (kept, left))
    report = window.report
    times = [percentile(report.latencies, each) / 1e3 for each in (0.5, 0.99)]
    print(
        f"{name:10}{of_sweep}{window.gets_per_second:9,.0f}{kept_text}"
        f"{window.gets_per_cpu_second:12,.0f}{left_text}"
        f"{times[0]:8.1f}{times[1]:8.1f}{report.errors:8}",
        flush=True,
    )


def _swept_table(options: argparse.Namespace) -> dict[str, object]:
    """The table whose items expire, with the requested global indexes and stream."""
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
    """Fill the table whose items expire, evenly over their due times."""
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
    rate = options.deletes_per_second
    arguments = ("--ttl-deletes-per-second", rate) if rate else ()
    with (
        directory_on(options.directory) as temporary,
        clocked_server(START, *arguments, data_dir=temporary / "data") as clocked,
    ):
        asyncio.run(run(clocked, options))


if __name__ == "__main__":
    main()
