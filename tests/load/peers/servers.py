"""The compared servers, each in its own process on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from time import clock_gettime, monotonic, sleep
from typing import Final, NamedTuple

from tests.load.peers.launch import NoPeers, ServerName, launch
from tests.support.clients.wire import request_bytes
from tests.support.environment.unused_ports import unused_ports
from tests.support.servers.server import PROJECT

_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 0.002
_LEAST_ANSWER: Final = b"HTTP/1.1 200"
# The kernel's number for the clock of another process's processor time.
_PROCESS_CLOCK: Final = 2


class Peer(NamedTuple):
    """A started server, and the time and processor time until its first answer."""

    name: ServerName
    endpoint: str
    pid: int
    start_seconds: float
    start_cpu_seconds: float


@contextmanager
def running_peer(
    name: ServerName,
    directory: Path,
    serve: Sequence[str] = (),
    *,
    project: Path = PROJECT,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Peer]:
    """A server on a free port of loopback, with its data below ``directory`` if it is on disk.

    Raises:
        NoPeers: a server can't be started.
    """
    (port,) = unused_ports(1)
    data = directory / name
    data.mkdir(parents=True, exist_ok=True)
    command, _, folder = launch(name, port, data, serve, project)
    with TemporaryFile() as log:
        began = monotonic()
        with subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        ) as process:
            try:
                if not _answers(process, port):
                    log.seek(0)
                    output = log.read().decode(errors="replace")
                    raise NoPeers(f"{name} does not start: {' '.join(command)}\n{output}")
                seconds = monotonic() - began
                endpoint = f"http://127.0.0.1:{port}"
                yield Peer(name, endpoint, process.pid, seconds, process_seconds(process.pid))
            finally:
                process.terminate()
                try:
                    process.wait(_STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()


def process_seconds(pid: int) -> float:
    """The processor time of a running process, exact where ``/proc`` counts hundredths."""
    return clock_gettime((~pid << 3) | _PROCESS_CLOCK)


def user_environment() -> dict[str, str]:
    """The environment variables of a user's process, in which Python caches compiled modules."""
    return {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait for an answer; False if the process ends before it, or after a timeout."""
    deadline = monotonic() + _START_SECONDS
    request = request_bytes("ListTables", b"{}")
    while process.poll() is None and monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=_START_SECONDS) as client:
                client.sendall(request)
                if client.recv(len(_LEAST_ANSWER)).startswith(_LEAST_ANSWER):
                    return True
        except (ConnectionRefusedError, ConnectionResetError):
            pass
        sleep(_POLL_SECONDS)
    return False
