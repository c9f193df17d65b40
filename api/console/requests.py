"""The requests of clients as they are answered, as server-sent events.

Requests are recorded only while a page listens. Keys and values are never recorded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

import msgspec
from aiohttp import web

from dynactor.api.console.files import HEADERS
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.request_log import AnsweredRequest

# Requests that a page has not received yet; older ones are dropped.
MOST_PENDING: Final = 10_000

_SECONDS: Final = 1.0
_WRITE_SECONDS: Final = 20.0

_encode = msgspec.json.Encoder().encode


async def stream(request: web.BaseRequest, protocol: Protocol) -> web.StreamResponse:
    """Send the requests of each second until the page is closed."""
    response = web.StreamResponse(
        headers={**HEADERS, "Content-Type": "text/event-stream", "Cache-Control": "no-store"}
    )
    await response.prepare(request)
    pending: deque[AnsweredRequest] = deque(maxlen=MOST_PENDING)
    protocol.listen(pending)
    try:
        while True:
            answered = list(pending)
            pending.clear()
            async with asyncio.timeout(_WRITE_SECONDS):
                await response.write(b"data: %b\n\n" % _encode(answered))
            await asyncio.sleep(_SECONDS)
    except (TimeoutError, ConnectionError):
        if request.transport is not None:
            request.transport.abort()
    finally:
        protocol.stop_listening(pending)
    return response
