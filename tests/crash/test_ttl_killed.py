"""kill -9 while time to live is enabled, deletes items, and is disabled.

Afterwards exactly the expired items are deleted, and the expiry rows match the items.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

from tests.support.writers.expiring_database import ExpiringDatabase

STATES = {"ENABLING", "ENABLED", "DISABLING"}
FEW_ROUNDS = 3
MORE_ROUNDS = 10
FEW_PARTITIONS = 8
FEW_ANSWERS = 1_500
MANY_ANSWERS = 6_000
# Split limits for a table of about 120 KB in 4 partitions. Each round has a lower limit, so the
# partitions are split again.
LIMITS_BYTES = (20_000, 10_000, 5_000)


async def test_time_to_live_survives_kill_9(tmp_path: Path, rounds: int | None) -> None:
    database = ExpiringDatabase(tmp_path, Random(1))
    await database.make()

    for _ in range(rounds or FEW_ROUNDS):
        await database.kill(MANY_ANSWERS if rounds else FEW_ANSWERS)
        await database.verify()

    assert database.deleted
    # Over many rounds the server is killed in every status of time to live.
    assert rounds is None or rounds < 30 or database.statuses.keys() >= STATES


async def test_time_to_live_survives_kill_9_during_splits(
    tmp_path: Path, rounds: int | None
) -> None:
    partitions, deleted = [], 0
    for seed in range(max(1, (rounds or 0) // len(LIMITS_BYTES))):
        database = ExpiringDatabase(tmp_path / f"{seed}", Random(seed))
        await database.make()
        for limit_bytes in LIMITS_BYTES:
            splitting = (
                "--partition-limit-bytes",
                f"{limit_bytes}",
                "--split-check-seconds",
                "0.05",
            )
            await database.kill(MANY_ANSWERS if rounds else FEW_ANSWERS, *splitting)
            await database.verify()
            # The number of splits during a round depends on the machine, so more rounds may be
            # needed.
            for _ in range(MORE_ROUNDS):
                if database.partitions > FEW_PARTITIONS:
                    break
                await database.kill(FEW_ANSWERS, *splitting)
                await database.verify()
        partitions.append(database.partitions)
        deleted += database.deleted

    sys.stdout.write(f"{partitions} partitions, {deleted} items deleted\n")
    assert max(partitions) > FEW_PARTITIONS
    assert deleted
