"""A load balancer for TCP connections: each goes to the next server that accepts it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

_CHUNK_BYTES: Final = 1 << 16


@contextmanager
def balanced(ports: Sequence[int]) -> Iterator[str]:
    """The endpoint of a load balancer for servers on these ports, in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    balancer = _Balancer(ports)
    serving = balancer.serving()
    try:
        port = asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class _Balancer:
    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = ports
        self._turn = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            for _ in self._ports:
                self._turn += 1
                port = self._ports[self._turn % len(self._ports)]
                with suppress(OSError):
                    upstream = await asyncio.open_connection("127.0.0.1", port)
                    break
            else:
                return
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, upstream[1]))
                group.create_task(_copy(upstream[0], writer))
        finally:
            self._tasks.discard(task)
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes until one side ends, and end the other side."""
    try:
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
