"""The address of the client at the other end of a connection."""

from __future__ import annotations

from asyncio import BaseTransport

from dynactor.api.access.sender import Connection


def connected_client(transport: BaseTransport) -> Connection:
    """The client of a connection, which may have ended."""
    peer = transport.get_extra_info("peername")
    # A Unix socket has a path, or nothing.
    address = peer[0] if isinstance(peer, tuple) else ""
    return Connection(address, transport.get_extra_info("sslcontext") is not None)
