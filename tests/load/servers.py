"""The servers that are measured: this one, and dynalite as the one to compare with."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

import psutil

from tests.support.server import running_server

DYNALITE_VERSION = "4.0.0"
_START_SECONDS = 20


class Server(NamedTuple):
    """Where requests go, and the process that answers them."""

    name: str
    host: str
    port: int
    pid: int


@contextmanager
def dynactor(directory: Path) -> Iterator[Server]:
    """This project's server, on a data directory."""
    with running_server(data_dir=directory) as server:
        port = int(server.endpoint.rpartition(":")[2])
        yield Server("dynactor", "127.0.0.1", port, server.process.pid)
        server.stop()


@contextmanager
def dynalite(directory: Path, cli: Path) -> Iterator[Server]:
    """dynalite on a directory: it writes to disk and doesn't wait for the disk."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        *("node", str(cli), "--host", "127.0.0.1", "--port", str(port)),
        *("--path", str(directory), "--createTableMs", "0", "--deleteTableMs", "0"),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            _wait_until_it_listens(port)
            yield Server("dynalite", "127.0.0.1", port, process.pid)
        finally:
            process.terminate()


def _wait_until_it_listens(port: int) -> None:
    deadline = monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            if monotonic() > deadline:
                raise
            sleep(0.05)
        else:
            return


def install_dynalite() -> Path:
    """The path of dynalite's command line; installed by npm into the user's cache once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    directory = cache / "dynactor" / f"dynalite-{DYNALITE_VERSION}"
    cli = directory / "node_modules" / "dynalite" / "cli.js"
    if not cli.exists():
        directory.mkdir(parents=True, exist_ok=True)
        package = f"dynalite@{DYNALITE_VERSION}"
        npm = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(directory), package]
        subprocess.run(npm, check=True)
    return cli


def cpu_seconds(pid: int) -> float:
    """The processor time of a process, its threads included."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def resident_megabytes(pid: int) -> float:
    """The memory of a process that is in RAM."""
    return float(psutil.Process(pid).memory_info().rss) / 1e6
