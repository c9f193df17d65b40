"""Listens for other nodes, and answers the requests that they forward."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from hmac import compare_digest
from http import HTTPStatus
from typing import Final, TypeAlias

import anyio
import structlog
from aiohttp import web

from dynactor.api.http.malformed_requests import http_logger
from dynactor.api.http.protocol import Answer, Request
from dynactor.api.http.settings import NO_PAGE
from dynactor.api.http.tls_acceptor import accepting_tls
from dynactor.api.nodes.frames import (
    LANES,
    LARGE_BYTES,
    PEER_PATH,
    AnswerFrame,
    NodeMessage,
    Outbox,
    answer_frame,
    decode_requests,
    received,
)
from dynactor.api.tls.certificate import ServerCertificate
from dynactor.model.limits import MIB

_PING_SECONDS: Final = 4.0
_SHUTDOWN_SECONDS: Final = 1.0
# No more requests of a connection are read while its unsent answers use more memory.
_MOST_UNSENT_BYTES: Final = 64 * MIB

# Answers a message, or returns None if this node is not the home.
Answering: TypeAlias = Callable[[Request | NodeMessage], Answer | Awaitable[Answer] | None]

_log = structlog.get_logger("nodes")


class _OutboxPair:
    """The outboxes of the connections of one other node, by lane."""

    def __init__(self) -> None:
        self.outboxes: dict[str, Outbox] = {}

    def put(self, frame: AnswerFrame, lane: str) -> None:
        """Send an answer: a large one on the connection for large messages."""
        large = self.outboxes.get("large") if frame.size_bytes >= LARGE_BYTES else None
        outbox = large or self.outboxes.get(lane)
        if outbox is not None:
            outbox.put(frame)


class PeerListener:
    """Serves other nodes that know the secret."""

    def __init__(
        self, answering: Answering, secret: str, *, is_leader: Callable[[], bool] = lambda: False
    ) -> None:
        self._answering = answering
        self._is_leader = is_leader
        self._authorization = f"Bearer {secret}".strip().encode()
        self._pairs: dict[str, _OutboxPair] = {}
        self._open: set[web.WebSocketResponse] = set()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve a connection of another node until it ends."""
        lane = request.query.get("lane", "")
        if request.path != PEER_PATH or lane not in LANES:
            return web.Response(
                status=HTTPStatus.NOT_FOUND, text="This port is for nodes\n", headers=NO_PAGE
            )
        given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        if not compare_digest(given, self._authorization):
            _log.warning(
                "node_refused",
                remote=request.remote,
                node=request.query.get("node", ""),
                reason="it has another secret",
            )
            return web.Response(status=HTTPStatus.FORBIDDEN, text="The secret is another one\n")
        messages = web.WebSocketResponse(
            heartbeat=_PING_SECONDS, compress=False, max_msg_size=0, timeout=_SHUTDOWN_SECONDS
        )
        try:
            await messages.prepare(request)
        except OSError:
            # The other node has given up, perhaps while this one was suspended.
            return web.Response()
        name = request.query.get("pair", "")
        pair = self._pairs.setdefault(name, _OutboxPair())
        outbox = pair.outboxes[lane] = Outbox()
        self._open.add(messages)
        try:
            # Requests in flight are finished, although nobody gets their answers any more.
            async with anyio.create_task_group() as group, _sending(outbox, messages):
                async for data in received(messages):
                    for frame in decode_requests(data):
                        done = self._answering(frame.message)
                        if done is None:
                            pair.put(self._refusal(frame.number), lane)
                        elif isinstance(done, Answer):
                            pair.put(answer_frame(frame.number, done), lane)
                        else:
                            group.start_soon(self._finish, frame.number, done, pair, lane)
                    await outbox.wait_sent(_MOST_UNSENT_BYTES)
        finally:
            self._open.discard(messages)
            pair.outboxes.pop(lane, None)
            if not pair.outboxes:
                self._pairs.pop(name, None)
        return messages

    async def close(self) -> None:
        """Close all connections."""
        for messages in list(self._open):
            await messages.close()

    def _refusal(self, number: int) -> AnswerFrame:
        return AnswerFrame(number, 0, is_leader=self._is_leader())

    @staticmethod
    async def _finish(number: int, done: Awaitable[Answer], pair: _OutboxPair, lane: str) -> None:
        pair.put(answer_frame(number, await done), lane)


@asynccontextmanager
async def _sending(outbox: Outbox, messages: web.WebSocketResponse) -> AsyncIterator[None]:
    """Send the frames of an outbox within the context."""

    async def send() -> None:
        try:
            await outbox.send_to(messages)
        except OSError:
            await messages.close()
        finally:
            outbox.take_unsent()

    async with anyio.create_task_group() as group:
        group.start_soon(send)
        yield
        group.cancel_scope.cancel()


@asynccontextmanager
async def serving_peers(
    listener: socket.socket, peers: PeerListener, certificate: ServerCertificate | None = None
) -> AsyncIterator[None]:
    """Serve other nodes within the context; TLS needs a certificate."""
    server = web.Server(peers.handle, access_log=None, logger=http_logger("nodes"))
    runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        if certificate is None:
            await web.SockSite(runner, listener).start()
            yield
        else:
            async with accepting_tls(listener, server, certificate):
                yield
    finally:
        await peers.close()
        await runner.cleanup()
