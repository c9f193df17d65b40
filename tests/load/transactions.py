"""Transactions against as many single puts: ``python -m tests.load.transactions --help``.

Every transaction puts its items with a unique client token, as SDKs do. In the lines *apart*, no
two transactions share an item. In the lines *hot*, all transactions draw from a few items, and the
share of transactions that conflicts cancelled is printed.

Rounds alternate between the kinds and the medians are shown. The stable figures are the server's
processor time per request, and the equivalent number of single puts.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import NamedTuple

from msgspec import Struct

from tests.load.generator import Generator, Plan, percentile
from tests.load.items import create_table, table_item
from tests.load.servers import Server, cpu_seconds, directory_on, dynactor
from tests.support.clients.wire import Connection

TABLE = "benchmark"
KEYS = 10_000
HOT_KEYS = 20
_BATCH_ITEMS = 25


class Sample(Struct, frozen=True):
    """One round's figures; times in microseconds."""

    requests_per_second: float
    p50: float
    p99: float
    cpu_per_request: float
    errors: float


async def prepare(server: Server) -> None:
    """Create the table and fill it, so that every get finds its item."""
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


def middle(samples: Sequence[Sample]) -> Sample:
    """The medians of the rounds' figures, and the errors of all rounds."""
    return Sample(
        median(each.requests_per_second for each in samples),
        median(each.p50 for each in samples),
        median(each.p99 for each in samples),
        median(each.cpu_per_request for each in samples),
        sum(each.errors for each in samples),
    )


class Kind(NamedTuple):
    """A kind of load: transactions of ``items`` items each, or single puts if it is 0."""

    name: str
    items: int
    hot: bool


KINDS = (
    Kind("put", 0, hot=False),
    Kind("2 items apart", 2, hot=False),
    Kind("10 items apart", 10, hot=False),
    Kind("put hot", 0, hot=True),
    Kind("2 items hot", 2, hot=True),
    Kind("10 items hot", 10, hot=True),
)


async def sample(server: Server, kind: Kind, connections: int, seconds: float) -> Sample:
    """Measure one round."""
    plan = Plan(
        server.host,
        server.port,
        TABLE,
        "TransactWriteItems" if kind.items else "PutItem",
        connections,
        seconds,
        keys=HOT_KEYS if kind.hot else KEYS,
        transaction_items=kind.items,
        contended=kind.hot,
    )
    generator = await Generator.start(plan)
    cpu_before = cpu_seconds(server.pid)
    report = await generator.measure()
    cpu = cpu_seconds(server.pid) - cpu_before
    return Sample(
        report.requests / report.seconds,
        percentile(report.latencies, 0.5),
        percentile(report.latencies, 0.99),
        cpu / max(1, report.requests) * 1e6,
        report.errors / max(1, report.requests),
    )


async def run(options: argparse.Namespace, server: Server) -> None:
    """Measure all kinds, and print a table."""
    await prepare(server)
    print(
        f"{'':16}{'connections':>12}{'requests/s':>12}{'done/s':>10}{'p50 µs':>9}{'p99 µs':>9}"
        f"{'CPU µs/request':>16}{'puts':>7}{'refused':>9}"
    )
    for connections in options.connections:
        samples: dict[Kind, list[Sample]] = {kind: [] for kind in KINDS}
        for _, kind in product(range(options.rounds), KINDS):
            samples[kind].append(await sample(server, kind, connections, options.seconds))
        rows = {kind: middle(each) for kind, each in samples.items()}
        put = rows[KINDS[0]].cpu_per_request
        for kind, row in rows.items():
            refused = row.errors / options.rounds
            print(
                f"{kind.name:16}{connections:12}{row.requests_per_second:12,.0f}"
                f"{row.requests_per_second * (1 - refused):10,.0f}{row.p50:9,.0f}{row.p99:9,.0f}"
                f"{row.cpu_per_request:16.1f}{row.cpu_per_request / put:7.2f}{refused:9.1%}",
                flush=True,
            )


def main() -> None:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.load.transactions", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="of each round")
    parser.add_argument("--connections", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--directory", type=Path, help="on the disk to measure; else temporary")
    options = parser.parse_args()
    with (
        directory_on(options.directory) as temporary,
        dynactor(temporary / "data") as server,
    ):
        asyncio.run(run(options, server))


if __name__ == "__main__":
    main()
