"""Reading the engine, or one snapshot of it.

Iterators hold the GIL, whichever thread they run in (measured). So a long page is read in
slices on the event loop, with the loop's other work between them, and not in a thread.
``ReadOptions.set_iterate_lower_bound`` sets the upper bound (rocksdict 0.3.29): unused here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from rocksdict import Rdict, ReadOptions, Snapshot

from storage.rocks_errors import translate
from storage.store import Closed, Row

Source: TypeAlias = Rdict | Snapshot

_SLICE_ROWS: Final = 128
_SLICE_BYTES: Final = 128 * 1024
_MISSING_KEY: Final = "key not found"


class RocksView:
    """A view, as the port describes it."""

    def __init__(self, source: Source) -> None:
        self._source: Source | None = source
        self._pages = 0

    @property
    def is_paging(self) -> bool:
        """Whether a page is being read in slices, with an iterator of the engine."""
        return self._pages > 0

    def open(self, source: Source) -> None:
        """Read from here from now on."""
        self._source = source

    def close(self) -> None:
        """Let go of the engine; later reads raise ``Closed``."""
        self._source = None

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values under these keys."""
        source = self._opened()
        return [_get(source, key) for key in keys]

    async def page(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row]:
        """The rows of a range, up to the one that fills the page."""
        rows: list[Row] = []
        if start >= end or max_rows <= 0:
            return rows
        size_bytes = 0
        slice_ends_at_rows, slice_ends_at_bytes = _SLICE_ROWS, _SLICE_BYTES
        self._pages += 1
        try:
            for row in _rows(self._opened(), start, end, reverse=reverse):
                rows.append(row)
                size_bytes += len(row.key) + len(row.value)
                if len(rows) >= max_rows or size_bytes >= max_bytes:
                    break
                if len(rows) >= slice_ends_at_rows or size_bytes >= slice_ends_at_bytes:
                    slice_ends_at_rows = len(rows) + _SLICE_ROWS
                    slice_ends_at_bytes = size_bytes + _SLICE_BYTES
                    await asyncio.sleep(0)
        finally:
            self._pages -= 1
        return rows

    def _opened(self) -> Source:
        if self._source is None:
            raise Closed("the store is closed")
        return self._source


def _get(source: Source, key: bytes) -> bytes | None:
    try:
        value: bytes | None = source[key]
    except KeyError:
        return None
    except Exception as error:
        # A snapshot's missing key is told apart by its text alone.
        if str(error) == _MISSING_KEY:
            return None
        raise translate(error) from error
    return value


def _rows(source: Source, start: bytes, end: bytes, *, reverse: bool) -> Iterator[Row]:
    options = ReadOptions()
    options.set_iterate_upper_bound(end)
    try:
        iterator = source.iter(options)
        if reverse:
            iterator.seek_to_last()
        else:
            iterator.seek(start)
        step = iterator.prev if reverse else iterator.next
        while iterator.valid():
            key: bytes = iterator.key()
            if key < start:
                return
            yield Row(key, iterator.value())
            step()
        iterator.status()
    except Exception as error:
        raise translate(error) from error
