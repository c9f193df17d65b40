"""The arguments of the SQL function ``commit``: checks, and the final state of each key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from dynactor.storage.postgresql.keys import HEADS, Range, ranges, stored, table_number
from dynactor.storage.store import Group

_GUARDS, _HEADS, _INSERTS, _DELETES, _PUTS = (1, 8, 64, 512, 4096)
# The number of arrays for each kind of argument: checks, inserts, puts, deletes, ranges, raises.
_ARRAYS: Final = (5, 6, 6, 3, 6, 2)


class CommitCall:
    """The groups of one call. ``keys`` are all checked and written keys, without range deletes."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._heads = {group.head_key: group.expected_head for group in groups}
        self._guards = {key: value for group in groups for key, value in group.guards}
        self._final: dict[bytes, bytes | None] = {}
        self.ranges: list[Range] = []
        self.discards = [
            part for group in groups for each in group.discards for part in ranges(*each)
        ]
        for group in groups:
            self._add(group)
        self._raises = {key for group in groups for key in group.raises}
        self.keys = self._heads.keys() | self._guards.keys() | self._final.keys() | self._raises
        self.size_bytes = sum(
            len(key) + len(value) for key, value in self._final.items() if value is not None
        )

    @property
    def rows(self) -> int:
        """The number of rows that it checks or writes.

        A call with ranges counts as none, because it may take long, and others do not wait for it.
        """
        return 0 if self.has_ranges else len(self.keys)

    @property
    def has_ranges(self) -> bool:
        """Whether the call deletes or discards ranges, so it has a statement of its own."""
        return bool(self.ranges or self.discards)

    def supersedes(self, other: CommitCall) -> bool:
        """Whether the other call is refused once this one is written.

        A changed head never has an earlier value again, but an absent one may be absent again.
        """
        return any(
            expected is not None and key in self._heads and self._final[key] != expected
            for key, expected in other._heads.items()
        )

    def _add(self, group: Group) -> None:
        final = self._final
        for start, end in group.range_deletes:
            self.ranges += ranges(start, end)
            for key in [key for key in final if start <= key < end]:
                del final[key]
        for key in group.deletes:
            final[key] = None
        final.update(group.puts)
        final[group.head_key] = group.head

    def write(self, arrays: Arrays, number: int) -> None:
        """Add the call to the arguments of a statement, as the call of this number."""
        final = dict(self._final)
        for is_head, checks in ((False, self._guards), (True, self._heads)):
            for key, value in checks.items():
                arrays.check(number, key, value, is_head=is_head)
                if value is None:
                    # Inserting the head locks it against other sessions, because an absent row
                    # cannot be locked.
                    arrays.insert(number, key, final.get(key), is_head=key in self._heads)
                    if final.pop(key, None) is None:
                        arrays.delete(number, key)
        for key, value in final.items():
            if value is None:
                arrays.delete(number, key)
            else:
                arrays.put(number, key, value, is_head=key in self._heads)
        for key in sorted(self._raises):
            assert table_number(key) == HEADS
            arrays.raises.append((number, key))
        arrays.ranges += [(*part, False) for part in self.ranges]
        arrays.ranges += [(*part, True) for part in self.discards]
        arrays.deletes_ranges |= bool(self.ranges)


class Arrays:
    """The arguments of one statement."""

    def __init__(self, calls: Iterable[CommitCall]) -> None:
        self.mask = 0
        self.count = 0
        self.deletes_ranges = False
        self.ranges: list[tuple[Any, ...]] = []
        self.raises: list[tuple[int, bytes]] = []
        self._checks: list[tuple[Any, ...]] = []
        self._inserts: list[tuple[Any, ...]] = []
        self._puts: list[tuple[Any, ...]] = []
        self._deletes: list[tuple[Any, ...]] = []
        for call in calls:
            self.count += 1
            call.write(self, self.count)

    def check(self, call: int, key: bytes, value: bytes | None, *, is_head: bool) -> None:
        """Require a value of a row, or its absence."""
        table = self._note(_HEADS if is_head else _GUARDS, key)
        self._checks.append((table, call, is_head, stored(key).key, value))

    def insert(self, call: int, key: bytes, value: bytes | None, *, is_head: bool) -> None:
        """Insert a row that must be absent."""
        table = self._note(_INSERTS, key)
        kept, tail = stored(key)
        self._inserts.append((table, call, is_head, kept, value, tail))

    def put(self, call: int, key: bytes, value: bytes, *, is_head: bool) -> None:
        """Write a row."""
        table = self._note(_PUTS, key)
        kept, tail = stored(key)
        self._puts.append((table, call, is_head, kept, value, tail))

    def delete(self, call: int, key: bytes) -> None:
        """Delete a row."""
        self._deletes.append((self._note(_DELETES, key), call, stored(key).key))

    def arguments(self, epoch: int, batch: bytes) -> list[Any]:
        """All arguments, in the order of the SQL function's parameters."""
        lists: tuple[Sequence[tuple[Any, ...]], ...] = (
            self._checks,
            self._inserts,
            self._puts,
            self._deletes,
            self.ranges,
            self.raises,
        )
        return [
            epoch,
            batch,
            self.mask,
            [0] * self.count,
            *(
                list(column)
                for rows, width in zip(lists, _ARRAYS, strict=True)
                for column in (zip(*rows, strict=True) if rows else [()] * width)
            ),
        ]

    def _note(self, kind: int, key: bytes) -> int:
        table = table_number(key)
        self.mask |= kind << table
        return table
