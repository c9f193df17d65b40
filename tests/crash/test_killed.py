"""kill -9 and SIGTERM under load end the process, but the page cache survives."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.support.writers.crashes import CrashingDatabase

FEW_ROUNDS = 3


async def test_every_acknowledged_write_survives_kill_9(tmp_path: Path, rounds: int | None) -> None:
    database = CrashingDatabase(tmp_path, Random(1))
    await database.make()

    for _ in range(rounds or FEW_ROUNDS):
        assert await database.crash() == []

    assert await database.compare() == []


async def test_a_server_that_is_stopped_under_load_exits_normally(tmp_path: Path) -> None:
    database = CrashingDatabase(tmp_path, Random(2))
    await database.make()

    assert await database.crash(graceful=True) == []

    assert await database.compare() == []
