"""A connection of which little is read at a time.

The event loop reads up to 256 KB of a connection at once, and 32 times before it turns to another
one. The plain way into the server holds what was read several times over: bytes that are no HTTP in
its words about them, a body that is not asked for yet in its buffer. Of a hundred connections that
was more than a gigabyte.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aiohttp import StreamReader

from dynactor.api.http.unsent_answers import UnsentAnswers
from dynactor.model.limits import KIB

PIECE_BYTES: Final = 8 * KIB
# aiohttp takes three from the end of a request to the beginning of one that it has read.
_TURNS_TO_NEXT_REQUEST: Final = 8


class BoundedReads(asyncio.BufferedProtocol):
    """Hands all that is told to it on to a protocol, and what is read in pieces.

    All connections of an event loop may have the same ``piece``: the loop fills it and hands it
    over before it turns to another one.
    """

    def __init__(
        self,
        protocol: asyncio.Protocol,
        transport: asyncio.Transport,
        piece: bytearray,
        unsent_answers: UnsentAnswers,
    ) -> None:
        self._protocol = protocol
        self._transport = transport
        self._piece = piece
        self._unsent_answers = unsent_answers
        self._has_news = True
        # The body of the request that is being answered.
        self._body: StreamReader | None = None
        self._is_ended = False

    @contextmanager
    def request(self, body: StreamReader) -> Iterator[None]:
        """A request that is being answered, for as long as the context."""
        self._body = body
        self._close_if_broken_off()
        try:
            yield
        finally:
            self._body = None
            if self._is_ended:
                self._close_when_idle(_TURNS_TO_NEXT_REQUEST)

    def hand_over(self, data: bytes) -> None:
        """What was read before."""
        for start in range(0, len(data), len(self._piece)):
            self._protocol.data_received(data[start : start + len(self._piece)])

    def take_news(self) -> bool:
        """Whether anything was read since the last call of this."""
        had_news, self._has_news = self._has_news, False
        return had_news

    def get_buffer(self, _hint_bytes: int) -> bytearray:
        """Where the next piece goes."""
        return self._piece

    def buffer_updated(self, size_bytes: int) -> None:
        """A piece has been read."""
        self._has_news = True
        self._protocol.data_received(bytes(self._piece[:size_bytes]))

    def eof_received(self) -> bool:
        """The client sends no more; it may still wait for answers, so the connection stays."""
        self._is_ended = True
        if self._body is None:
            self._close_when_idle(_TURNS_TO_NEXT_REQUEST)
        else:
            self._close_if_broken_off()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """The client is gone."""
        self._unsent_answers.went_on(self._transport)
        self._protocol.connection_lost(error)

    def pause_writing(self) -> None:
        """The client does not take its answers."""
        self._unsent_answers.stopped(self._transport)
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """The client has taken its answers."""
        self._unsent_answers.went_on(self._transport)
        self._protocol.resume_writing()

    def _close_if_broken_off(self) -> None:
        if self._is_ended and self._body is not None and not self._body.is_eof():
            self._transport.close()

    def _close_when_idle(self, turns: int) -> None:
        """Close unless another request, which has been read, begins within these turns."""
        if self._body is not None:
            return
        if turns == 0:
            self._transport.close()
        else:
            asyncio.get_running_loop().call_soon(self._close_when_idle, turns - 1)
