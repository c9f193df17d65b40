"""kill -9 and SIGTERM under load: the process ends, but the page cache survives."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.support.crowds.crashes import CrashingDatabase

FEW_ROUNDS = 3


async def test_every_answered_write_outlives_kill_9(tmp_path: Path, rounds: int | None) -> None:
    database = CrashingDatabase(tmp_path, Random(1))
    await database.make()

    for _ in range(rounds or FEW_ROUNDS):
        assert await database.crash() == []

    assert await database.compare() == []


async def test_a_server_that_is_stopped_under_load_ends_well(tmp_path: Path) -> None:
    database = CrashingDatabase(tmp_path, Random(2))
    await database.make()

    assert await database.crash(politely=True) == []

    assert await database.compare() == []
