"""One run of a test suite: its server, started once, and the environment of clients."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from dynactor.api.testing.aws_environment import (
    ChangedEnvironment,
    credentials,
    endpoints,
)
from dynactor.api.testing.aws_guard import AWSGuard
from dynactor.api.testing.server import Server
from dynactor.api.testing.server_process import ServerError, ServerProcess


class SuiteRun:
    """The server of a test run, the environment variables of its clients, and the guard of AWS.

    Invariant: ``end`` undoes all changes of ``begin`` and ``server``.
    """

    def __init__(self, options: Sequence[str], region: str, *, allow_aws: bool) -> None:
        self._options = tuple(options)
        self._region = region
        self._allow_aws = allow_aws
        self._environment = ChangedEnvironment()
        self._guard = AWSGuard()
        self._process: ServerProcess | None = None
        self._failure: str | None = None
        self._server: Server | None = None
        self._session: Any = None

    @property
    def log(self) -> str:
        """The server's log so far."""
        return "" if self._process is None else self._process.log

    def begin(self) -> None:
        """Start the server, guard AWS, and return before the server is ready."""
        if self._process is not None:
            return
        self._environment.set(credentials(self._region))
        if not self._allow_aws:
            self._guard.install()
        self._process = ServerProcess(("--region", self._region, *self._options))

    def server(self) -> Server:
        """The ready server; from now on the environment points clients to it.

        Raises:
            ServerError: the server did not start, or it has ended. Later calls fail at once.
        """
        if self._failure is not None:
            raise ServerError(self._failure)
        self.begin()
        assert self._process is not None
        if self._server is None:
            try:
                self._process.wait_ready()
            except ServerError as error:
                self._failure = str(error)
                raise
            self._server = Server(self._process, self._region)
            self._environment.set(endpoints(self._server.endpoint))
            self._forget_default_session()
        elif self._process.exit_code is not None:
            self._failure = (
                f"The server ended with exit code {self._process.exit_code}. Its log ends with\n"
                f"{self._process.log_tail}"
            )
            raise ServerError(self._failure)
        return self._server

    def end(self) -> None:
        """Stop the server, and undo all changes.

        Raises:
            ServerError: the server did not stop by itself.
        """
        self._environment.restore()
        self._guard.remove()
        if self._session is not None:
            self._session[0].DEFAULT_SESSION = self._session[1]
        if self._process is not None and self._process.exit_code is None:
            self._process.stop()

    def _forget_default_session(self) -> None:
        """Make boto3 read the environment again: its default session may have old values."""
        boto3: Any = sys.modules.get("boto3")
        if boto3 is not None:
            self._session = (boto3, boto3.DEFAULT_SESSION)
            boto3.DEFAULT_SESSION = None
