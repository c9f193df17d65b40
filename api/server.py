"""The HTTP server: sockets, limits, time-outs, and the answers that are no operation's.

aiohttp parses and writes; there is no router, since every operation is a POST to ``/``.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final
from zlib import crc32

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError
from msgspec import Struct

from api.access import Access
from api.protocol import Answer, Protocol, Request
from model.errors import (
    AccessDeniedException,
    DynamoDBError,
    RequestEntityTooLargeException,
    SerializationException,
)
from model.limits import KIB, REQUEST_BYTES

HEADER_BYTES: Final = 16 * KIB  # <= of all of a request's headers; more is answered 400
_BACKLOG: Final = 1024
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class CannotListen(Exception):
    """The address can't be listened on; the message says what to do."""


class HttpSettings(Struct, frozen=True):
    """What is shown and allowed, and how long clients are waited for.

    ``idle_seconds`` is for a client that sends nothing, also nothing more of a head;
    ``transfer_seconds`` for the rest of a body, and for an answer to be taken;
    ``drain_seconds`` for requests under way when the server stops.
    """

    region: str
    access: Access = Access()
    idle_seconds: float = 120
    transfer_seconds: float = 60
    drain_seconds: float = 10


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes a free one.

    Raises:
        CannotListen: the address is not ours, or taken, or not allowed.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            advice = "it is in use; stop what listens there, or give another --port (0: any)"
        elif error.errno == errno.EACCES:
            advice = "it is not allowed; give a --port above 1023"
        else:
            advice = f"{error.strerror}; give another --host"
        raise CannotListen(f"Cannot listen on {host} port {port}: {advice}") from None


@asynccontextmanager
async def serving(
    protocol: Protocol, settings: HttpSettings, listener: socket.socket
) -> AsyncIterator[str]:
    """Serve within the context; yields the endpoint's URL.

    On leaving, no more connections and requests are taken, and those under way are answered.
    """
    plain = web.Server(
        PlainLane(protocol, settings).answer,
        access_log=None,
        logger=_quiet_logger(),
        keepalive_timeout=settings.idle_seconds,
        max_line_size=HEADER_BYTES,
        max_field_size=HEADER_BYTES,
        auto_decompress=False,
    )
    server = await asyncio.get_running_loop().create_server(plain, sock=listener, backlog=_BACKLOG)
    host, port = listener.getsockname()[:2]
    try:
        yield f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    finally:
        server.close()
        plain.pre_shutdown()
        await plain.shutdown(settings.drain_seconds)


class PlainLane:
    """Answers one request after another on aiohttp's own connections."""

    def __init__(self, protocol: Protocol, settings: HttpSettings) -> None:
        self._protocol = protocol
        self._settings = settings

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request, and see to it that the client takes the answer."""
        response = await self._response(request)
        try:
            async with asyncio.timeout(self._settings.transfer_seconds):
                await response.prepare(request)
                await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        return response

    async def _response(self, request: web.BaseRequest) -> web.Response:
        access = self._settings.access
        headers = request.headers
        host = headers.get("Host", "")
        if not access.allows_host(host):
            return self._refuse(
                AccessDeniedException(
                    f"Host {host!r} is neither localhost nor an IP address; "
                    "allow it by --allowed-hosts"
                )
            )
        if sum(len(name) + len(text) + 4 for name, text in request.raw_headers) > HEADER_BYTES:
            return self._refuse(SerializationException("Headers exceed 16 KB"))
        origin = headers.get("Origin", "")
        if request.method == "OPTIONS" and origin:
            return self._preflight(request, origin)
        if request.method in ("GET", "HEAD") and request.path == "/":
            return self._health()
        if request.method != "POST" or request.path != "/":
            return _response_of(self._protocol.not_understood())
        try:
            async with asyncio.timeout(self._settings.transfer_seconds):
                body = await _read_body(request)
        except TimeoutError:
            response = web.Response(status=HTTPStatus.REQUEST_TIMEOUT)
            response.force_close()
            return response
        except DynamoDBError as error:
            response = self._refuse(error)
            response.force_close()
            return response
        answer = await self._protocol.answer(
            Request(
                target=headers.get("X-Amz-Target", ""),
                content_type=headers.get("Content-Type", ""),
                authorization=headers.get("Authorization", ""),
                query=request.query_string,
                host=host,
                content_encoding=headers.get("Content-Encoding", ""),
                accept_encoding=headers.get("Accept-Encoding", ""),
                body=body,
            )
        )
        response = _response_of(answer)
        response.headers.update(access.cross_origin_headers(origin))
        return response

    def _refuse(self, error: DynamoDBError) -> web.Response:
        return _response_of(self._protocol.refuse(error))

    def _preflight(self, request: web.BaseRequest, origin: str) -> web.Response:
        access = self._settings.access
        if not access.allows_origin(origin):
            return self._refuse(
                AccessDeniedException(
                    f"Origin {origin!r} is not allowed; allow it by --cors-origins"
                )
            )
        requested = request.headers.get("Access-Control-Request-Headers", "")
        return web.Response(headers=access.preflight_headers(origin, requested))

    def _health(self) -> web.Response:
        body = f"healthy: dynamodb.{self._settings.region}.amazonaws.com ".encode()
        return web.Response(body=body, headers={"x-amz-crc32": str(crc32(body))})


async def _read_body(request: web.BaseRequest) -> bytes:
    """The whole body as it was sent.

    Raises:
        RequestEntityTooLargeException: it is larger than 16 MB.
        SerializationException: it broke off, or its chunks are none.
    """
    too_large = RequestEntityTooLargeException("Request size exceeds 16 MB")
    if request.content_length is not None and request.content_length > REQUEST_BYTES:
        raise too_large
    if request.headers.get("Expect", "").lower() == "100-continue" and request.transport:
        request.transport.write(_CONTINUE)
    pieces = []
    size_bytes = 0
    try:
        while piece := await request.content.readany():
            pieces.append(piece)
            size_bytes += len(piece)
            if size_bytes > REQUEST_BYTES:
                raise too_large
    except (RequestPayloadError, ConnectionError):
        raise SerializationException("The body broke off") from None
    return b"".join(pieces)


def _response_of(answer: Answer) -> web.Response:
    return web.Response(
        status=answer.status,
        body=answer.body,
        headers={**answer.headers, "Server": "dynactor"},
    )


def _quiet_logger() -> logging.Logger:
    """The logger of aiohttp, silent about bytes that are no HTTP: they are no error of ours."""
    logger = logging.getLogger("api.server")
    logger.addFilter(
        lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))
    )
    return logger
