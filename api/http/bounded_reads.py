"""A connection of which little is read at a time.

The event loop reads up to 256 KB of a connection at once, and 32 times before it turns to another
one. The plain way into the server holds what was read several times over: bytes that are no HTTP in
its words about them, a body that is not asked for yet in its buffer. Of a hundred connections that
was more than a gigabyte.
"""

from __future__ import annotations

import asyncio
from typing import Final

from dynactor.api.http.unsent_answers import UnsentAnswers
from dynactor.model.limits import KIB

PIECE_BYTES: Final = 8 * KIB


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

    def eof_received(self) -> bool | None:
        """The client sends no more."""
        return self._protocol.eof_received()

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
