"""A store in a separate process, so that tests can kill it and make its disk fail.

The process reads one command per line and answers each with one line:

    write KEY VALUE     commit one row; "accepted", or the error's name
    wait KEY            wait until that commit is durable; "durable", or the error's name
    pour KEY COUNT      commit COUNT rows of 1 KB without waiting; "accepted", or the error
    fill KEY COUNT      write COUNT rows of 1 KB under KEY/0, KEY/1, … and wait
    drop KEY            delete the rows KEY/0, KEY/1, … and wait
    durable KEY         the value of KEY in the durable view, or "-"
    latest KEY          the value of KEY in the owner's view
    hold                keep the durable view
    held KEY            the value of KEY in the kept view, or "-"
    count KEY           the number of rows under KEY/ in the durable view
    close
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from asyncio import Future
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import structlog

from dynactor.storage.rocks.options import RocksOptions
from dynactor.storage.rocks.store import open_rocks
from dynactor.storage.store import Group, Store, StoreError, View
from tests.support.stores.power_loss import PowerLoss

_ROOT = Path(__file__).parents[3]
_PAGE_BYTES = 1 << 30


class StoreProcess:
    """The test's side of the pipe: ``ask`` sends a command and returns the answer."""

    def __init__(
        self,
        directory: Path,
        power: PowerLoss | None = None,
        memtable_bytes: int = RocksOptions().memtable_bytes,
    ) -> None:
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        if power is not None:
            environment |= power.environment()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.support.stores.store_process",
                str(directory),
                str(memtable_bytes),
            ],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        # "open", or the error with which opening failed.
        self.opening = self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.kill()

    def ask(self, *command: object) -> str:
        self.send(*command)
        return self._answer()

    def send(self, *command: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, command)) + "\n")

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")


class _Commands:
    """The process's side of the pipe: each method is a command."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._commits: dict[str, Future[None]] = {}
        self._held = store.durable()

    async def write(self, key: str, value: str) -> str:
        self._commits[key] = await self._commit(key, [(key.encode(), value.encode())])
        return "accepted"

    async def wait(self, key: str) -> str:
        await self._commits.pop(key)
        return "durable"

    async def pour(self, key: str, count: str) -> str:
        for number in range(int(count)):
            await self._commit(key, [(f"{key}/{number}".encode(), os.urandom(1000))])
        return "accepted"

    async def fill(self, key: str, count: str) -> str:
        value = os.urandom(1000)
        rows = [(f"{key}/{number}".encode(), value) for number in range(int(count))]
        await (await self._commit(key, rows))
        return "durable"

    async def drop(self, key: str) -> str:
        await (await self._commit(key, [], [(f"{key}/".encode(), f"{key}0".encode())]))
        return "durable"

    async def durable(self, key: str) -> str:
        return await _load(self._store.durable(), key)

    async def latest(self, key: str) -> str:
        return await _load(self._store.latest, key)

    async def hold(self) -> str:
        self._held = self._store.durable()
        return "held"

    async def held(self, key: str) -> str:
        return await _load(self._held, key)

    async def count(self, key: str) -> str:
        start, end = f"{key}/".encode(), f"{key}0".encode()
        page = self._store.durable().page(start, end, max_rows=_PAGE_BYTES, max_bytes=_PAGE_BYTES)
        return str(len(await page))

    async def close(self) -> str:
        await self._store.close()
        return "closed"

    async def _commit(
        self,
        key: str,
        rows: Sequence[tuple[bytes, bytes]],
        range_deletes: Sequence[tuple[bytes, bytes]] = (),
    ) -> Future[None]:
        head_key = b"head " + key.encode()
        [head] = await self._store.latest.load([head_key])
        next_head = b"%d" % (int(head or 0) + 1)
        group = Group(head_key, head, next_head, puts=rows, range_deletes=range_deletes)
        return await self._store.commit([group])


async def _load(view: View, key: str) -> str:
    [value] = await view.load([key.encode()])
    return "-" if value is None else value.decode()


async def _serve(directory: Path, memtable_bytes: int) -> None:
    # The garbage collector is off: the store must free its views without it.
    gc.disable()
    options = RocksOptions(
        reserve_bytes=1 << 20,
        memtable_bytes=memtable_bytes,
        memtables=2,
        longest_read_seconds=0.0,
    )
    try:
        store = await open_rocks(directory, options)
    except StoreError as error:
        _answer(f"{type(error).__name__}: {error}")
        return
    _answer("open")
    commands = _Commands(store)
    while line := await asyncio.to_thread(sys.stdin.readline):
        name, *arguments = line.split()
        try:
            _answer(await getattr(commands, name)(*arguments))
        except StoreError as error:
            _answer(f"{type(error).__name__}: {error}")


def _answer(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2])))
