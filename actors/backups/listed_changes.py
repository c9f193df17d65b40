"""Finds the first change of each item after the positions of a past state, by the items' keys.

Each log is searched period by period, from the period of the state's time to the last one with
changes (``streams/changes_by_key``). The first period in which an item has changed decides. In a
period that has changes on both sides of the position, the first change of an item in the period may
have come before the position. Then the item's later changes are searched, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from dynactor.actors.followers.log_positions import LogPositions
from dynactor.model.key_conditions.key_range import KeyRange, contains
from dynactor.storage import key_layout
from dynactor.storage.key_layout import COUNTER_BYTES
from dynactor.storage.store import Row, RowReads, View
from dynactor.streams import changes_by_key
from dynactor.streams.changes_by_key import ListedChange

# Maximum number of ranges that one call of the store searches.
_RANGES: Final = 4_096
# The least number of rows of a period that one call reads.
_LEAST_ROWS: Final = 64
# More items than this are not searched one by one in a period.
_PROBES: Final = 32
# Number of rows for each such item that one call reads.
_WALKED_ROWS: Final = 4


class LogPart(NamedTuple):
    """A period of a log. Only changes with counters above ``after`` are searched."""

    partition_number: int
    period: int
    after: int


async def log_parts(
    view: RowReads, past: LogPositions, numbers: Sequence[int], first_period: int
) -> list[LogPart]:
    """The periods of some logs with changes since the positions, in the order of the changes."""
    parts = []
    for number in numbers:
        after = past.start_counter(number)
        if after is None:
            continue
        last = await view.page(
            key_layout.listed_prefix(number, first_period, is_first=True),
            key_layout.listed_range(number)[1],
            reverse=True,
            max_rows=1,
            max_bytes=1,
        )
        if last:
            last_period = key_layout.listed_period(last[0].key)
            parts += [
                LogPart(number, period, after) for period in range(first_period, last_period + 1)
            ]
    return parts


def next_start(position: bytes) -> bytes:
    """The start of the positions after one, and of their rows among the listed changes.

    No position is a prefix of another. In a row, a counter follows, whose first byte is 0.
    """
    return position + b"\x01"


class ListedChanges:
    """The changes in some parts of logs since the positions of a past state."""

    def __init__(self, view: View, past: LogPositions, parts: Sequence[LogPart]) -> None:
        self._view = view
        self._past = past
        self._parts = parts

    async def at_positions(self, positions: Iterable[bytes]) -> dict[bytes, ListedChange]:
        """The first change of each item since then, by position, if it has one."""
        found: dict[bytes, Row] = {}
        pending = list(positions)
        at = 0
        while pending and at < len(self._parts):
            parts = self._parts[at : at + max(1, _RANGES // len(pending))]
            at += len(parts)
            wanted = [(part, position) for part in parts for position in pending]
            ranges = [_range_after(part, position, -1) for part, position in wanted]
            pages = await self._view.first_rows(ranges, max_rows=1)
            for part, part_pages in zip(parts, _batched(pages, len(pending)), strict=True):
                first = {
                    position: rows[0]
                    for position, rows in zip(pending, part_pages, strict=True)
                    if rows
                }
                await self._add(found, part, first)
            pending = [position for position in pending if position not in found]
        return {position: changes_by_key.decode(row) for position, row in found.items()}

    async def in_range(
        self, wanted: KeyRange, max_rows: int, *, reverse: bool
    ) -> tuple[dict[bytes, ListedChange], KeyRange]:
        """The first change since then of each item in the first part of a range.

        Returns the changes by position, and the part of the range that they are complete for. It
        has at least one position of a changed item, or it is the whole range.
        """
        most = max(_LEAST_ROWS, max_rows // max(1, len(self._parts)))
        ranges = [_part_range(part, wanted) for part in self._parts]
        pages = await self._view.first_rows(ranges, max_rows=most, reverse=reverse)
        if not reverse:
            await self._skip_start(wanted.start, ranges, pages, most)
        known = wanted
        incomplete: dict[LogPart, bytes] = {}
        for part, rows in zip(self._parts, pages, strict=True):
            if len(rows) < most:
                continue
            last = key_layout.listed_position(rows[-1].key)
            if reverse:
                known = KeyRange(max(known.start, last), known.end)
                incomplete[part] = last
            elif known.end is None or last < known.end:
                known = KeyRange(known.start, next_start(last))
        # In reverse order, an item's first change in the period comes last, after the page.
        again = [_range_after(part, position, -1) for part, position in incomplete.items()]
        firsts = dict(zip(incomplete, await self._view.first_rows(again, max_rows=1), strict=True))
        found: dict[bytes, Row] = {}
        for part, rows in zip(self._parts, pages, strict=True):
            first: dict[bytes, Row] = {}
            # The last row of an item in this order is its first change.
            for row in rows if reverse else reversed(rows):
                first[key_layout.listed_position(row.key)] = row
            if part in firsts:
                first[incomplete[part]] = firsts[part][0]
            await self._add(found, part, first)
        return {
            position: changes_by_key.decode(row)
            for position, row in found.items()
            if contains(known, position)
        }, known

    async def _skip_start(
        self, start: bytes, ranges: list[tuple[bytes, bytes]], pages: list[list[Row]], most: int
    ) -> None:
        """Read pages again that have only changes of the item before the start of the range.

        The start may be the key of this item and a zero byte, and counters begin with a zero byte.
        """
        for place, rows in enumerate(pages):
            if len(rows) == most and key_layout.listed_position(rows[-1].key) < start:
                again = (next_start(rows[-1].key[:-COUNTER_BYTES]), ranges[place][1])
                (pages[place],) = await self._view.first_rows([again], max_rows=most)

    async def _add(
        self, found: dict[bytes, Row], part: LogPart, first: Mapping[bytes, Row]
    ) -> None:
        """Add the first changes after the positions of the state, from the first ones in a part."""
        before = {}
        for position, row in first.items():
            if position in found:
                continue
            if self._is_after(part, row):
                found[position] = row
            else:
                before[position] = row
        if len(before) > _PROBES:
            before = await self._walk(found, part, before)
        while before:
            ranges = [
                _range_after(part, position, max(part.after, _counter(row)), is_first=is_first)
                for position, row in before.items()
                for is_first in (True, False)
            ]
            pages = await self._view.first_rows(ranges, max_rows=1)
            again = {}
            for position, item_pages in zip(before, _batched(pages, 2), strict=True):
                rows = [row for page in item_pages for row in page]
                if not rows:
                    continue
                row = min(rows, key=_counter)
                if self._is_after(part, row):
                    found[position] = row
                else:
                    again[position] = row
            before = again

    async def _walk(
        self, found: dict[bytes, Row], part: LogPart, before: dict[bytes, Row]
    ) -> dict[bytes, Row]:
        """Read all changes of many items in a part, instead of searching them one by one.

        Returns the items that were not reached, because other items have too many changes.
        """
        ranges = []
        for is_first in (True, False):
            prefix = key_layout.listed_prefix(part.partition_number, part.period, is_first=is_first)
            ranges.append((prefix + min(before), next_start(prefix + max(before))))
        most = _WALKED_ROWS * len(before)
        pages = await self._view.first_rows(ranges, max_rows=most)
        nearest: dict[bytes, Row] = {}
        for row in chain.from_iterable(map(reversed, pages)):
            position = key_layout.listed_position(row.key)
            if position in before and self._is_after(part, row):
                other = nearest.get(position)
                if other is None or _counter(row) < _counter(other):
                    nearest[position] = row
        ends = [key_layout.listed_position(rows[-1].key) for rows in pages if len(rows) == most]
        end = min(ends, default=None)
        unreached = (
            {}
            if end is None
            else {position: row for position, row in before.items() if position >= end}
        )
        found.update(
            (position, row) for position, row in nearest.items() if position not in unreached
        )
        return unreached

    def _is_after(self, part: LogPart, row: Row) -> bool:
        """Whether a change came after the positions, and does not count as an earlier one."""
        counter = _counter(row)
        return counter > part.after and not self._past.is_earlier(part.partition_number, counter)


def _counter(row: Row) -> int:
    _, counter = key_layout.listed_number(row.key)
    return counter


def _part_range(part: LogPart, wanted: KeyRange) -> tuple[bytes, bytes]:
    """The keys of the first changes at some positions."""
    prefix = key_layout.listed_prefix(part.partition_number, part.period, is_first=True)
    end = key_layout.prefix_end(prefix) if wanted.end is None else prefix + wanted.end
    return prefix + wanted.start, end


def _range_after(
    part: LogPart, position: bytes, counter: int, *, is_first: bool = True
) -> tuple[bytes, bytes]:
    """The keys of an item's first or later changes in a period, after a counter."""
    prefix = key_layout.listed_prefix(part.partition_number, part.period, is_first=is_first)
    start = prefix + position
    return start + (counter + 1).to_bytes(COUNTER_BYTES, "big"), start + b"\xff"


def _batched(pages: Sequence[list[Row]], size: int) -> list[Sequence[list[Row]]]:
    return [pages[at : at + size] for at in range(0, len(pages), size)]
