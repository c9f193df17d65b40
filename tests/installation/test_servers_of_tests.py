"""The servers of tests: the reasons of failed starts, the retry of slow ones, and their end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.environment.hanging import HANG_SECONDS
from tests.support.servers import server
from tests.support.servers.server import PROJECT, ServerDidNotStart, running, serve_command

# The first start uses the processor until it is killed; the second one is ready.
SLOW_ONCE = """
import sys, pathlib
marker = pathlib.Path(sys.argv[1])
if not marker.exists():
    marker.touch()
    while True: pass
print("Listening on http://127.0.0.1:1", flush=True)
sys.stdin.read()
"""


def test_a_start_that_fails_names_the_exit_code_and_the_log():
    program = "import sys; print('no disk', file=sys.stderr); sys.exit(3)"
    with (
        pytest.raises(ServerDidNotStart, match=r"ended with 3 before it listened(?s:.*)no disk"),
        running([sys.executable, "-c", program]),
    ):
        pass


def test_a_server_that_starts_slowly_is_started_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(server, "_START_PROCESSOR_SECONDS", 0.5)
    with running([sys.executable, "-c", SLOW_ONCE, str(tmp_path / "marker")]) as started:
        assert started.endpoint == "http://127.0.0.1:1"


def test_a_server_that_always_starts_slowly_is_refused_with_its_processor_time(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(server, "_START_PROCESSOR_SECONDS", 0.2)
    with (
        pytest.raises(ServerDidNotStart, match="it used the processor for 0"),
        running([sys.executable, "-c", "while True: pass"]),
    ):
        pass


def test_a_server_ends_with_a_killed_test_run():
    starting = (
        "import subprocess, sys, time;"
        f"server = subprocess.Popen({serve_command()!r}, stdout=subprocess.PIPE);"
        "server.stdout.readline(); print(server.pid, flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", starting]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        served = psutil.Process(int(run.stdout.readline()))
        run.kill()
        served.wait(HANG_SECONDS)
