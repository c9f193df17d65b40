"""Puts and gets at a given rate, and the lag of a global index behind the puts.

``python -m tests.load.index_requests`` reads a ``Plan`` as JSON from the first line of its standard
input, connects, prints ``ready``, sends until a second line comes, and prints a ``Report``.
``OpenLoop`` controls it from the benchmark's process.

A request's latency counts from its scheduled time, so a server that stalls does not hide the
requests that could not be sent meanwhile. Some puts are polled in the index with queries, from
their answer until they are visible.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, deque
from time import perf_counter
from typing import Any

import msgspec
from msgspec import Struct

from tests.load.generator import bucket
from tests.load.items import key, table_item
from tests.load.measuring_process import MeasuringProcess
from tests.support.clients.wire import Connection

_TURN_SECONDS = 0.0005
_POLL_SECONDS = 0.001
_STRIDE = 7_919


class Plan(Struct, frozen=True):
    """The requests and their endpoint; ``keys`` is the number of items for puts and gets.

    ``index`` has the partition key ``title``, which is unique per put.
    """

    host: str
    port: int
    table: str
    puts_per_second: float
    gets_per_second: float = 0
    keys: int = 20_000
    connections: int = 256
    index: str = ""
    puts_to_a_sample: int = 40


class Report(Struct):
    """The result; latencies and lags count by bucket."""

    seconds: float
    errors: int
    puts: dict[int, int]
    gets: dict[int, int]
    lags: dict[int, int]
    polls: int


class OpenLoop:
    """The requests in a separate process."""

    def __init__(self, process: MeasuringProcess) -> None:
        self._process = process

    @classmethod
    async def start(cls, plan: Plan) -> OpenLoop:
        """Start the process and wait until it sends."""
        return cls(await MeasuringProcess.start(__name__, plan))

    async def stop(self) -> Report:
        """Stop sending; returns the report."""
        return msgspec.json.decode(await self._process.report(), type=Report)


class _Run:
    def __init__(self, plan: Plan, connections: list[Connection]) -> None:
        self.plan = plan
        self.over = False
        self._free = deque(connections)
        self._freed = asyncio.Event()
        self._number = 0
        self._puts: Counter[int] = Counter()
        self._gets: Counter[int] = Counter()
        self._lags: Counter[int] = Counter()
        self._errors = 0
        self._polls = 0

    async def run(self) -> Report:
        started_at = perf_counter()
        async with asyncio.TaskGroup() as tasks:
            if self.plan.puts_per_second:
                tasks.create_task(self._send(tasks, self.plan.puts_per_second, self._put))
            if self.plan.gets_per_second:
                tasks.create_task(self._send(tasks, self.plan.gets_per_second, self._get))
        seconds = perf_counter() - started_at
        return Report(
            seconds,
            self._errors,
            dict(self._puts),
            dict(self._gets),
            dict(self._lags),
            self._polls,
        )

    async def _send(self, tasks: asyncio.TaskGroup, per_second: float, send: Any) -> None:
        """Start each request on schedule, or as soon afterwards as the loop can."""
        started_at = perf_counter()
        sent = 0
        while not self.over:
            due = int((perf_counter() - started_at) * per_second)
            for number in range(sent, due):
                # Request 0 is due one interval after the start, as `due` counts.
                tasks.create_task(send(number, started_at + (number + 1) / per_second))
            sent = max(sent, due)
            await asyncio.sleep(_TURN_SECONDS)

    async def _call(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        while not self._free:
            self._freed.clear()
            await self._freed.wait()
        # The server closes connections that are idle for long, so use them in turn.
        connection = self._free.popleft()
        try:
            answer = await connection.call(operation, {"TableName": self.plan.table, **body})
        finally:
            self._free.append(connection)
            self._freed.set()
        self._errors += answer.status != 200
        return answer.body

    async def _put(self, number: int, due_at: float) -> None:
        version, position = divmod(number, self.plan.keys)
        item = table_item(position, version + 1)
        await self._call("PutItem", {"Item": item})
        self._puts[bucket(perf_counter() - due_at)] += 1
        if self.plan.index and number % self.plan.puts_to_a_sample == 0:
            await self._look_for(item["title"], perf_counter())

    async def _get(self, number: int, due_at: float) -> None:
        await self._call("GetItem", {"Key": key(number * _STRIDE % self.plan.keys)})
        self._gets[bucket(perf_counter() - due_at)] += 1

    async def _look_for(self, title: dict[str, Any], answered_at: float) -> None:
        query = {
            "IndexName": self.plan.index,
            "KeyConditionExpression": "title = :title",
            "ExpressionAttributeValues": {":title": title},
        }
        while not (await self._call("Query", query))["Count"]:
            self._polls += 1
            await asyncio.sleep(_POLL_SECONDS)
        self._lags[bucket(perf_counter() - answered_at)] += 1


async def _main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.readline(), type=Plan)
    connections = [await Connection.open(plan.host, plan.port) for _ in range(plan.connections)]
    run = _Run(plan, list(connections))
    print("ready", flush=True)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(run.run())
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.readline)
        run.over = True
    for connection in connections:
        await connection.close()
    sys.stdout.buffer.write(msgspec.json.encode(running.result()))


if __name__ == "__main__":
    if sys.platform != "win32":
        import uvloop

        uvloop.run(_main())
    else:
        asyncio.run(_main())
