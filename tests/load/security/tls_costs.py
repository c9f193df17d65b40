"""Measures the cost of TLS: ``python -m tests.load.security.tls_costs``.

It prints the server's processor time for a handshake and for a get on kept connections, with and
without TLS, and the memory of idle connections.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.load.servers import Server, cpu_seconds, dynactor, resident_megabytes
from tests.support.clients.wire import Connection, encode, request_bytes
from tests.support.servers.certificates import trusting

_HANDSHAKES: Final = 500
_IDLE: Final = 1_000
_CONNECTIONS: Final = 64
_GETS: Final = 300
_ROUNDS: Final = 3
_KEY: Final = {"pk": {"S": "a"}}
_CREATE: Final = {
    "TableName": "measured",
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
}
_GET: Final = request_bytes("GetItem", encode({"TableName": "measured", "Key": _KEY}))


async def _ask(connection: Connection, request: bytes) -> None:
    answer = await connection.send(request)
    if answer.status != 200:
        raise RuntimeError(answer.body)


async def _prepare(server: Server, tls: ssl.SSLContext | None) -> None:
    connection = await Connection.open(server.host, server.port, tls)
    await _ask(connection, request_bytes("CreateTable", encode(_CREATE)))
    put = {"TableName": "measured", "Item": {**_KEY, "text": {"S": "x" * 200}}}
    await _ask(connection, request_bytes("PutItem", encode(put)))
    await connection.close()


async def _opened(server: Server, tls: ssl.SSLContext | None, count: int) -> list[Connection]:
    return [await Connection.open(server.host, server.port, tls) for _ in range(count)]


async def _connection_milliseconds(server: Server, tls: ssl.SSLContext | None) -> float:
    """The processor time of a new connection with one get."""
    began = cpu_seconds(server.pid)
    for _ in range(_HANDSHAKES):
        connection = await Connection.open(server.host, server.port, tls)
        await _ask(connection, _GET)
        await connection.close()
    return (cpu_seconds(server.pid) - began) / _HANDSHAKES * 1e3


async def _idle_megabytes(server: Server, tls: ssl.SSLContext | None) -> float:
    before = resident_megabytes(server.pid)
    connections = await _opened(server, tls, _IDLE)
    for connection in connections:
        await _ask(connection, _GET)
    used = resident_megabytes(server.pid) - before
    for connection in connections:
        await connection.close()
    return used


async def _get_microseconds(server: Server, tls: ssl.SSLContext | None) -> float:
    """The processor time of a get on kept connections."""
    connections = await _opened(server, tls, _CONNECTIONS)

    async def get(connection: Connection) -> None:
        for _ in range(_GETS):
            await _ask(connection, _GET)

    began = cpu_seconds(server.pid)
    await asyncio.gather(*map(get, connections))
    used = cpu_seconds(server.pid) - began
    for connection in connections:
        await connection.close()
    return used / (_CONNECTIONS * _GETS) * 1e6


async def _measure(server: Server, tls: ssl.SSLContext | None) -> tuple[float, float, float]:
    await _prepare(server, tls)
    # Before all others, because memory that has been released is used again.
    idle = await _idle_megabytes(server, tls)
    connection = min([await _connection_milliseconds(server, tls) for _ in range(_ROUNDS)])
    get = min([await _get_microseconds(server, tls) for _ in range(_ROUNDS)])
    return connection, get, idle


def main() -> None:
    """Print the costs without and with TLS."""
    print(f"{'':6} {'connection ms':>14} {'get µs':>8} {_IDLE} idle MB")
    for name, options in (("plain", ()), ("TLS", ("--tls-self-signed",))):
        with TemporaryDirectory() as directory:
            data = Path(directory) / "data"
            with dynactor(data, *options) as server:
                tls = trusting(data / "tls" / "ca.pem") if options else None
                connection, get, idle = asyncio.run(_measure(server, tls))
        print(f"{name:6} {connection:14.2f} {get:8.1f} {idle:10.1f}", flush=True)


if __name__ == "__main__":
    main()
