"""After kill -9 during index writes and backfills, indexes and streams match the history."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.support.writers.indexed_database import IndexedDatabase

FEW_ROUNDS = 2
FEW_ANSWERS = 1_000
MANY_ANSWERS = 5_000
FILLERS = 1_000


async def test_indexes_and_streams_survive_kill_9(
    tmp_path: Path, rounds: int | None, database_seed: int
) -> None:
    database = IndexedDatabase(
        tmp_path,
        Random(database_seed),
        *("--gsi-lag", "random:0-0.05:7"),
        *("--shard-roll-seconds", "1", "--keep-streams-seconds", "0.5"),
    )
    await database.make_filled(FILLERS)

    for _ in range(rounds or FEW_ROUNDS):
        assert await database.round(MANY_ANSWERS if rounds else FEW_ANSWERS) == []

    assert await database.compare_all() == []
