"""Latencies during attacks without a valid key: ``python -m tests.load.security.attacks --help``.

In each attack, another process opens many connections that all abuse HTTP in the same way. None of
their requests has a valid signature. Meanwhile clients with a key put and get small items, and put
large items. Their latencies and the server's memory are printed. With ``--tls``, all connections
use TLS, except those that attack handshakes.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import multiprocessing
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from dynactor.api.keys.signature import AccessKey, authorization
from tests.load.servers import Server, dynactor, resident_megabytes
from tests.support.clients.wire import Connection, encode
from tests.support.servers.certificates import trusting

_KEY: Final = AccessKey("AKIDAPP", "a-secret")
_KEYS: Final = f"[app]\naws_access_key_id = {_KEY[0]}\naws_secret_access_key = {_KEY[1]}\n"
_MIB: Final = 1024 * 1024
_LARGE: Final = 15 * _MIB
_PIECE: Final = b"x" * 64 * 1024
_SMALL_CLIENTS: Final = 8
_LARGE_CLIENTS: Final = 2
_TIMEOUT_SECONDS: Final = 5.0
_SAMPLE_SECONDS: Final = 0.05


def signed(key: AccessKey, operation: str, body: bytes, *, with_hash: bool = False) -> bytes:
    """The head of a request, without a length."""
    headers = {
        "host": "localhost",
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": f"DynamoDB_20120810.{operation}",
    }
    if with_hash:
        headers["x-amz-content-sha256"] = sha256(body).hexdigest()
    headers |= authorization(key, "us-east-1", headers, body, datetime.now(UTC))
    lines = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
    return f"POST / HTTP/1.1\r\n{lines}".encode()


# -- attacks --------------------------------------------------------------------------------


class Attacker(NamedTuple):
    """A connection of an attacker, who knows no key, or only the id of a key."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    key: AccessKey

    def head(self, *more: str, operation: str = "PutItem", with_hash: bool = False) -> bytes:
        lines = "".join(f"{line}\r\n" for line in more).encode()
        return signed(self.key, operation, b"other", with_hash=with_hash) + lines + b"\r\n"

    async def send(self, *pieces: bytes, pause_seconds: float = 0.0) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            if pause_seconds:
                await asyncio.sleep(pause_seconds)

    def end_sending(self) -> None:
        """Send no more; over TLS the connection can't be closed in one direction."""
        if self.writer.can_write_eof():
            self.writer.write_eof()

    async def send_body(self, size_bytes: int, pause_seconds: float = 0.0) -> None:
        pieces = [_PIECE] * (size_bytes // len(_PIECE))
        await self.send(*pieces, pause_seconds=pause_seconds)


async def _quickly(attacker: Attacker) -> None:
    await attacker.send(attacker.head(f"Content-Length: {_LARGE}"))
    await attacker.send_body(_LARGE)
    await attacker.reader.read()


async def _slowly(attacker: Attacker) -> None:
    await attacker.send(attacker.head(f"Content-Length: {_LARGE}"))
    await attacker.send_body(_LARGE, pause_seconds=0.2)


async def _with_a_hash(attacker: Attacker) -> None:
    await attacker.send(attacker.head(f"Content-Length: {_LARGE}", with_hash=True))
    await attacker.send_body(_LARGE, pause_seconds=0.01)


async def _zipped(attacker: Attacker) -> None:
    body = _BOMB
    head = attacker.head(f"Content-Length: {len(body)}", "Content-Encoding: gzip")
    for _ in range(20):
        await attacker.send(head, body)
        await attacker.reader.readuntil(b"}")


async def _half_closed(attacker: Attacker) -> None:
    await attacker.send(attacker.head(f"Content-Length: {_LARGE}"))
    await attacker.send_body(_MIB)
    attacker.end_sending()
    await attacker.reader.read()


async def _half_closed_small(attacker: Attacker) -> None:
    await attacker.send(attacker.head("Content-Length: 60000"), b"x" * 59_000)
    attacker.end_sending()
    await asyncio.sleep(5)


async def _in_chunks(attacker: Attacker) -> None:
    await attacker.send(attacker.head("Transfer-Encoding: chunked"))
    chunk = b"%x\r\n%b\r\n" % (len(_PIECE), _PIECE)
    await attacker.send(*[chunk] * 1000)


async def _in_tiny_chunks(attacker: Attacker) -> None:
    await attacker.send(attacker.head("Transfer-Encoding: chunked"))
    await attacker.send(*[b"1\r\nx\r\n" * 10_000] * 100)


async def _with_bad_lengths(attacker: Attacker) -> None:
    lengths = ("Content-Length: -1", f"Content-Length: {10**30}", "Content-Length: 1, 2")
    await attacker.send(attacker.head(lengths[time.time_ns() % 3]), *[_PIECE] * 100)
    await attacker.reader.read()


async def _too_large(attacker: Attacker) -> None:
    await attacker.send(attacker.head(f"Content-Length: {200 * _MIB}"))
    await attacker.send_body(200 * _MIB)


async def _almost_small(attacker: Attacker) -> None:
    """Send an incomplete request of the largest size that is read without admission."""
    await attacker.send(attacker.head("Content-Length: 63000"), b"x" * 62_000)
    await asyncio.sleep(30)


async def _endless_heads(attacker: Attacker) -> None:
    await attacker.send(b"POST / HTTP/1.1\r\n")
    for _ in range(150):
        await attacker.send(b"X-More: %b\r\n" % (b"x" * 90), pause_seconds=0.2)


async def _unread(attacker: Attacker) -> None:
    """Send requests to the plain handler, and read no answer."""
    body = b"x" * 60_000
    whole = attacker.head(f"Content-Length: {len(body)}", "TE: trailers") + body
    await attacker.send(*[whole] * 10_000)


async def _unread_tiny(attacker: Attacker) -> None:
    whole = attacker.head("Content-Length: 2", "TE: trailers") + b"{}"
    await attacker.send(*[whole * 100] * 10_000)


async def _silent(attacker: Attacker) -> None:
    """Send nothing: over TLS the handshake does not begin."""
    await attacker.reader.read()


async def _half_handshake(attacker: Attacker) -> None:
    """Begin a handshake, and never finish it."""
    outgoing = ssl.MemoryBIO()
    hello = _TRUSTING_ALL.wrap_bio(ssl.MemoryBIO(), outgoing)
    with suppress(ssl.SSLWantReadError):
        hello.do_handshake()
    await attacker.send(outgoing.read())
    while await attacker.reader.read(_MIB):
        pass


async def _whole_handshakes(attacker: Attacker) -> None:
    """Make a handshake, and close the connection without a request."""
    await attacker.writer.start_tls(_TRUSTING_ALL)


async def _noise(attacker: Attacker) -> None:
    """Send bytes that look like a handshake only at first."""
    await attacker.send(b"\x16\x03\x01\x3f\xff" + bytes(16_383), *[_PIECE] * 20)
    await attacker.reader.read()


# Attackers verify nothing.
_TRUSTING_ALL: Final = ssl.create_default_context()
_TRUSTING_ALL.check_hostname = False
_TRUSTING_ALL.verify_mode = ssl.CERT_NONE
_BOMB: Final = gzip.compress(b'{"TableName":"' + b"0" * (16 * _MIB - 20) + b'"}')
_UNKNOWN_KEY: Final = AccessKey("nobody", "any")
# With a valid key id and another secret.
_WRONG_SECRET: Final = AccessKey(_KEY[0], "another-secret")


class Attack(NamedTuple):
    """The number of connections, and the function that each of them repeats."""

    size: int
    do: Callable[[Attacker], Awaitable[None]]
    key: AccessKey = _UNKNOWN_KEY
    # The attack makes the handshake itself, or none.
    on_handshakes: bool = False


ATTACKS: Final = {
    "none": Attack(0, _quickly),
    "quick": Attack(50, _quickly),
    "slow": Attack(500, _slowly),
    "signed hash": Attack(200, _with_a_hash, _WRONG_SECRET),
    "zipped": Attack(100, _zipped),
    "zipped, valid key id": Attack(100, _zipped, _WRONG_SECRET),
    "half-closed": Attack(200, _half_closed),
    "half-closed, small": Attack(1000, _half_closed_small),
    "chunked": Attack(100, _in_chunks),
    "tiny chunks": Attack(20, _in_tiny_chunks),
    "bad lengths": Attack(100, _with_bad_lengths),
    "too large": Attack(50, _too_large),
    "almost small": Attack(2000, _almost_small),
    "endless heads": Attack(2000, _endless_heads),
    "unread": Attack(100, _unread),
    "unread, tiny": Attack(20, _unread_tiny),
    "quick, valid key id": Attack(50, _quickly, _WRONG_SECRET),
    "slow, valid key id": Attack(500, _slowly, _WRONG_SECRET),
    "silent": Attack(2000, _silent, on_handshakes=True),
    "half handshakes": Attack(2000, _half_handshake, on_handshakes=True),
    "whole handshakes": Attack(20, _whole_handshakes, on_handshakes=True),
    "noise": Attack(100, _noise, on_handshakes=True),
}


def _run_attack(name: str, host: str, port: int, *, tls: bool) -> None:
    asyncio.run(_attack(ATTACKS[name], host, port, tls=tls))


async def _attack(attack: Attack, host: str, port: int, *, tls: bool) -> None:
    async with asyncio.TaskGroup() as tasks:
        for _ in range(attack.size):
            tasks.create_task(_attacker(attack, host, port, tls=tls))


async def _attacker(attack: Attack, host: str, port: int, *, tls: bool) -> None:
    context = _TRUSTING_ALL if tls and not attack.on_handshakes else None
    while True:
        # Reconnect whenever the server closes the connection.
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            reader, writer = await asyncio.open_connection(host, port, ssl=context)
            try:
                await attack.do(Attacker(reader, writer, attack.key))
            finally:
                writer.transport.abort()
        await asyncio.sleep(0.01)


# -- clients with a key ---------------------------------------------------------------------


class AuthorizedClients:
    """Clients with the key, and the latencies of their requests."""

    def __init__(self, server: Server, tls: ssl.SSLContext | None) -> None:
        self._server = server
        self._tls = tls
        self.small_seconds: list[float] = []
        self.large_seconds: list[float] = []

    async def run(self, seconds: float) -> None:
        ends_at = time.monotonic() + seconds
        item = {"pk": {"S": "small"}, "text": {"S": "x" * 300}}
        large = {"pk": {"S": "large"}, "text": {"S": "x" * 300_000}}
        small_key = {"TableName": "attacked", "Key": {"pk": item["pk"]}}
        small = [("PutItem", {"TableName": "attacked", "Item": item}), ("GetItem", small_key)]
        async with asyncio.timeout(seconds + _TIMEOUT_SECONDS), asyncio.TaskGroup() as tasks:
            for _ in range(_SMALL_CLIENTS):
                tasks.create_task(self._ask_until(ends_at, small, self.small_seconds))
            for _ in range(_LARGE_CLIENTS):
                put = [("PutItem", {"TableName": "attacked", "Item": large})]
                tasks.create_task(self._ask_until(ends_at, put, self.large_seconds))

    async def _ask_until(
        self, ends_at: float, requests: Sequence[tuple[str, object]], seconds: list[float]
    ) -> None:
        connection = await Connection.open(self._server.host, self._server.port, self._tls)
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


async def _make_table(server: Server, tls: ssl.SSLContext | None) -> None:
    connection = await Connection.open(server.host, server.port, tls)
    definition = {
        "TableName": "attacked",
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


async def _measure(server: Server, tls: ssl.SSLContext | None, seconds: float) -> str:
    clients, megabytes = AuthorizedClients(server, tls), [resident_megabytes(server.pid)]
    watching = asyncio.create_task(_most_megabytes(server, megabytes))
    # After the timeout, unanswered requests count with their time so far.
    with suppress(TimeoutError):
        await clients.run(seconds)
    watching.cancel()
    rows = [_row(clients.small_seconds), _row(clients.large_seconds)]
    return f"{rows[0]} | {rows[1]} | {megabytes[0]:5.0f} {max(megabytes):5.0f}"


def _row(seconds: list[float]) -> str:
    if not seconds:
        # No connection could be opened.
        return f"{'none':33}"
    ordered = sorted(each * 1000 for each in seconds)
    p99 = ordered[len(ordered) * 99 // 100]
    return f"{len(ordered):6} {ordered[len(ordered) // 2]:8.1f} {p99:8.1f} {ordered[-1]:8.1f}"


def _against(name: str, seconds: float, *, has_tls: bool) -> str:
    """Measure during one attack on a new server; returns the printed line."""
    with TemporaryDirectory() as directory:
        keys = Path(directory) / "keys"
        keys.write_text(_KEYS)
        keys.chmod(0o600)
        data, options = Path(directory) / "data", ["--credentials-file", str(keys)]
        options += ["--tls-self-signed"] if has_tls else []
        with dynactor(data, *options) as server:
            tls = trusting(data / "tls" / "ca.pem") if has_tls else None
            asyncio.run(_make_table(server, tls))
            # Warm up, so that the measurement excludes the cost of first requests.
            asyncio.run(_measure(server, tls, 1))
            attack = multiprocessing.Process(
                target=_run_attack,
                args=(name, server.host, server.port),
                kwargs={"tls": has_tls},
            )
            attack.start()
            try:
                time.sleep(1)
                return asyncio.run(_measure(server, tls, seconds))
            finally:
                attack.kill()
                attack.join()


def main() -> None:
    """Print a line for each attack."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.load.security.attacks", description=__doc__
    )
    names = f"any of: {', '.join(ATTACKS)}; all if none is given"
    parser.add_argument("attacks", nargs="*", choices=[[], *ATTACKS], metavar="ATTACK", help=names)
    parser.add_argument("--seconds", type=float, default=5.0, help="against each attack")
    parser.add_argument("--tls", action="store_true", help="over TLS")
    arguments = parser.parse_args()
    columns = f"{'requests':>6} {'p50 ms':>8} {'p99 ms':>8} {'most ms':>8}"
    print(f"{'':20} {columns} | {columns} | MB, most")
    for name in arguments.attacks or ATTACKS:
        print(f"{name:20} {_against(name, arguments.seconds, has_tls=arguments.tls)}", flush=True)


if __name__ == "__main__":
    main()
