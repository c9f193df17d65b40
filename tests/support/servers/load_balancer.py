"""A load balancer for TCP connections: each goes to the next ready server that accepts it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

_CHUNK_BYTES: Final = 1 << 16
_CHECK_SECONDS: Final = 0.5


@contextmanager
def balanced(ports: Sequence[int], is_ready: Callable[[int], bool] | None = None) -> Iterator[str]:
    """The endpoint of a load balancer for servers on these ports, in a thread of its own.

    ``is_ready`` is asked regularly about each server, by number. A connection to a server that is
    not ready gets the present answer, and is closed.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    balancer = _Balancer(ports, is_ready)
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


class _Connection:
    """A connection of a client; ``port`` is its server's, and 0 without one."""

    def __init__(self) -> None:
        self.port = 0
        self.is_busy = False
        self.is_ending = False


class _Balancer:
    def __init__(self, ports: Sequence[int], is_ready: Callable[[int], bool] | None) -> None:
        self._ports = ports
        self._is_ready = is_ready
        self._unready: set[int] = set()
        self._turn = 0
        self._tasks: dict[asyncio.Task[None], _Connection] = {}

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        checking = asyncio.create_task(self._check())
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            checking.cancel()
            await asyncio.gather(checking, return_exceptions=True)
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connection = self._tasks[task] = _Connection()
        try:
            for _ in self._ports:
                self._turn += 1
                port = self._ports[self._turn % len(self._ports)]
                if port in self._unready:
                    continue
                with suppress(OSError):
                    upstream = await asyncio.open_connection("127.0.0.1", port)
                    connection.port = port
                    break
            else:
                return
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, upstream[1], connection, is_request=True))
                group.create_task(_copy(upstream[0], writer, connection, is_request=False))
        except asyncio.CancelledError:
            # A server of asyncio reports canceled tasks as errors.
            pass
        finally:
            del self._tasks[task]
            writer.close()

    async def _check(self) -> None:
        """Ask the servers whether they are ready, until the task is canceled."""
        while self._is_ready is not None:
            for number, port in enumerate(self._ports):
                if await asyncio.to_thread(self._is_ready, number):
                    self._unready.discard(port)
                else:
                    self._unready.add(port)
            for task, connection in self._tasks.items():
                if connection.port in self._unready:
                    connection.is_ending = True
                    if not connection.is_busy:
                        task.cancel()
            await asyncio.sleep(_CHECK_SECONDS)


async def _copy(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    connection: _Connection,
    *,
    is_request: bool,
) -> None:
    """Copy bytes until one side ends, and end the other side."""
    try:
        while data := await reader.read(_CHUNK_BYTES):
            connection.is_busy = is_request
            writer.write(data)
            await writer.drain()
            if connection.is_ending and not is_request:
                break
    except OSError:
        pass
    finally:
        writer.close()
