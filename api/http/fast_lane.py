"""The fast lane: plain POSTs, read and answered without an HTTP library.

SDKs send a head and a body of known length, and expect one answer. A connection stays in the fast
lane until its first unusual head. Then the connection and all unanswered bytes move permanently to
the full lane, aiohttp's protocol.

A request starts as soon as it is complete. An operation that waits for nothing is answered at once;
otherwise the connection's task awaits the answer. Answers of one turn of the event loop are sent
together at its end, because waking a sleeping client costs more than sending (13 of 18 µs on one
machine).

Pipelined requests wait for their turn (``dynactor.api.http.pipelining``) and are dropped when their
client disconnects.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Final, Self, cast
from weakref import WeakKeyDictionary

import anyio
import structlog
from aiohttp import web

from dynactor.actors.runtime.cancellation import is_cancellation
from dynactor.api.access.sender import Connection
from dynactor.api.http.answer_damage import CUTS
from dynactor.api.http.body_memory import SMALL_REQUEST_BYTES, RequestMemory, Reservation
from dynactor.api.http.bounded_reads import PIECE_BYTES, BoundedReads, can_half_close
from dynactor.api.http.client_address import connected_client
from dynactor.api.http.loop_turn import LoopTurn
from dynactor.api.http.message import (
    HEAD_END,
    REQUEST_LINE,
    Head,
    answer_bytes,
    parse_head,
    partial_answer_bytes,
)
from dynactor.api.http.pipelining import Turns
from dynactor.api.http.protocol import Answer, Protocol, Request
from dynactor.api.http.settings import HEADER_BYTES, HttpSettings
from dynactor.api.http.unsent_answers import UnsentAnswers
from dynactor.model.limits import KIB

# Limits of pipelined data while a request is being answered.
_READ_AHEAD_BYTES: Final = 64 * KIB
_READ_AHEAD_REQUESTS: Final = 32
_SWEEPS_PER_TIMEOUT: Final = 4

_log = structlog.get_logger(__name__)


class FastLanes(AbstractAsyncContextManager["FastLanes"]):
    """All connections in the fast lane. Leaving the context answers requests in flight."""

    def __init__(
        self,
        protocol: Protocol,
        settings: HttpSettings,
        full: web.Server,
        memory: RequestMemory,
        turns: Turns,
    ) -> None:
        self.protocol = protocol
        self.settings = settings
        self._full = full
        self.memory = memory
        self._turns = turns
        self.unsent_answers = UnsentAnswers(settings.unsent_answers_bytes)
        # The read buffer of all connections in the full lane.
        self.piece = bytearray(PIECE_BYTES)
        self._connections: set[FastLane] = set()
        self._all_closed = asyncio.Event()
        self._ending = False
        self._ended = False
        # Connections in the full lane; for a closing one, when a sweep first saw it closing.
        # The event loop's transports of TLS can't be weakly referenced.
        self._handed_over: WeakKeyDictionary[BoundedReads, float | None] = WeakKeyDictionary()
        # Connections whose answers are sent at the end of this turn of the event loop.
        self.unsent: list[FastLane] = []
        self.turn = LoopTurn(self._send_all)
        self._tasks = anyio.create_task_group()

    def connection(self) -> FastLane:
        """Make the protocol of a new connection."""
        return FastLane(self)

    def opened(self, connection: FastLane) -> None:
        """Serve a new connection."""
        if self._ended:
            # The connection was accepted just before the server stopped.
            connection.abort()
            return
        if not self.admitted():
            connection.abort()
            return
        self.protocol.open_connections.add(connection.client)
        self._connections.add(connection)
        self._tasks.start_soon(self._serve, connection)
        if self._ending:
            connection.end()

    def admitted(self) -> int:
        """The number of connections that may be opened now; 0 counts as a refused connection."""
        free = self.settings.most_connections - len(self.protocol.open_connections)
        if free <= 0:
            self.protocol.figures.refused_connections += 1
        return max(free, 0)

    def disconnected(self, client: Connection) -> None:
        """Forget a connection that has ended, in either lane."""
        self.protocol.open_connections.discard(client)
        if self.protocol.key_limits is not None:
            self.protocol.key_limits.disconnected(client)

    def closed(self, connection: FastLane) -> None:
        """Remove a connection that was closed or moved to the full lane."""
        self._connections.discard(connection)
        if self._ending and not self._connections:
            self._all_closed.set()

    def hand_over(
        self, connection: FastLane, transport: asyncio.Transport
    ) -> tuple[web.RequestHandler, BoundedReads]:
        """Move a connection to the full lane; return its protocol there, and its reads."""
        self.closed(connection)
        full = self._full()
        in_pieces = BoundedReads(
            full,
            transport,
            self.piece,
            self.unsent_answers,
            client=connection.client,
            on_lost=self.disconnected,
        )
        self._handed_over[in_pieces] = None
        return full, in_pieces

    def _send_all(self) -> None:
        connections, self.unsent = self.unsent, []
        for connection in connections:
            connection.send()

    def take_turn(self, connection: FastLane) -> None:
        """Start the next pipelined request of a connection when its turn comes."""
        self._turns.take(partial(self._begin_pipelined, connection))

    def _begin_pipelined(self, connection: FastLane) -> bool:
        try:
            return connection.begin_pipelined()
        except Exception as error:  # noqa: BLE001 - see ``_fail``
            self._fail(connection, error)
            return False

    def end(self) -> None:
        """Take no more requests; close each connection after its request in flight."""
        self._ending = True
        for connection in self._connections:
            connection.end()
        if not self._connections:
            self._all_closed.set()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._sweep)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self.end()
        try:
            with anyio.move_on_after(self.settings.drain_seconds):
                await self._all_closed.wait()
        finally:
            self._ended = True
            for connection in list(self._connections):
                connection.abort()
            self._tasks.cancel_scope.cancel()
            ended = await self._tasks.__aexit__(kind, error, traceback)
        return ended

    async def _serve(self, connection: FastLane) -> None:
        """Run the task of a connection. An error ends this connection only."""
        try:
            await connection.serve()
        except (Exception, asyncio.CancelledError) as error:
            if is_cancellation(error):
                raise
            self._fail(connection, error)
        finally:
            connection.release_memory()

    @staticmethod
    def _fail(connection: FastLane, error: BaseException) -> None:
        """Close only this connection after an exception, which is a bug in the server."""
        _log.error("connection_failed", exc_info=error)
        connection.abort()

    async def _sweep(self) -> None:
        settings = self.settings
        shortest_seconds = min(settings.idle_seconds, settings.transfer_seconds)
        while True:
            await anyio.sleep(shortest_seconds / _SWEEPS_PER_TIMEOUT)
            now = anyio.current_time()
            for fast in list(self._connections):
                fast.sweep(now)
            for connection, closing_since in list(self._handed_over.items()):
                self._sweep_full(connection, closing_since, now)

    def _sweep_full(
        self, connection: BoundedReads, closing_since: float | None, now: float
    ) -> None:
        """Abort a closing connection of aiohttp whose client does not read its last answers."""
        if not connection.transport.is_closing():
            return
        if closing_since is None:
            self._handed_over[connection] = now
        elif now - closing_since >= self.settings.transfer_seconds:
            connection.transport.abort()
            del self._handed_over[connection]


class FastLane(asyncio.Protocol):
    """One connection.

    Invariants:

    - Requests are answered one at a time, in order.
    - ``_held`` has the received bytes from the first unanswered request on. While a request is
      read, they are at most one request of 16 MB. While a request is answered, or a large one waits
      for memory (``dynactor.api.http.body_memory``), they are limited by ``_READ_AHEAD_BYTES``,
      ``_READ_AHEAD_REQUESTS`` and one read.
    - ``_held`` contains a complete request only while the connection is busy: while it answers a
      request, while its client has unread answers, or while it waits for its turn.
    - ``_progress`` rises when a request starts to arrive and when it is answered. If it does not
      change, the server works (``_answering``), waits for memory, or waits for the client.
    """

    client: Connection
    _transport: asyncio.Transport
    _loop: asyncio.AbstractEventLoop

    def __init__(self, lanes: FastLanes) -> None:
        self._lanes = lanes
        self._held = bytearray()
        # The head of the request that is being read, if complete; then also where its body starts,
        # and the size of the whole request.
        self._head: Head | None = None
        self._body_start = 0
        self._needed_bytes = 0
        # The memory reserved for a large request until it is answered.
        self._reservation: Reservation | None = None
        # The last head and its bytes: a client that does not sign often repeats the same head.
        self._last_head: Head | None = None
        self._last_head_bytes = b""
        # Whether an operation is awaited, and its awaitable until the task takes the awaitable.
        self._answering = False
        self._awaited: Awaitable[Answer] | None = None
        self._unsent = b""
        self._awaits_turn = False
        self._ending = False
        self._left = False
        self._reading_paused = False
        self._writing_paused = False
        self._woken: asyncio.Future[None] | None = None
        self._progress = 0
        self._swept_progress = -1
        self._swept_at = 0.0

    # -- called by the transport ------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to serve the client."""
        # uvloop's transports are not a subclass.
        self._transport = cast("asyncio.Transport", transport)
        self.client = connected_client(transport)
        self._loop = asyncio.get_running_loop()
        self._lanes.opened(self)

    def data_received(self, data: bytes) -> None:
        """Append the bytes, and answer the next request if it is complete."""
        if self._ending:
            # The last answer has announced the end of the connection, so ignore further bytes.
            return
        if not self._held:
            self._progress += 1
        self._held += data
        if self._is_busy:
            if self._is_far_ahead():
                self._pause_reading()
        elif len(self._held) >= self._needed_bytes:
            self._begin_next()
        elif self._reservation is not None:
            self._reservation.arrived_bytes = len(self._held)

    def eof_received(self) -> bool:
        """Keep the connection: the client sends no more, but may still wait for answers."""
        self._ending = True
        self._wake()
        return can_half_close(self._transport)

    def connection_lost(self, _error: Exception | None) -> None:
        """Finish the request in flight without sending its answer; the client has disconnected.

        Pipelined requests behind it are dropped.
        """
        self._ending = True
        self._writing_paused = False
        self._lanes.unsent_answers.remove(self._transport)
        self._drop_held()
        self._wake()
        self._lanes.closed(self)
        self._lanes.disconnected(self.client)

    def pause_writing(self) -> None:
        """Start no more requests of a client that does not read its answers."""
        self._writing_paused = True
        self._lanes.unsent_answers.add(self._transport)

    def resume_writing(self) -> None:
        """The client has read its answers, so start its next request."""
        self._writing_paused = False
        self._lanes.unsent_answers.remove(self._transport)
        self._go_on()

    # -- called by the lanes ----------------------------------------------------------------

    def send(self) -> None:
        """Send the answer that is ready."""
        unsent, self._unsent = self._unsent, b""
        if not self._transport.is_closing():
            self._transport.write(unsent)
        if self._held or self._ending:
            self._go_on()

    def begin_pipelined(self) -> bool:
        """Start the next pipelined request, if any; return whether it has to be awaited."""
        self._awaits_turn = False
        if not self._is_busy and not self._begin_next() and self._ending:
            self._wake()
        return self._answering

    def end(self) -> None:
        """Take no more requests; close after the answer in flight."""
        self._ending = True
        self._drop_held()
        self._wake()

    def abort(self) -> None:
        """Close now."""
        self._transport.abort()

    def release_memory(self) -> None:
        """Release the memory reserved for a large request."""
        if self._reservation is not None:
            reservation, self._reservation = self._reservation, None
            self._lanes.memory.release(reservation)

    def sweep(self, now: float) -> None:
        """Close the connection if the server has waited too long for the client."""
        is_ours = self._answering or self._awaits_turn or self._waits_for_memory()
        if is_ours or self._progress != self._swept_progress:
            self._swept_progress = self._progress
            self._swept_at = now
            return
        settings = self._lanes.settings
        is_idle = not self._held and not self._writing_paused
        timeout_seconds = settings.idle_seconds if is_idle else settings.transfer_seconds
        if now - self._swept_at >= timeout_seconds:
            self.abort()

    # -- the task ---------------------------------------------------------------------------

    async def serve(self) -> None:
        """Await answers until either side ends or the connection moves to the full lane."""
        while True:
            if self._awaited is not None:
                awaited, self._awaited = self._awaited, None
                answer = await awaited
                turn = self._lanes.turn
                if not turn.began_nanoseconds:
                    turn.begin()
                self._answer(answer)
            elif self._left:
                return
            elif self._ending and not self._is_busy:
                self._transport.close()
                return
            else:
                await self._wait()

    async def _wait(self) -> None:
        self._woken = self._loop.create_future()
        await self._woken

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    # -- a request --------------------------------------------------------------------------

    @property
    def _is_busy(self) -> bool:
        return bool(self._answering or self._unsent or self._writing_paused or self._awaits_turn)

    def _go_on(self) -> None:
        """Continue with pipelined requests after answers were sent."""
        if self._held and not self._is_busy:
            self._awaits_turn = True
            self._lanes.take_turn(self)
        elif self._ending:
            self._wake()

    def _is_far_ahead(self) -> bool:
        """Whether reading must pause, because the client has pipelined too many bytes."""
        held = self._held
        # Each request starts with this line. A body that contains the line costs only a pause.
        return len(held) > _READ_AHEAD_BYTES or held.count(REQUEST_LINE) > _READ_AHEAD_REQUESTS

    def _drop_held(self) -> None:
        self._held.clear()
        self._head = None
        self._needed_bytes = 0

    def _begin_next(self) -> bool:
        """Start to answer the next request; return whether there is one."""
        request = self._next_request()
        if (
            self._reading_paused
            and (request is None or not self._is_far_ahead())
            and not self._waits_for_memory()
        ):
            # The next request may be larger than the read-ahead limit, so continue reading.
            self._resume_reading()
        if request is None:
            return False
        turn = self._lanes.turn
        if not turn.began_nanoseconds:
            turn.begin()
        answer = self._lanes.protocol.answer(request, turn)
        if isinstance(answer, Answer):
            self._answer(answer)
        else:
            self._answering = True
            self._awaited = answer
            self._wake()
        return True

    def _answer(self, answer: Answer) -> None:
        self._answering = False
        self._progress += 1
        if self._reservation is not None:
            self.release_memory()
        if self._transport.is_closing():
            self._drop_held()
            return
        if answer.damage is not None and answer.damage in CUTS:
            self._cut(answer)
            return
        # Announce the end of the connection with the last answer only: a client would not read
        # further answers.
        is_last = self._ending and not self._held
        self._unsent = answer_bytes(answer, self._lanes.turn.epoch_seconds, closing=is_last)
        self._lanes.unsent.append(self)

    def _cut(self, answer: Answer) -> None:
        """Close the connection before or in the middle of an answer, for an injected fault."""
        self._transport.write(partial_answer_bytes(answer, time.time()))
        self.end()

    def _reserve_memory(self) -> None:
        """Reserve memory for the request that is being read; pause reading until it is granted."""
        self._reservation = self._lanes.memory.reserve(self._needed_bytes, self.abort)
        self._reservation.arrived_bytes = len(self._held)
        if self._waits_for_memory():
            self._pause_reading()
            self._reservation.granted.add_done_callback(self._on_granted)

    def _waits_for_memory(self) -> bool:
        return self._reservation is not None and not self._reservation.granted.done()

    def _on_granted(self, _: asyncio.Future[None]) -> None:
        self._resume_reading()

    def _pause_reading(self) -> None:
        if not self._reading_paused and not self._transport.is_closing():
            self._reading_paused = True
            self._transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._reading_paused and not self._transport.is_closing():
            self._reading_paused = False
            self._transport.resume_reading()

    def _next_request(self) -> Request | None:
        """Take the next request from ``_held``; None: it is incomplete, or not for this lane."""
        held = self._held
        head = self._head or self._next_head()
        if head is None or len(held) < self._needed_bytes:
            return None
        if self._reservation is not None:
            self._reservation.is_whole = True
        body = bytes(held[self._body_start : self._needed_bytes])
        del held[: self._needed_bytes]
        self._head = None
        self._needed_bytes = 0
        return head.request(body, self.client)

    def _next_head(self) -> Head | None:
        held = self._held
        end = held.find(HEAD_END, 0, HEADER_BYTES)
        if end < 0:
            if len(held) >= HEADER_BYTES or not held.startswith(REQUEST_LINE[: len(held)]):
                self._leave()
            return None
        head_bytes = bytes(held[:end])
        head = self._last_head
        if head is None or head_bytes != self._last_head_bytes:
            head = parse_head(head_bytes)
            if head is None or not self._lanes.settings.access.allows_host(head.host):
                self._leave()
                return None
            self._last_head, self._last_head_bytes = head, head_bytes
        body_start = end + len(HEAD_END)
        needed_bytes = body_start + head.content_length
        is_large = needed_bytes > SMALL_REQUEST_BYTES and needed_bytes > len(held)
        if is_large and self._lanes.protocol.refusal(head.request(b"", self.client)) is not None:
            # A refused request reserves no memory. The full lane answers and drops its body.
            self._leave()
            return None
        self._head = head
        self._body_start = body_start
        self._needed_bytes = needed_bytes
        if is_large:
            self._reserve_memory()
        return head

    def _leave(self) -> None:
        """Move the connection to the full lane, with all unanswered bytes."""
        if self._transport.is_closing():
            # The transport would not report the end to the full lane, so the full lane would keep
            # the connection.
            self._held.clear()
            return
        self._left = True
        self._resume_reading()
        full, in_pieces = self._lanes.hand_over(self, self._transport)
        self._transport.set_protocol(in_pieces)
        full.connection_made(self._transport)
        held, self._held = bytes(self._held), bytearray()
        in_pieces.hand_over(held)
        if self._ending:
            # The event loop reports the client's end of the connection only once.
            in_pieces.eof_received()
        self._wake()
