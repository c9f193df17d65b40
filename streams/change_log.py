"""A partition's log on disk: every recorded change, from the partition's creation to its split."""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from dynactor.storage import key_layout
from dynactor.storage.store import Row, View
from dynactor.streams import change_record
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.sequence_number import SequenceNumber

_COUNTER_BYTES: Final = 8
_TRIM: Final = Struct(">QQ")


class Trimmed(NamedTuple):
    """The counter up to which a log was trimmed, and the time of the last trimmed change.

    The time is in microseconds; None if unknown.
    """

    counter: int
    time_us: int | None


def encode_trim(counter: int, time_us: int) -> bytes:
    """The value of the row that records the trimming of a log."""
    return _TRIM.pack(counter, time_us)


def decode_trim(value: bytes | None) -> Trimmed:
    """The content of a trim row's value. Rows of earlier versions have only the counter."""
    if not value:
        return Trimmed(0, None)
    if len(value) == _COUNTER_BYTES:
        return Trimmed(int.from_bytes(value, "big"), None)
    return Trimmed(*_TRIM.unpack(value))


def row(record: ChangeRecord) -> tuple[bytes, bytes]:
    """The row of a record, to commit in the batch of its change."""
    number = record.sequence_number
    return (
        key_layout.change_row(number.partition_number, number.counter),
        change_record.encode(record),
    )


async def read(
    view: View, partition_number: int, after: int, *, max_records: int, max_bytes: int
) -> list[ChangeRecord]:
    """The first records with counters above ``after``."""
    start, end = range_after(partition_number, after)
    rows = await view.page(start, end, max_rows=max_records, max_bytes=max_bytes)
    return list(map(decode, rows))


def range_after(partition_number: int, after: int) -> tuple[bytes, bytes]:
    """The range of keys of the records with counters above ``after``."""
    return (
        key_layout.change_row(partition_number, after + 1),
        key_layout.change_row(partition_number, key_layout.AFTER_CHANGES),
    )


def decode(row: Row) -> ChangeRecord:
    """The record in a row of a log."""
    number = SequenceNumber(*key_layout.change_number(row.key))
    return change_record.decode(number, row.value)


def trimmed_range(partition_number: int, up_to: int) -> tuple[bytes, bytes]:
    """The key range of the records with counters up to ``up_to``, to delete them."""
    return (
        key_layout.change_row(partition_number, 0),
        key_layout.change_row(partition_number, up_to + 1),
    )


async def time_us(view: View, partition_number: int, counter: int) -> int | None:
    """The time of the change with this counter; None if it was not recorded."""
    (value,) = await view.load([key_layout.change_row(partition_number, counter)])
    if value is None:
        return None
    return change_record.decode(SequenceNumber(partition_number, counter), value).commit_time_us
