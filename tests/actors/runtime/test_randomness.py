"""A seed determines the ids of a database."""

from __future__ import annotations

from uuid import UUID

import pytest

from dynactor.actors.runtime.randomness import jittered, open_randomness
from dynactor.actors.table.messages import CreateTable
from tests.support.databases.backed_up import back_up
from tests.support.databases.databases import SetClock, running_database, table_definition


async def ids(seed: int | None) -> tuple[str, str, bytes]:
    """The ids of a new table, of its backup and of a transaction."""
    async with running_database(clock=SetClock(), seed=seed) as database:
        await database.ask(CreateTable(table_definition()))
        backup = await back_up(database)
        transaction_id = database.transactions._next_id()
        return database.table("Thread").definition.uuid, str(backup.backup_id), transaction_id


async def test_the_same_seed_gives_the_same_ids() -> None:
    first = await ids(1)
    assert await ids(1) == first
    assert UUID(first[0]).version == 4


@pytest.mark.parametrize("seeds", [(1, 2), (None, None)])
async def test_other_seeds_give_other_ids_and_so_does_no_seed(
    seeds: tuple[int | None, int | None],
) -> None:
    one, other = [await ids(seed) for seed in seeds]
    assert not set(one) & set(other)


def test_a_random_pause_has_at_least_half_of_its_length() -> None:
    source = open_randomness(1)
    pauses = [jittered(2.0, source) for _ in range(100)]
    assert 1.0 <= min(pauses) < 1.1
    assert 1.9 < max(pauses) <= 2.0
