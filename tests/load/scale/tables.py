"""Data directories with a filled table each; an existing one is reused unchanged."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Final

from msgspec import structs
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from dynactor.load.options import RunOptions
from dynactor.load.run.one import make_caller
from dynactor.load.run.table import prepare
from dynactor.load.work.plan import Plan
from tests.load.scale.filler import fill
from tests.support.servers.server import running_server

TABLE: Final = "load"
_PIECE_BYTES: Final = 1 << 20


def plan_of(items: int, item_size: int, seed: int = 1) -> Plan:
    """The plan of gets from a table with this many items of that size."""
    options = RunOptions(
        workload="get", keys=items, item_size=str(item_size), table=TABLE, prepare="reuse"
    )
    return structs.replace(options.plan(), seed=seed)


def filled(directory: Path, items: int, item_size: int, console: Console) -> Path:
    """The data directory of a table with that many items, created below ``directory`` if absent."""
    path = directory / f"{items}-{item_size}"
    if not path.exists():
        unfinished = path.with_name(f"{path.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        _fill(unfinished, plan_of(items, item_size), console)
        unfinished.rename(path)
    return path


def _fill(path: Path, plan: Plan, console: Console) -> None:
    with running_server(data_dir=path) as server:
        served = structs.replace(plan, endpoint=server.endpoint)
        asyncio.run(prepare(served, make_caller(served), "auto"))
        server.stop()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task(f"{plan.keys:,} items of {plan.item_size} B", total=plan.keys)
        asyncio.run(fill(path, plan, lambda count: progress.update(task, completed=count)))


def read_through(path: Path) -> None:
    """Read a directory's files into the page cache."""
    for file in path.rglob("*"):
        if file.is_file():
            with file.open("rb", buffering=0) as opened:
                while opened.read(_PIECE_BYTES):
                    pass


def forget_cached(path: Path) -> None:
    """Remove a directory's files from the page cache."""
    for file in path.rglob("*"):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
