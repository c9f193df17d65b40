"""The server as a service: signals, the service manager, and limits of the process."""

from __future__ import annotations

import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dynactor.api.options.read_settings import read_settings
from dynactor.api.serve.running_server import _http_settings
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.servers.server import PROJECT, running_server, serve_command

NOBODY_LISTENS = ("--host", "192.0.2.1", "--allow-open")


@contextmanager
def hangups(handler: signal.Handlers) -> Iterator[None]:
    """Set the handler of SIGHUP, which processes started in the context inherit."""
    earlier = signal.signal(signal.SIGHUP, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, earlier)


def test_a_closed_terminal_stops_the_server_normally():
    # Set the default handler, because the tests may run under nohup.
    with hangups(signal.SIG_DFL), running_server() as server:
        server.process.send_signal(signal.SIGHUP)
        assert server.process.wait(HANG_SECONDS) == 0
        assert "signal=SIGHUP" in server.log


def test_a_server_started_by_nohup_continues_when_its_terminal_closes():
    with hangups(signal.SIG_IGN), running_server() as server:
        server.process.send_signal(signal.SIGHUP)
        assert server.stop() == 0
        assert "signal=SIGTERM" in server.log


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_the_service_manager_is_notified_when_the_server_listens_and_stops(
    kind: str, tmp_path: Path
):
    path = f"{tmp_path}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(HANG_SECONDS)
        manager.bind(path if kind == "path" else f"\0{path}")
        variable = path if kind == "path" else f"@{path}"
        with running_server(environment={"NOTIFY_SOCKET": variable}) as server:
            assert manager.recv(100) == b"READY=1"
            assert server.stop() == 0
            assert manager.recv(100) == b"STOPPING=1"


def test_a_server_works_without_its_service_manager(tmp_path: Path):
    with running_server(environment={"NOTIFY_SOCKET": f"{tmp_path}/none"}) as server:
        assert server.stop() == 0


def test_the_server_warns_of_a_low_limit_of_open_files():
    command = shlex.join(serve_command(*NOBODY_LISTENS))
    done = subprocess.run(
        ["sh", "-c", f"ulimit -n 512; exec {command}"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    (warning,) = [line for line in done.stderr.splitlines() if "open_files_limited" in line]
    assert "limit=512" in warning
    assert "LimitNOFILE=" in warning


def test_requests_in_flight_get_the_configured_time_at_a_stop():
    settings = _http_settings(read_settings(in_memory=True, drain_seconds=2.5), None, None)
    assert settings.drain_seconds == 2.5
