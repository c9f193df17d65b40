"""A minimal client: DynamoDB's JSON over one keep-alive connection.

An SDK spends more time on a request than the server does, so load tests and measurements use this
client. It sends one request at a time on a connection, and supports no retries, redirects and
chunked answers.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, NamedTuple, cast

import msgspec

_AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host;x-amz-date;x-amz-target, Signature=0"
)

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


class ConnectionLost(Exception):
    """The connection ended before the answer; the outcome of the request is unknown."""


class Response(NamedTuple):
    """The status and the undecoded JSON body of an answer."""

    status: int
    body: bytes


class Answer(NamedTuple):
    """The status and the decoded JSON body of an answer."""

    status: int
    body: dict[str, Any]

    @property
    def error(self) -> str:
        """The error's name without its namespace; empty for success."""
        return str(self.body.get("__type", "")).rpartition("#")[2]


def request_bytes(operation: str, body: bytes, service: str = "DynamoDB") -> bytes:
    """A whole HTTP request of an operation; ``service`` may also be DynamoDBStreams."""
    return (
        f"POST / HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/x-amz-json-1.0\r\n"
        f"X-Amz-Target: {service}_20120810.{operation}\r\n"
        f"X-Amz-Date: 20260101T000000Z\r\n"
        f"Authorization: {_AUTHORIZATION}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


class Connection(asyncio.Protocol):
    """One connection to a server. Call ``send`` only after the previous answer."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._answer: asyncio.Future[Response] | None = None
        self._lost: Exception | None = None
        self._closed = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(cls, host: str, port: int, tls: ssl.SSLContext | None = None) -> Connection:
        """Connect, by TLS with a context.

        Raises:
            ConnectionLost: there is no listener.
        """
        try:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(cls, host, port, ssl=tls)
        except OSError as error:
            raise ConnectionLost(str(error)) from error
        return connection

    async def send(self, request: bytes) -> Response:
        """Send the bytes of ``request_bytes`` and wait for the answer.

        Raises:
            ConnectionLost: no answer arrived.
        """
        assert self._answer is None, "one request at a time"
        if self._lost is not None or self._transport is None:
            raise ConnectionLost(str(self._lost))
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            return await self._answer
        finally:
            self._answer = None

    async def call(self, operation: str, body: dict[str, Any], service: str = "DynamoDB") -> Answer:
        """Send an operation's request, and wait for its decoded answer.

        Raises:
            ConnectionLost: no answer arrived.
        """
        response = await self.send(request_bytes(operation, encode(body), service))
        return Answer(response.status, decode(response.body))

    async def close(self) -> None:
        """Close, and wait until the socket is closed, because an open one is a ResourceWarning."""
        if self._transport is not None:
            self._transport.abort()
        await self._closed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head_end = self._received.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = bytes(self._received[:head_end]).lower()
        start = head.index(b"content-length:") + 15
        line_end = head.find(b"\r\n", start)
        length = int(head[start : line_end if line_end > 0 else None])
        if len(self._received) < head_end + 4 + length:
            return
        assert len(self._received) == head_end + 4 + length, "an answer nobody asked for"
        response = Response(int(head[9:12]), bytes(self._received[head_end + 4 :]))
        self._received.clear()
        assert self._answer is not None, "an answer nobody asked for"
        if not self._answer.done():
            self._answer.set_result(response)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = exc or ConnectionLost("closed by the server")
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionLost(str(self._lost)))
        self._closed.set_result(None)
