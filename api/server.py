"""The server's socket, from listening to the last answer.

Every connection begins in the fast lane and may leave it for the plain one, for good.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from api.fast_lane import FastLanes
from api.http_settings import HttpSettings
from api.plain_lane import plain_server
from api.protocol import Protocol

_BACKLOG: Final = 1024


class CannotListen(Exception):
    """The address can't be listened on; the message says what to do."""


def listen(host: str, port: int, *, port_option: str = "--port") -> socket.socket:
    """A socket that listens there; port 0 takes a free one. ``port_option`` is for the advice.

    Raises:
        CannotListen: the address is not ours, or taken, or not allowed.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            advice = (
                f"it is in use; stop what listens there, or give another {port_option} (0: any)"
            )
        elif error.errno == errno.EACCES:
            advice = f"it is not allowed; give a {port_option} above 1023"
        else:
            # Python adds the address, which the message names already.
            reason = (error.strerror or str(error)).partition(" (")[0]
            advice = f"{reason}; give another --host"
        raise CannotListen(f"Cannot listen on {host} port {port}: {advice}") from None


@asynccontextmanager
async def serving(
    protocol: Protocol, settings: HttpSettings, listener: socket.socket
) -> AsyncIterator[str]:
    """Serve within the context; yields the endpoint's URL.

    On leaving, no more connections and requests are taken, and those under way are answered.
    """
    plain = plain_server(protocol, settings)
    async with FastLanes(protocol, settings, plain) as fast:
        server = await asyncio.get_running_loop().create_server(
            fast.connection, sock=listener, backlog=_BACKLOG
        )
        host, port = listener.getsockname()[:2]
        try:
            yield f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        finally:
            server.close()
            fast.end()
            plain.pre_shutdown()
            await plain.shutdown(settings.drain_seconds)
