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

PROJECT = Path(__file__).parents[3]
_LISTENING = re.compile(r"Listening on (https?://\S+)")
# Long enough for a busy machine. If the process exits, the wait ends at once.
_START_DEADLINE_SECONDS = 120
_STOP_DEADLINE_SECONDS = 30
_SHOWN_LOG_CHARACTERS = 4000


def _embedded(data_dir: Path | None) -> list[str]:
    return ["--in-memory"] if data_dir is None else ["--data-dir", str(data_dir)]


# Returns the options that select a server's store. ``--store postgresql`` of pytest replaces it by
# a function that selects a schema.
place_options: Callable[[Path | None], list[str]] = _embedded


class ServerDidNotStart(AssertionError):
    """The process ended, or was not ready in time; the message has its log."""


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
            return self.process.wait(_STOP_DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            message = f"the server did not stop on {signal_number.name}\n{self.log}"
            raise AssertionError(message) from None

    def _wait_for_endpoint(self) -> str:
        assert self.process.stdout is not None
        deadline = monotonic() + _START_DEADLINE_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while selector.select(max(deadline - monotonic(), 0)):
                chunk = os.read(self.process.stdout.fileno(), 65536).decode()
                if not chunk:
                    break
                self.announcement += chunk
                if found := _LISTENING.search(self.announcement):
                    return found[1]
        self.process.kill()
        self.process.wait()
        raise ServerDidNotStart(f"{self.announcement}\n{self.log}")


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
    return [sys.executable, "-m", module, "serve", "--port", "0", *place, *arguments]


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
    """The server that a command starts; it is killed at the end if it still runs."""
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            command,
            cwd=project,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        server = None
        try:
            server = Server(process, log)
            yield server
        except BaseException as error:
            if server is not None:
                error.add_note(server.fate)
            raise
        finally:
            if process.poll() is None:
                process.kill()
