"""One keep-alive connection that calls its owner with each answer.

It uses no futures and no tasks, because the generator has to cost less than the measured server.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol, cast

from dynactor.load.wire.answers import Answer, BadAnswer, take_answer
from dynactor.load.wire.endpoint import Endpoint


class Owner(Protocol):
    """Receives the answers."""

    def answered(self, answer: Answer) -> None:
        """The answer to the last request has come."""
        ...

    def lost(self, reason: str) -> None:
        """The connection has ended, so no answer will come."""
        ...


class Connection(asyncio.Protocol):
    """A connection. Call ``send`` only after the last answer arrived."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._received = b""
        self._reason = "ConnectionLost"

    @classmethod
    async def open(cls, endpoint: Endpoint, owner: Owner) -> Connection:
        """Connect.

        Raises:
            OSError: there is no listener, or TLS fails.
        """
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: cls(owner), endpoint.host, endpoint.port, ssl=endpoint.tls()
        )
        return connection

    def send(self, request: bytes) -> None:
        """Send a whole request."""
        self._transport.write(request)

    def close(self, reason: str = "ConnectionLost") -> None:
        """Close immediately; the owner gets this reason."""
        self._reason = reason
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        made = transport.get_extra_info("socket")
        if made is not None:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        try:
            answer = take_answer(received)
        except BadAnswer:
            self.close("BadAnswer")
            return
        if answer is None:
            self._received = received
            return
        self._received = b""
        self._owner.answered(answer)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio names it
        self._owner.lost(self._reason)
