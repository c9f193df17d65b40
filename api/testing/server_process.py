"""A server process: start, wait until ready, stop. The process ends with its parent."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from time import monotonic
from typing import Final, NoReturn

# A busy machine may take this long. The end of the process is noticed at once.
_START_DEADLINE_SECONDS: Final = 60.0
_STOP_DEADLINE_SECONDS: Final = 20.0
_LOG_TAIL_CHARACTERS: Final = 4000
_OPTIONS: Final = (
    "--in-memory",
    "--port",
    "0",
    "--admin-port",
    "0",
    "--allow-faults",
    "--exit-with-parent",
)
# A clock with real speed until a test moves it.
_CLOCK_OPTIONS: Final = ("--virtual-clock", "now", "--clock-speed", "1")
_ENDPOINT: Final = re.compile(r"^Listening on (http://\S+)", re.MULTILINE)
_ADMIN: Final = re.compile(r"^Metrics on (http://\S+)/metrics", re.MULTILINE)
# The last line that the server prints at its start.
_READY: Final = re.compile(r"^Data in .*\n", re.MULTILINE)
# Variables of the user's servers must not change servers of tests.
_ENVIRONMENT_PREFIX: Final = "DYNACTOR_"


class ServerError(RuntimeError):
    """The server did not start or stop; the message ends with its log."""


class ServerProcess:
    """A server that keeps its data in memory and listens on free ports of loopback.

    Invariant: after ``wait_ready`` has returned, ``endpoint`` and ``admin_endpoint`` answer until
    ``stop``.
    """

    def __init__(self, options: Sequence[str] = ()) -> None:
        """Start the process, and return before it is ready."""
        self.endpoint = ""
        self.admin_endpoint = ""
        self.options = tuple(options)
        self._announcement = ""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by ``_close``
        # -P: files of the tests' directory must not replace modules of the server.
        self._command = [sys.executable, "-P", "-m", "dynactor", "serve", *_OPTIONS, *options]
        if not any(option.startswith("--virtual-clock") for option in options):
            self._command += _CLOCK_OPTIONS
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_ENVIRONMENT_PREFIX)
        }
        try:
            # Standard input is a pipe without a writer: it ends with this process.
            self._process = subprocess.Popen(  # noqa: S603 - the command is our own
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=environment,
                # Ctrl-C in the terminal must end the tests only: they need the server to clean up.
                process_group=0,
            )
        except BaseException:
            self._log.close()
            raise

    @property
    def process_id(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while the process runs."""
        return self._process.poll()

    @property
    def log(self) -> str:
        """Everything that the process has written to standard error."""
        if self._log.closed:
            return self._final_log
        descriptor = self._log.fileno()
        # The process writes at the position of the same open file, so it must not be moved.
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")

    @property
    def log_tail(self) -> str:
        """The end of the log."""
        return self.log[-_LOG_TAIL_CHARACTERS:]

    def wait_ready(self) -> None:
        """Wait until the server answers. Later calls return at once.

        Raises:
            ServerError: the process ended or took too long; it is stopped.
        """
        if self.endpoint:
            return
        deadline = monotonic() + _START_DEADLINE_SECONDS
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not _READY.search(self._announcement):
                if not selector.select(max(deadline - monotonic(), 0)):
                    self._fail(f"did not start within {_START_DEADLINE_SECONDS:.0f} seconds")
                chunk = os.read(self._process.stdout.fileno(), 65536)
                if not chunk:
                    self._process.wait()
                    self._fail(f"ended with exit code {self._process.returncode}")
                self._announcement += chunk.decode()
        endpoint, admin = _ENDPOINT.search(self._announcement), _ADMIN.search(self._announcement)
        if endpoint is None or admin is None:
            self._fail(f"printed no addresses:\n{self._announcement}")
        self.endpoint, self.admin_endpoint = endpoint[1], admin[1]

    def stop(self) -> None:
        """Stop the server. Later calls do nothing.

        Raises:
            ServerError: the server did not stop within 20 seconds and was killed.
        """
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            self._fail(f"did not stop within {_STOP_DEADLINE_SECONDS:.0f} seconds")
        finally:
            self._close()

    def send_kill(self) -> None:
        """Kill the process; a thread in ``wait_ready`` then returns."""
        self._process.kill()

    def _fail(self, what: str) -> NoReturn:
        self._process.kill()
        self._process.wait()
        self._close()
        command = " ".join(self._command)
        raise ServerError(f"The server {what}: {command}\nIts log ends with\n{self.log_tail}")

    def _close(self) -> None:
        if self._log.closed:
            return
        self._final_log = self.log
        self._log.close()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
