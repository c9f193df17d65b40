"""The server's own cost of a request: ``python -m tests.load.hot_path --help``.

The server runs in this process, on a store on disk, and its connections have no sockets. So only
this project's code is measured, without system calls and without a client. A trial takes seconds,
and is stable on a busy machine. The line ``constant`` takes the same way through HTTP with an
operation that returns a constant.
"""

from __future__ import annotations

import asyncio
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Final, NamedTuple, cast

import msgspec
import uvloop
from msgspec import structs

from dynactor.actors.database.open_database import open_database
from dynactor.actors.parts.database_settings import DatabaseSettings
from dynactor.actors.runtime.clock import SystemClock
from dynactor.api.execution.operation import Operation
from dynactor.api.http.aiohttp_lane import full_server
from dynactor.api.http.body_memory import RequestMemory
from dynactor.api.http.browser_access import Access
from dynactor.api.http.fast_lane import FastLane, FastLanes
from dynactor.api.http.pipelining import Turns
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.settings import HttpSettings
from dynactor.api.registry import OPERATIONS
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import GetItemInput
from dynactor.api.serve.interpreter import set_interpreter
from dynactor.load.run.fill import fillings
from dynactor.load.wire.answers import Answer
from dynactor.load.wire.endpoint import parse_endpoint
from dynactor.load.wire.requests import Requests
from dynactor.load.work.bodies import Bodies
from dynactor.load.work.key_space import KeySpace
from dynactor.load.work.keys import key_choice
from dynactor.load.work.operations import Dialogue, Operations
from dynactor.load.work.plan import Plan
from dynactor.load.work.records import Records, create_table
from dynactor.storage.rocks.store import open_rocks
from tests.load.servers import directory_on

_ENDPOINT: Final = "http://localhost:8000"
_LINES: Final = (
    "constant",
    "get",
    "put",
    "conditional-put",
    "update",
    "query:1",
    "query:10",
    "query:100",
    "batch-write",
    "batch-get",
    "transact-write",
    "transact-write:2-tables",
)
_HEAD_END: Final = b"\r\n\r\n"
_NO_ERROR: Final = b"HTTP/1.1 200 "


class _Wire(asyncio.Transport):
    """A connection without a socket: written data goes to ``answered``."""

    def __init__(self, lanes: FastLanes, answered: Callable[[_Wire, bytes], None]) -> None:
        super().__init__()
        self._answered = answered
        self.lane: FastLane = lanes.connection()
        self.lane.connection_made(self)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._answered(self, bytes(data))

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        self.lane.connection_lost(None)

    def pause_reading(self) -> None:
        raise AssertionError("one request at a time")


