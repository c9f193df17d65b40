"""kill -9 under load: the process ends, the page cache outlives it."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.support.crashes import CrashingDatabase

FEW_ROUNDS = 3


async def test_every_answered_write_outlives_kill_9(tmp_path: Path, rounds: int | None) -> None:
    database = CrashingDatabase(tmp_path, Random(1))
    await database.make()

    for _ in range(rounds or FEW_ROUNDS):
        assert await database.crash() == []

    assert await database.compare() == []
