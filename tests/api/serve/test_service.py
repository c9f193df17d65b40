"""The server as a service: signals, its service manager, limits of the process."""

from __future__ import annotations

import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dynactor.api.serve.options import ServeOptions
from dynactor.api.serve.running_server import _http_settings
from tests.support.servers.server import PROJECT, running_server, serve_command

NOBODY_LISTENS = ("--host", "192.0.2.1", "--allow-open")


@contextmanager
def hangups(handler: signal.Handlers) -> Iterator[None]:
    """Processes that start in here inherit whether SIGHUP is ignored."""
    earlier = signal.signal(signal.SIGHUP, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, earlier)


def test_a_closed_terminal_ends_it_cleanly():
    # The tests themselves may run under nohup.
    with hangups(signal.SIG_DFL), running_server() as server:
        server.process.send_signal(signal.SIGHUP)
        assert server.process.wait(10) == 0
        assert "signal=SIGHUP" in server.log


def test_a_server_that_nohup_started_outlives_its_terminal():
    with hangups(signal.SIG_IGN), running_server() as server:
        server.process.send_signal(signal.SIGHUP)
        assert server.stop() == 0
        assert "signal=SIGTERM" in server.log


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_its_service_manager_is_notified_when_it_listens_and_stops(kind: str, tmp_path: Path):
    path = f"{tmp_path}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(10)
        manager.bind(path if kind == "path" else f"\0{path}")
        variable = path if kind == "path" else f"@{path}"
        with running_server(environment={"NOTIFY_SOCKET": variable}) as server:
            assert manager.recv(100) == b"READY=1"
            assert server.stop() == 0
            assert manager.recv(100) == b"STOPPING=1"


def test_a_service_manager_that_is_gone_keeps_it_from_nothing(tmp_path: Path):
    with running_server(environment={"NOTIFY_SOCKET": f"{tmp_path}/none"}) as server:
        assert server.stop() == 0


def test_a_low_limit_of_open_files_is_warned_of():
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


def test_requests_under_way_have_as_long_as_the_option_says():
    settings = _http_settings(ServeOptions(in_memory=True, drain_seconds=2.5), None, None)
    assert settings.drain_seconds == 2.5
