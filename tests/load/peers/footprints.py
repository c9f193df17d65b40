"""Start time and memory of each server, in rounds that alternate between servers."""

from __future__ import annotations

import asyncio
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import sleep
from typing import Annotated, Final

import psutil
from cyclopts import Parameter
from cyclopts.types import PositiveInt
from rich.console import Console
from rich.table import Table

from tests.load.items import create_table, table_item
from tests.load.peers.launch import SERVER_NAMES, ServerName, launch
from tests.load.peers.requests import call, make_table
from tests.load.peers.servers import Peer, running_peer, user_environment
from tests.load.servers import directory_on
from tests.support.servers.server import PROJECT

_TABLES: Final = 10
_ITEMS: Final = 1_000
_BATCH_ITEMS: Final = 25
_SETTLE_SECONDS: Final = 1.0
_MEGABYTE: Final = 1e6
# Seconds, not megabytes.
_FEW: Final = 10
_COLUMNS: Final = (
    "start, s",
    "start, CPU s",
    "--help, CPU s",
    "idle, MB",
    "idle PSS, MB",
    "filled, MB",
    "filled PSS, MB",
)

_Figures = dict[str, float]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FootprintOptions:
    """The servers, and the number of rounds."""

    servers: Annotated[tuple[ServerName, ...], Parameter(consume_multiple=True, negative=())] = (
        SERVER_NAMES
    )
    """local is DynamoDB Local; without -memory on disk."""

    rounds: PositiveInt = 20
    """Starts of each server."""

    filled_rounds: PositiveInt = 3
    """In the first of these rounds each server gets 10 tables of 1,000 items of 300 B."""

    before: Path | None = None
    """Checkout of another version of this server, to measure as well."""

    directory: Path | None = None
    """Directory on the disk to measure. Default: a temporary one."""


def run_footprints(options: FootprintOptions, console: Console) -> None:
    """Print the medians of all rounds.

    Raises:
        NoPeers: a server can't be started.
    """
    figures: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    # Round 0 compiles modules and fills the page cache.
    for number in range(options.rounds + 1):
        is_filled = 0 < number <= options.filled_rounds
        for label, found in _round(options, is_filled=is_filled):
            for column, figure in found.items():
                if number:
                    figures[label, column].append(figure)
        console.print(f"round {number} of {options.rounds}", highlight=False)
    table = Table("", *_COLUMNS, title=f"Medians of {options.rounds} rounds", title_justify="left")
    for label in dict.fromkeys(label for label, _ in figures):
        table.add_row(label, *(_median(figures[label, column]) for column in _COLUMNS))
    console.print(table)


def _median(values: list[float]) -> str:
    value = median(values)
    return f"{value:.3f}" if value < _FEW else f"{value:.0f}"


def _round(options: FootprintOptions, *, is_filled: bool) -> Iterator[tuple[str, _Figures]]:
    for name in options.servers:
        yield name, _measure(options, name, PROJECT, is_filled=is_filled)
        if name.startswith("dynactor") and options.before is not None:
            yield f"{name} before", _measure(options, name, options.before, is_filled=is_filled)


def _measure(
    options: FootprintOptions, name: ServerName, project: Path, *, is_filled: bool
) -> _Figures:
    environment = user_environment()
    found = {}
    with directory_on(options.directory) as directory:
        with running_peer(name, directory, project=project, environment=environment) as peer:
            found["start, s"] = peer.start_seconds
            found["start, CPU s"] = peer.start_cpu_seconds
            sleep(_SETTLE_SECONDS)
            found |= _memory(peer, "idle")
            if is_filled:
                asyncio.run(_fill(peer))
                sleep(_SETTLE_SECONDS)
                found |= _memory(peer, "filled")
        command = launch(name, 0, directory, project=project)
        before = getrusage(RUSAGE_CHILDREN)
        subprocess.run(
            command.help, cwd=command.folder, env=environment, capture_output=True, check=False
        )
        after = getrusage(RUSAGE_CHILDREN)
    found["--help, CPU s"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return found


def _memory(peer: Peer, state: str) -> _Figures:
    memory = psutil.Process(peer.pid).memory_full_info()
    return {f"{state}, MB": memory.rss / _MEGABYTE, f"{state} PSS, MB": memory.pss / _MEGABYTE}


async def _fill(peer: Peer) -> None:
    for number in range(_TABLES):
        name = f"table{number}"
        await make_table(peer, **create_table(name))
        for start in range(0, _ITEMS, _BATCH_ITEMS):
            items = [table_item(number) for number in range(start, start + _BATCH_ITEMS)]
            left = {name: [{"PutRequest": {"Item": item}} for item in items]}
            while left:
                answer = await call(peer, "BatchWriteItem", RequestItems=left)
                left = answer["UnprocessedItems"]
