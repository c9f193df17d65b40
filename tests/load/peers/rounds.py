"""Rounds that alternate between servers, and the table of their ratios."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import product

from msgspec import structs
from rich.console import Console
from rich.table import Table

from dynactor.load.options import RunOptions, WrongOption
from dynactor.load.results.comparison import Rounds, Spread, by_case, spread
from dynactor.load.results.plots import check_plot, plot
from dynactor.load.results.result import Result, save
from dynactor.load.run.one import make_caller
from dynactor.load.run.progress import Silent
from dynactor.load.run.runner import Run
from dynactor.load.run.table import prepare
from dynactor.load.work.plan import Plan
from tests.load.peers.options import PeerOptions
from tests.load.peers.servers import Peer, running_peer
from tests.load.servers import directory_on

# A server with a lower success rate does not support the operation.
_LEAST_SUCCESS = 0.5


def run_rounds(options: PeerOptions, console: Console) -> None:
    """Start the servers, measure them in turn, print the result line by line.

    Raises:
        CannotPlot: plots can't be drawn.
        CannotPrepare: a server can't be used.
        NoPeers: a server can't be started.
        RunFailed: a worker could not continue.
        WrongOption: an option is invalid.
    """
    if options.plot is not None:
        check_plot(options.plot)
    plans = [_run_options(options, line, count) for line, count in _cases(options)]
    for each in plans:
        each.plan()
    # The tables have few units, so limits that are enforced would refuse requests.
    observing = () if "--throttling" in options.serve else ("--throttling", "observe")
    serve = (*observing, *options.serve)
    with ExitStack() as stack:
        directory = stack.enter_context(directory_on(options.directory))
        peers = [
            stack.enter_context(running_peer(name, directory, serve)) for name in options.servers
        ]
        results = asyncio.run(_measure(options, peers, console))
    if options.plot is not None:
        plot(results, options.plot)
        console.print(f"drawn in {options.plot}", highlight=False)


def _cases(options: PeerOptions) -> list[tuple[str, int]]:
    return list(product(options.lines, options.connections))


def _run_options(options: PeerOptions, line: str, connections: int) -> RunOptions:
    workload, _, query_items = line.partition(":")
    if query_items and not query_items.isdecimal():
        raise WrongOption(f"{line!r}: after the colon stands how many items a query asks for")
    return RunOptions(
        workload=workload,
        query_items=int(query_items) if query_items else None,
        # One table serves all lines, so its collections have the size of the largest query.
        collection_items=max(100, int(query_items or 0)),
        connections=connections,
        workers=min(options.workers, connections),
        keys=options.keys,
        item_size=options.item_size,
        seed=options.seed,
        warm_up=options.warm_up,
        duration=options.seconds,
        local_index=options.local_index or workload == "lsi-query",
        global_index=options.global_index or workload == "gsi-query",
    )


async def _measure(options: PeerOptions, peers: Sequence[Peer], console: Console) -> list[Result]:
    first, *others = options.servers
    table = Table(
        title=f"{first} and how many times as many requests/s it answers as its peers; below that, "
        "processor time a request",
        title_justify="left",
        show_lines=True,
    )
    table.add_column("")
    table.add_column("connections", justify="right")
    table.add_column(f"{first}, requests/s", justify="right")
    for name in others:
        table.add_column(f"to {name}", justify="right")
    every: list[Result] = []
    for line, connections in _cases(options):
        results: list[Result] = []
        for number, peer in product(range(options.rounds), peers):
            result = await _round(options, peer, line, connections)
            results.append(result)
            if options.output is not None:
                file_name = f"{line.replace(':', '-')}-{connections}-{peer.name}-{number + 1}.json"
                save(result, options.output / file_name)
        every += results
        ((_, rounds),) = by_case(results).items()
        row = _row(rounds)
        shown = "; ".join(cell.replace("\n", ", ") for cell in row)
        console.print(f"{line}, {connections}: {shown}", highlight=False, soft_wrap=True)
        table.add_row(line, str(connections), *row)
    console.print(table)
    return every


async def _round(options: PeerOptions, peer: Peer, line: str, connections: int) -> Result:
    plan = _run_options(options, line, connections).plan()
    plan = structs.replace(plan, endpoint=peer.endpoint, table=_table_name(plan))
    plan = structs.replace(plan, fill=await prepare(plan, make_caller(plan), "auto"))
    return await Run(plan, Silent(), peer.pid).measure(peer.name, line)


def _table_name(plan: Plan) -> str:
    """The table for a plan; plans whose tables have the same definition share a table."""
    return "load" + "-local" * plan.local_index + "-global" * plan.global_index


def _row(rounds: Sequence[Rounds]) -> list[str]:
    """A line's cells, one for each server: the median of the rounds, and their spread."""
    ours, *others = rounds
    ratios = (ours.ratios(other) if _works(ours) and _works(other) else None for other in others)
    return [
        _cell(spread(ours.rates) if _works(ours) else None, ",.0f", ours),
        *(_cell(ratio, ",.2f", other) for ratio, other in zip(ratios, others, strict=True)),
    ]


def _cell(figure: Spread | None, form: str, rounds: Rounds) -> str:
    cpu = spread(rounds.cpu_us)
    if figure is None:
        return "-"
    return figure.show(form) + (f"\n{cpu.median:,.0f} µs" if cpu else "")


def _works(rounds: Rounds) -> bool:
    """Whether a server supports the operation, and answers it within a round."""
    done = sum(result.total.requests for result in rounds.results)
    return rounds.errors < done * (1 - _LEAST_SUCCESS)
