"""The owner of a database in PostgreSQL reads its epoch less often while there is no trouble."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, Final

import anyio
import pytest

from dynactor.storage.postgresql.ownership import Ownership
from dynactor.storage.store import TakenOver
from tests.support.environment.simulated_loop import SimulatedLoop

_SECONDS: Final = 60


class Connection:
    """A connection that answers with an epoch and with sizes."""

    def __init__(self) -> None:
        self.epoch = 1
        self.reads = 0

    def is_closed(self) -> bool:
        return False

    async def fetchrow(self, query: str, **_: object) -> tuple[int, ...]:
        if query == "sizes":
            return 0, 0
        self.reads += 1
        return (self.epoch,)

    async def close(self, **_: object) -> None:
        return


async def reads(*, is_quiet: bool) -> int:
    """The reads in a minute; then another server takes over."""
    connection: Any = Connection()
    statements: Any = SimpleNamespace(epoch="epoch", sizes="sizes")
    address: Any = None
    ownership = Ownership(address, statements, connection, 1)
    found: list[TakenOver] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ownership.keep, found.append, lambda _: None, lambda: is_quiet)
        await anyio.sleep(_SECONDS)
        count: int = connection.reads
        connection.epoch = 2
        with anyio.fail_after(6 if is_quiet else 2):
            while not found:
                await anyio.sleep(0.1)
    return count


@pytest.mark.parametrize(("is_quiet", "expected"), [(False, _SECONDS), (True, _SECONDS / 5)])
def test_a_quiet_owner_reads_its_epoch_each_5_seconds(is_quiet: bool, expected: float) -> None:
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(1)) as runner:
        assert abs(runner.run(reads(is_quiet=is_quiet)) - expected) <= 1
