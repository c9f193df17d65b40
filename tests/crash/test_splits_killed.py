"""Partitions are split by size and heat under 32 writers, readers and scans, and kill -9.

No request fails because of a split. No item is lost, duplicated or out of a stream's order. A
parallel scan that began before a split sees every item once, and indexes equal a rebuild.

``--rounds 6`` goes from 1 to at least 32 partitions; without it, a few splits suffice.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

from tests.support.crowds.splitting_database import SplittingDatabase, partition_count

FEW_ROUNDS = 2
FEW_ANSWERS = 2_000
MANY_ANSWERS = 6_000
MORE_ROUNDS = 10
FEW_PARTITIONS = 4
MANY_PARTITIONS = 32

OPTIONS = (
    *("--partitions-per-table", "1", "--split-check-seconds", "0.1", "--split-heat-seconds", "0.5"),
    *("--shard-roll-seconds", "5", "--keep-streams-seconds", "0.5"),
)


async def test_splits_under_load_outlive_kill_9(
    tmp_path: Path, rounds: int | None, database_seed: int
) -> None:
    limit_bytes = 300_000 if rounds else 3_000_000
    database = SplittingDatabase(
        tmp_path, Random(database_seed), *OPTIONS, "--partition-limit-bytes", str(limit_bytes)
    )
    await database.make_large()

    for _ in range(rounds or FEW_ROUNDS):
        assert await database.split_round(MANY_ANSWERS if rounds else FEW_ANSWERS) == []
    # The load of a partition for this many answers depends on the machine.
    for _ in range(MORE_ROUNDS):
        if database.splits["heat"]:
            break
        assert await database.split_round(FEW_ANSWERS) == []

    # A stopped server has completed or abandoned the current split.
    assert await database.split_round(FEW_ANSWERS, politely=True) == []
    assert await database.compare_all() == []
    partitions = await partition_count(database)
    sys.stdout.write(
        f"{partitions} partitions, splits {dict(database.splits)}, {database.answers} answers, "
        f"{database.queries} queries, {database.scans} scans, {database.refusals} refused\n"
    )
    assert partitions >= (MANY_PARTITIONS if rounds else FEW_PARTITIONS)
    assert database.splits["size"]
    assert database.splits["heat"]
    assert database.scans
    assert database.refusals == 0
