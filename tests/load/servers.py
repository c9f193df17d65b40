"""This server as a measured process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil

from tests.support.servers.postgresql import Postgresql
from tests.support.servers.server import running_server


class Server(NamedTuple):
    """The address for requests, and the process that answers them."""

    name: str
    host: str
    port: int
    pid: int


@contextmanager
def directory_on(disk: Path | None) -> Iterator[Path]:
    """An empty directory for the measurement, on the chosen disk."""
    if disk is not None:
        disk.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=disk) as directory:
        yield Path(directory)


@contextmanager
def dynactor(directory: Path, *arguments: str) -> Iterator[Server]:
    """This project's server, on a data directory; ``arguments`` follow ``serve``."""
    with running_server(*arguments, data_dir=directory) as server:
        port = int(server.endpoint.rpartition(":")[2])
        yield Server("dynactor", "127.0.0.1", port, server.process.pid)
        server.stop()


def cpu_seconds(pid: int) -> float:
    """The processor time of a process, including its threads and the processes it has started."""
    process = psutil.Process(pid)
    times = process.cpu_times()
    seconds = times.user + times.system + times.children_user + times.children_system
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            times = child.cpu_times()
            seconds += times.user + times.system
    return float(seconds)


def resident_megabytes(pid: int) -> float:
    """The resident memory of a process and of the processes it has started."""
    process = psutil.Process(pid)
    resident_bytes = process.memory_info().rss
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            resident_bytes += child.memory_info().rss
    return float(resident_bytes) / 1e6


def postmaster(server: Postgresql) -> psutil.Process:
    """The process that starts PostgreSQL's others."""
    return psutil.Process(int((server.data / "postmaster.pid").read_text().split()[0]))


def postgresql_seconds(server: Postgresql) -> float:
    """The processor time of PostgreSQL, with processes that have ended."""
    process = postmaster(server)
    times = process.cpu_times()
    seconds = times.user + times.system + times.children_user + times.children_system
    for child in process.children():
        times = child.cpu_times()
        seconds += times.user + times.system
    return float(seconds)
