"""kill -9 during transactions: each has all its effects or none, and once if it is retried."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

from tests.support.servers.server import running_server
from tests.support.writers.crashes import connected
from tests.support.writers.transacting_writers import TransactingWriters

FEW_ROUNDS = 3
_MANY_PARTITIONS = ("--partitions-per-table", "5")


async def test_kill_9_leaves_each_transaction_complete_or_without_effect(
    tmp_path: Path, rounds: int | None
) -> None:
    draw = Random(6)
    writers = TransactingWriters(draw)
    directory = tmp_path / "data"
    for number in range(rounds or FEW_ROUNDS):
        with running_server(*_MANY_PARTITIONS, data_dir=directory) as server:
            async with connected(server) as connection:
                if number == 0:
                    await writers.make_tables(connection)
                assert await writers.violations(connection) == []
            before = writers.answers
            wanted = draw.randrange(50, 500)
            running = asyncio.create_task(writers.run(server))
            while writers.answers < before + wanted and not running.done():
                await asyncio.sleep(0.001)
            server.kill()
            await running
    with running_server(data_dir=directory) as server:
        async with connected(server) as connection:
            assert await writers.violations(connection) == []
            await writers.complete(connection)
            assert await writers.violations(connection) == []
        assert server.stop() == 0, server.log
    assert len(writers.answered) > 50
    assert writers.conflicts > 0
