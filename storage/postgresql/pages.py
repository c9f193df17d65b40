"""Pages of rows, read over one connection.

Rows come in the order of their stored keys. Long keys with the same first 2,600 bytes are a
cluster. Another statement reads a cluster, sorted by the tails of its keys (``keys.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dynactor.storage.postgresql.keys import (
    PREFIX_BYTES,
    Range,
    behind_cluster,
    by_tables,
    original,
    ranges,
)
from dynactor.storage.postgresql.sql import Statements
from dynactor.storage.store import Row

# Maximum number of rows that one statement reads.
_MOST_ROWS: Final = 10_000
_NO_LIMIT_BYTES: Final = 1 << 40


class NotInOneStatement(Exception):
    """A page needs several statements, which must run in one transaction."""


class PageReader:
    """Reads pages of one schema."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def load(self, connection: Any, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of these keys, by stored key."""
        by_table = by_tables(keys)
        found = await connection.fetch(self._statements.load(tuple(by_table)), *by_table.values())
        return dict(found)

    async def read_at_once(
        self, connection: Any, start: bytes, end: bytes, bounds: Bounds
    ) -> list[Row]:
        """Read a page with one statement; raises ``NotInOneStatement`` if it needs more."""
        parts = list(ranges(start, end))
        if len(parts) != 1:
            if not parts:
                return []
            raise NotInOneStatement
        (part,) = parts
        limit = bounds.rows_at_once
        found = await self._fetch(connection, part, limit, bounds)
        return self._in_one_statement(found, limit, bounds)

    def _in_one_statement(self, found: Sequence[Any], limit: int, bounds: Bounds) -> list[Row]:
        """The page in the rows of a statement; raises ``NotInOneStatement`` if more are needed."""
        if any(tail is not None for _, _, tail in found):
            raise NotInOneStatement
        rows = [Row(key, value) for key, value, _ in found]
        bounds.take(rows)
        if len(rows) == limit and not bounds.is_reached:
            raise NotInOneStatement
        return rows

    async def read_with_values(
        self, connection: Any, keys: Sequence[bytes], start: bytes, end: bytes, bounds: Bounds
    ) -> tuple[dict[bytes, bytes], list[Row]]:
        """The values of stored keys, and a page, by one statement; raises ``NotInOneStatement``."""
        parts = list(ranges(start, end))
        if len(parts) != 1:
            raise NotInOneStatement
        (part,) = parts
        by_table = by_tables(keys)
        limit = bounds.rows_at_once
        found = await connection.fetch(
            self._statements.load_with_page(tuple(by_table), part.table),
            *(part.low, part.high, limit, bounds.bytes_left),
            *by_table.values(),
        )
        values = {key: value for key, value, _, is_page_row in found if not is_page_row}
        page_rows = [(key, value, tail) for key, value, tail, is_page_row in found if is_page_row]
        # PostgreSQL does not promise the order of a union.
        page_rows.sort()
        return values, self._in_one_statement(page_rows, limit, bounds)

    async def first_rows(
        self, connection: Any, of: Sequence[tuple[bytes, bytes]], *, max_rows: int, reverse: bool
    ) -> list[list[Row]]:
        """Read the first rows of each range with one statement; raises ``NotInOneStatement``."""
        found: list[list[Row]] = [[] for _ in of]
        low_keys, high_keys, places = [], [], []
        tables = set()
        for place, (start, end) in enumerate(of):
            parts = list(ranges(start, end))
            if not parts:
                continue
            (part, *others) = parts
            if others or part.low_tail is not None or part.high_tail is not None:
                raise NotInOneStatement
            tables.add(part.table)
            low_keys.append(part.low)
            high_keys.append(part.high)
            places.append(place)
        if not places:
            return found
        if len(tables) > 1:
            raise NotInOneStatement
        statement = self._statements.first_rows(tables.pop(), reverse=reverse)
        for at, key, value, tail in await connection.fetch(
            statement, low_keys, high_keys, max_rows
        ):
            if tail is not None:
                raise NotInOneStatement
            found[places[at - 1]].append(Row(key, value))
        for rows in found:
            # PostgreSQL does not promise the order of a join.
            rows.sort(reverse=reverse)
        return found

    async def first_rows_in_turn(
        self, connection: Any, of: Sequence[tuple[bytes, bytes]], *, max_rows: int, reverse: bool
    ) -> list[list[Row]]:
        """Read the first rows of each range with many statements, within one transaction."""
        return [
            await self.read(
                connection,
                start,
                end,
                Bounds(reverse=reverse, max_rows=max_rows, max_bytes=_NO_LIMIT_BYTES),
            )
            for start, end in of
        ]

    async def read(self, connection: Any, start: bytes, end: bytes, bounds: Bounds) -> list[Row]:
        """Read a page with as many statements as necessary, within one transaction."""
        rows: list[Row] = []
        parts = list(ranges(start, end))
        for part in reversed(parts) if bounds.reverse else parts:
            await self._read_part(connection, part, bounds, rows)
            if bounds.is_reached:
                break
        return rows

    async def _read_part(
        self, connection: Any, part: Range, bounds: Bounds, rows: list[Row]
    ) -> None:
        low, high = part.low, part.high
        while low < high and not bounds.is_reached:
            limit = bounds.rows_at_once
            left = part._replace(low=low, high=high)
            found = await self._fetch(connection, left, limit, bounds)
            before_cluster = []
            prefix = None
            for key, value, tail in found:
                if tail is not None:
                    prefix = key[:PREFIX_BYTES]
                    break
                before_cluster.append(Row(key, value))
            bounds.take(before_cluster)
            rows += before_cluster
            if prefix is not None:
                if not bounds.is_reached:
                    await self._read_cluster(connection, part, prefix, bounds, rows)
                if bounds.reverse:
                    high = prefix + b"\x00"
                else:
                    low = behind_cluster(prefix)
            elif len(found) < limit and not bounds.is_reached:
                return
            elif before_cluster:
                if bounds.reverse:
                    high = before_cluster[-1].key
                else:
                    low = before_cluster[-1].key + b"\x00"

    async def _read_cluster(
        self, connection: Any, part: Range, prefix: bytes, bounds: Bounds, rows: list[Row]
    ) -> None:
        low_tail = part.low_tail if part.low[:PREFIX_BYTES] == prefix else None
        high_tail = part.high_tail if part.high[:PREFIX_BYTES] == prefix else None
        low_tail = low_tail or b""
        while not bounds.is_reached:
            limit = bounds.rows_at_once
            found = await connection.fetch(
                self._statements.cluster(part.table, reverse=bounds.reverse),
                prefix + b"\x00",
                behind_cluster(prefix),
                limit,
                bounds.bytes_left,
                low_tail,
                high_tail,
            )
            cluster = [Row(original(key, tail), value) for key, value, tail in found]
            bounds.take(cluster)
            rows += cluster
            if len(cluster) < limit:
                return
            if bounds.reverse:
                high_tail = cluster[-1].key[PREFIX_BYTES:]
            else:
                low_tail = cluster[-1].key[PREFIX_BYTES:] + b"\x00"

    async def _fetch(
        self, connection: Any, part: Range, limit: int, bounds: Bounds
    ) -> Sequence[Any]:
        found: Sequence[Any] = await connection.fetch(
            self._statements.page(part.table, reverse=bounds.reverse),
            part.low,
            part.high,
            limit,
            bounds.bytes_left,
        )
        return found


class Bounds:
    """The rows and bytes that a page can still take."""

    def __init__(self, *, reverse: bool, max_rows: int, max_bytes: int) -> None:
        self.reverse = reverse
        self.rows_left = max_rows
        self.bytes_left = max_bytes

    @property
    def rows_at_once(self) -> int:
        """How many rows the next statement may return."""
        return min(self.rows_left, _MOST_ROWS)

    @property
    def is_reached(self) -> bool:
        """Whether the page is full."""
        return self.rows_left <= 0 or self.bytes_left <= 0

    def take(self, rows: Sequence[Row]) -> None:
        """Count rows of the page."""
        self.rows_left -= len(rows)
        self.bytes_left -= sum(len(row.key) + len(row.value) for row in rows)
