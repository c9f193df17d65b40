"""Mirrors between servers on both stores are exact, through kills of the copier and of each server.

``--rounds 1`` copies 100,000 items; a few hundred by default.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from dynactor.api.commands.tables.mirror_state import MirrorState
from tests.support.clients.clients import WireClient
from tests.support.clients.wire import Connection, ConnectionLost
from tests.support.databases.table_backups import items_of
from tests.support.environment.unused_ports import unused_ports
from tests.support.servers.postgresql import Postgresql, running_postgresql
from tests.support.servers.server import PROJECT, Server, running

TABLE: Final = "music"
WRITERS: Final = 2
BATCH: Final = 25
# Number of answers between two reads of the mirror's state.
ANSWERS_APART: Final = 20


class Size(NamedTuple):
    """The items of the source, and the applied changes between two faults."""

    items: int
    changes: int


FEW: Final = Size(600, 60)
MANY: Final = Size(100_000, 4_000)


class Site:
    """A server that keeps its address when it is killed and started again."""

    def __init__(self, place: Sequence[str], port: int) -> None:
        self.port = port
        self.endpoint = f"http://127.0.0.1:{port}"
        self._command = [
            *(sys.executable, "-m", "dynactor", "serve", "--port", str(port)),
            *("--throttling", "observe", *place),
        ]
        self._life = ExitStack()
        self._server: Server | None = None
        self.is_running = asyncio.Event()

    async def start(self) -> None:
        """Start the server, and wait until it answers."""
        self._server = await asyncio.to_thread(self._life.enter_context, running(self._command))
        self.is_running.set()

    async def restart(self) -> None:
        """Kill the server, and start it again."""
        assert self._server is not None
        self.is_running.clear()
        self._server.kill()
        self._life.close()
        await self.start()

    async def stop(self) -> None:
        """Stop the server, whose log must have no traceback."""
        assert self._server is not None
        assert await asyncio.to_thread(self._server.stop) == 0, self._server.log
        assert "Traceback" not in self._server.log, self._server.log

    def close(self) -> None:
        """Kill the server if it still runs."""
        self._life.close()

    def items(self) -> list[dict[str, Any]]:
        """All items of the table."""
        with closing(WireClient(self.endpoint)) as call:
            return items_of(call, TABLE)


class Load:
    """Puts, replaces and deletes items without a pause, whatever happens to the server."""

    def __init__(self, site: Site, items: int) -> None:
        self._site = site
        self._items = items
        self._draw = Random(1)
        self._has_ended = False
        self._step = asyncio.Event()
        self.answers = 0

    def fill(self) -> None:
        """Create the table with its items."""
        with closing(WireClient(self._site.endpoint)) as call:
            call(
                "CreateTable",
                {
                    "TableName": TABLE,
                    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                    "BillingMode": "PAY_PER_REQUEST",
                },
            )
            for begin in range(0, self._items, BATCH):
                numbers = range(begin, min(begin + BATCH, self._items))
                puts = [{"PutRequest": {"Item": self._item(number)}} for number in numbers]
                call("BatchWriteItem", {"RequestItems": {TABLE: puts}})

    def _item(self, number: int) -> dict[str, Any]:
        text = f"{self._draw.randrange(1 << 30)}" + "x" * self._draw.randrange(300)
        return {**self._key(number), "text": {"S": text}}

    @staticmethod
    def _key(number: int) -> dict[str, Any]:
        return {"pk": {"S": f"song {number}"}}

    async def until(self, is_enough: Callable[[], Awaitable[bool]]) -> None:
        """Write until ``is_enough``, which is called again and again."""
        self._has_ended = False
        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(self._write())
            while not await is_enough():
                self._step.clear()
                await self._step.wait()
            self._has_ended = True

    async def _write(self) -> None:
        """Write on one connection, and on another one after a crash."""
        while not self._has_ended:
            await self._site.is_running.wait()
            try:
                connection = await Connection.open("127.0.0.1", self._site.port)
            except ConnectionLost:
                continue
            try:
                while not self._has_ended:
                    operation, request = self._request()
                    answer = await connection.call(operation, request)
                    # The server refuses writes while PostgreSQL is away.
                    assert answer.status in (200, 500, 503), answer
                    self.answers += answer.status == 200
                    if self.answers % ANSWERS_APART == 0:
                        self._step.set()
            except ConnectionLost:
                continue
            finally:
                await connection.close()

    def _request(self) -> tuple[str, dict[str, Any]]:
        # New keys, too.
        number = self._draw.randrange(self._items * 11 // 10)
        if self._draw.randrange(3):
            return "PutItem", {"TableName": TABLE, "Item": self._item(number)}
        return "DeleteItem", {"TableName": TABLE, "Key": self._key(number)}


class Copier:
    """The command ``dynactor mirror``, which is killed and started again."""

    def __init__(self, source: Site, copy: Site, directory: Path, *options: str) -> None:
        self._state = directory / f"{source.port}.json"
        self._command = [
            *(sys.executable, "-m", "dynactor", "mirror", "--state", str(self._state)),
            *("--from", f"{source.endpoint}/{TABLE}", "--to", f"{copy.endpoint}/{TABLE}"),
            *options,
        ]
        self._process: Process | None = None

    async def start(self) -> None:
        """Start the command."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command, cwd=PROJECT, stdin=DEVNULL
        )

    async def restart(self) -> None:
        """Kill the command, and start it again."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()
        await self.start()

    async def stop(self) -> None:
        """Stop the command as Ctrl-C does."""
        assert self._process is not None
        assert self._process.returncode is None, "the mirror has ended"
        self._process.terminate()
        assert await self._process.wait() == 0

    async def end(self) -> None:
        """Kill the command if it still runs."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def verify(self) -> None:
        """Let the command compare both tables; they must be equal."""
        process = await asyncio.create_subprocess_exec(
            *self._command, "--verify", cwd=PROJECT, stdin=DEVNULL, stdout=PIPE
        )
        differences, _ = await process.communicate()
        assert (process.returncode, differences) == (0, b"")

    def state(self) -> MirrorState | None:
        """The stored progress."""
        assert self._process is not None
        assert self._process.returncode is None, "the mirror has ended"
        if not self._state.exists():
            return None
        return msgspec.json.decode(self._state.read_bytes(), type=MirrorState)


