"""Listens on the server's socket and serves connections until the server stops.

Every connection starts in the fast lane and may move permanently to the full lane.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from dynactor.api.http.aiohttp_lane import full_server
from dynactor.api.http.body_memory import RequestMemory
from dynactor.api.http.fast_lane import FastLanes
from dynactor.api.http.pipelining import Turns
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.request_figures import QueueLengths
from dynactor.api.http.server_identity import http_url
from dynactor.api.http.settings import HttpSettings
from dynactor.api.http.tls_acceptor import accepting_tls
from dynactor.api.tls.certificate import ServerCertificate

_BACKLOG: Final = 1024
# Wildcard addresses, with the addresses that clients use to connect.
_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - no address is bound here


class CannotListen(Exception):
    """The server cannot listen on the address; the message describes the fix."""


def listen(host: str, port: int, *, option_prefix: str = "--") -> socket.socket:
    """Open a socket that listens; port 0 takes a free port. Raises ``CannotListen``.

    Error messages name the options with this prefix.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            advice = (
                "it is in use; stop what listens there, "
                f"or give another {option_prefix}port (0: any)"
            )
        elif error.errno == errno.EACCES:
            advice = f"it is not allowed; give a {option_prefix}port above 1023"
        else:
            # Python adds the address, which the message names already.
            reason = (error.strerror or str(error)).partition(" (")[0]
            advice = f"{reason}; give another {option_prefix}host"
        raise CannotListen(f"Cannot listen on {host} port {port}: {advice}") from None
    # Connections inherit this option, which not every event loop sets. Without it the second of two
    # pipelined answers waits 40 ms, until the client acknowledges the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def url(listener: socket.socket, certificate: ServerCertificate | None = None) -> str:
    """The URL for clients on the same machine."""
    host, port = listener.getsockname()[:2]
    scheme = "http" if certificate is None else "https"
    return http_url(_LOOPBACK.get(host, host), port, scheme)


def listens_everywhere(listener: socket.socket) -> bool:
    """Whether a socket listens on all addresses of the machine."""
    return listener.getsockname()[0] in _LOOPBACK


@asynccontextmanager
async def serving(
    protocol: Protocol,
    settings: HttpSettings,
    listener: socket.socket,
    certificate: ServerCertificate | None = None,
) -> AsyncIterator[str]:
    """Serve within the context, which yields the endpoint's URL; TLS needs a certificate.

    When the context ends, requests in flight are answered and no others are accepted.
    """
    memory = RequestMemory(
        settings.large_requests_bytes,
        grace_seconds=settings.grace_seconds,
        least_bytes_per_second=settings.least_bytes_per_second,
    )
    turns = Turns()
    full = full_server(protocol, settings, memory, turns)
    async with FastLanes(protocol, settings, full, memory, turns) as fast:
        protocol.figures.connections = lambda: len(protocol.open_connections)
        protocol.figures.queues = lambda: QueueLengths(
            memory.waiting_count,
            turns.waiting_count,
            fast.unsent_answers.connection_count,
            fast.unsent_answers.size_bytes,
        )
        try:
            async with _accepting(listener, fast, certificate):
                protocol.is_serving = True
                try:
                    yield url(listener, certificate)
                finally:
                    protocol.is_serving = False
        finally:
            fast.end()
            full.pre_shutdown()
            await full.shutdown(settings.drain_seconds)


@asynccontextmanager
async def _accepting(
    listener: socket.socket, fast: FastLanes, certificate: ServerCertificate | None
) -> AsyncIterator[None]:
    if certificate is not None:
        # Unfinished handshakes count as connections.
        async with accepting_tls(
            listener, fast.connection, certificate, most_handshakes=fast.admitted
        ):
            yield
        return
    server = await asyncio.get_running_loop().create_server(
        fast.connection, sock=listener, backlog=_BACKLOG
    )
    try:
        yield
    finally:
        server.close()
