"""Items that are hot together get separate partitions, in virtual time (S139).

A whole on-demand database with enforced limits: a minute of heat, then the splits.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.table.messages import CreateTable
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import Throttled
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.limits import KIB
from dynactor.model.values.item import Item
from tests.support.databases.databases import SetClock, put, running_database, table_definition

START = 1_700_000_000
# Slightly longer than the time to detect a hot partition.
SECONDS = 90
# The part of an item's size that is not its text.
REST_BYTES = 64


def keyed(names: Sequence[str]) -> TableDefinition:
    """An on-demand table with these key attributes, strings."""
    attributes = tuple(KeyAttribute(name, "S") for name in names)
    return structs.replace(
        table_definition("hot"),
        attribute_definitions=attributes,
        key_schema=KeySchema(attributes[:1], attributes[1:]),
    )


def item(names: Sequence[str], value: str, size_kib: int) -> Item:
    """An item that takes this many write units."""
    key = {name: {"S": value} for name in names}
    return {**key, "text": {"S": "x" * (size_kib * KIB - REST_BYTES)}}


async def second(database: Database, clock: SetClock, offered: Sequence[Item]) -> int:
    """Offer these puts, evenly over a second; returns the number of accepted puts."""
    table = database.table("hot")
    accepted = 0
    for each in offered:
        try:
            await table.write(put(each))
        except Throttled:
            pass
        else:
            accepted += 1
        clock.step(1 / len(offered))
    await database.split_watch.check()
    # Wait for a message that the actor processes after the splits.
    await database.actor.keep_streams()
    return accepted


async def partitions_after(offered: Sequence[Item], names: Sequence[str]) -> tuple[int, int]:
    """The number of partitions after such load, and the accepted puts per second."""
    clock = SetClock(START)
    async with running_database(
        clock=clock, partitions_per_table=1, throttling="enforce", copy_messages=False
    ) as database:
        await database.ask(CreateTable(keyed(names)))
        assert await second(database, clock, offered) < len(offered)
        for _ in range(SECONDS):
            await second(database, clock, offered)
        partitions = len(database.table("hot").record.partitions)
        return partitions, await second(database, clock, offered)


@pytest.mark.parametrize("names", [("pk",), ("pk", "sk")])
@pytest.mark.parametrize(("size_kib", "puts"), [(20, 64), (50, 32), (98, 16), (100, 16)])
async def test_two_alternating_items_of_any_size_get_separate_partitions(
    size_kib: int, puts: int, names: Sequence[str]
):
    """In most seconds, eleven puts of 98 KiB are accepted, six of them of the first item."""
    both = [item(names, value, size_kib) for value in "ab"]

    assert await partitions_after(both * (puts // 2), names) == (2, puts)


async def test_a_hot_item_and_a_less_hot_item_get_separate_partitions():
    names = ("pk",)
    hot, other = (item(names, value, 98) for value in "ab")

    partitions, accepted = await partitions_after([hot, hot, hot, other] * 4, names)

    assert partitions == 2
    # All four puts of the other item are accepted, and those of the hot item up to one partition's
    # units.
    assert accepted in (14, 15)


async def test_a_partition_with_one_hot_item_is_not_split():
    names = ("pk",)

    partitions, accepted = await partitions_after([item(names, "a", 98)] * 16, names)

    assert partitions == 1
    assert accepted in (10, 11)
