"""The connections to the home, over which a node forwards requests."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from http import HTTPStatus
from itertools import count
from secrets import token_hex
from typing import Any, Final

import anyio
import structlog
from aiohttp import (
    ClientError,
    ClientSession,
    ClientTimeout,
    WSServerHandshakeError,
)

from dynactor.api.http.protocol import Answer, Request
from dynactor.api.nodes.changes import Changes
from dynactor.api.nodes.frames import (
    LANES,
    LARGE_BYTES,
    PEER_PATH,
    NodeMessage,
    Outbox,
    RequestFrame,
    decode_answers,
    received,
    request_frame,
)
from dynactor.api.nodes.node_link import AnswerLost, NodeLink, NotSent
from dynactor.api.tls.node_certificate import NodeCertificate
from dynactor.model.pauses import NODE_LINK_SECONDS

_CONNECT_SECONDS: Final = 2.0
# A connection without an answer to its ping for half of this time more has ended.
_PING_SECONDS: Final = 4.0

_REFUSALS: Final[dict[int, str]] = {
    HTTPStatus.FORBIDDEN: "it has another --peer-secret-file",
    HTTPStatus.BAD_REQUEST: "it speaks TLS, and this node has no certificate",
}

_log = structlog.get_logger("nodes")


class _ForwardedRequest:
    """A request that waits for its answer."""

    def __init__(self, frame: RequestFrame) -> None:
        self.frame = frame
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()


class Link(NodeLink):
    """Two WebSockets to one node; see ``NodeLink``."""

    def __init__(
        self,
        address: str,
        secret: str,
        changes: Changes,
        certificate: NodeCertificate | None = None,
        *,
        node: str = "",
    ) -> None:
        """Without a certificate, the connections are not encrypted.

        ``node`` is the name of this node, for the other node's log.
        """
        self.address = address
        self.is_open = False
        self.failure = ""
        self.is_refused = False
        self._headers = {"Authorization": f"Bearer {secret}".strip()}
        self._node = node
        self._changes = changes
        self._certificate = certificate
        self._numbers = count(1)
        self._asked: dict[int, _ForwardedRequest] = {}
        self._outboxes: tuple[Outbox, ...] = ()

    async def ask(self, message: Request | NodeMessage) -> Answer:
        """Send a message; see ``NodeLink``."""
        if not self.is_open:
            raise NotSent
        frame = request_frame(next(self._numbers), message)
        asked = self._asked[frame.number] = _ForwardedRequest(frame)
        self._outboxes[frame.size_bytes >= LARGE_BYTES].put(frame)
        try:
            return await asked.answer
        finally:
            del self._asked[frame.number]

    async def run(self) -> None:
        """Keep the connections open until the task is canceled."""
        try:
            async with ClientSession(timeout=ClientTimeout(sock_connect=_CONNECT_SECONDS)) as http:
                while True:
                    try:
                        await self._run_once(http)
                        failure = "the other node has closed the connection"
                    except WSServerHandshakeError as error:
                        failure = _REFUSALS.get(error.status, str(error))
                    except (ClientError, OSError, TimeoutError) as error:
                        failure = str(error) or type(error).__name__
                    self._end(failure)
                    await anyio.sleep(NODE_LINK_SECONDS)
        finally:
            self._end("this node needs no connection")

    async def _run_once(self, http: ClientSession) -> None:
        pair = token_hex(8)
        certificate = self._certificate
        scheme = "http" if certificate is None else "https"
        async with AsyncExitStack() as stack:
            sockets = []
            for lane in LANES:
                with anyio.fail_after(_CONNECT_SECONDS):
                    connecting = http.ws_connect(
                        f"{scheme}://{self.address}{PEER_PATH}",
                        params={"pair": pair, "lane": lane, "node": self._node},
                        headers=self._headers,
                        heartbeat=_PING_SECONDS,
                        max_msg_size=0,
                        ssl=True if certificate is None else certificate.client,
                    )
                    sockets.append(await stack.enter_async_context(connecting))
            self._outboxes = tuple(Outbox() for _ in sockets)
            self.is_open, self.failure = True, ""
            _log.info("node_connected", address=self.address)
            self._changes.notify()
            async with anyio.create_task_group() as group:
                for socket, outbox in zip(sockets, self._outboxes, strict=True):
                    group.start_soon(self._send, outbox, socket, group.cancel_scope)
                    group.start_soon(self._receive, socket, group.cancel_scope)

    @staticmethod
    async def _send(outbox: Outbox, socket: Any, scope: anyio.CancelScope) -> None:
        try:
            await outbox.send_to(socket)
        except OSError:
            scope.cancel()

    async def _receive(self, socket: Any, scope: anyio.CancelScope) -> None:
        async for data in received(socket):
            for frame in decode_answers(data):
                asked = self._asked.get(frame.number)
                if asked is None or asked.answer.done():
                    continue
                answer = frame.answer
                self._note(is_refused=answer is None and not frame.is_leader)
                if answer is None:
                    asked.answer.set_exception(NotSent())
                else:
                    asked.answer.set_result(answer)
        scope.cancel()

    def _note(self, *, is_refused: bool) -> None:
        if is_refused != self.is_refused:
            self.is_refused = is_refused
            self._changes.notify()

    def _end(self, failure: str) -> None:
        """Fail the requests in flight."""
        if self.is_open:
            _log.info("node_disconnected", address=self.address, reason=failure)
        self.is_open, self.failure = False, failure
        unsent = {frame.number for outbox in self._outboxes for frame in outbox.take_unsent()}
        self._outboxes = ()
        for number, asked in self._asked.items():
            if not asked.answer.done():
                asked.answer.set_exception(NotSent() if number in unsent else AnswerLost())
        self._changes.notify()
