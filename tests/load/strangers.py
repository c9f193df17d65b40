"""The cost of crowds without a key for others: ``python -m tests.load.strangers --help``.

Each crowd does one thing that no client should, from another process. Meanwhile a client with a key
puts and gets small items, and puts large ones; its latencies and the server's memory are printed.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import multiprocessing
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from dynactor.api.http.signature import AccessKey, authorization
from tests.load.servers import Server, dynactor, resident_megabytes
from tests.support.clients.wire import Connection, encode

_KEY: Final = AccessKey("AKIDAPP", "a-secret")
_KEYS: Final = f"[app]\naws_access_key_id = {_KEY[0]}\naws_secret_access_key = {_KEY[1]}\n"
_MIB: Final = 1024 * 1024
_LARGE: Final = 15 * _MIB
_PIECE: Final = b"x" * 64 * 1024
_SMALL_CLIENTS: Final = 8
_LARGE_CLIENTS: Final = 2
_PATIENCE_SECONDS: Final = 5.0
_SAMPLE_SECONDS: Final = 0.05


def signed(key: AccessKey, operation: str, body: bytes, *, tells_hash: bool = False) -> bytes:
    """The head of a request, without a length."""
    headers = {
        "host": "localhost",
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": f"DynamoDB_20120810.{operation}",
    }
    if tells_hash:
        headers["x-amz-content-sha256"] = sha256(body).hexdigest()
    headers |= authorization(key, "us-east-1", headers, body, datetime.now(UTC))
    lines = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
    return f"POST / HTTP/1.1\r\n{lines}".encode()


# -- what a crowd does ----------------------------------------------------------------------


class Stranger(NamedTuple):
    """A connection of a client without a key, or with only the id of one."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    key: AccessKey

    def head(self, *more: str, operation: str = "PutItem", tells_hash: bool = False) -> bytes:
        lines = "".join(f"{line}\r\n" for line in more).encode()
        return signed(self.key, operation, b"other", tells_hash=tells_hash) + lines + b"\r\n"

    async def send(self, *pieces: bytes, pause_seconds: float = 0.0) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            if pause_seconds:
                await asyncio.sleep(pause_seconds)

    async def send_body(self, size_bytes: int, pause_seconds: float = 0.0) -> None:
        pieces = [_PIECE] * (size_bytes // len(_PIECE))
        await self.send(*pieces, pause_seconds=pause_seconds)


async def _quickly(stranger: Stranger) -> None:
    await stranger.send(stranger.head(f"Content-Length: {_LARGE}"))
    await stranger.send_body(_LARGE)
    await stranger.reader.read()


async def _slowly(stranger: Stranger) -> None:
    await stranger.send(stranger.head(f"Content-Length: {_LARGE}"))
    await stranger.send_body(_LARGE, pause_seconds=0.2)


async def _with_a_hash(stranger: Stranger) -> None:
    await stranger.send(stranger.head(f"Content-Length: {_LARGE}", tells_hash=True))
    await stranger.send_body(_LARGE, pause_seconds=0.01)


async def _zipped(stranger: Stranger) -> None:
    body = _BOMB
    head = stranger.head(f"Content-Length: {len(body)}", "Content-Encoding: gzip")
    for _ in range(20):
        await stranger.send(head, body)
        await stranger.reader.readuntil(b"}")


async def _half_closed(stranger: Stranger) -> None:
    await stranger.send(stranger.head(f"Content-Length: {_LARGE}"))
    await stranger.send_body(_MIB)
    stranger.writer.write_eof()
    await stranger.reader.read()


async def _half_closed_small(stranger: Stranger) -> None:
    await stranger.send(stranger.head("Content-Length: 60000"), b"x" * 59_000)
    stranger.writer.write_eof()
    await asyncio.sleep(5)


async def _in_chunks(stranger: Stranger) -> None:
    await stranger.send(stranger.head("Transfer-Encoding: chunked"))
    chunk = b"%x\r\n%b\r\n" % (len(_PIECE), _PIECE)
    await stranger.send(*[chunk] * 1000)


async def _in_tiny_chunks(stranger: Stranger) -> None:
    await stranger.send(stranger.head("Transfer-Encoding: chunked"))
    await stranger.send(*[b"1\r\nx\r\n" * 10_000] * 100)


async def _with_bad_lengths(stranger: Stranger) -> None:
    lengths = ("Content-Length: -1", f"Content-Length: {10**30}", "Content-Length: 1, 2")
    await stranger.send(stranger.head(lengths[time.time_ns() % 3]), *[_PIECE] * 100)
    await stranger.reader.read()


async def _too_large(stranger: Stranger) -> None:
    await stranger.send(stranger.head(f"Content-Length: {200 * _MIB}"))
    await stranger.send_body(200 * _MIB)


async def _almost_small(stranger: Stranger) -> None:
    """The largest request that needs no admission, never complete."""
    await stranger.send(stranger.head("Content-Length: 63000"), b"x" * 62_000)
    await asyncio.sleep(30)


async def _endless_heads(stranger: Stranger) -> None:
    await stranger.send(b"POST / HTTP/1.1\r\n")
    for _ in range(150):
        await stranger.send(b"X-More: %b\r\n" % (b"x" * 90), pause_seconds=0.2)


async def _unread(stranger: Stranger) -> None:
    """Request after request in the full lane, without reading answers."""
    body = b"x" * 60_000
    whole = stranger.head(f"Content-Length: {len(body)}", "TE: trailers") + body
    await stranger.send(*[whole] * 10_000)


async def _unread_tiny(stranger: Stranger) -> None:
    whole = stranger.head("Content-Length: 2", "TE: trailers") + b"{}"
    await stranger.send(*[whole * 100] * 10_000)


_BOMB: Final = gzip.compress(b'{"TableName":"' + b"0" * (16 * _MIB - 20) + b'"}')
_NOBODY: Final = AccessKey("nobody", "any")
# With a valid key id and another secret.
_IMPOSTOR: Final = AccessKey(_KEY[0], "another-secret")


class Crowd(NamedTuple):
    """This many strangers who repeat this."""

    size: int
    do: Callable[[Stranger], Awaitable[None]]
    key: AccessKey = _NOBODY


CROWDS: Final = {
    "nobody": Crowd(0, _quickly),
    "quick": Crowd(50, _quickly),
    "slow": Crowd(500, _slowly),
    "hash told": Crowd(200, _with_a_hash, _IMPOSTOR),
    "zipped": Crowd(100, _zipped),
    "zipped, id known": Crowd(100, _zipped, _IMPOSTOR),
    "half-closed": Crowd(200, _half_closed),
    "half-closed, small": Crowd(1000, _half_closed_small),
    "chunked": Crowd(100, _in_chunks),
    "tiny chunks": Crowd(20, _in_tiny_chunks),
    "bad lengths": Crowd(100, _with_bad_lengths),
    "too large": Crowd(50, _too_large),
    "almost small": Crowd(2000, _almost_small),
    "endless heads": Crowd(2000, _endless_heads),
    "unread": Crowd(100, _unread),
    "unread, tiny": Crowd(20, _unread_tiny),
    "quick, id known": Crowd(50, _quickly, _IMPOSTOR),
    "slow, id known": Crowd(500, _slowly, _IMPOSTOR),
}


def _run_crowd(name: str, host: str, port: int) -> None:
    asyncio.run(_crowd(CROWDS[name], host, port))


async def _crowd(crowd: Crowd, host: str, port: int) -> None:
    async with asyncio.TaskGroup() as tasks:
        for _ in range(crowd.size):
            tasks.create_task(_stranger(crowd, host, port))


async def _stranger(crowd: Crowd, host: str, port: int) -> None:
    while True:
        # It reconnects after anything that the server does.
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                await crowd.do(Stranger(reader, writer, crowd.key))
            finally:
                writer.transport.abort()
        await asyncio.sleep(0.01)


# -- who has a key --------------------------------------------------------------------------


class Honest:
    """A client with the key, and the latencies of its requests."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.small_seconds: list[float] = []
        self.large_seconds: list[float] = []

    async def run(self, seconds: float) -> None:
        ends_at = time.monotonic() + seconds
        item = {"pk": {"S": "small"}, "text": {"S": "x" * 300}}
        large = {"pk": {"S": "large"}, "text": {"S": "x" * 300_000}}
        small_key = {"TableName": "strangers", "Key": {"pk": item["pk"]}}
        small = [("PutItem", {"TableName": "strangers", "Item": item}), ("GetItem", small_key)]
        async with asyncio.timeout(seconds + _PATIENCE_SECONDS), asyncio.TaskGroup() as tasks:
            for _ in range(_SMALL_CLIENTS):
                tasks.create_task(self._ask_until(ends_at, small, self.small_seconds))
            for _ in range(_LARGE_CLIENTS):
                put = [("PutItem", {"TableName": "strangers", "Item": large})]
                tasks.create_task(self._ask_until(ends_at, put, self.large_seconds))

    async def _ask_until(
        self, ends_at: float, requests: Sequence[tuple[str, object]], seconds: list[float]
    ) -> None:
        connection = await Connection.open(self._server.host, self._server.port)
        while time.monotonic() < ends_at:
            for operation, body in requests:
                began = time.monotonic()
                try:
                    await _ask(connection, operation, body)
                finally:
                    seconds.append(time.monotonic() - began)
            await asyncio.sleep(0.005)
        await connection.close()


async def _ask(connection: Connection, operation: str, body: object) -> None:
    encoded = encode(body)
    head = signed(_KEY, operation, encoded)
    whole = head + b"content-length: %d\r\n\r\n" % len(encoded) + encoded
    answer = await connection.send(whole)
    if answer.status != 200:
        raise RuntimeError(answer.body)


async def _make_table(server: Server) -> None:
    connection = await Connection.open(server.host, server.port)
    definition = {
        "TableName": "strangers",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    }
    await _ask(connection, "CreateTable", definition)
    await connection.close()


async def _most_megabytes(server: Server, found: list[float]) -> None:
    while True:
        found.append(resident_megabytes(server.pid))
        await asyncio.sleep(_SAMPLE_SECONDS)


async def _measure(server: Server, seconds: float) -> str:
    honest, megabytes = Honest(server), [resident_megabytes(server.pid)]
    watching = asyncio.create_task(_most_megabytes(server, megabytes))
    # Unanswered requests took at least that long.
    with suppress(TimeoutError):
        await honest.run(seconds)
    watching.cancel()
    told = [_told(honest.small_seconds), _told(honest.large_seconds)]
    return f"{told[0]} | {told[1]} | {megabytes[0]:5.0f} {max(megabytes):5.0f}"


def _told(seconds: list[float]) -> str:
    ordered = sorted(each * 1000 for each in seconds)
    p99 = ordered[len(ordered) * 99 // 100]
    return f"{len(ordered):6} {ordered[len(ordered) // 2]:8.1f} {p99:8.1f} {ordered[-1]:8.1f}"


def _against(name: str, seconds: float) -> str:
    """A separate server for each crowd."""
    with TemporaryDirectory() as directory:
        keys = Path(directory) / "keys"
        keys.write_text(_KEYS)
        with dynactor(Path(directory) / "data", "--credentials-file", str(keys)) as server:
            asyncio.run(_make_table(server))
            # One-time work is done before the measurement.
            asyncio.run(_measure(server, 1))
            crowd = multiprocessing.Process(
                target=_run_crowd, args=(name, server.host, server.port)
            )
            crowd.start()
            try:
                time.sleep(1)
                return asyncio.run(_measure(server, seconds))
            finally:
                crowd.kill()
                crowd.join()


def main() -> None:
    """Print a line for each crowd."""
    parser = argparse.ArgumentParser(prog="python -m tests.load.strangers", description=__doc__)
    told = f"any of: {', '.join(CROWDS)}; all if none is given"
    parser.add_argument("crowds", nargs="*", choices=[[], *CROWDS], metavar="CROWD", help=told)
    parser.add_argument("--seconds", type=float, default=5.0, help="against each crowd")
    arguments = parser.parse_args()
    columns = f"{'requests':>6} {'p50 ms':>8} {'p99 ms':>8} {'most ms':>8}"
    print(f"{'':20} {columns} | {columns} | MB, most")
    for name in arguments.crowds or CROWDS:
        print(f"{name:20} {_against(name, arguments.seconds)}", flush=True)


if __name__ == "__main__":
    main()
