"""A fake DynamoDB with one table and injected faults, for tests of programs that check servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

Item = dict[str, Any]
Key = tuple[str, str]
Body = dict[str, Any]

# Called with the number of a put or get; returns whether it fails.
Fault = Callable[[int], bool]


def never(number: int) -> bool:
    """Never fail."""
    return number < 0


class FaultyDynamoDB:
    """Serves puts and gets of whole items. A fault is called with the number of the put or get."""

    def __init__(self) -> None:
        # The put is acknowledged but not applied.
        self.loses_put: Fault = never
        # The get returns the version before the last one, if there is one.
        self.shows_old: Fault = never
        # The get returns another item.
        self.shows_other: Fault = never
        # The put is applied, and the connection is closed without an answer.
        self.hangs_up: Fault = never
        # The put is applied, and the connection stays open without an answer.
        self.falls_silent: Fault = never
        # The put is applied without an answer, and later requests get no answer either.
        self.dies: Fault = never
        # Every batch is refused.
        self.refuses_batches = False
        self.endpoint = ""
        self._table: Body | None = None
        self._items: dict[Key, list[Item]] = {}
        self._is_dead = False
        self._puts = 0
        self._gets = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[FaultyDynamoDB]:
        """Serve on a free port of loopback."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:-2])
                body = await reader.readexactly(int(headers["Content-Length"]))
                operation = headers["X-Amz-Target"].partition(".")[2]
                status, answer = self._answer(operation, msgspec.json.decode(body))
                if operation == "PutItem" and self.dies(self._puts):
                    self._is_dead = True
                if self._is_dead or (operation == "PutItem" and self.hangs_up(self._puts)):
                    return
                if operation == "PutItem" and self.falls_silent(self._puts):
                    await reader.read()
                    return
                encoded = msgspec.json.encode(answer)
                lines = f"HTTP/1.1 {status} -\r\nContent-Length: {len(encoded)}\r\n\r\n"
                writer.write(lines.encode() + encoded)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    def _answer(self, operation: str, body: Body) -> tuple[int, Body]:
        match operation:
            case "CreateTable":
                self._table = body | {"TableStatus": "ACTIVE"}
            case "DescribeTable" if self._table is not None:
                return 200, {"Table": self._table}
            case "DescribeTable":
                return 400, {"__type": "x#ResourceNotFoundException", "message": "no table"}
            case "BatchWriteItem" if self.refuses_batches:
                return 400, {"__type": "x#ValidationException", "message": "no batches today"}
            case "BatchWriteItem":
                for requests in body["RequestItems"].values():
                    for request in requests:
                        self._store(request["PutRequest"]["Item"])
                return 200, {"UnprocessedItems": {}}
            case "PutItem":
                self._puts += 1
                if not self.loses_put(self._puts):
                    self._store(body["Item"])
            case "GetItem":
                self._gets += 1
                return 200, self._get(_key(body["Key"]))
            case _:
                return 400, {"__type": "x#ValidationException", "message": f"no {operation}"}
        return 200, {}

    def _store(self, item: Item) -> None:
        self._items.setdefault(_key(item), []).append(item)

    def _get(self, key: Key) -> Body:
        if self.shows_other(self._gets):
            key = next(other for other in self._items if other != key)
        versions = self._items.get(key)
        if versions is None:
            return {}
        is_old = len(versions) > 1 and self.shows_old(self._gets)
        return {"Item": versions[-2 if is_old else -1]}


def _key(item: Item) -> Key:
    return item["pk"]["S"], item["sk"]["S"]
