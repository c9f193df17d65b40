"""Trimming of a log on disk."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dynactor.storage.store import Group, Store
from dynactor.streams import change_log
from dynactor.streams.sequence_number import SequenceNumber
from tests.support.databases.databases import thread
from tests.support.stores.store import memory_store
from tests.support.streams.changes import change

EVERYTHING = {"max_records": 99, "max_bytes": 1 << 20}


async def write_log(store: Store, partition_number: int, counters: Sequence[int]) -> None:
    """Write one record for each counter."""
    key = thread("EC2", "a")
    rows = [
        change_log.row(change(key, None, {}, SequenceNumber(partition_number, counter)))
        for counter in counters
    ]
    head = b"head %d" % partition_number
    await (await store.commit([Group(head, None, b"1", puts=rows)]))


async def counters_of(store: Store, partition_number: int) -> list[int]:
    records = await change_log.read(store.durable(), partition_number, 0, **EVERYTHING)
    return [record.sequence_number.counter for record in records]


@pytest.mark.parametrize("up_to", range(6))
async def test_trimming_deletes_the_records_up_to_a_counter_and_no_others(up_to: int) -> None:
    async with memory_store() as store:
        for number in (1, 2, 3):
            await write_log(store, number, range(1, 6))

        trimmed = change_log.trimmed_range(2, up_to)
        await (await store.commit([Group(b"trim", None, b"1", range_deletes=[trimmed])]))

        assert await counters_of(store, 2) == list(range(up_to + 1, 6))
        assert await counters_of(store, 1) == await counters_of(store, 3) == [1, 2, 3, 4, 5]
