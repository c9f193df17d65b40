"""Reads of past states, and their cost for writes: ``python -m tests.load.past_reads --help``.

The server runs in this process, without HTTP, on a store on disk or in PostgreSQL. Its clock is
stepped, so that the changes are spread over hours. First, puts on a table without recovery, with a
stream and with recovery alternate. Then a table is changed many times after a moment, and read as
it was at this moment.
"""

from __future__ import annotations

import asyncio
import json
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter, process_time
from typing import Any, Final

import uvloop

from dynactor.actors.database.database import Database
from dynactor.actors.database.open_database import open_database
from dynactor.actors.parts.database_settings import DatabaseSettings
from dynactor.api.http.protocol import Answer, Protocol, Request
from dynactor.api.registry import OPERATIONS
from dynactor.api.serve.interpreter import set_interpreter
from dynactor.storage import key_layout
from dynactor.storage.store import Store
from dynactor.streams import change_log
from tests.load.servers import directory_on, postgresql_seconds
from tests.support.databases.databases import SetClock
from tests.support.servers.postgresql import running_postgresql
from tests.support.stores.store import disk_store, postgresql_store

# A page of 1 MB has about this number of items.
_COLLECTION_ITEMS: Final = 3_500
_TEXT_BYTES: Final = 230
_IN_FLIGHT: Final = 128
_TABLES: Final = ("plain", "stream", "recovery")
_PAGE_ROWS: Final = 1_000
_PAGE_BYTES: Final = 1 << 20
_HEADER: Final = "x-dynactor-as-of"


