"""Gets from small and large tables on concurrent servers, in alternating rounds."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from msgspec import structs
from rich.console import Console
from rich.table import Table

from dynactor.load.results.comparison import Rounds, by_case, spread
from dynactor.load.results.result import Result
from dynactor.load.results.units import milliseconds
from dynactor.load.run.progress import Silent
from dynactor.load.run.runner import Run
from tests.load.scale.options import ScaleOptions
from tests.load.scale.tables import filled, plan_of, read_through
from tests.load.servers import Server, dynactor, resident_megabytes

_TOUCHING_CONNECTIONS = 32


class _Sized(NamedTuple):
    """A server, the number of its table's items, and its start time."""

    server: Server
    items: int
    start_seconds: float


def measure_gets(options: ScaleOptions, directory: Path, console: Console) -> None:
    """Start a server for each size, measure them in turn, print the result."""
    with ExitStack() as stack:
        sized = []
        for items in options.items:
            path = filled(directory, items, options.item_size, console)
            read_through(path)
            began = perf_counter()
            server = stack.enter_context(dynactor(path, *options.serve))
            sized.append(_Sized(server, items, perf_counter() - began))
        asyncio.run(_measure(options, sized, console))


async def _measure(options: ScaleOptions, sized: list[_Sized], console: Console) -> None:
    for each in sized:
        await _ask(options, each, _TOUCHING_CONNECTIONS, options.touch_seconds)
    table = Table(title="gets by the number of items, uniformly drawn", title_justify="left")
    headings = ("items", "connections", "requests/s", "ratio", "p99 ms", "µs CPU a get")
    for heading in headings:
        table.add_column(heading, justify="right")
    for connections in options.connections:
        results: list[Result] = []
        for _, each in product(range(options.rounds), sized):
            results.append(await _ask(options, each, connections, options.seconds))
        ((_, rounds),) = by_case(results).items()
        for each, of_one in zip(sized, rounds, strict=True):
            row = (f"{each.items:,}", str(connections), *_cells(of_one, rounds[0]))
            console.print("  ".join(row), highlight=False)
            table.add_row(*row)
        table.add_section()
    console.print(table)
    for each in sized:
        console.print(
            f"{each.items:,} items: started in {each.start_seconds:.2f} s, "
            f"resident {resident_megabytes(each.server.pid):,.0f} MB",
            highlight=False,
        )


async def _ask(options: ScaleOptions, sized: _Sized, connections: int, seconds: float) -> Result:
    plan = structs.replace(
        plan_of(sized.items, options.item_size, options.seed),
        endpoint=f"http://{sized.server.host}:{sized.server.port}",
        fill=False,
        connections=connections,
        warm_up_seconds=options.warm_up,
        seconds=max(seconds, options.seconds),
    )
    return await Run(plan, Silent(), sized.server.pid).measure(f"{sized.items:,}", "get")


def _cells(rounds: Rounds, first: Rounds) -> tuple[str, ...]:
    rates, cpu, ratio = spread(rounds.rates), spread(rounds.cpu_us), rounds.ratios(first)
    return (
        rates.show() if rates else "-",
        ratio.show(".2f") if ratio else "-",
        milliseconds(rounds.latency("99")),
        cpu.show(".1f") if cpu else "-",
    )
