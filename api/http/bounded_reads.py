"""A connection that passes received bytes on in small pieces.

The event loop reads up to 256 KB of a connection at once, and up to 32 times before it turns to
another one. The library aiohttp keeps several copies of these bytes: of invalid HTTP in its error
messages, of an unread body in its buffer. A hundred connections used more than a gigabyte.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from aiohttp import StreamReader

from dynactor.api.access.sender import Connection
from dynactor.api.http.unsent_answers import UnsentAnswers
from dynactor.model.limits import KIB

PIECE_BYTES: Final = 8 * KIB
# Turns of the event loop after which no pipelined request can still start. aiohttp needs three
# turns from the end of a request to the start of the next one.
_TURNS_TO_NEXT_REQUEST: Final = 8


class BoundedReads(asyncio.BufferedProtocol):
    """Passes all events on to a protocol, and the bytes in small pieces.

    All connections of an event loop may share one ``piece``, because the loop fills it and passes
    it on before it turns to another connection.
    """

    def __init__(
        self,
        protocol: asyncio.Protocol,
        transport: asyncio.Transport,
        piece: bytearray,
        unsent_answers: UnsentAnswers,
        *,
        client: Connection,
        on_lost: Callable[[Connection], None],
    ) -> None:
        """``on_lost`` is called when the client has disconnected."""
        self._protocol = protocol
        self.transport = transport
        self._piece = piece
        self._unsent_answers = unsent_answers
        self.client = client
        self._on_lost = on_lost
        self._has_read = True
        # The body of the request that is being answered.
        self._body: StreamReader | None = None
        self._is_ended = False

    @contextmanager
    def request(self, body: StreamReader) -> Iterator[None]:
        """A context in which a request with this body is answered."""
        self._body = body
        self._close_if_broken_off()
        try:
            yield
        finally:
            self._body = None
            if self._is_ended:
                self._close_when_idle(_TURNS_TO_NEXT_REQUEST)

    def hand_over(self, data: bytes) -> None:
        """Pass on bytes that were read before."""
        for start in range(0, len(data), len(self._piece)):
            self._protocol.data_received(data[start : start + len(self._piece)])

    def take_has_read(self) -> bool:
        """Whether anything was read since the last call."""
        had_read, self._has_read = self._has_read, False
        return had_read

    def get_buffer(self, _hint_bytes: int) -> bytearray:
        """Return the buffer for the next piece."""
        return self._piece

    def buffer_updated(self, size_bytes: int) -> None:
        """A piece has been read."""
        self._has_read = True
        self._protocol.data_received(bytes(self._piece[:size_bytes]))

    def eof_received(self) -> bool:
        """Keep the connection: the client sends no more, but may still wait for answers."""
        self._is_ended = True
        if self._body is None:
            self._close_when_idle(_TURNS_TO_NEXT_REQUEST)
        else:
            self._close_if_broken_off()
        return can_half_close(self.transport)

    def connection_lost(self, error: Exception | None) -> None:
        """The client has disconnected."""
        self._unsent_answers.remove(self.transport)
        self._on_lost(self.client)
        self._protocol.connection_lost(error)

    def pause_writing(self) -> None:
        """The client does not read its answers, so stop sending."""
        self._unsent_answers.add(self.transport)
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """The client has read its answers."""
        self._unsent_answers.remove(self.transport)
        self._protocol.resume_writing()

    def _close_if_broken_off(self) -> None:
        if self._is_ended and self._body is not None and not self._body.is_eof():
            self.transport.close()

    def _close_when_idle(self, turns: int) -> None:
        """Close after these turns of the event loop, unless a request that was read starts."""
        if self._body is not None:
            return
        if turns == 0:
            self.transport.close()
        else:
            asyncio.get_running_loop().call_soon(self._close_when_idle, turns - 1)


def can_half_close(transport: asyncio.Transport) -> bool:
    """Whether answers can be sent after the client's end: event loops close TLS as a whole."""
    return transport.get_extra_info("sslcontext") is None
