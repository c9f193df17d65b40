"""After power cuts during index writes and backfills, tables and indexes have the same writes."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.support.writers.indexed_database import IndexedDatabase
from tests.support.writers.splitting_database import partition_count

FEW_ROUNDS = 2
MORE_ROUNDS = 10
FEW_ANSWERS = 1_000
MANY_ANSWERS = 5_000
FILLERS = 300
FEW_PARTITIONS = 4


SPLITTING = (
    *("--partitions-per-table", "1", "--partition-limit-bytes", "30000"),
    *("--split-check-seconds", "0.05"),
)


@pytest.mark.parametrize("options", [(), SPLITTING], ids=["partitions stay", "and are split"])
async def test_indexes_and_streams_survive_power_cuts(
    tmp_path: Path, rounds: int | None, database_seed: int, options: tuple[str, ...]
) -> None:
    draw = Random(database_seed)
    database = IndexedDatabase(tmp_path, draw, *options, power=True)
    await database.make_filled(FILLERS)

    for _ in range(rounds or FEW_ROUNDS):
        assert await database.round(MANY_ANSWERS if rounds else FEW_ANSWERS) == []
        database.cut_power()
        if draw.random() < 0.2:
            await database.kill_while_starting()
            database.cut_power()

    partitions = await partition_count(database)
    # The number of splits during a round depends on the machine, so up to MORE_ROUNDS rounds are
    # run.
    for _ in range(MORE_ROUNDS if options else 0):
        if partitions > FEW_PARTITIONS:
            break
        assert await database.round(FEW_ANSWERS) == []
        database.cut_power()
        partitions = await partition_count(database)

    assert await database.compare_all() == []
    assert partitions > FEW_PARTITIONS or not options