@asynccontextmanager
async def copying(
    source: Site, copy: Site, directory: Path, *options: str
) -> AsyncIterator[Copier]:
    """A copier that ends with the context."""
    copier = Copier(source, copy, directory, *options)
    try:
        yield copier
    finally:
        await copier.end()


Fault = Callable[[], Awaitable[None]]


async def mirror_through(
    faults: Sequence[Fault], load: Load, copier: Copier, size: Size, *, while_copying: int
) -> None:
    """Mirror a table under load; the first faults happen during the scan, unless it is short."""
    await copier.start()
    left = list(faults)
    next_items, next_changes = size.items // (while_copying + 2), 0
    begin, answers = monotonic(), load.answers

    async def is_enough() -> bool:
        nonlocal next_items, next_changes
        state = copier.state()
        if state is None or state.phase == "CLEARING":
            return False
        if state.phase == "COPYING":
            if state.items < next_items or len(faults) - len(left) == while_copying:
                return False
            next_items += size.items // (while_copying + 2)
        else:
            if state.changes < next_changes:
                return False
            next_changes = state.changes + size.changes
        if not left:
            return True
        await left.pop(0)()
        return False

    await load.until(is_enough)
    rate = (load.answers - answers) / (monotonic() - begin)
    sys.stdout.write(f"{load.answers - answers:,} writes, {rate:.0f} a second\n")
    await copier.stop()
    await copier.verify()


@asynccontextmanager
async def running_sites(places: Sequence[Sequence[str]]) -> AsyncIterator[list[Site]]:
    """Servers in these places."""
    sites = [Site(place, port) for place, port in zip(places, unused_ports(2), strict=True)]
    try:
        for site in sites:
            await site.start()
        yield sites
        for site in sites:
            await site.stop()
    finally:
        for site in sites:
            site.close()


def place_at(store: str, postgresql: Postgresql, directory: Path) -> list[str]:
    """The options of a new server on a store."""
    if store == "postgresql":
        return ["--store", postgresql.url()]
    return ["--data-dir", str(directory / "data")]


@pytest.mark.parametrize(
    ("source_store", "copy_store"), [("embedded", "postgresql"), ("postgresql", "postgresql")]
)
async def test_a_mirror_is_exact_through_kills_and_on_the_way_back(
    tmp_path: Path, rounds: int | None, source_store: str, copy_store: str
) -> None:
    size = FEW if rounds is None else MANY
    with running_postgresql() as postgresql:
        places = [place_at(store, postgresql, tmp_path) for store in (source_store, copy_store)]
        async with running_sites(places) as (source, copy):
            load = Load(source, size.items)
            await asyncio.to_thread(load.fill)

            async def restart_postgresql() -> None:
                await asyncio.to_thread(postgresql.kill)
                await asyncio.to_thread(postgresql.start)

            async with copying(source, copy, tmp_path, "--create", "--enable-stream") as there:
                killed = [there.restart, copy.restart, source.restart]
                faults = [*killed, *killed, restart_postgresql]
                await mirror_through(faults, load, there, size, while_copying=len(killed))
            assert source.items() == copy.items()
            # The application uses the copy now.
            load = Load(copy, size.items)
            async with copying(copy, source, tmp_path, "--replace", "--enable-stream") as back:
                faults = [back.restart, back.restart, copy.restart, source.restart]
                await mirror_through(faults, load, back, size, while_copying=1)
            assert source.items() == copy.items()
