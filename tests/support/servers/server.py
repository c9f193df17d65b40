"""Starts and stops real server processes for tests."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import IO

import psutil

from tests.support.environment.hanging import HANG_SECONDS

PROJECT = Path(__file__).parents[3]
_LISTENING = re.compile(r"Listening on (https?://\S+)")
# A start takes less than 2 seconds of processor time. The limit does not depend on other processes.
_START_PROCESSOR_SECONDS = 40
_LOOK_SECONDS = 1.0
_SHOWN_LOG_CHARACTERS = 4000


def _embedded(data_dir: Path | None) -> list[str]:
    return ["--in-memory"] if data_dir is None else ["--data-dir", str(data_dir)]


# Returns the options that select a server's store. ``--store postgresql`` of pytest replaces it by
# a function that selects a schema.
place_options: Callable[[Path | None], list[str]] = _embedded


class ServerDidNotStart(AssertionError):
    """The process ended before it was ready, or was too slow; the message has its log."""


class ServerTooSlow(ServerDidNotStart):
    """The process still ran, and was not ready, at the limit of its start."""


class Server:
    """A server process. Invariant: while it runs, ``endpoint`` answers."""

    def __init__(self, process: subprocess.Popen[str], log: IO[bytes]) -> None:
        self.process = process
        self._log = log
        # The process's standard output until the server was ready.
        self.announcement = ""
        self.endpoint = self._wait_for_endpoint()

    @property
    def log(self) -> str:
        """The process's standard error so far."""
        log = self._log.fileno()
        # The process shares the file position, so don't change the position.
        return os.pread(log, os.fstat(log).st_size, 0).decode(errors="replace")

    @property
    def fate(self) -> str:
        """Whether the server still runs, and its last log lines, for reports of failed tests."""
        code = self.process.poll()
        state = "still runs" if code is None else f"ended with {code}"
        return f"the server {state}; its log ends with\n{self.log[-_SHOWN_LOG_CHARACTERS:]}"

    def stop(self) -> int:
        """Stop the process as an operator does, and return its exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process without any clean-up."""
        self._end(signal.SIGKILL)

    def _end(self, signal_number: signal.Signals) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        try:
            return self.process.wait(HANG_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            message = f"the server did not stop on {signal_number.name}\n{self.log}"
            raise AssertionError(message) from None

    def _wait_for_endpoint(self) -> str:
        """Read the process's output up to the line with its endpoint.

        Raises:
            ServerDidNotStart: the process has ended, or is too slow.
        """
        assert self.process.stdout is not None
        began = monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while (failure := self._failed_start(monotonic() - began)) is None:
                if not selector.select(_LOOK_SECONDS):
                    continue
                chunk = os.read(self.process.stdout.fileno(), 65536).decode()
                if not chunk:
                    code = self.process.wait(HANG_SECONDS)
                    failure = ServerDidNotStart(f"the server ended with {code} before it listened")
                    break
                self.announcement += chunk
                if found := _LISTENING.search(self.announcement):
                    return found[1]
        self.process.kill()
        self.process.wait()
        failure.args = (f"{failure}\n{self.announcement}\n{self.log}",)
        raise failure

    def _failed_start(self, wall_seconds: float) -> ServerDidNotStart | None:
        """The failure of a start that has taken too long, or None."""
        try:
            times = psutil.Process(self.process.pid).cpu_times()
        except psutil.NoSuchProcess:
            # The end of the output tells it, too.
            return None
        processor_seconds = times.user + times.system
        if processor_seconds < _START_PROCESSOR_SECONDS and wall_seconds < HANG_SECONDS:
            return None
        return ServerTooSlow(
            f"the server did not listen after {wall_seconds:.0f} s, of which it used the "
            f"processor for {processor_seconds:.1f} s"
        )


def serve_command(
    *arguments: str, data_dir: Path | None = None, module: str = "dynactor"
) -> list[str]:
    """The command line of a server on a free port; run it in the project's directory.

    ``module`` may be one that takes the arguments of ``dynactor`` and injects faults. Tests send
    many requests to tables with few units, so the default here is ``--throttling observe``.
    """
    if "--throttling" not in arguments:
        arguments += ("--throttling", "observe")
    place = place_options(data_dir)
    # A test run that is killed leaves no server behind.
    ending = ("--exit-with-parent",)
    return [sys.executable, "-m", module, "serve", "--port", "0", *ending, *place, *arguments]


def run_command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command with these arguments to its end, in an otherwise empty environment."""
    return subprocess.run(
        [sys.executable, "-m", "dynactor", *arguments],
        cwd=PROJECT,
        env={"PATH": "", "HOME": "/nonexistent", **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@contextmanager
def running_server(
    *arguments: str,
    data_dir: Path | None = None,
    environment: Mapping[str, str] | None = None,
    project: Path = PROJECT,
    module: str = "dynactor",
) -> Iterator[Server]:
    """A server on a free loopback port: in memory, or on ``data_dir``.

    ``arguments`` are options of ``serve``; ``environment`` is added to the test's own. The test may
    stop or kill the server; otherwise it is killed at the end. ``project`` is the source directory,
    for example a changed copy. For ``module``, see ``serve_command``.
    """
    command = serve_command(*arguments, data_dir=data_dir, module=module)
    with running(command, environment=environment, project=project) as server:
        yield server


@contextmanager
def running(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    project: Path = PROJECT,
) -> Iterator[Server]:
    """The server that a command starts; it is killed at the end if it still runs.

    A server that is too slow is started once more, because one start can fail all tests that share
    the server.
    """
    with tempfile.TemporaryFile() as log:
        try:
            server = _start(command, environment, project, log)
        except ServerTooSlow:
            server = _start(command, environment, project, log)
        try:
            yield server
        except BaseException as error:
            error.add_note(server.fate)
            raise
        finally:
            if server.process.poll() is None:
                server.process.kill()
            server.process.wait()
            assert server.process.stdout is not None
            server.process.stdout.close()


def _start(
    command: Sequence[str], environment: Mapping[str, str] | None, project: Path, log: IO[bytes]
) -> Server:
    """Start a command and wait until its server listens; a process that fails has ended."""
    process = subprocess.Popen(
        command,
        cwd=project,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    try:
        return Server(process, log)
    except BaseException:
        process.kill()
        process.communicate()
        raise