class _Load:
    """A closed loop: each connection sends its next request after an answer."""

    def __init__(self, lanes: FastLanes, connections: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._wires = [_Wire(lanes, self._answered) for _ in range(connections)]
        self._dialogues: dict[_Wire, Dialogue] = {}
        self._next: Callable[[], Dialogue | None] = lambda: None
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self.answers = 0

    async def run(self, next_dialogue: Callable[[], Dialogue | None]) -> None:
        """Run dialogues on all connections until ``next_dialogue`` returns None."""
        self._next = next_dialogue
        self._ended = self._loop.create_future()
        for wire in self._wires:
            self._begin(wire)
        await self._ended

    def close(self) -> None:
        for wire in self._wires:
            wire.close()

    def _begin(self, wire: _Wire) -> None:
        dialogue = self._next()
        if dialogue is not None:
            self._dialogues[wire] = dialogue
            self._loop.call_soon(wire.lane.data_received, next(dialogue))
        elif not self._dialogues and not self._ended.done():
            self._ended.set_result(None)

    def _answered(self, wire: _Wire, data: bytes) -> None:
        self.answers += 1
        head, _, body = data.partition(_HEAD_END)
        if not head.startswith(_NO_ERROR) and not self._ended.done():
            self._ended.set_exception(AssertionError(data))
        dialogue = self._dialogues[wire]
        try:
            request = dialogue.send(Answer(200, body))
        except StopIteration:
            del self._dialogues[wire]
            self._begin(wire)
        else:
            self._loop.call_soon(wire.lane.data_received, request)


class _Line(NamedTuple):
    """A kind of request, ready to send; its generation is not measured."""

    name: str
    lanes: FastLanes
    requests: Sequence[bytes]


def _dialogue(request: bytes) -> Dialogue:
    yield request
    return ""


async def _measure(line: _Line, connections: int, seconds: float) -> float:
    """The processor time of a request in µs, for the whole process."""
    load = _Load(line.lanes, connections)
    deadline = time.monotonic() + seconds
    requests = line.requests
    turn = 0

    def next_dialogue() -> Dialogue | None:
        nonlocal turn
        if time.monotonic() >= deadline:
            return None
        turn = (turn + 1) % len(requests)
        return _dialogue(requests[turn])

    began = time.process_time()
    await load.run(next_dialogue)
    cost = (time.process_time() - began) / load.answers
    load.close()
    return cost * 1e6


async def _constant(_call: Call[GetItemInput]) -> bytes:
    return b'{"Item":{"pk":{"S":"0000000000000001"},"text":{"S":"%b"}}}' % (b"x" * 300)


@asynccontextmanager
async def _lanes(database: Any, operations: Sequence[Operation]) -> AsyncIterator[FastLanes]:
    settings = HttpSettings(region="us-east-1", access=Access(host_names=frozenset()))
    protocol = Protocol(database, operations)
    memory = RequestMemory(
        settings.large_requests_bytes,
        grace_seconds=settings.grace_seconds,
        least_bytes_per_second=settings.least_bytes_per_second,
    )
    turns = Turns()
    full = full_server(protocol, settings, memory, turns)
    async with FastLanes(protocol, settings, full, memory, turns) as lanes:
        yield lanes


def _requests_of(name: str, plan: Plan, count: int) -> list[bytes]:
    """Requests of one workload, as the generator would send them."""
    operation, _, items = name.partition(":")
    if items:
        size = int(items)
        plan = msgspec.structs.replace(plan, query_items=size, collection_items=max(size, 10))
    random = Random(plan.seed)
    records = Records(plan)
    bodies = Bodies(plan, records, Requests(parse_endpoint(plan.endpoint), plan.region))
    choice = key_choice(plan.key_choice, random)
    operations = Operations(plan, bodies, KeySpace(plan, 0), choice, random)
    by_name = operations.by_name()
    return [next(by_name[operation]()) for _ in range(count)]


def _transactions(plans: Sequence[Plan], count: int) -> list[bytes]:
    """TransactWriteItems of two puts, whose tables alternate; requests in flight share no item."""
    half = plans[0].keys // 2
    requests = Requests(parse_endpoint(plans[0].endpoint), plans[0].region)
    sides = [(plans[0].table, Records(plans[0])), (plans[-1].table, Records(plans[-1]))]
    made = []
    for number in range(count):
        puts = ",".join(
            f'{{"Put":{{"TableName":"{table}","Item":'
            f"{records.item(place * half + number % half, number, (number,) * plans[0].fields)}}}}}"
            for place, (table, records) in enumerate(sides)
        )
        body = f'{{"TransactItems":[{puts}]}}'
        made.append(requests.make("TransactWriteItems", body.encode()))
    return made


async def _run(arguments: Any, directory: Path) -> None:
    plan = Plan(endpoint=_ENDPOINT, table="load", mix={}, keys=arguments.keys, local_index=True)
    wide = msgspec.structs.replace(plan, table="wide", collection_items=100)
    async with AsyncExitStack() as stack:
        store = await open_rocks(directory)
        stack.push_async_callback(store.close)
        settings = DatabaseSettings(table_transition_seconds=0.0)
        database = await stack.enter_async_context(open_database(store, settings, SystemClock()))
        lanes = await stack.enter_async_context(_lanes(database, list(OPERATIONS.values())))
        constant = structs.replace(
            OPERATIONS["GetItem"], handle=cast("Callable[..., Awaitable[bytes]]", _constant)
        )
        constants = await stack.enter_async_context(_lanes(database, [constant]))
        load = _Load(lanes, 64)
        for each in (plan, wide):
            requests = Requests(parse_endpoint(each.endpoint), each.region)
            made = requests.make("CreateTable", msgspec.json.encode(create_table(each)))
            await load.run(partial(next, iter([_dialogue(made)]), None))
            await asyncio.sleep(0.1)
            bodies = Bodies(each, Records(each), requests)
            await load.run(partial(next, fillings(each, 0, bodies), None))
        load.close()
        # The server does the same when it is ready.
        set_interpreter()
        lines = []
        for name in arguments.lines:
            of_table = wide if name == "query:100" else plan
            if name == "constant":
                lines.append(_Line(name, constants, _requests_of("get", plan, 5_000)))
            elif name.startswith("transact-write"):
                tables = (plan, wide) if name.endswith("tables") else (plan,)
                lines.append(_Line(name, lanes, _transactions(tables, 5_000)))
            else:
                lines.append(_Line(name, lanes, _requests_of(name, of_table, 5_000)))
        costs: dict[str, list[float]] = {line.name: [] for line in lines}
        for _ in range(arguments.rounds):
            for line in lines:
                cost = await _measure(line, arguments.connections, arguments.seconds)
                costs[line.name].append(cost)
        for name, each_cost in costs.items():
            spread = f"({min(each_cost):.1f} to {max(each_cost):.1f})"
            print(f"{name:24} {median(each_cost):7.1f} µs  {spread}")


def _line(text: str) -> str:
    if text not in _LINES:
        raise ArgumentTypeError(f"one of {', '.join(_LINES)}")
    return text


def main() -> None:
    """Measure, and print a line for each kind of request."""
    parser = ArgumentParser(prog="python -m tests.load.hot_path", description=__doc__)
    parser.add_argument("--lines", nargs="+", type=_line, default=_LINES, metavar="LINE")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each line in each round")
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--directory", type=Path, help="on the disk to measure")
    arguments = parser.parse_args()
    with directory_on(arguments.directory) as directory:
        uvloop.run(_run(arguments, directory))


if __name__ == "__main__":
    main()
