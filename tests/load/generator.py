"""The load generator: one process, many keep-alive connections, one kind of request.

``python -m tests.load.generator`` reads a ``Plan`` as JSON from the first line of its standard
input, connects, warms up and prints ``ready``. After a second line, it measures and prints a
``Report``. ``Generator`` controls it from the benchmark's process, so a generator never shares an
event loop with other code.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections import Counter
from random import Random
from time import perf_counter, time_ns
from typing import Literal

import msgspec
from msgspec import Struct

from dynactor.load.wire.answers import Answer
from dynactor.load.wire.connection import Connection
from dynactor.load.wire.endpoint import Endpoint
from tests.load.items import key, table_item
from tests.load.measuring_process import MeasuringProcess
from tests.support.clients.wire import request_bytes

# The placeholder in requests that each need a unique client token.
_TOKEN = b"@" * 36
# Latencies are counted in buckets 1 % wide: a million of them cross a pipe in a few kilobytes.
_BUCKET = math.log(1.01)


class Plan(Struct, frozen=True):
    """The requests, their endpoint, and the duration.

    Keys are drawn evenly from ``keys`` items. A transaction has ``transaction_items`` of these
    items. With ``contended`` each transaction draws them at random, so transactions conflict.
    Otherwise no two transactions share an item.
    """

    host: str
    port: int
    table: str
    operation: Literal["PutItem", "GetItem", "TransactWriteItems"]
    connections: int
    seconds: float
    warm_up_seconds: float = 0.5
    keys: int = 10_000
    transaction_items: int = 2
    contended: bool = False
    consistent: bool = True


class Report(Struct, frozen=True):
    """The result. ``latencies`` maps a bucket to the number of its requests, see ``percentile``."""

    requests: int
    errors: int
    seconds: float
    latencies: dict[int, int]


def bucket(seconds: float) -> int:
    """The bucket of a latency."""
    return round(math.log(seconds * 1e6) / _BUCKET)


def percentile(latencies: dict[int, int], share: float) -> float:
    """The latency in microseconds below which this share of the requests stayed."""
    left = share * sum(latencies.values())
    for number, count in sorted(latencies.items()):
        left -= count
        if left <= 0:
            return math.exp(number * _BUCKET)
    return math.nan


class _Client:
    """A connection that sends its next request as soon as an answer is whole."""

    def __init__(self, run: Load, position: int) -> None:
        self._run = run
        self._position = position

    async def start(self) -> None:
        plan = self._run.plan
        self._connection = await Connection.open(Endpoint(plan.host, plan.port, is_tls=False), self)
        self._send()

    def _send(self) -> None:
        # A stride without a common factor with the number of requests visits all of them.
        self._position = (self._position + 7_919) % len(self._run.requests)
        self._sent_at = perf_counter()
        self._connection.send(self._run.request(self._position))

    def answered(self, answer: Answer) -> None:
        self._run.note(perf_counter() - self._sent_at, ok=answer.status == 200)
        if self._run.over:
            self._connection.close()
        else:
            self._send()

    def lost(self, reason: str) -> None:
        self._run.lost(reason)


class Load:
    """The shared state of a load's connections."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.requests = _requests(plan)
        self.over = False
        self._open = plan.connections
        self._tokens = time_ns()
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._restart()

    def _restart(self) -> None:
        self._count = 0
        self._errors = 0
        self._latencies: Counter[int] = Counter()
        self._started_at = perf_counter()

    def request(self, position: int) -> bytes:
        """The request at a position, ready to send."""
        request = self.requests[position]
        if self.plan.operation != "TransactWriteItems":
            return request
        self._tokens += 1
        return request.replace(_TOKEN, b"%036d" % self._tokens)

    def note(self, seconds: float, *, ok: bool) -> None:
        self._count += 1
        self._errors += not ok
        self._latencies[bucket(seconds)] += 1

    def lost(self, reason: str) -> None:
        self._open -= 1
        if not self.over and not self._ended.done():
            self._ended.set_exception(ConnectionError(reason))
        elif self._open == 0 and not self._ended.done():
            self._ended.set_result(None)

    async def warm_up(self) -> None:
        for number in range(self.plan.connections):
            position = number * len(self.requests) // self.plan.connections
            await _Client(self, position).start()
        await self._for_seconds(self.plan.warm_up_seconds)

    async def measure(self) -> Report:
        self._restart()
        await self._for_seconds(self.plan.seconds)
        seconds = perf_counter() - self._started_at
        report = Report(self._count, self._errors, seconds, dict(self._latencies))
        self.over = True
        await self._ended
        return report

    async def _for_seconds(self, seconds: float) -> None:
        # The load has a fixed duration, and ends earlier only with a lost connection.
        done, _ = await asyncio.wait([self._ended], timeout=seconds)
        for future in done:
            future.result()


def _requests(plan: Plan) -> list[bytes]:
    """Requests built before the measurement; a put's item differs from the one it replaces."""
    bodies: list[dict[str, object]]
    match plan.operation:
        case "PutItem":
            bodies = [
                {"TableName": plan.table, "Item": table_item(number, version)}
                for version in (1, 2)
                for number in range(plan.keys)
            ]
        case "GetItem":
            bodies = [
                {"TableName": plan.table, "Key": key(number), "ConsistentRead": plan.consistent}
                for number in range(plan.keys)
            ]
        case "TransactWriteItems":
            bodies = [
                {
                    "TransactItems": [
                        {"Put": {"TableName": plan.table, "Item": table_item(number, version)}}
                        for number in numbers
                    ],
                    "ClientRequestToken": _TOKEN.decode(),
                }
                for version in (1, 2)
                for numbers in _transactions(plan, version)
            ]
    return [request_bytes(plan.operation, msgspec.json.encode(body)) for body in bodies]


def _transactions(plan: Plan, version: int) -> list[list[int]]:
    """The items of each transaction."""
    size = plan.transaction_items
    if plan.contended:
        draw = Random(version)
        # Take items of different collections, so that they are in all partitions.
        hot = [number * 10 for number in range(plan.keys)]
        return [draw.sample(hot, size) for _ in range(10_000)]
    count = plan.keys // size
    # In another order each time, so connections that start half the requests apart don't use the
    # same items.
    firsts = Random(version).sample(range(count), count)
    return [list(range(first, count * size, count)) for first in firsts]


class Generator:
    """A generator in a separate process."""

    def __init__(self, process: MeasuringProcess) -> None:
        self._process = process

    @classmethod
    async def start(cls, plan: Plan) -> Generator:
        """Start the process and wait until it is warm."""
        return cls(await MeasuringProcess.start("tests.load.generator", plan))

    async def measure(self) -> Report:
        """Measure for the duration in the plan."""
        return msgspec.json.decode(await self._process.report(), type=Report)


async def _main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.readline(), type=Plan)
    run = Load(plan)
    await run.warm_up()
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.readline)
    report = await run.measure()
    sys.stdout.buffer.write(msgspec.json.encode(report))


if __name__ == "__main__":
    if sys.platform != "win32":
        import uvloop

        uvloop.run(_main())
    else:
        asyncio.run(_main())
