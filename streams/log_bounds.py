"""The extent of a table's logs, and the counter at a given time.

A partition's log has a record of every counter while the table has followers. The beginning of a
log is trimmed once no follower needs it. Changes made without followers were never recorded.
"""

from __future__ import annotations

from typing import NamedTuple

from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import TableRecord
from dynactor.storage.store import View
from dynactor.streams import change_log
from dynactor.streams.change_record import ChangeRecord


class LogReach(NamedTuple):
    """The extent of a log: every change with a counter above ``after``, up to ``last``.

    ``lost_us`` is the time of the last change that is missing from the log, or a later time if
    that is unknown; None if no change is missing. Changes before a split are in the parent's log.
    """

    partition_number: int
    after: int
    last: int
    lost_us: int | None


async def reaches(view: View, table: TableRecord, now_us: int) -> list[LogReach]:
    """The extent of each log of a table in a view, including ended logs."""
    lasts = {ended.number: ended.last for ended in table.ended_logs}
    table_id = table.definition.table_id
    return [
        await _reach(view, table_id, number, lasts.get(number), now_us)
        for number in table.log_numbers
    ]


async def position_at(view: View, log: LogReach, time_us: int) -> int:
    """The counter after which a log has all changes made at that time or later."""
    low, high = log.after, log.last
    # Times increase with counters.
    while low < high:
        middle = (low + high) // 2
        record = await first_behind(view, log.partition_number, middle)
        if record is not None and record.commit_time_us < time_us:
            low = min(record.sequence_number.counter, high)
        else:
            high = middle
    return low


async def first_behind(view: View, partition_number: int, after: int) -> ChangeRecord | None:
    """The first change with a higher counter; None at the log's end."""
    records = await change_log.read(view, partition_number, after, max_records=1, max_bytes=1)
    return records[0] if records else None


async def _reach(view: View, table_id: int, number: int, last: int | None, now_us: int) -> LogReach:
    """The extent of one log; ``last`` is its last counter, None while the log grows."""
    head_value, trim_value = await view.load(
        [key_layout.partition_head(number), key_layout.trim(table_id, number)]
    )
    if last is None:
        # The view may show a split of this partition before the record does.
        last = 0 if head_value is None else catalog.decode_partition_head(head_value).counter
    trimmed = change_log.decode_trim(trim_value)
    first = await first_behind(view, number, trimmed.counter)
    after = last if first is None else first.sequence_number.counter - 1
    if after <= trimmed.counter and trimmed.time_us is not None:
        # If a parent's log was deleted, the time of its last change was copied to the children.
        return LogReach(number, after, last, trimmed.time_us)
    if after == 0:
        return LogReach(number, after, last, None)
    return LogReach(number, after, last, now_us if first is None else first.commit_time_us - 1)
