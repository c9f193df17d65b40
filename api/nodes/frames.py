"""The messages between two nodes: requests and answers, many in one WebSocket message."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from contextlib import suppress
from typing import Final, Protocol, TypeAlias

import msgspec
from aiohttp import WSMessage, WSMsgType
from msgspec import Struct

from dynactor.api.access.sender import NO_CLIENT, Client, TrustedCaller
from dynactor.api.http.protocol import JSON_1_0, Answer, Request
from dynactor.model.limits import KIB, MIB

# Nodes of neighboring versions work together: members are only added, at the end, with a default.
PEER_PATH: Final = "/peer/1"
# A pair of nodes has a connection for small messages and one for large messages, so that the small
# ones do not wait for the large ones.
LANES: Final = ("small", "large")
LARGE_BYTES: Final = 64 * KIB
_MOST_BYTES_AT_ONCE: Final = MIB


class ClaimsChanged(Struct, frozen=True):
    """Tells a node to read the claims."""


class AskRequestRates(Struct, frozen=True):
    """Asks a node for the requests per second of its tables."""


class AskInsights(Struct, frozen=True):
    """Asks a node for the use of a table's keys; ``path`` is the one of the admin port."""

    table_name: str
    path: str


# A message between nodes that no client sends.
NodeMessage: TypeAlias = ClaimsChanged | AskRequestRates | AskInsights


class RequestFrame(Struct, array_like=True, frozen=True):
    """A client's request, or a node's message, with its number on this pair of connections."""

    number: int
    target: str
    content_type: str
    authorization: str
    query: str
    host: str
    content_encoding: str
    accept_encoding: str
    body: bytes
    explain: str
    headers: dict[str, str]
    client: Client = NO_CLIENT
    is_trusted: bool = False
    region: str = ""
    access_key_id: str = ""

    @property
    def size_bytes(self) -> int:
        """The approximate size in a message."""
        return len(self.body) + KIB

    @property
    def message(self) -> Request | NodeMessage:
        """The request, for the protocol, or the node's message."""
        trusted = None
        if self.is_trusted:
            # A request of the console has headers, whatever its target is.
            match not self.headers and self.target:
                case "dynactor.ClaimsChanged":
                    return ClaimsChanged()
                case "dynactor.RequestRates":
                    return AskRequestRates()
                case "dynactor.Insights":
                    return AskInsights(self.body.decode(), self.query)
            trusted = TrustedCaller(self.region, self.access_key_id)
        return Request(
            self.target,
            self.content_type,
            self.authorization,
            self.query,
            self.host,
            self.content_encoding,
            self.accept_encoding,
            self.body,
            self.explain,
            self.headers,
            self.client,
            trusted,
        )


class AnswerFrame(Struct, array_like=True, frozen=True):
    """The answer to a request.

    Status 0: the node is not the home of the tables, and has done nothing. ``is_leader``: it is the
    leader nevertheless.
    """

    number: int
    status: int
    content_type: str = ""
    body: bytes = b""
    request_id: str = ""
    content_encoding: str = ""
    explanations: dict[str, str] = {}
    is_leader: bool = False

    @property
    def size_bytes(self) -> int:
        """The approximate size in a message."""
        return len(self.body) + KIB

    @property
    def answer(self) -> Answer | None:
        """The answer for the client; None if the node is not the home."""
        if not self.status:
            return None
        return Answer(
            self.status,
            self.content_type,
            self.body,
            self.request_id,
            self.content_encoding,
            self.explanations,
        )


encode: Final = msgspec.msgpack.Encoder().encode
decode_requests: Final = msgspec.msgpack.Decoder(list[RequestFrame]).decode
decode_answers: Final = msgspec.msgpack.Decoder(list[AnswerFrame]).decode


def request_frame(number: int, message: Request | NodeMessage) -> RequestFrame:
    """The frame of a request or of a node's message."""
    match message:
        case Request():
            return _client_frame(number, message)
        case ClaimsChanged():
            return _node_frame(number, "dynactor.ClaimsChanged")
        case AskRequestRates():
            return _node_frame(number, "dynactor.RequestRates")
        case AskInsights(table_name, path):
            return _node_frame(number, "dynactor.Insights", path, table_name.encode())


def _node_frame(number: int, target: str, query: str = "", body: bytes = b"") -> RequestFrame:
    return RequestFrame(
        number, target, JSON_1_0, "", query, "", "", "", body, "", {}, is_trusted=True
    )


def _client_frame(number: int, request: Request) -> RequestFrame:
    trusted = request.trusted or TrustedCaller()
    return RequestFrame(
        number,
        request.target,
        request.content_type,
        request.authorization,
        request.query,
        request.host,
        request.content_encoding,
        request.accept_encoding,
        request.body,
        request.explain,
        dict(request.headers),
        request.client,
        request.trusted is not None,
        trusted.region,
        trusted.access_key_id,
    )


def answer_frame(number: int, answer: Answer) -> AnswerFrame:
    """The frame of an answer."""
    return AnswerFrame(
        number,
        answer.status,
        answer.content_type,
        bytes(answer.body),
        answer.request_id,
        answer.content_encoding,
        dict(answer.explanations),
    )


async def received(socket: AsyncIterable[WSMessage]) -> AsyncIterator[bytes]:
    """The messages of a connection until it ends, in whatever way."""
    # aiohttp answers a ping while it reads, which fails if the connection has just been closed. A
    # node that was suspended finds such pings when it resumes.
    with suppress(OSError):
        async for message in socket:
            if message.type is not WSMsgType.BINARY:
                return
            yield message.data


class Socket(Protocol):
    """A WebSocket that sends binary messages."""

    async def send_bytes(self, data: bytes) -> None:
        """Send a message; waits while the other side reads too slowly."""
        ...


class Outbox:
    """Frames that wait to be sent on one connection.

    All frames of one turn of the event loop are sent as one message.
    """

    def __init__(self) -> None:
        self._frames: deque[RequestFrame | AnswerFrame] = deque()
        self._woken: asyncio.Future[None] | None = None
        self._sent: asyncio.Future[None] | None = None
        self.size_bytes = 0

    def put(self, frame: RequestFrame | AnswerFrame) -> None:
        """Send a frame soon."""
        self._frames.append(frame)
        self.size_bytes += frame.size_bytes
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def take_unsent(self) -> Sequence[RequestFrame | AnswerFrame]:
        """Remove the frames that were not sent, because the connection has ended."""
        frames, self._frames = list(self._frames), deque()
        self._remove(self.size_bytes)
        return frames

    async def wait_sent(self, most_bytes: int) -> None:
        """Wait until at most ``most_bytes`` are unsent."""
        while self.size_bytes > most_bytes:
            self._sent = asyncio.get_running_loop().create_future()
            await self._sent

    def _remove(self, size_bytes: int) -> None:
        self.size_bytes -= size_bytes
        if self._sent is not None and not self._sent.done():
            self._sent.set_result(None)

    async def send_to(self, socket: Socket) -> None:
        """Send frames until the connection ends or the task is canceled.

        Raises:
            OSError: the connection has ended.
        """
        while True:
            if not self._frames:
                self._woken = asyncio.get_running_loop().create_future()
                await self._woken
            frames = []
            size_bytes = 0
            while self._frames and size_bytes < _MOST_BYTES_AT_ONCE:
                frames.append(self._frames.popleft())
                size_bytes += frames[-1].size_bytes
            await socket.send_bytes(encode(frames))
            self._remove(size_bytes)
