"""The full lane: any HTTP that aiohttp understands.

The lane needs no router, because every operation is a POST to ``/``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import ExitStack, nullcontext
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit
from zlib import crc32

import structlog
from aiohttp import web
from aiohttp.web_protocol import RequestPayloadError
from msgspec import json, structs

from dynactor.api.access.sender import NO_CLIENT
from dynactor.api.answers.explain import REQUEST_HEADER
from dynactor.api.http.answer_damage import CUTS, AnswerDamage
from dynactor.api.http.body_memory import SMALL_REQUEST_BYTES, RequestMemory, Reservation
from dynactor.api.http.bounded_reads import PIECE_BYTES, BoundedReads
from dynactor.api.http.browser_access import host_refusal, preflight_headers
from dynactor.api.http.compression import most_decompressed_bytes
from dynactor.api.http.drain_body import BodyDrain
from dynactor.api.http.malformed_requests import http_logger
from dynactor.api.http.message import partial_answer_bytes
from dynactor.api.http.pipelining import Turns
from dynactor.api.http.protocol import Answer, Protocol, Request, is_packed
from dynactor.api.http.server_identity import IDENTITY_PATH, http_url
from dynactor.api.http.settings import HEADER_BYTES, NO_PAGE, SERVER_NAME, HttpSettings
from dynactor.model.errors import (
    AccessDeniedException,
    DynamoDBError,
    InvalidSignatureException,
    RequestEntityTooLargeException,
    SerializationException,
)
from dynactor.model.limits import REQUEST_BYTES

_log = structlog.get_logger(__name__)

_LINGERING_SECONDS: Final = 10.0
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


def full_server(
    protocol: Protocol, settings: HttpSettings, memory: RequestMemory, turns: Turns
) -> web.Server:
    """Make the factory of aiohttp's connections."""
    return web.Server(
        FullLane(protocol, settings, memory, turns).answer,
        access_log=None,
        logger=http_logger("api"),
        keepalive_timeout=settings.idle_seconds,
        # ``BodyDrain`` reads the remaining body of a refused request.
        lingering_time=0.0,
        read_bufsize=PIECE_BYTES,
        max_line_size=HEADER_BYTES,
        max_field_size=HEADER_BYTES,
        auto_decompress=False,
    )


