"""An HTTP connection on the event loop on which a test sends any bytes and reads answers."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from tests.support.clients.clients import AUTHORIZATION, JSON_1_0

# Closing a socket with this option resets its connection.
RESET = struct.pack("ii", 1, 0)

# A header that makes the fast lane pass the request to the full lane.
TO_FULL_LANE = "TE: trailers"


class RawAnswer(NamedTuple):
    """One answer; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


def head(operation: str, length: int | None, *more: str, host: str = "127.0.0.1") -> bytes:
    """The head of a request as an SDK sends it."""
    lines = [
        "POST / HTTP/1.1",
        f"Host: {host}",
        f"X-Amz-Target: DynamoDB_20120810.{operation}",
        f"Content-Type: {JSON_1_0}",
        f"Authorization: {AUTHORIZATION}",
        *more,
        *([] if length is None else [f"Content-Length: {length}"]),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def request(operation: str, body: bytes = b"{}", *more: str, host: str = "127.0.0.1") -> bytes:
    """A whole request."""
    return head(operation, len(body), *more, host=host) + body


class RawConnection:
    """A connection on which the test writes any bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> RawAnswer:
        """Read one answer."""
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        pairs = (line.split(": ", 1) for line in lines[1:] if line)
        headers = {name.lower(): text for name, text in pairs}
        body = await self.reader.readexactly(int(headers["content-length"]))
        return RawAnswer(int(lines[0].split(" ")[1]), headers, body)

    async def ask(
        self, operation: str, body: bytes = b"{}", *more: str, **options: Any
    ) -> RawAnswer:
        """One request and its answer."""
        self.send(request(operation, body, *more, **options))
        return await self.answer()

    def reset_when_closed(self) -> None:
        """Close with a reset, which the server notices while it answers."""
        bare: socket.socket = self.writer.get_extra_info("socket")
        if bare.fileno() >= 0:
            bare.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    async def is_closed(self) -> bool:
        """Wait until the server closes the connection; return whether it sent nothing before."""
        try:
            return await self.reader.read() == b""
        except ConnectionResetError:
            return True


@asynccontextmanager
async def raw_connection(endpoint: str) -> AsyncIterator[RawConnection]:
    """A connection to an endpoint's URL."""
    parts = urlsplit(endpoint)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        yield RawConnection(reader, writer)
    finally:
        writer.transport.abort()
