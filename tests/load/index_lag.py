"""Lag and cost of global indexes: ``python -m tests.load.index_lag --help``.

The lag is the time from the answer to a put until a query of the index shows it. The processor time
of a put is counted until all indexes have caught up, which is stable on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from statistics import median

from tests.load.footprint import connections
from tests.load.generator import Generator, Plan, percentile
from tests.load.index_requests import OpenLoop
from tests.load.index_requests import Plan as OpenPlan
from tests.load.index_tables import BY_TITLE, make_table, wait_quiet
from tests.load.servers import Server, cpu_seconds, directory_on, dynactor

_WARM_UP_SECONDS = 1.0
_CLIENTS = 64


async def lag(server: Server, options: argparse.Namespace) -> None:
    """Measure the lag during puts in an open loop on a table with three global indexes."""
    print(
        f"{'puts/s':>8}{'put p50':>9}{'put p99':>9}{'lag p50':>9}{'lag p99':>9}{'lag max':>9}"
        f"{'CPU µs/put':>12}{'samples':>9}{'polls':>8}{'errors':>8}   (milliseconds)"
    )
    for round_number in range(options.rounds):
        table = f"lag-{round_number}"
        async with connections(server, 1) as (connection,):
            await make_table(connection, table, options.indexes)
        await wait_quiet(server)
        cpu_before = cpu_seconds(server.pid)
        load = await OpenLoop.start(
            OpenPlan(server.host, server.port, table, options.puts_per_second, index=BY_TITLE)
        )
        await asyncio.sleep(options.seconds)
        report = await load.stop()
        cpu = await wait_quiet(server) - cpu_before
        puts = sum(report.puts.values())
        times = [
            percentile(of, share) / 1e3
            for of, share in (
                (report.puts, 0.5),
                (report.puts, 0.99),
                (report.lags, 0.5),
                (report.lags, 0.99),
                (report.lags, 1.0),
            )
        ]
        print(
            f"{puts / report.seconds:8,.0f}"
            + "".join(f"{time:9.1f}" for time in times)
            + f"{cpu / puts * 1e6:12.0f}{sum(report.lags.values()):9}{report.polls:8}"
            f"{report.errors:8}",
            flush=True,
        )


async def throughput(server: Server, options: argparse.Namespace) -> None:
    """Measure puts in a closed loop for several numbers of global indexes."""
    print(
        f"{'GSIs':>6}{'puts/s':>10}{'p50 µs':>9}{'p99 µs':>9}{'CPU µs/put':>12}"
        f"{'CPU µs/GSI':>12}{'caught up s':>13}{'errors':>8}"
    )
    without = 0.0
    for count in options.counts:
        rows = []
        for round_number in range(options.rounds):
            table = f"throughput-{count}-{round_number}"
            async with connections(server, 1) as (connection,):
                await make_table(connection, table, count)
            rows.append(await _throughput(server, table, options.seconds))
        per_second, p50, p99, cpu, seconds, errors = map(median, zip(*rows, strict=True))
        if not count:
            without = cpu
        of_index = f"{(cpu - without) / count:12.0f}" if count and without else f"{'':12}"
        print(
            f"{count:6}{per_second:10,.0f}{p50:9,.0f}{p99:9,.0f}{cpu:12.0f}{of_index}"
            f"{seconds:13.1f}{errors:8.0f}",
            flush=True,
        )


async def _throughput(
    server: Server, table: str, seconds: float
) -> tuple[float, float, float, float, float, int]:
    plan = Plan(server.host, server.port, table, "PutItem", _CLIENTS, seconds, _WARM_UP_SECONDS)
    generator = await Generator.start(plan)
    await asyncio.sleep(0)
    cpu_before = cpu_seconds(server.pid)
    report = await generator.measure()
    loop = asyncio.get_running_loop()
    ended_at = loop.time()
    cpu = await wait_quiet(server) - cpu_before
    return (
        report.requests / report.seconds,
        percentile(report.latencies, 0.5),
        percentile(report.latencies, 0.99),
        cpu / report.requests * 1e6,
        loop.time() - ended_at,
        report.errors,
    )


def main() -> None:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.load.index_lag", description=__doc__)
    parser.add_argument("--puts-per-second", type=float, default=2_000)
    parser.add_argument("--indexes", type=int, default=3, help="of the table whose lag is shown")
    parser.add_argument("--counts", type=int, nargs="*", default=[0, 1, 5], help="of the table")
    parser.add_argument("--seconds", type=float, default=10, help="of each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path, help="on the disk to measure; else temporary")
    options = parser.parse_args()
    with (
        directory_on(options.directory) as temporary,
        dynactor(temporary / "data") as server,
    ):
        if options.indexes:
            asyncio.run(lag(server, options))
        asyncio.run(throughput(server, options))


if __name__ == "__main__":
    main()
