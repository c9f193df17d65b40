"""A PostgreSQL of the tests keeps its port and ends with the tests, even if they are killed."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.servers.postgresql import running_postgresql
from tests.support.servers.server import PROJECT

_SECONDS: Final = 60
_PROGRAM: Final = """
import signal
from tests.support.servers.postgresql import running_postgresql

with running_postgresql() as server:
    print(server.directory, flush=True)
    signal.pause()
"""


def test_postgresql_ends_when_the_tests_are_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    ) as tests:
        assert tests.stdout is not None
        directory = Path(tests.stdout.readline().strip())
        postmaster = int((directory / "data" / "postmaster.pid").read_text().split()[0])
        end = os.pidfd_open(postmaster)
        try:
            tests.kill()
            ended, _, _ = select.select([end], [], [], _SECONDS)
        finally:
            os.close(end)
    assert ended, "PostgreSQL still runs"


def test_no_other_process_gets_the_port_of_a_stopped_postgresql() -> None:
    with running_postgresql() as server:
        server.stop()
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", server.port))
        server.start()
        assert server.sql("SELECT 1") == "1"
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", server.port))
        other.listen()
