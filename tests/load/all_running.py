"""Latencies with all features in use: ``python -m tests.load.all_running --help``.

One table with a local and a global index, published to Kafka, just filled, so compaction is
running. Puts and gets alternate, first in a closed loop, then in an open loop at half of the
sustained rate. Changes that were accepted faster than published are published afterwards, and that
time counts. A broker is started with Java. The duration of one sync of the disk is printed beside
the latencies, because a durable put is no faster.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile
from time import perf_counter

from msgspec import structs
from rich.console import Console

from dynactor.load.options import RunOptions
from dynactor.load.results.result import Result
from dynactor.load.run.one import make_caller
from dynactor.load.run.progress import Silent
from dynactor.load.run.runner import Run
from dynactor.load.run.table import prepare
from dynactor.load.work.plan import Plan
from tests.load.kafka_relay import publishing
from tests.load.servers import directory_on
from tests.support.kafka.kafka_broker import running_broker

_SYNCS = 200
_SYNCED_BYTES = 4096
_SHARE = 0.5


def sync_milliseconds(directory: Path) -> float:
    """The median duration of a sync of a few kilobytes."""
    taken = []
    with TemporaryFile(dir=directory, buffering=0) as file:
        for _ in range(_SYNCS):
            file.write(os.urandom(_SYNCED_BYTES))
            began_at = perf_counter()
            os.fdatasync(file.fileno())
            taken.append(perf_counter() - began_at)
    return median(taken) * 1000


async def _measure(plan: Plan, pid: int, label: str) -> Result:
    return await Run(plan, Silent(), pid).measure(label, "put and get")


async def _run(arguments: argparse.Namespace, directory: Path) -> None:
    console = Console()
    for name in ("broker", "data"):
        (directory / name).mkdir()
    with (
        running_broker(directory / "broker") as broker,
        publishing(
            broker, "at-least-once", directory / "data", "--kafka-all-tables", *arguments.serve
        ) as published,
    ):
        options = RunOptions(
            endpoint=published.process.endpoint,
            mix="put=50,get=50",
            keys=arguments.keys,
            local_index=True,
            global_index=True,
            connections=arguments.connections,
            duration=arguments.seconds,
            warm_up=2.0,
        )
        plan = options.plan()
        console.print(f"Filling {plan.keys:,} items", highlight=False)
        await prepare(plan, make_caller(plan), "auto")
        pid = published.server.pid
        for number in range(arguments.rounds):
            closed = structs.replace(plan, fill=number == 0)
            taken = (await _measure(closed, pid, "closed")).total.requests_per_second
            ended_at = perf_counter()
            published_at = await published.wait_lag(plan.table, below=1)
            requests = taken * arguments.seconds
            most = requests / (arguments.seconds + published_at - ended_at)
            rate = most * _SHARE
            sync_ms = sync_milliseconds(directory)
            result = await _measure(structs.replace(plan, fill=False, rate=rate), pid, "open")
            console.print(
                f"{taken:,.0f} requests/s taken, {most:,.0f} kept up; "
                f"at {rate:,.0f}/s, a sync of {sync_ms:.2f} ms:",
                highlight=False,
            )
            for name, operation in result.operations.items():
                shares = operation.latency.percentiles_us
                shown = (f"p{share} {(shares[share] or 0) / 1000:.1f}" for share in shares)
                console.print(f"  {name}: {', '.join(shown)} ms", highlight=False)
            left = await published.lag(plan.table)
            console.print(f"  {left:,} changes are not published", highlight=False)


def main() -> None:
    """Measure, and print latencies of each round."""
    parser = argparse.ArgumentParser(prog="python -m tests.load.all_running", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each run")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--keys", type=int, default=200_000)
    parser.add_argument("--directory", type=Path, help="on the disk to measure")
    parser.add_argument("--serve", nargs="*", default=[], help="more options of the server")
    arguments = parser.parse_args()
    with directory_on(arguments.directory) as directory:
        asyncio.run(_run(arguments, directory))


if __name__ == "__main__":
    main()