class _RefusedByHeadError(Exception):
    """The head of a request is refused, so the body is not read."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self.answer = answer


class FullLane:
    """Answers requests on aiohttp's own connections, one after another."""

    def __init__(
        self, protocol: Protocol, settings: HttpSettings, memory: RequestMemory, turns: Turns
    ) -> None:
        self._protocol = protocol
        self._settings = settings
        self._memory = memory
        self._turns = turns
        self._drains = BodyDrain(min(settings.transfer_seconds, _LINGERING_SECONDS))

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request; abort the connection if the client does not read the answer in time."""
        connection = _client_reads(request)
        with nullcontext() if connection is None else connection.request(request.content):
            return await self._answer(request, connection)

    async def _answer(
        self, request: web.BaseRequest, connection: BoundedReads | None
    ) -> web.StreamResponse:
        # Without new bytes from the client, this request was pipelined behind the previous one.
        if connection is not None and not connection.take_has_read():
            await self._turns.wait()
            if request.transport is None or request.transport.is_closing():
                # The client has disconnected, so its pipelined requests are dropped.
                return web.Response()
        response = await self._response(request)
        try:
            async with asyncio.timeout(self._settings.transfer_seconds):
                await response.prepare(request)
                await response.write_eof()
        except ConnectionError:
            _log.debug("client_disconnected")
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        else:
            if not request.content.is_eof():
                await self._drains.drop(request.content)
        return response

    async def _response(self, request: web.BaseRequest) -> web.Response:
        access = self._settings.access
        headers = request.headers
        host = headers.get("Host", "")
        if not access.allows_host(host):
            return self._refuse(AccessDeniedException(host_refusal(host)))
        if sum(len(name) + len(text) + 4 for name, text in request.raw_headers) > HEADER_BYTES:
            return self._refuse(SerializationException("Headers exceed 16 KB"))
        if request.method in ("GET", "HEAD") and request.path == IDENTITY_PATH:
            return self._identity(host)
        response = await self._shared_response(request)
        # Pages of allowed origins can read errors, too.
        response.headers.update(access.cross_origin_headers(headers.get("Origin", "")))
        return response

    async def _shared_response(self, request: web.BaseRequest) -> web.Response:
        """The response to a request, without the headers that let a page read it."""
        headers = request.headers
        origin = headers.get("Origin", "")
        if request.method == "OPTIONS" and origin:
            return self._preflight(request, origin)
        if request.method in ("GET", "HEAD") and request.path == "/":
            return self._health()
        if request.method != "POST" or request.path != "/":
            return _aiohttp_response(self._protocol.not_understood())
        if len(headers.getall("Authorization", ())) > 1:
            # A proxy may have verified a different one of these headers than the server would.
            return self._refuse(
                InvalidSignatureException("Found more than one 'Authorization' HTTP header.")
            )
        with ExitStack() as leaving:
            return await self._posted(request, leaving)

    async def _posted(self, request: web.BaseRequest, leaving: ExitStack) -> web.Response:
        """Answer a POST; ``leaving`` releases the memory reserved for its body."""
        head = _request_head(request)
        try:
            async with asyncio.timeout(self._settings.transfer_seconds) as limit:
                body = await self._read_body(request, head, limit, leaving)
        except TimeoutError:
            response = web.Response(status=HTTPStatus.REQUEST_TIMEOUT)
            response.force_close()
            return response
        except _RefusedByHeadError as refused:
            response = self._response_to(request, refused.answer)
            response.force_close()
            return response
        except DynamoDBError as error:
            response = self._refuse(error)
            response.force_close()
            return response
        answer = self._protocol.answer(structs.replace(head, body=body))
        if not isinstance(answer, Answer):
            answer = await answer
        return self._response_to(request, answer)

    def _response_to(self, request: web.BaseRequest, answer: Answer) -> web.Response:
        if answer.damage in CUTS and request.transport is not None:
            request.transport.write(partial_answer_bytes(answer, time.time()))
            # aiohttp's own response is dropped, because the transport is closing.
            request.transport.close()
            return web.Response()
        return _aiohttp_response(answer)

    async def _read_body(
        self,
        request: web.BaseRequest,
        head: Request,
        limit: asyncio.Timeout,
        leaving: ExitStack,
    ) -> bytes:
        """Read the complete body as it was sent.

        A large or compressed body reserves memory first. Raises ``RequestEntityTooLargeException``
        above 16 MB, ``_RefusedByHeadError`` if the body is not to be read, or
        ``SerializationException`` if it is incomplete or its chunks are invalid.
        """
        too_large = RequestEntityTooLargeException("Request size exceeds 16 MB")
        length = request.content_length
        if length is not None and length > REQUEST_BYTES:
            raise too_large
        reservation = None
        if is_packed(head) or (length is not None and length > SMALL_REQUEST_BYTES):
            self._check_head(head)
            reservation = await self._reserve_memory(head, length, limit, leaving)
        elif length is None and request.body_exists:
            # The size of a chunked body is unknown.
            self._check_head(head)
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
                if size_bytes > SMALL_REQUEST_BYTES and reservation is None:
                    reservation = await self._reserve_memory(head, length, limit, leaving)
                if reservation is not None:
                    reservation.arrived_bytes = size_bytes
        except (RequestPayloadError, ConnectionError):
            raise SerializationException("The body broke off") from None
        if reservation is not None:
            reservation.is_whole = True
        return b"".join(pieces)

    def _check_head(self, head: Request) -> None:
        refusal = self._protocol.refusal(head)
        if refusal is not None:
            raise _RefusedByHeadError(refusal)

    async def _reserve_memory(
        self, head: Request, length: int | None, limit: asyncio.Timeout, leaving: ExitStack
    ) -> Reservation:
        """Reserve memory and wait for it; the client's timeout starts when memory is granted."""
        now = asyncio.get_running_loop().time

        def close() -> None:
            if not limit.expired():
                limit.reschedule(now())

        # The sizes of a chunked body and of a decompressed one are unknown: use the largest.
        size_bytes = REQUEST_BYTES if length is None else length
        if is_packed(head):
            size_bytes += most_decompressed_bytes(size_bytes)
        reservation = self._memory.reserve(size_bytes, close)
        leaving.callback(self._memory.release, reservation)
        limit.reschedule(None)
        await reservation.granted
        limit.reschedule(now() + self._settings.transfer_seconds)
        return reservation

    def _refuse(self, error: DynamoDBError) -> web.Response:
        return _aiohttp_response(self._protocol.refuse(error))

    def _preflight(self, request: web.BaseRequest, origin: str) -> web.Response:
        if not self._settings.access.allows_origin(origin):
            return self._refuse(
                AccessDeniedException(
                    f"Origin {origin!r} is not allowed; allow it by --cors-origins"
                )
            )
        asked = request.headers.get
        return web.Response(
            headers=preflight_headers(
                asked("Access-Control-Request-Method", ""),
                asked("Access-Control-Request-Headers", ""),
            )
        )

    def _health(self) -> web.Response:
        body = f"healthy: dynamodb.{self._settings.region}.amazonaws.com ".encode()
        answer = Answer(200, "text/plain", body, next(self._protocol.request_ids))
        response = _aiohttp_response(answer)
        response.headers.update(NO_PAGE)
        return response

    def _identity(self, host: str) -> web.Response:
        """The server's identity, with the address of the admin listener.

        If the admin listener listens on all addresses, the request's host is shown.
        """
        identity = self._settings.identity
        name = urlsplit(f"//{host}").hostname
        if self._settings.admin_is_everywhere and identity.admin_endpoint and name:
            admin = urlsplit(identity.admin_endpoint)
            url = http_url(name, admin.port, admin.scheme)
            identity = structs.replace(identity, admin_endpoint=url)
        body = json.encode(identity) + b"\n"
        return _aiohttp_response(
            Answer(200, "application/json", body, next(self._protocol.request_ids))
        )


