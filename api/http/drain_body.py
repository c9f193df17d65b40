"""The rest of requests that were refused: read and dropped, so that their senders see why.

Who sends a whole body before it looks for an answer would not see that of a server that closes
early: a connection with bytes that nobody has read is reset, and what was sent on it may be lost
(RFC 9112, 9.6). But reading takes the server's time from others. So all of them together are read
at a pace that others hardly notice, each for a while, and only so many at once; whoever is beyond
that is closed.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from aiohttp import StreamReader
from aiohttp.web_protocol import RequestPayloadError

from dynactor.model.limits import MIB

_BYTES_PER_SECOND: Final = 64 * MIB
_MOST_AT_ONCE: Final = 100


class BodyDrain:
    """Invariant: ``_next_at`` is when all that was read so far has had its time."""

    def __init__(self, most_seconds: float) -> None:
        self._most_seconds = most_seconds
        self._at_once = 0
        self._next_at = 0.0

    async def drop(self, content: StreamReader) -> None:
        """Read to the end, or as far as the bounds allow."""
        if self._at_once >= _MOST_AT_ONCE:
            return
        self._at_once += 1
        try:
            # A client may leave, or its chunks may be none.
            with suppress(TimeoutError, RequestPayloadError, ConnectionError):
                async with asyncio.timeout(self._most_seconds):
                    while piece := await content.readany():
                        await self._pace(len(piece))
        finally:
            self._at_once -= 1

    async def _pace(self, size_bytes: int) -> None:
        """Wait for as long as what was read is to take."""
        now = asyncio.get_running_loop().time()
        self._next_at = max(self._next_at, now) + size_bytes / _BYTES_PER_SECOND
        await asyncio.sleep(self._next_at - now)
