"""The fast way into the server: plain POSTs, answered on the connection without ceremony.

What every SDK sends needs little of an HTTP library: a head, a body of known length, one
answer. A connection stays here as long as it sends nothing else; at the first unusual byte
it is handed, with all that was read and not answered, to aiohttp's protocol, and stays there.

A request is looked at as soon as it is there. Where its operation has nothing to wait for, it is
answered right then; else the connection's task waits for it. Answers of one turn of the event loop
go out together at its end: what costs is less the sending than the waking of a client that sleeps
(13 of 18 µs where both are on one machine), and it is awake for all of them then.

Pipelined requests wait for their turn (``dynactor.api.http.pipelining``), and are dropped when
their client has gone.
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
from dynactor.api.http.answer_damage import CUTS
from dynactor.api.http.body_memory import SMALL_REQUEST_BYTES, Place, RequestRoom
from dynactor.api.http.bounded_reads import PIECE_BYTES, BoundedReads
from dynactor.api.http.loop_turn import LoopTurn
from dynactor.api.http.message import (
    HEAD_END,
    REQUEST_LINE,
    Head,
    answer_bytes,
    parse_head,
    part_of,
)
from dynactor.api.http.pipelining import Turns
from dynactor.api.http.protocol import Answer, Protocol, Request
from dynactor.api.http.settings import HEADER_BYTES, HttpSettings
from dynactor.api.http.unsent_answers import UnsentAnswers
from dynactor.model.limits import KIB

# What a client may send ahead while its last request is being answered.
_READ_AHEAD_BYTES: Final = 64 * KIB
_READ_AHEAD_REQUESTS: Final = 32
_SWEEPS_PER_TIMEOUT: Final = 4

_log = structlog.get_logger(__name__)


class FastLanes(AbstractAsyncContextManager["FastLanes"]):
    """All connections in the fast lane; leaving the context answers what is under way."""

    def __init__(
        self,
        protocol: Protocol,
        settings: HttpSettings,
        plain: web.Server,
        room: RequestRoom,
        turns: Turns,
    ) -> None:
        self.protocol = protocol
        self.settings = settings
        self._plain = plain
        self.room = room
        self._turns = turns
        self.unsent_answers = UnsentAnswers(settings.unsent_answers_bytes)
        # Into which the connections of the plain lane are read.
        self.piece = bytearray(PIECE_BYTES)
        self._connections: set[FastLane] = set()
        self._all_closed = asyncio.Event()
        self._ending = False
        self._ended = False
        # Those of the plain lane until they are closed; and since when a sweep saw them closing.
        self._handed_over: WeakKeyDictionary[asyncio.Transport, float | None] = WeakKeyDictionary()
        # Those with answers that go out at the end of this turn of the event loop.
        self.unsent: list[FastLane] = []
        self.turn = LoopTurn(self._send_all)
        self._tasks = anyio.create_task_group()

    @property
    def open_connections(self) -> int:
        """How many connections are in the fast lane."""
        return len(self._connections)

    def connection(self) -> FastLane:
        """The protocol of a new connection."""
        return FastLane(self)

    def opened(self, connection: FastLane) -> None:
        """A connection was made; from now on it is served."""
        if self._ended:
            # It was accepted just before the end.
            connection.abort()
            return
        self._connections.add(connection)
        self._tasks.start_soon(self._serve, connection)
        if self._ending:
            connection.end()

    def closed(self, connection: FastLane) -> None:
        """A connection is no longer ours."""
        self._connections.discard(connection)
        if self._ending and not self._connections:
            self._all_closed.set()

    def hand_over(self, connection: FastLane, transport: asyncio.Transport) -> web.RequestHandler:
        """The protocol of the plain lane, to which a connection belongs from now on."""
        self.closed(connection)
        self._handed_over[transport] = None
        return self._plain()

    def _send_all(self) -> None:
        connections, self.unsent = self.unsent, []
        for connection in connections:
            connection.send()

    def take_turn(self, connection: FastLane) -> None:
        """Have a connection begin its next pipelined request when it is its turn."""
        self._turns.take(partial(self._begin_pipelined, connection))

    def _begin_pipelined(self, connection: FastLane) -> bool:
        try:
            return connection.begin_pipelined()
        except Exception as error:  # noqa: BLE001 - see ``_fail``
            self._fail(connection, error)
            return False

    def end(self) -> None:
        """Take no more requests; connections close as soon as nothing is under way on them."""
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
        """A supervisor: what goes wrong on one connection ends that one."""
        try:
            await connection.serve()
        except (Exception, asyncio.CancelledError) as error:
            if is_cancellation(error):
                raise
            self._fail(connection, error)
        finally:
            connection.leave_room()

    @staticmethod
    def _fail(connection: FastLane, error: BaseException) -> None:
        """A bug of ours must not end the other connections."""
        _log.error("a connection failed", exc_info=error)
        connection.abort()

    async def _sweep(self) -> None:
        settings = self.settings
        shortest_seconds = min(settings.idle_seconds, settings.transfer_seconds)
        while True:
            await anyio.sleep(shortest_seconds / _SWEEPS_PER_TIMEOUT)
            now = anyio.current_time()
            for connection in list(self._connections):
                connection.sweep(now)
            for transport, closing_since in list(self._handed_over.items()):
                self._sweep_plain(transport, closing_since, now)

    def _sweep_plain(
        self, transport: asyncio.Transport, closing_since: float | None, now: float
    ) -> None:
        """What aiohttp closes stays for as long as the client does not take its last answers."""
        if not transport.is_closing():
            return
        if closing_since is None:
            self._handed_over[transport] = now
        elif now - closing_since >= self.settings.transfer_seconds:
            transport.abort()
            del self._handed_over[transport]


class FastLane(asyncio.Protocol):
    """One connection.

    Invariants: requests are answered one at a time, in their order. ``_held`` begins with the
    first byte of the first request that is not answered yet, and is bounded: by one request of
    16 MB while it is awaited, by ``_READ_AHEAD_BYTES``, ``_READ_AHEAD_REQUESTS`` and one read while
    one is answered, or while a large one waits for its place, which it has until it is answered
    (``dynactor.api.http.body_memory``). It holds no whole request unless the connection is busy: it
    answers one, its client has answers to take, or it waits for its turn. ``_progress`` rises
    whenever a request begins or is answered; so it stands still only while the server works
    (``_answering``), has no room or waits for the client.
    """

    _transport: asyncio.Transport
    _loop: asyncio.AbstractEventLoop

    def __init__(self, lanes: FastLanes) -> None:
        self._lanes = lanes
        self._held = bytearray()
        # The head of the request that is awaited, once it is there; and what is awaited.
        self._head: Head | None = None
        self._body_start = 0
        self._needed_bytes = 0
        # Of a large request that is awaited or answered.
        self._place: Place | None = None
        # A client that signs nothing often sends the same head again, word for word.
        self._last_head: Head | None = None
        self._last_head_bytes = b""
        # A request is awaited by the task; and what it has to await, until it does.
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
        """Begin to serve the client."""
        # Those of uvloop are no subclass.
        self._transport = cast("asyncio.Transport", transport)
        self._loop = asyncio.get_running_loop()
        self._lanes.opened(self)

    def data_received(self, data: bytes) -> None:
        """Take what came, and answer a request that is all there."""
        if self._ending:
            # The last answer tells the client that no more is taken.
            return
        if not self._held:
            self._progress += 1
        self._held += data
        if self._is_busy:
            if self._is_far_ahead():
                self._pause_reading()
        elif len(self._held) >= self._needed_bytes:
            self._begin_next()
        elif self._place is not None:
            self._place.arrived_bytes = len(self._held)

    def eof_received(self) -> bool:
        """The client sends no more; it may still wait for answers, so the connection stays."""
        self._ending = True
        self._wake()
        return True

    def connection_lost(self, _error: Exception | None) -> None:
        """The client is gone; a request under way is finished, and answered to nobody.

        Pipelined requests behind it are dropped.
        """
        self._ending = True
        self._writing_paused = False
        self._lanes.unsent_answers.went_on(self._transport)
        self._drop_held()
        self._wake()
        self._lanes.closed(self)

    def pause_writing(self) -> None:
        """The client does not take its answers; do no more work for it."""
        self._writing_paused = True
        self._lanes.unsent_answers.stopped(self._transport)

    def resume_writing(self) -> None:
        """The client has taken its answers."""
        self._writing_paused = False
        self._lanes.unsent_answers.went_on(self._transport)
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
        """Begin the next pipelined request, if there is one; whether it has to be awaited."""
        self._awaits_turn = False
        if not self._is_busy and not self._begin_next() and self._ending:
            self._wake()
        return self._answering

    def end(self) -> None:
        """Take no more requests; close after the answer under way."""
        self._ending = True
        self._drop_held()
        self._wake()

    def abort(self) -> None:
        """Close now."""
        self._transport.abort()

    def leave_room(self) -> None:
        """Nothing of a large request is awaited or answered any more."""
        if self._place is not None:
            place, self._place = self._place, None
            self._lanes.room.leave(place)

    def sweep(self, now: float) -> None:
        """Close if the client has kept the server waiting for too long."""
        is_ours = self._answering or self._awaits_turn or self._waits_for_room()
        if is_ours or self._progress != self._swept_progress:
            self._swept_progress = self._progress
            self._swept_at = now
            return
        settings = self._lanes.settings
        is_idle = not self._held and not self._writing_paused
        patience_seconds = settings.idle_seconds if is_idle else settings.transfer_seconds
        if now - self._swept_at >= patience_seconds:
            self.abort()

    # -- the task ---------------------------------------------------------------------------

    async def serve(self) -> None:
        """Answer what can't be answered at once, until either side ends or the plain lane does."""
        while True:
            if self._awaited is not None:
                awaited, self._awaited = self._awaited, None
                self._answer(await awaited)
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
        """Answers have been sent: go on with what the client has sent ahead."""
        if self._held and not self._is_busy:
            self._awaits_turn = True
            self._lanes.take_turn(self)
        elif self._ending:
            self._wake()

    def _is_far_ahead(self) -> bool:
        """Whether no more of what a client sends ahead is to be read."""
        held = self._held
        # Each request begins with this line. A body that has it costs no more than a pause.
        return len(held) > _READ_AHEAD_BYTES or held.count(REQUEST_LINE) > _READ_AHEAD_REQUESTS

    def _drop_held(self) -> None:
        self._held.clear()
        self._head = None
        self._needed_bytes = 0

    def _begin_next(self) -> bool:
        """Begin to answer the next request; whether there is one."""
        request = self._next_request()
        if (
            self._reading_paused
            and (request is None or not self._is_far_ahead())
            and not self._waits_for_room()
        ):
            # A request may be larger than what is read ahead: the rest of it is awaited now.
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
        if self._place is not None:
            self.leave_room()
        if self._transport.is_closing():
            self._drop_held()
            return
        if answer.damage is not None and answer.damage in CUTS:
            self._cut(answer)
            return
        # Behind an answer that says so, no other is looked at.
        is_last = self._ending and not self._held
        turn = self._lanes.turn
        if not turn.began_nanoseconds:
            turn.begin()
        self._unsent = answer_bytes(answer, turn.epoch_seconds, closing=is_last)
        self._lanes.unsent.append(self)

    def _cut(self, answer: Answer) -> None:
        """Close the connection before an answer is sent, or in the middle of it."""
        self._transport.write(part_of(answer, time.time()))
        self.end()

    def _take_place(self) -> None:
        """Have a place for the request that is awaited; read no more of it before that."""
        self._place = self._lanes.room.enter(self._needed_bytes, self.abort)
        self._place.arrived_bytes = len(self._held)
        if self._waits_for_room():
            self._pause_reading()
            self._place.let_in.add_done_callback(self._let_in)

    def _waits_for_room(self) -> bool:
        return self._place is not None and not self._place.let_in.done()

    def _let_in(self, _: asyncio.Future[None]) -> None:
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
        """Cut the next request off what is held; None: not all there yet, or not for this lane."""
        held = self._held
        head = self._head or self._next_head()
        if head is None or len(held) < self._needed_bytes:
            return None
        if self._place is not None:
            self._place.is_whole = True
        body = bytes(held[self._body_start : self._needed_bytes])
        del held[: self._needed_bytes]
        self._head = None
        self._needed_bytes = 0
        return head.request(body)

    def _next_head(self) -> Head | None:
        held = self._held
        end = held.find(HEAD_END, 0, HEADER_BYTES)
        if end < 0:
            if len(held) >= HEADER_BYTES or not held.startswith(REQUEST_LINE[: len(held)]):
                self._leave()
            return None
        head_bytes = bytes(held[:end])
        is_repeated = head_bytes == self._last_head_bytes
        head = self._last_head if is_repeated else parse_head(head_bytes)
        if head is None or not self._lanes.settings.access.allows_host(head.host):
            self._leave()
            return None
        self._last_head, self._last_head_bytes = head, head_bytes
        body_start = end + len(HEAD_END)
        needed_bytes = body_start + head.content_length
        is_large = needed_bytes > SMALL_REQUEST_BYTES and needed_bytes > len(held)
        if is_large and self._lanes.protocol.refusal(head.request(b"")) is not None:
            # Whoever is refused takes no room; the plain lane tells it, and lets the rest go by.
            self._leave()
            return None
        self._head = head
        self._body_start = body_start
        self._needed_bytes = needed_bytes
        if is_large:
            self._take_place()
        return head

    def _leave(self) -> None:
        """Hand the connection over to the plain lane, with all that is not answered."""
        if self._transport.is_closing():
            # The plain lane would never be told that the client is gone, and would keep it.
            self._held.clear()
            return
        self._left = True
        self._resume_reading()
        plain = self._lanes.hand_over(self, self._transport)
        in_pieces = BoundedReads(
            plain, self._transport, self._lanes.piece, self._lanes.unsent_answers
        )
        self._transport.set_protocol(in_pieces)
        plain.connection_made(self._transport)
        held, self._held = bytes(self._held), bytearray()
        in_pieces.hand_over(held)
        if self._ending:
            # The client's end of the connection was told to us; nobody tells it again.
            in_pieces.eof_received()
        self._wake()
