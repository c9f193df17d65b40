"""A PostgreSQL of the tests ends with them, even if they are killed."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Final

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