class Client:
    """Calls operations without HTTP."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._protocol = Protocol(database, list(OPERATIONS.values()))

    async def __call__(
        self, operation: str, body: bytes, headers: dict[str, str] | None = None
    ) -> bytes:
        """The body of an answer, which is no error."""
        request = Request(
            f"DynamoDB_20120810.{operation}",
            "application/x-amz-json-1.0",
            "AWS4-HMAC-SHA256",
            "",
            "localhost",
            "",
            "",
            body,
            headers=headers or {},
        )
        answer = self._protocol.answer(request)
        if not isinstance(answer, Answer):
            answer = await answer
        assert answer.status == 200, answer.body
        return answer.body or b"{}"

    async def call(self, operation: str, **members: Any) -> Any:
        """The decoded answer of an operation."""
        return json.loads(await self(operation, json.dumps(members).encode()))


def _key(number: int) -> dict[str, Any]:
    return {
        "pk": {"S": f"customer#{number // _COLLECTION_ITEMS:06}"},
        "sk": {"S": f"order#{number % _COLLECTION_ITEMS:06}"},
    }


def _put(table: str, number: int, version: int) -> bytes:
    text = f"{version:012}" + "x" * (_TEXT_BYTES - 12)
    return json.dumps({"TableName": table, "Item": {**_key(number), "text": {"S": text}}}).encode()


async def _create(client: Client, name: str) -> None:
    await client.call(
        "CreateTable",
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        **(
            {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}}
            if name == "stream"
            else {}
        ),
    )
    while (await client.call("DescribeTable", TableName=name))["Table"]["TableStatus"] != "ACTIVE":
        await asyncio.sleep(0.01)
    if name == "recovery":
        await client.call(
            "UpdateContinuousBackups",
            TableName=name,
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
        )


async def _send(client: Client, operation: str, bodies: list[bytes]) -> None:
    waiting = iter(bodies)

    async def send() -> None:
        for body in waiting:
            await client(operation, body)

    await asyncio.gather(*(send() for _ in range(_IN_FLIGHT)))


async def _measure_puts(
    client: Client, options: Namespace, stored_seconds: Callable[[], float]
) -> None:
    """Replace items of each table in turn."""
    draw = Random(1)
    for name in _TABLES:
        await _send(client, "PutItem", [_put(name, number, 0) for number in range(options.items)])
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in _TABLES}
    for turn in range(options.rounds):
        for name in _TABLES:
            bodies = [
                _put(name, draw.randrange(options.items), turn * options.puts + number + 1)
                for number in range(options.puts)
            ]
            began = process_time(), stored_seconds()
            await _send(client, "PutItem", bodies)
            costs[name].append(
                (
                    (process_time() - began[0]) / options.puts * 1e6,
                    (stored_seconds() - began[1]) / options.puts * 1e6,
                )
            )
    for name, each in costs.items():
        own, stored = zip(*each, strict=True)
        print(
            f"put, {name:10} {median(own):7.1f} µs ({min(own):.1f} to {max(own):.1f})"
            f"   in PostgreSQL {median(stored):7.1f} µs"
        )
    for name in ("plain", "stream"):
        ratios = [
            sum(with_recovery) / sum(without)
            for with_recovery, without in zip(costs["recovery"], costs[name], strict=True)
        ]
        print(f"recovery / {name}: {median(ratios):.2f} (median of the rounds)")


async def _print_bytes(store: Store, database: Database, name: str) -> None:
    """Print the bytes of keys and values of the log, and of the changes listed by key."""
    found = {"log": [0, 0], "listed": [0, 0]}
    for number in database.table(name).record.log_numbers:
        ranges = {
            "log": change_log.range_after(number, 0),
            "listed": key_layout.listed_range(number),
        }
        for kind, (first, end) in ranges.items():
            start = first
            while rows := await store.durable().page(
                start, end, max_rows=_PAGE_ROWS, max_bytes=_PAGE_BYTES
            ):
                found[kind][0] += len(rows)
                found[kind][1] += sum(len(row.key) + len(row.value) for row in rows)
                start = rows[-1].key + b"\x00"
    (count, log), (_, listed) = found.values()
    print(
        f"log: {log / count:.0f} bytes per change, listed: {listed / count:.0f}; "
        f"both: {(log + listed) / log:.2f} times the log"
    )


async def _measure_reads(client: Client, clock: SetClock, options: Namespace) -> None:
    """Change items many times, and read the table as it was before."""
    draw = Random(2)
    moment = datetime.fromtimestamp(clock.now_epoch_seconds(), tz=UTC)
    headers = {_HEADER: moment.isoformat(timespec="microseconds").replace("+00:00", "Z")}
    clock.step(60)
    version, left = 1_000_000_000, options.changes
    began = perf_counter()
    pieces = 100
    for _ in range(pieces):
        count = min(left, -(-options.changes // pieces))
        left -= count
        numbers = [draw.randrange(options.items) for _ in range(count)]
        deletes = [number for number in numbers if not draw.randrange(20)]
        await _send(
            client, "PutItem", [_put("recovery", n, version := version + 1) for n in numbers]
        )
        await _send(
            client,
            "DeleteItem",
            [json.dumps({"TableName": "recovery", "Key": _key(n)}).encode() for n in deletes],
        )
        clock.step(options.hours * 3600 / pieces)
    print(f"{options.changes:,} later changes in {perf_counter() - began:.0f} s")
    gets = [
        json.dumps({"TableName": "recovery", "Key": _key(draw.randrange(options.items))}).encode()
        for _ in range(options.reads)
    ]
    collections = options.items // _COLLECTION_ITEMS
    queries = [
        json.dumps(
            {
                "TableName": "recovery",
                "KeyConditionExpression": "pk = :p",
                "ExpressionAttributeValues": {":p": _key(number * _COLLECTION_ITEMS)["pk"]},
                "ScanIndexForward": bool(draw.randrange(2)),
            }
        ).encode()
        for number in (draw.randrange(collections) for _ in range(options.pages))
    ]
    scans = [
        json.dumps(
            {
                "TableName": "recovery",
                "ExclusiveStartKey": _key(draw.randrange(options.items)),
            }
        ).encode()
        for _ in range(options.pages)
    ]
    for operation, bodies in (("GetItem", gets), ("Query", queries), ("Scan", scans)):
        for name, of in (("present", {}), ("past", headers)):
            times, counts = [], []
            used = process_time()
            for body in bodies:
                before = perf_counter()
                answer = await client(operation, body, of)
                times.append((perf_counter() - before) * 1e3)
                counts.append(json.loads(answer).get("Count", 1))
            times.sort()
            used = (process_time() - used) / len(bodies) * 1e3
            print(
                f"{operation:8} {name:8} p50 {times[len(times) // 2]:7.2f} ms"
                f"   p99 {times[len(times) * 99 // 100]:7.2f} ms"
                f"   processor {used:7.2f} ms   {median(counts):.0f} items",
                flush=True,
            )


@asynccontextmanager
async def _opened(
    options: Namespace, url: str | None
) -> AsyncIterator[tuple[Store, Client, SetClock]]:
    clock = SetClock()
    async with AsyncExitStack() as stack:
        if url is None:
            directory = stack.enter_context(directory_on(options.directory))
            store = await stack.enter_async_context(disk_store(directory / "data"))
        else:
            store = await stack.enter_async_context(postgresql_store(url))
        settings = DatabaseSettings(table_transition_seconds=0.0)
        database = await stack.enter_async_context(open_database(store, settings, clock))
        yield store, Client(database), clock


async def _run(options: Namespace, url: str | None, stored_seconds: Callable[[], float]) -> None:
    async with _opened(options, url) as (store, client, clock):
        set_interpreter()
        for name in _TABLES:
            await _create(client, name)
        await _measure_puts(client, options, stored_seconds)
        await _print_bytes(store, client.database, "recovery")
        await _measure_reads(client, clock, options)


def main() -> None:
    """Parse the options and run."""
    parser = ArgumentParser(prog="python -m tests.load.past_reads", description=__doc__)
    parser.add_argument("--store", choices=("embedded", "postgresql"), default="embedded")
    parser.add_argument("--items", type=int, default=35_000, help="of each table")
    parser.add_argument("--changes", type=int, default=1_000_000, help="after the moment")
    parser.add_argument("--hours", type=float, default=12, help="in which the changes are made")
    parser.add_argument("--puts", type=int, default=10_000, help="on each table in each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--reads", type=int, default=1_000)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--directory", type=Path, help="on the disk to measure; else temporary")
    options = parser.parse_args()
    if options.store == "embedded":
        uvloop.run(_run(options, None, lambda: 0.0))
        return
    with running_postgresql() as postgresql:
        url = postgresql.url()
        uvloop.run(_run(options, url, lambda: postgresql_seconds(postgresql)))


if __name__ == "__main__":
    main()
