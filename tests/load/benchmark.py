"""Durable puts and gets, side by side with dynalite: ``python -m tests.load.benchmark --help``.

Rounds alternate between the servers and the medians are shown, because a machine's speed drifts
by more than the servers differ. The ratio and the processor time per request are what lasts.
dynalite answers a put before it is on disk; this server after.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Literal

from msgspec import Struct

from tests.load.generator import Generator, Plan, percentile
from tests.load.items import create_table, table_item
from tests.load.servers import Server, cpu_seconds, dynactor, dynalite, install_dynalite
from tests.support.wire import Connection

Kind = Literal["PutItem", "GetItem"]

TABLE = "benchmark"
KEYS = 10_000
_BATCH_ITEMS = 25


class Sample(Struct, frozen=True):
    """One round's figures; times in microseconds."""

    requests_per_second: float
    p50: float
    p99: float
    cpu_per_request: float
    errors: float


async def prepare(server: Server) -> None:
    """Make the table and fill it, so that every get finds its item."""
    connection = await Connection.open(server.host, server.port)
    answer = await connection.call("CreateTable", create_table(TABLE))
    assert answer.status == 200, answer
    while True:
        answer = await connection.call("DescribeTable", {"TableName": TABLE})
        if answer.body["Table"]["TableStatus"] == "ACTIVE":
            break
    for start in range(0, KEYS, _BATCH_ITEMS):
        items = [table_item(number) for number in range(start, start + _BATCH_ITEMS)]
        left = {TABLE: [{"PutRequest": {"Item": item}} for item in items]}
        while left:
            answer = await connection.call("BatchWriteItem", {"RequestItems": left})
            assert answer.status == 200, answer
            left = answer.body["UnprocessedItems"]
    await connection.close()


async def sample(server: Server, kind: Kind, connections: int, seconds: float) -> Sample:
    """One round on one server."""
    plan = Plan(server.host, server.port, TABLE, kind, connections, seconds, keys=KEYS)
    generator = await Generator.start(plan)
    cpu_before = cpu_seconds(server.pid)
    report = await generator.measure()
    cpu = cpu_seconds(server.pid) - cpu_before
    return Sample(
        report.requests / report.seconds,
        percentile(report.latencies, 0.5),
        percentile(report.latencies, 0.99),
        cpu / max(1, report.requests) * 1e6,
        report.errors,
    )


def middle(samples: Sequence[Sample]) -> Sample:
    """The medians of the rounds, and all errors."""
    return Sample(
        median(each.requests_per_second for each in samples),
        median(each.p50 for each in samples),
        median(each.p99 for each in samples),
        median(each.cpu_per_request for each in samples),
        sum(each.errors for each in samples),
    )


async def run(options: argparse.Namespace, servers: Sequence[Server]) -> None:
    """Measure, print the table."""
    for server in servers:
        await prepare(server)
    print(
        f"{'':8}{'connections':>12}{'server':>10}{'requests/s':>12}{'p50 µs':>9}{'p99 µs':>9}"
        f"{'CPU µs/request':>16}{'errors':>8}{'ratio':>7}"
    )
    kinds: tuple[Kind, ...] = ("PutItem", "GetItem")
    for kind, connections in product(kinds, options.connections):
        samples: dict[str, list[Sample]] = {server.name: [] for server in servers}
        for _, server in product(range(options.rounds), servers):
            samples[server.name].append(await sample(server, kind, connections, options.seconds))
        _print_rows(kind, connections, {name: middle(each) for name, each in samples.items()})


def _print_rows(kind: Kind, connections: int, rows: dict[str, Sample]) -> None:
    ours = rows["dynactor"].requests_per_second
    for name, row in rows.items():
        ratio = f"{ours / row.requests_per_second:.2f}" if name != "dynactor" else ""
        print(
            f"{kind:8}{connections:12}{name:>10}{row.requests_per_second:12,.0f}{row.p50:9,.0f}"
            f"{row.p99:9,.0f}{row.cpu_per_request:16.1f}{row.errors:8.0f}{ratio:>7}",
            flush=True,
        )


def main() -> None:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.load.benchmark", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each round")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--alone", action="store_true", help="without dynalite")
    parser.add_argument("--dynalite", type=Path, help="its cli.js; else npm installs it")
    parser.add_argument("--directory", type=Path, help="on the disk to measure; else temporary")
    options = parser.parse_args()
    if options.directory is not None:
        options.directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(TemporaryDirectory(dir=options.directory)))
        servers = [stack.enter_context(dynactor(temporary / "dynactor"))]
        if not options.alone:
            cli = options.dynalite or install_dynalite()
            servers.append(stack.enter_context(dynalite(temporary / "dynalite", cli)))
        asyncio.run(run(options, servers))


if __name__ == "__main__":
    main()
