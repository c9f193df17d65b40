"""Accepts TLS connections. Handshakes are bounded in time, in number, and in each turn of the loop.

The acceptor looks at the first byte of a connection before the handshake. So a client that speaks
HTTP gets an answer in HTTP with the reason, and a client that sends nothing costs only a socket.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio
import structlog
from anyio import CancelScope
from anyio.abc import TaskGroup

from dynactor.api.http.pipelining import Turns
from dynactor.api.tls.certificate import ServerCertificate
from dynactor.model.kept_failure import KeptFailure
from dynactor.model.limits import KIB

HANDSHAKE_SECONDS: Final = 10.0
# More unfinished handshakes of a port end the oldest one.
MOST_HANDSHAKES: Final = 512
# The first byte of a TLS handshake record.
_HANDSHAKE_RECORD: Final = b"\x16"
# The pause after an error of the system, such as too many open files.
_PAUSE_SECONDS: Final = 0.1
# Enough for the head of a request.
_READ_BYTES: Final = 64 * KIB
_SENTENCE: Final = b"This port speaks HTTPS: use https:// in the address.\n"
_HTTP_ANSWER: Final = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_SENTENCE), _SENTENCE)
)

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def accepting_tls(
    listener: socket.socket,
    factory: Callable[[], asyncio.BaseProtocol],
    certificate: ServerCertificate,
    *,
    most_handshakes: Callable[[], int] = lambda: MOST_HANDSHAKES,
) -> AsyncIterator[None]:
    """Accept connections within the context. Each gets a protocol of ``factory``.

    ``most_handshakes`` is the number of unfinished handshakes that may exist now. More of them end
    the oldest one. With 0, connections are refused.
    """
    listener.setblocking(False)
    kept = KeptFailure()
    async with anyio.create_task_group() as group:
        acceptor = _Acceptor(factory, certificate, most_handshakes, group)
        group.start_soon(acceptor.run, listener)
        with kept:
            yield
        group.cancel_scope.cancel()
    kept.raise_again()


class _Acceptor:
    """Accepts connections and makes their handshakes, each in a task."""

    def __init__(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        certificate: ServerCertificate,
        most_handshakes: Callable[[], int],
        group: TaskGroup,
    ) -> None:
        self._factory = factory
        self._certificate = certificate
        self._most_handshakes = most_handshakes
        self._group = group
        # A handshake costs as much processor time as 40 requests. One begins in each turn of the
        # event loop, so a flood of handshakes delays requests little.
        self._turns = Turns()
        # The unfinished handshakes, the oldest first.
        self._handshakes: dict[CancelScope, None] = {}

    async def run(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:
                _log.warning("connection_refused", reason=error.strerror)
                await anyio.sleep(_PAUSE_SECONDS)
                continue
            most = min(self._most_handshakes(), MOST_HANDSHAKES)
            if most <= 0:
                connection.close()
                continue
            while len(self._handshakes) >= most:
                oldest = next(iter(self._handshakes))
                del self._handshakes[oldest]
                oldest.cancel()
            scope = CancelScope()
            self._handshakes[scope] = None
            self._group.start_soon(self._open, connection, scope)

    async def _open(self, connection: socket.socket, scope: CancelScope) -> None:
        """Make the handshake of a connection, or close the connection."""
        is_open = False
        scope.deadline = anyio.current_time() + HANDSHAKE_SECONDS
        try:
            with scope:
                is_open = await self._is_opened(connection)
        except OSError as error:
            _log.debug("handshake_failed", reason=str(error))
        finally:
            self._handshakes.pop(scope, None)
            if not is_open:
                connection.close()

    async def _is_opened(self, connection: socket.socket) -> bool:
        await anyio.wait_readable(connection)
        first = connection.recv(1, socket.MSG_PEEK)
        loop = asyncio.get_running_loop()
        if first != _HANDSHAKE_RECORD:
            if first:
                # Read the request first, because closing a socket with unread bytes resets it.
                connection.recv(_READ_BYTES)
                await loop.sock_sendall(connection, _HTTP_ANSWER)
            return False
        await self._turns.wait()
        await loop.connect_accepted_socket(
            self._factory,
            connection,
            ssl=self._certificate.context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
        )
        return True
