"""A network between a local client and a local server, which a test can break."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, Final

_CHUNK_BYTES: Final = 65_536


class Network:
    """Forwards connections from one loopback port to another.

    It runs in a thread of its own, so tests with and without an event loop can use it. Invariant:
    unless ``cut``, ``silent`` or ``losing_answers`` is active, every byte arrives in order.
    """

    def __init__(self, port: int, server_port: int) -> None:
        self.port = port
        # The number of lost bytes of the server's answers.
        self.lost_bytes = 0
        self._server_port = server_port
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._listener: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._loses_answers = False

    @contextmanager
    def running(self) -> Iterator[Network]:
        """Run within the context."""
        self._thread.start()
        try:
            self._do(self._listen())
            yield self
        finally:
            self._do(self._break())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Close every connection, and refuse new ones."""
        self._do(self._break())
        try:
            yield
        finally:
            self._do(self._listen())

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Accept and keep connections, but deliver nothing until the context ends."""
        self._do(self._set_flowing(is_flowing=False))
        try:
            yield
        finally:
            self._do(self._set_flowing(is_flowing=True))

    @contextmanager
    def losing_answers(self) -> Iterator[None]:
        """Deliver requests but lose the answers; at the end, connections break."""
        self._loses_answers = True
        try:
            yield
        finally:
            self._do(self._break())
            self._loses_answers = False
            self._do(self._listen())

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _set_flowing(self, *, is_flowing: bool) -> None:
        (self._flows.set if is_flowing else self._flows.clear)()

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(self._connect, "127.0.0.1", self.port)

    async def _break(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        broken = list(self._connections)
        for connection in broken:
            connection.cancel()
        if broken:
            await asyncio.wait(broken)

    async def _connect(
        self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            # If the server is down, close the client's connection, which was already accepted.
            with suppress(OSError):
                await self._carry(from_client, to_client)
        except asyncio.CancelledError:
            # ``_break`` canceled the connection. Without this, asyncio would log an error.
            pass
        finally:
            self._connections.discard(task)
            to_client.transport.abort()

    async def _carry(
        self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._server_port)
        try:
            ways = (
                asyncio.create_task(self._pass_on(from_client, to_server, are_answers=False)),
                asyncio.create_task(self._pass_on(from_server, to_client, are_answers=True)),
            )
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.wait(ways)
        finally:
            to_server.transport.abort()

    async def _pass_on(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, are_answers: bool
    ) -> None:
        with suppress(OSError):
            while chunk := await source.read(_CHUNK_BYTES):
                await self._flows.wait()
                if are_answers and self._loses_answers:
                    self.lost_bytes += len(chunk)
                    continue
                target.write(chunk)
                await target.drain()
