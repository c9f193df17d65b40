"""Gets from a table larger than memory: some clients get hot items, others cold ones."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from msgspec import structs
from rich.console import Console
from rich.table import Table

from dynactor.load.results.result import Result
from dynactor.load.results.units import milliseconds
from dynactor.load.run.progress import Silent
from dynactor.load.run.runner import Run
from dynactor.load.work.plan import Plan
from tests.load.scale.memory_group import memory_group
from tests.load.scale.options import ScaleOptions
from tests.load.scale.tables import filled, forget_cached, plan_of
from tests.load.scale.watched_server import MODULE, Wait, Watch, read_waits
from tests.load.servers import resident_megabytes
from tests.support.servers.server import Server, running_server

_MIB = 1 << 20


def measure_beyond_memory(options: ScaleOptions, directory: Path, console: Console) -> None:
    """Run the measurement and print the result.

    Raises:
        NoMemoryGroup: no memory limit can be set here.
    """
    path = filled(directory, options.limited_items, options.limited_item_size, console)
    with ExitStack() as stack:
        waits = Path(stack.enter_context(TemporaryDirectory())) / "waits"
        group = stack.enter_context(memory_group(options.limit_mib * _MIB))
        # Pages that are already cached would not count towards the new group's limit.
        forget_cached(path)
        watch = Watch(str(group), str(waits))
        server = stack.enter_context(
            running_server(
                *options.serve, data_dir=path, module=MODULE, environment=watch.environment()
            )
        )
        asyncio.run(_measure(options, server, waits, console))
        server.stop()


async def _measure(options: ScaleOptions, server: Server, waits: Path, console: Console) -> None:
    title = (
        f"{options.limited_items:,} items of {options.limited_item_size} B under "
        f"{options.limit_mib} MiB; {options.hot_connections} connections ask for the same "
        f"{options.hot_items:,} items all the time"
    )
    table = Table(title=title, title_justify="left")
    headings = ("cold connections", "cold/s", "p50 ms", "p99 ms", "hot/s", "p50 ms", "p99 ms")
    for heading in (*headings, "µs CPU a get", "loop blocked ms", "resident MB"):
        table.add_column(heading, justify="right")
    hot = structs.replace(
        plan_of(options.hot_items, options.limited_item_size, options.seed),
        connections=options.hot_connections,
    )
    await _ask(options, server, hot)
    for connections in options.cold_connections:
        cold = structs.replace(
            plan_of(options.limited_items, options.limited_item_size, options.seed + connections),
            connections=connections,
        )
        began = monotonic()
        of_cold, of_hot = await asyncio.gather(
            _ask(options, server, cold), _ask(options, server, hot)
        )
        longest = max(
            (wait for wait in read_waits(waits) if wait.at > began),
            key=lambda wait: wait.blocked_seconds,
        )
        row = (
            *(str(connections), *_cells(of_cold), *_cells(of_hot)),
            *(_cpu(of_cold, of_hot), _shown(longest)),
            f"{resident_megabytes(server.process.pid):,.0f}",
        )
        console.print("  ".join(row), highlight=False)
        table.add_row(*row)
    console.print(table)


async def _ask(options: ScaleOptions, server: Server, plan: Plan) -> Result:
    plan = structs.replace(
        plan,
        endpoint=server.endpoint,
        fill=False,
        warm_up_seconds=options.warm_up,
        seconds=options.cold_seconds,
    )
    return await Run(plan, Silent(), server.process.pid).measure("gets", "get")


def _cells(result: Result) -> tuple[str, str, str]:
    percentiles = result.total.latency.percentiles_us
    return (
        f"{result.total.requests_per_second:,.0f}",
        milliseconds(percentiles["50"]),
        milliseconds(percentiles["99"]),
    )


def _cpu(of_cold: Result, of_hot: Result) -> str:
    """The server's processor time per request of both kinds."""
    if of_cold.server is None:
        return "-"
    requests = of_cold.total.requests + of_hot.total.requests
    return f"{of_cold.server.cpu_seconds / max(1, requests) * 1e6:,.0f}"


def _shown(longest: Wait) -> str:
    return f"{longest.blocked_seconds * 1e3:.1f} (+ {longest.queued_seconds * 1e3:.1f} unscheduled)"
