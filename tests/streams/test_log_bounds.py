"""The first and last record of logs, and the position of a time in a log."""

from __future__ import annotations

import pytest
from msgspec import structs

from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import PartitionHead, PartitionRange, TableRecord
from dynactor.storage.store import Group
from dynactor.streams import change_log, log_bounds
from dynactor.streams.change_log import Trimmed
from dynactor.streams.log_bounds import LogReach
from dynactor.streams.sequence_number import SequenceNumber
from tests.support.databases.databases import table_definition
from tests.support.stores.store import memory_store
from tests.support.streams.changes import change

TABLE_ID = 7
PARTITION = 3
NOW_US = 1_000
RECORD = TableRecord(
    structs.replace(table_definition(), table_id=TABLE_ID), (PartitionRange(PARTITION, b""),)
)


async def reach(times_us: dict[int, int], last: int, trim: bytes | None = None) -> LogReach:
    """The extent of a log with records of these times, by counter."""
    async with memory_store() as store:
        await commit(store, times_us, last, trim)
        (log,) = await log_bounds.reaches(store.durable(), RECORD, NOW_US)
        return log


async def commit(store, times_us: dict[int, int], last: int, trim: bytes | None = None) -> None:
    records = [
        change({"pk": {"S": "a"}}, None, {}, SequenceNumber(PARTITION, at), commit_time_us=time)
        for at, time in times_us.items()
    ]
    puts = list(map(change_log.row, records))
    if trim is not None:
        puts.append((key_layout.trim(TABLE_ID, PARTITION), trim))
    head = catalog.encode_partition_head(PartitionHead(counter=last))
    await (await store.commit([Group(key_layout.partition_head(PARTITION), None, head, puts)]))


async def test_a_log_recorded_from_the_first_change_on_has_lost_nothing():
    assert await reach({1: 10, 2: 20}, 2) == LogReach(PARTITION, 0, 2, None)
    assert await reach({}, 0) == LogReach(PARTITION, 0, 0, None)


async def test_a_trimmed_log_has_the_time_of_the_last_trimmed_change():
    trim = change_log.encode_trim(4, 55)
    assert await reach({5: 60, 6: 70}, 6, trim) == LogReach(PARTITION, 4, 6, 55)
    assert await reach({}, 4, trim) == LogReach(PARTITION, 4, 4, 55)


async def test_a_later_time_replaces_an_unknown_one():
    old_form = (4).to_bytes(8, "big")
    assert await reach({5: 60}, 5, old_form) == LogReach(PARTITION, 4, 5, 59)
    assert await reach({}, 4, old_form) == LogReach(PARTITION, 4, 4, NOW_US)
    # The changes up to 4 were not recorded, and the trimmed ones include 5 and 6.
    assert await reach({5: 60}, 5) == LogReach(PARTITION, 4, 5, 59)
    assert await reach({7: 60}, 7, change_log.encode_trim(4, 50)) == LogReach(PARTITION, 6, 7, 59)
    assert await reach({}, 6, change_log.encode_trim(4, 50)) == LogReach(PARTITION, 6, 6, NOW_US)


@pytest.mark.parametrize("time_us", [0, 50, 51, 59, 60, 61, 69, 70, 71])
async def test_a_time_is_found_in_a_log_with_holes(time_us: int):
    times_us = {5: 50, 6: 60, 9: 61, 10: 70}
    async with memory_store() as store:
        await commit(store, times_us, 10, change_log.encode_trim(4, 40))
        view = store.durable()
        (log,) = await log_bounds.reaches(view, RECORD, NOW_US)
        found = await log_bounds.position_at(view, log, time_us)
        behind = [at for at in times_us if at > found]
        assert behind == [at for at, time in times_us.items() if time >= time_us]


def test_trim_rows_of_earlier_versions_are_read():
    assert change_log.decode_trim(None) == Trimmed(0, None)
    assert change_log.decode_trim((9).to_bytes(8, "big")) == Trimmed(9, None)
    assert change_log.decode_trim(change_log.encode_trim(9, 55)) == Trimmed(9, 55)
