"""Rows that list the changes of a log by the key of their item, for reads of past states.

Each row belongs to a period of commit times. So the rows of old periods are deleted as ranges, and
no other row is read to find them. In a period, the first change of each item is listed apart from
later ones. So a page of items finds all changed keys without the later changes of busy items. An
item may have several first changes in a period: the first one of a server that has just started,
and every put of a missing item.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final, NamedTuple

from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import key_layout
from dynactor.storage.store import Damaged, Row
from dynactor.streams.sequence_number import SequenceNumber

# Rows are deleted up to a period and the interval of trimming after their log: within an hour.
# A shorter period makes reads slower, because they search each period since their time.
PERIOD_US: Final = 45 * 60 * MICROSECONDS_PER_SECOND
# The version and length of the item before the change, and the length of the change record.
_VALUE: Final = Layout(">QII")


class ListedChange(NamedTuple):
    """A change of an item. ``old_version`` is 0 if there was no item before the change."""

    partition_number: int
    counter: int
    old_version: int
    old_bytes: int
    record_bytes: int


def time_period(time_us: int) -> int:
    """The period of a commit time. Numbers start at 1."""
    return time_us // PERIOD_US + 1


def end_us(period: int) -> int:
    """The time at which a period ends."""
    return period * PERIOD_US


class Listing:
    """Makes the rows of the changes of a log in a period."""

    def __init__(self, partition_number: int, period: int, after: int) -> None:
        """All changes with versions after ``after`` are listed in this period or a later one."""
        self.period = period
        self._first = key_layout.listed_prefix(partition_number, period, is_first=True)
        self._later = key_layout.listed_prefix(partition_number, period, is_first=False)
        self._after = after
        self._before = SequenceNumber(partition_number + 1, 0).packed()

    def row(
        self, position: bytes, counter: int, old: StoredItem | None, record_bytes: int
    ) -> tuple[bytes, bytes]:
        """The row of a change, to commit in the batch of the change."""
        key_end = position + counter.to_bytes(key_layout.COUNTER_BYTES, "big")
        if old is None:
            return self._first + key_end, _VALUE.pack(0, 0, record_bytes)
        version = old.version
        is_later = self._after < version < self._before
        return (
            (self._later if is_later else self._first) + key_end,
            _VALUE.pack(version, len(old.data), record_bytes),
        )


def decode(row: Row) -> ListedChange:
    """The change in a row; raises ``Damaged``."""
    if len(row.value) != _VALUE.size:
        raise Damaged("a listed change is not in a format that this version knows")
    number, counter = key_layout.listed_number(row.key)
    return ListedChange(number, counter, *_VALUE.unpack(row.value))
