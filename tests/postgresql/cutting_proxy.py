"""A proxy to PostgreSQL that closes a connection between two messages, and counts round trips."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import count
from struct import Struct
from threading import Thread
from typing import Final

_LENGTH: Final = Struct(">I")
_TYPE_BYTES: Final = 1
# Sync and Query: each ends what a client sends before it waits for the answer.
_ENDS: Final = (b"S", b"Q")


class CuttingProxy:
    """Forwards whole messages. After ``arm`` it closes one connection before a message."""

    def __init__(self, port: int) -> None:
        self._port = port
        # The delay of each message to PostgreSQL.
        self.delay_seconds = 0.0
        # The number of messages that are still forwarded; None if unlimited.
        self._left: int | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.cuts = 0
        # The round trips of statements, without those of the first connection, which is the lock's.
        self.round_trips = 0
        self._connections = count()

    def arm(self, messages: int) -> None:
        """Forward this many more messages of either side, and then close the connection, once."""
        self._left = messages

    @property
    def is_armed(self) -> bool:
        """Whether a connection will still be closed."""
        return self._left is not None

    def disarm(self) -> bool:
        """Forward all messages again; return whether no connection was closed since ``arm``."""
        was_armed, self._left = self._left is not None, None
        return was_armed

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward a connection until one side or the proxy closes it."""
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._port)
        both = {writer, server_writer}
        is_counted = next(self._connections) > 0
        self._writers |= both
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(
                    self._forward(reader, server_writer, both, is_server=False, counts=is_counted)
                )
                group.create_task(
                    self._forward(server_reader, writer, both, is_server=True, counts=False)
                )
        finally:
            self._writers -= both
            for each in both:
                each.transport.abort()

    async def _forward(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        both: set[asyncio.StreamWriter],
        *,
        is_server: bool,
        counts: bool,
    ) -> None:
        is_started = is_server
        try:
            while True:
                # The first message of a client has no type byte.
                head = await reader.readexactly(_LENGTH.size + (_TYPE_BYTES if is_started else 0))
                (length,) = _LENGTH.unpack(head[-_LENGTH.size :])
                message = head + await reader.readexactly(length - _LENGTH.size)
                is_started = True
                if self.delay_seconds and not is_server:
                    await asyncio.sleep(self.delay_seconds)
                if counts and head[:_TYPE_BYTES] in _ENDS:
                    self.round_trips += 1
                if self._is_cut():
                    self.cuts += 1
                    break
                writer.write(message)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        for each in both:
            each.transport.abort()

    def _is_cut(self) -> bool:
        if self._left is None:
            return False
        if self._left:
            self._left -= 1
            return False
        self._left = None
        return True

    def close(self) -> None:
        """Close all connections."""
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def cutting_proxy(port: int) -> AsyncIterator[tuple[CuttingProxy, int]]:
    """A proxy to this loopback port, and the proxy's own port."""
    proxy = CuttingProxy(port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    try:
        yield proxy, server.sockets[0].getsockname()[1]
    finally:
        proxy.close()
        server.close()
        await server.wait_closed()


@contextmanager
def cutting_proxy_in_thread(port: int) -> Iterator[tuple[CuttingProxy, int]]:
    """The same in a thread, for tests that block their event loop while a server starts."""
    started: Future[tuple[CuttingProxy, int, Callable[[], None]]] = Future()

    async def serve() -> None:
        ended = asyncio.Event()
        end = partial(asyncio.get_running_loop().call_soon_threadsafe, ended.set)
        async with cutting_proxy(port) as (proxy, own_port):
            started.set_result((proxy, own_port, end))
            await ended.wait()

    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    proxy, own_port, end = started.result()
    try:
        yield proxy, own_port
    finally:
        end()
        thread.join()