def _client_reads(request: web.BaseRequest) -> BoundedReads | None:
    """The connection of a request; None if its client has disconnected."""
    connection = None if request.transport is None else request.transport.get_protocol()
    return connection if isinstance(connection, BoundedReads) else None


def _request_head(request: web.BaseRequest) -> Request:
    connection = _client_reads(request)
    headers = headers_by_name(request.raw_headers)
    header = headers.get
    return Request(
        target=header("x-amz-target", ""),
        content_type=header("content-type", ""),
        authorization=header("authorization", ""),
        query=request.rel_url.raw_query_string,
        host=header("host", ""),
        content_encoding=header("content-encoding", ""),
        accept_encoding=_first(request.raw_headers, b"accept-encoding"),
        body=b"",
        explain=header(REQUEST_HEADER.lower(), ""),
        headers=headers,
        client=NO_CLIENT if connection is None else connection.client,
    )


def headers_by_name(raw_headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers in the form of ``Request``; values of a repeated header are joined by commas."""
    found: dict[str, str] = {}
    for raw_name, raw_text in raw_headers:
        name, text = raw_name.decode("latin-1").lower(), raw_text.decode("latin-1").strip(" \t")
        found[name] = f"{found[name]},{text}" if name in found else text
    return found


def _first(raw_headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str:
    """The first header of this name; empty if there is none."""
    texts = (text for raw_name, text in raw_headers if raw_name.lower() == name)
    return next(texts, b"").decode("latin-1").strip(" \t")


def _aiohttp_response(answer: Answer) -> web.Response:
    headers = {
        "Server": SERVER_NAME,
        "Content-Type": answer.content_type,
        "x-amzn-RequestId": answer.request_id,
        "x-amz-crc32": str(crc32(answer.body) ^ (answer.damage is AnswerDamage.WRONG_CRC32)),
    }
    if answer.content_encoding:
        headers["Content-Encoding"] = answer.content_encoding
    headers.update(answer.explanations)
    return web.Response(status=answer.status, body=answer.body, headers=headers)
