"""A network between the nodes of a cluster, which a test can cut between any two of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, Final, TypeAlias

# A pair of nodes, by number, in any order.
Pair: TypeAlias = frozenset[int]

_CHUNK_BYTES: Final = 65_536
# The names of the tests' nodes.
_SENDER: Final = re.compile(rb"[?&]node=n(\d+)")


class PeerNetwork:
    """Forwards connections between nodes; each node advertises its port of this network.

    It runs in a thread of its own.
    """

    def __init__(self, node_ports: Sequence[int]) -> None:
        """``node_ports`` are those at which the nodes listen for others, by number."""
        # The ports to advertise.
        self.ports: list[int] = []
        self._node_ports = node_ports
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._connections: dict[asyncio.Task[None], Pair] = {}
        self._cut: frozenset[Pair] = frozenset()
        self._is_silent = False
        self._healed = asyncio.Event()

    @contextmanager
    def running(self) -> Iterator[PeerNetwork]:
        """Run within the context."""
        self._thread.start()
        try:
            listeners = self._do(self._listen())
            try:
                yield self
            finally:
                self._do(self._close(listeners))
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    @contextmanager
    def cut(self, pairs: Collection[Pair], *, is_silent: bool) -> Iterator[None]:
        """Let nothing pass between the nodes of each pair.

        A silent cut keeps connections open, and delivers late what was sent. Any other cut closes
        connections, and refuses new ones.
        """
        self._do(self._set_cut(frozenset(pairs), is_silent=is_silent))
        try:
            yield
        finally:
            self._do(self._set_cut(frozenset(), is_silent=False))

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _listen(self) -> list[asyncio.Server]:
        listeners = []
        for number in range(len(self._node_ports)):

            async def serve(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int = number
            ) -> None:
                await self._serve(number, reader, writer)

            listeners.append(await asyncio.start_server(serve, "127.0.0.1", 0))
        self.ports = [each.sockets[0].getsockname()[1] for each in listeners]
        return listeners

    async def _close(self, listeners: Sequence[asyncio.Server]) -> None:
        for listener in listeners:
            listener.close()
        await self._end(self._connections)

    async def _end(self, connections: Collection[asyncio.Task[None]]) -> None:
        ending = list(connections)
        for connection in ending:
            connection.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    async def _set_cut(self, pairs: frozenset[Pair], *, is_silent: bool) -> None:
        self._cut, self._is_silent = pairs, is_silent
        self._healed.set()
        self._healed = asyncio.Event()
        if not is_silent:
            await self._end([task for task, pair in self._connections.items() if pair in pairs])

    async def _serve(
        self, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = frozenset()
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            found = _SENDER.search(head)
            assert found, head
            pair = self._connections[task] = frozenset((int(found[1]), target))
            if pair in self._cut and not self._is_silent:
                return
            await self._wait_healed(pair)
            upstream = await asyncio.open_connection("127.0.0.1", self._node_ports[target])
            try:
                upstream[1].write(head)
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._copy(reader, upstream[1], pair))
                    group.create_task(self._copy(upstream[0], writer, pair))
            finally:
                upstream[1].transport.abort()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # One of the nodes has ended or given up, or the connection is cut. A server of asyncio
            # reports canceled tasks as errors.
            pass
        finally:
            self._connections.pop(task)
            writer.transport.abort()

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pair: Pair
    ) -> None:
        """Copy bytes until one side ends, and end the other side."""
        with suppress(OSError):
            while data := await reader.read(_CHUNK_BYTES):
                await self._wait_healed(pair)
                writer.write(data)
                await writer.drain()
        await self._wait_healed(pair)
        writer.close()

    async def _wait_healed(self, pair: Pair) -> None:
        while pair in self._cut:
            await self._healed.wait()
