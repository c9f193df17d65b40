"""Reading the engine, or one pinned state of it.

What rocksdict 0.3.29 does, all measured:

- A ``Snapshot`` answers point reads from its state, but its iterators show what was written
  after it. An iterator of the engine itself keeps to the state in which it was made. So a
  pinned state is both, made in one step; they cost less than a microsecond together.
- Iterators hold the GIL, whichever thread they run in. So a long page is read in slices on the
  event loop, with the loop's other work between them, and not in a thread. Every slice seeks
  anew: the pages of all requests on a view share its one iterator.
- ``ReadOptions.set_iterate_lower_bound`` sets the upper bound: unused here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from rocksdict import Rdict, RdictIter, ReadOptions, Snapshot

from storage.rocks_errors import translate
from storage.store import Closed, NotAtHand, Row

_SLICE_ROWS: Final = 128
_SLICE_BYTES: Final = 128 * 1024
_MISSING_KEY: Final = "key not found"


class Pinned(NamedTuple):
    """The state of the engine at one moment."""

    values: Snapshot
    iterator: RdictIter


Source: TypeAlias = Rdict | Pinned


def pin(rows: Rdict) -> Pinned:
    """The engine's present state; later writes don't show in it."""
    return Pinned(rows.snapshot(), rows.iter(ReadOptions()))


class RocksView:
    """A view, as the port describes it."""

    def __init__(self, source: Source) -> None:
        self._source: Source | None = source
        self._pages = 0
        # When a later state became the durable one, in the loop's time.
        self.replaced_at: float | None = None

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

    def at_hand(self, key: bytes) -> bytes | NotAtHand | None:
        """The value under this key."""
        return _get(self._values(), key)

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values under these keys."""
        values = self._values()
        if isinstance(values, Snapshot):
            return [_get(values, key) for key in keys]
        try:
            # In one call, and without an exception for each missing key: half the time.
            found: Any = values.get(list(keys))
        except Exception as error:
            raise translate(error) from error
        return list(found)

    def get_nowait(self, key: bytes) -> bytes | None:
        """The value under this key."""
        return _get(self._values(), key)

    async def page(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row]:
        """The rows of a range, up to the one that fills the page."""
        rows: list[Row] = []
        source = self._opened()
        iterator = source.iterator if isinstance(source, Pinned) else source.iter(ReadOptions())
        del source
        size_bytes = 0
        read_slice = _slice_downwards if reverse else _slice
        self._pages += 1
        try:
            while start < end and len(rows) < max_rows and size_bytes < max_bytes:
                rows_left = min(_SLICE_ROWS, max_rows - len(rows))
                bytes_left = min(_SLICE_BYTES, max_bytes - size_bytes)
                piece, piece_bytes, ended = read_slice(iterator, start, end, rows_left, bytes_left)
                rows += piece
                size_bytes += piece_bytes
                if ended:
                    break
                if reverse:
                    end = rows[-1].key
                else:
                    start = rows[-1].key + b"\x00"
                if len(piece) == _SLICE_ROWS or piece_bytes >= _SLICE_BYTES:
                    await asyncio.sleep(0)
        except Exception as error:
            raise translate(error) from error
        finally:
            self._pages -= 1
        return rows

    def _values(self) -> Rdict | Snapshot:
        source = self._opened()
        return source.values if isinstance(source, Pinned) else source

    def _opened(self) -> Source:
        if self._source is None:
            raise Closed("the store is closed")
        return self._source


def _slice(
    iterator: RdictIter, start: bytes, end: bytes, max_rows: int, max_bytes: int
) -> tuple[list[Row], int, bool]:
    """Rows of a range from its start, their bytes, and whether the range ended with them."""
    rows: list[Row] = []
    size_bytes = 0
    iterator.seek(start)
    while iterator.valid():
        key: bytes = iterator.key()
        if key >= end:
            return rows, size_bytes, True
        row = Row(key, iterator.value())
        rows.append(row)
        size_bytes += len(key) + len(row.value)
        if len(rows) >= max_rows or size_bytes >= max_bytes:
            return rows, size_bytes, False
        iterator.next()
    iterator.status()
    return rows, size_bytes, True


def _slice_downwards(
    iterator: RdictIter, start: bytes, end: bytes, max_rows: int, max_bytes: int
) -> tuple[list[Row], int, bool]:
    """As ``_slice``, from the end of the range downwards."""
    rows: list[Row] = []
    size_bytes = 0
    iterator.seek_for_prev(end)
    if iterator.valid() and iterator.key() == end:
        iterator.prev()
    while iterator.valid():
        key: bytes = iterator.key()
        if key < start:
            return rows, size_bytes, True
        row = Row(key, iterator.value())
        rows.append(row)
        size_bytes += len(key) + len(row.value)
        if len(rows) >= max_rows or size_bytes >= max_bytes:
            return rows, size_bytes, False
        iterator.prev()
    iterator.status()
    return rows, size_bytes, True


def _get(source: Rdict | Snapshot, key: bytes) -> bytes | None:
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
