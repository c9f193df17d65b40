"""The cost of pipelines for other clients: ``python -m tests.load.aborted_pipelines --help``.

Thirty clients send 500 queries each without reading an answer, and abort: immediately, or while the
server processes them, in either lane of the server. Each case runs twice. In the first run, another
client reads item after item, before and after the abort, and the latencies of its reads are
measured. In the second run there is no other client, and the server's processor time after the
abort is measured. The exit code is 1 if either exceeds its limit.

On a busy machine, compare the latencies with those of the first line, which has no pipelines.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Final

from tests.load.footprint import call, connections
from tests.load.items import create_table, table_item
from tests.load.servers import Server, cpu_seconds, directory_on, dynactor
from tests.support.clients.raw_http import RESET, TO_FULL_LANE
from tests.support.clients.wire import Connection, encode, request_bytes

_TABLE: Final = "pipelines"
_PARTITION_KEY: Final = {"S": "all"}
# A query takes about a millisecond, and its answer is small enough to fit into buffers.
_ITEMS: Final = 250
_BATCH_ITEMS: Final = 25
_LONGEST_P99_SECONDS: Final = 0.05
_MOST_CPU_SECONDS: Final = 0.2
_READS_AFTER_ABORT: Final = 100
# The time that clients of every second round wait before they abort.
_STAY_SECONDS: Final = 0.5
# Longer than an idle process takes to use a tick of 10 ms of processor time.
_QUIET_SECONDS: Final = 0.15

_QUERY: Final = request_bytes(
    "Query",
    encode(
        {
            "TableName": _TABLE,
            "KeyConditionExpression": "pk = :pk",
            "FilterExpression": "version = :none",
            "ExpressionAttributeValues": {":pk": _PARTITION_KEY, ":none": {"N": "-1"}},
        }
    ),
)
# The fast lane passes requests with this header to the plain one.
_TO_FULL_LANE: Final = f"{TO_FULL_LANE}\r\n\r\n".encode()
_PIPELINED: Final = {
    "fast lane": _QUERY,
    "full lane": _QUERY.replace(b"\r\n\r\n", b"\r\n" + _TO_FULL_LANE),
}
_GET: Final = request_bytes(
    "GetItem",
    encode({"TableName": _TABLE, "Key": {"pk": _PARTITION_KEY, "sk": {"S": "000"}}}),
)


async def _fill(connection: Connection) -> None:
    await call(connection, "CreateTable", create_table(_TABLE))
    items = [
        {**table_item(number), "pk": _PARTITION_KEY, "sk": {"S": f"{number:03}"}}
        for number in range(_ITEMS)
    ]
    for start in range(0, _ITEMS, _BATCH_ITEMS):
        puts = [{"PutRequest": {"Item": item}} for item in items[start : start + _BATCH_ITEMS]]
        await call(connection, "BatchWriteItem", {"RequestItems": {_TABLE: puts}})


async def _send(server: Server, clients: Sequence[socket.socket], pipeline: bytes) -> None:
    """Send from all clients at the same time, as far as the server reads."""
    loop = asyncio.get_running_loop()
    for client in clients:
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * len(pipeline))
        await loop.sock_connect(client, (server.host, server.port))
    for client in clients:
        client.send(pipeline)


@contextmanager
def _aborting(count: int) -> Iterator[list[socket.socket]]:
    """Sockets that are reset when the context ends."""
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.socket()) for _ in range(count)]
        for client in clients:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        yield clients


async def _read_seconds(
    server: Server, connection: Connection, clients: int, pipeline: bytes, stay_seconds: float
) -> list[float]:
    """The latencies of reads during the pipelines, and after their abort."""
    seconds: list[float] = []
    is_aborted = asyncio.Event()

    async def read() -> None:
        left = _READS_AFTER_ABORT
        while left:
            began = perf_counter()
            answer = await connection.send(_GET)
            seconds.append(perf_counter() - began)
            if answer.status != 200:
                raise RuntimeError(answer)
            left -= is_aborted.is_set()

    async with asyncio.TaskGroup() as tasks:
        with _aborting(clients) as crowd:
            await _send(server, crowd, pipeline)
            tasks.create_task(read())
            await asyncio.sleep(stay_seconds)
        is_aborted.set()
    return seconds


async def _cpu_after_abort(
    server: Server, clients: int, pipeline: bytes, stay_seconds: float
) -> float:
    """The server's processor time after the abort, without other clients."""
    await _quiet_cpu_seconds(server)
    with _aborting(clients) as crowd:
        await _send(server, crowd, pipeline)
        await asyncio.sleep(stay_seconds)
        before = cpu_seconds(server.pid)
    return await _quiet_cpu_seconds(server) - before


async def _quiet_cpu_seconds(server: Server) -> float:
    """Wait until the server is idle; returns its total processor time."""
    last = -1.0
    while (now := cpu_seconds(server.pid)) > last:
        last = now
        await asyncio.sleep(_QUIET_SECONDS)
    return now


async def _run(server: Server, options: argparse.Namespace) -> bool:
    """Measure all rounds; returns whether every figure is within its limit."""
    latencies: list[float] = []
    most_cpu = 0.0
    async with connections(server, 1) as (connection,):
        await _fill(connection)
        alone = await _read_seconds(server, connection, 0, b"", _STAY_SECONDS)
        print(f"no pipelines: {len(alone)} reads, p99 {_p99(alone) * 1e3:.1f} ms")
        kinds = [*product(_PIPELINED, (0.0, _STAY_SECONDS))] * options.rounds
        for lane, stay_seconds in kinds:
            pipeline = _PIPELINED[lane] * options.requests
            reads = await _read_seconds(server, connection, options.clients, pipeline, stay_seconds)
            cpu = await _cpu_after_abort(server, options.clients, pipeline, stay_seconds)
            print(
                f"{lane:10}, abort after {stay_seconds:.1f} s: {len(reads):5} reads, p99 "
                f"{_p99(reads) * 1e3:7.1f} ms; {cpu:5.2f} s of processor time after the abort",
                flush=True,
            )
            latencies += reads
            most_cpu = max(most_cpu, cpu)
    p99 = _p99(latencies)
    print(f"all: {len(latencies)} reads, p99 {p99 * 1e3:.1f} ms, at most {most_cpu:.2f} s")
    return p99 < _LONGEST_P99_SECONDS and most_cpu < _MOST_CPU_SECONDS


def _p99(seconds: Sequence[float]) -> float:
    return sorted(seconds)[len(seconds) * 99 // 100]


def main() -> None:
    """Measure, and print a line for each round."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.load.aborted_pipelines", description=__doc__
    )
    parser.add_argument("--clients", type=int, default=30)
    parser.add_argument("--requests", type=int, default=500, help="of each client")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", type=Path, help="on the disk to measure; else temporary")
    options = parser.parse_args()
    with directory_on(options.directory) as directory, dynactor(directory / "data") as server:
        is_within = asyncio.run(_run(server, options))
    sys.exit(os.EX_OK if is_within else 1)


if __name__ == "__main__":
    main()
