"""Reads and discards the bodies of refused requests, so that clients receive the error.

A client may send its whole body before it reads. Closing a connection with unread bytes resets it,
and the answer may be lost (RFC 9112, 9.6).
Reading costs processor time, so three things are limited: the rate over all connections, the time
for each body, and the number of bodies read at once. Beyond that number, connections are closed
without reading.
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
    """Reads bodies at a limited rate. At ``_next_at`` all bytes read so far fit the rate."""

    def __init__(self, most_seconds: float) -> None:
        self._most_seconds = most_seconds
        self._at_once = 0
        self._next_at = 0.0

    async def drop(self, content: StreamReader) -> None:
        """Read to the end, or until a limit is reached."""
        if self._at_once >= _MOST_AT_ONCE:
            return
        self._at_once += 1
        try:
            # A client may leave, or its chunks may be invalid.
            with suppress(TimeoutError, RequestPayloadError, ConnectionError):
                async with asyncio.timeout(self._most_seconds):
                    while piece := await content.readany():
                        await self._pace(len(piece))
        finally:
            self._at_once -= 1

    async def _pace(self, size_bytes: int) -> None:
        now = asyncio.get_running_loop().time()
        self._next_at = max(self._next_at, now) + size_bytes / _BYTES_PER_SECOND
        await asyncio.sleep(self._next_at - now)
