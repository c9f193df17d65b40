"""A server for tests, without pytest.

::

    import dynactor.testing

    with dynactor.testing.server() as server:
        dynamodb = boto3.client("dynamodb", **server.client_arguments)

With asyncio, ``async with dynactor.testing.server() as server:``. With pytest, the fixtures of
``dynactor.pytest_plugin`` do this.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType

from dynactor.api.testing.admin_calls import AdminError
from dynactor.api.testing.aws_environment import REGION
from dynactor.api.testing.server import Server, ServerClock
from dynactor.api.testing.server_process import ServerError, ServerProcess

__all__ = ["AdminError", "Server", "ServerClock", "ServerError", "server"]


class server:  # noqa: N801 - used like a function
    """A context manager, for ``with`` and ``async with``, in which a server runs.

    The server keeps its data in memory and listens on a free port of loopback. It ends with the
    context or with this process, even after SIGKILL. Every context starts a server of its own.

    Raises on entering:
        ServerError: the server did not start; the message has its log.
    """

    def __init__(self, *options: str, region: str = REGION) -> None:
        """``options`` are those of ``dynactor serve``, such as ``"--gsi-lag", "fixed:1"``."""
        self._options = options
        self._region = region
        self._process: ServerProcess | None = None

    def __enter__(self) -> Server:
        """Start the server, and wait until it answers."""
        process = self._start()
        process.wait_ready()
        return Server(process, self._region)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the server."""
        assert self._process is not None
        self._process.stop()

    async def __aenter__(self) -> Server:
        """Start the server, and wait in a thread until it answers."""
        process = self._start()
        waiting = asyncio.get_running_loop().run_in_executor(None, process.wait_ready)
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError:
            # The thread can't be canceled. It returns when the process has ended.
            process.send_kill()
            with suppress(ServerError):
                await waiting
            process.stop()
            raise
        return Server(process, self._region)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the server, and wait in a thread until it has ended."""
        assert self._process is not None
        await asyncio.to_thread(self._process.stop)

    def _start(self) -> ServerProcess:
        assert self._process is None, "every context needs a server() of its own"
        self._process = ServerProcess(("--region", self._region, *self._options))
        return self._process
