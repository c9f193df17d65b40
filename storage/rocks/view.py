"""Reads the engine, or one pinned state of it.

Measured behavior of rocksdict 0.3.29:

- A ``Snapshot`` answers point reads from its state, but its iterators show later writes. An
  iterator of the engine itself stays in the state in which it was created. So a pinned state
  consists of both, created in one step, in less than a microsecond.
- Snapshots and iterators hold the GIL in any thread; the engine reads a list of keys without it. So
  threads read the latest values. If a row did not change since a state was pinned, its latest value
  is that state's value. Other rows are read from the snapshot.
- ``key_may_exist`` reads only memory. A value that it finds is the latest one. It returns an empty
  value if it can't decide. It reports a row as missing only if the row is missing.
- Iterators hold the GIL, so a thread would not help with a long page. The event loop reads a page
  in slices, with other work between them. Every slice seeks, so all pages of a view share one
  iterator.
- ``ReadOptions.set_iterate_lower_bound`` sets the upper bound, so it is not used here.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from time import perf_counter
from typing import Any, Final, NamedTuple, cast

from rocksdict import Rdict, RdictIter, ReadOptions, Snapshot

from dynactor.storage.changed_keys import ALL_KEYS, ChangedKeys
from dynactor.storage.rocks.errors import translate
from dynactor.storage.rocks.reads import WAIT_SECONDS, DiskReads
from dynactor.storage.store import NOT_CACHED, Closed, NotCached, Row, StoreError

_SLICE_BYTES: Final = 128 * 1024
_MISSING_KEY: Final = "key not found"
# Creates a ``Row`` without calling Python code, because the call made pages of 100 rows a third
# slower.
_new: Final = tuple.__new__
# A seek takes as long as reading this many rows.
_SEEK_ROWS: Final = 4
# The number of keys read in one call on the loop, since each may take a disk access.
_KEYS_AT_ONCE: Final = 8


class Pinned(NamedTuple):
    """The state of the engine at one moment, and the changes since."""

    rows: Rdict
    values: Snapshot
    iterator: RdictIter
    changed: ChangedKeys


def pin(rows: Rdict, changed: ChangedKeys) -> Pinned:
    """The engine's present state, without later writes, which are recorded in ``changed``."""
    return Pinned(rows, rows.snapshot(), rows.iter(ReadOptions()), changed)


class RocksView(ABC):
    """The common base of the two views of the port."""

    def __init__(self, reads: DiskReads) -> None:
        self._reads = reads

    @abstractmethod
    def close(self) -> None:
        """Release the engine; later reads raise ``Closed``."""

    @abstractmethod
    def cached(self, key: bytes) -> bytes | NotCached | None:
        """The value of this key from memory, and from the disk unless reads wait for the disk."""

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of these keys, all from one state."""
        values = self._cached(keys)
        if NOT_CACHED in values:
            rows, changed = self._rows(), self._changed()
            places = [place for place, value in enumerate(values) if value is NOT_CACHED]
            read = await self._reads.load(rows, [keys[place] for place in places])
            for place, value in zip(places, read, strict=True):
                values[place] = value
            # Threads read the latest values, which may be newer than this view. So read the values
            # of changed keys again, from the view.
            for place, key in enumerate(keys):
                if key in changed:
                    values[place] = self.get_nowait(key)
        return cast("list[bytes | None]", values)

    async def page(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row]:
        """The rows of a range, up to the row that fills the page."""
        rows: list[Row] = []
        iterator = None
        reads = self._reads
        size_bytes = 0
        read_slice = _slice_downwards if reverse else _slice
        try:
            while start < end and len(rows) < max_rows and size_bytes < max_bytes:
                slice_rows = reads.slice_rows
                rows_left = min(slice_rows, max_rows - len(rows))
                bytes_left = min(_SLICE_BYTES, max_bytes - size_bytes)
                iterator = self._iterator(iterator)
                began = perf_counter()
                piece, piece_bytes, ended = read_slice(iterator, start, end, rows_left, bytes_left)
                reads.note_slice(len(piece), perf_counter() - began)
                rows += piece
                size_bytes += piece_bytes
                if ended:
                    break
                if reverse:
                    end = rows[-1].key
                else:
                    start = rows[-1].key + b"\x00"
                if len(piece) == slice_rows or piece_bytes >= _SLICE_BYTES:
                    await asyncio.sleep(0)
        except StoreError:
            raise
        except Exception as error:
            raise translate(error) from error
        return rows

    async def first_rows(
        self, ranges: Sequence[tuple[bytes, bytes]], *, max_rows: int, reverse: bool = False
    ) -> list[list[Row]]:
        """The first rows of each range."""
        found: list[list[Row]] = []
        iterator = None
        reads = self._reads
        read_slice = _slice_downwards if reverse else _slice
        steps = 0
        try:
            for start, end in ranges:
                low, high = start, end
                rows: list[Row] = []
                while low < high and len(rows) < max_rows:
                    rows_left = min(reads.slice_rows, max_rows - len(rows))
                    iterator = self._iterator(iterator)
                    began = perf_counter()
                    piece, _, ended = read_slice(iterator, low, high, rows_left, _SLICE_BYTES)
                    reads.note_slice(len(piece), perf_counter() - began)
                    rows += piece
                    steps += _SEEK_ROWS + len(piece)
                    if steps >= reads.slice_rows:
                        steps = 0
                        await asyncio.sleep(0)
                    if ended:
                        break
                    if reverse:
                        high = rows[-1].key
                    else:
                        low = rows[-1].key + b"\x00"
                found.append(rows)
        except StoreError:
            raise
        except Exception as error:
            raise translate(error) from error
        return found

    async def load_with_page(
        self, keys: Sequence[bytes], start: bytes, end: bytes, *, max_rows: int, max_bytes: int
    ) -> tuple[list[bytes | None], list[Row]]:
        """The values of these keys and a page."""
        values = await self.load(keys)
        return values, await self.page(start, end, max_rows=max_rows, max_bytes=max_bytes)

    @abstractmethod
    def get_nowait(self, key: bytes) -> bytes | None:
        """The value of this key, from disk if necessary."""

    @abstractmethod
    def _cached(self, keys: Sequence[bytes]) -> list[bytes | NotCached | None]:
        """The values of several keys at one moment, like ``cached``."""

    @abstractmethod
    def _rows(self) -> Rdict:
        """The engine."""

    @abstractmethod
    def _changed(self) -> ChangedKeys:
        """The keys whose value in the engine may differ from this view, now or later."""

    @abstractmethod
    def _iterator(self, _last: RdictIter | None) -> RdictIter:
        """The iterator for the next slice of a page. ``_last`` is that of the previous slice."""


class LatestView(RocksView):
    """The owner's view: everything in the engine."""

    def __init__(self, rows: Rdict, changed: ChangedKeys, reads: DiskReads) -> None:
        super().__init__(reads)
        self._source: Rdict | None = rows
        # Keys accepted since the last sync started.
        self.changed = changed

    def open(self, rows: Rdict) -> None:
        """Read from this engine from now on."""
        self._source = rows

    def close(self) -> None:
        """See RocksView."""
        self._source = None

    def cached(self, key: bytes) -> bytes | NotCached | None:
        """See RocksView."""
        if self._reads.waits:
            return _in_memory(self._rows(), key)
        return self.get_nowait(key)

    def page_nowait(self, *_: object, **__: object) -> NotCached:
        """Return NOT_CACHED: this view shows no fixed state."""
        return NOT_CACHED

    def get_nowait(self, key: bytes) -> bytes | None:
        """See RocksView."""
        return self._get([key])[0]

    def _cached(self, keys: Sequence[bytes]) -> list[bytes | NotCached | None]:
        values: list[bytes | NotCached | None] = []
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            some = keys[start : start + _KEYS_AT_ONCE]
            # One call, without an exception for each missing key, takes half the time.
            values += map(self.cached, some) if self._reads.waits else self._get(some)
        return values

    def _get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        rows = self._rows()
        began = perf_counter()
        try:
            values: Any = rows.get(list(keys))
        except Exception as error:
            raise translate(error) from error
        if perf_counter() - began > WAIT_SECONDS:
            self._reads.note_wait()
        return list(values)

    def _rows(self) -> Rdict:
        if self._source is None:
            raise Closed("the store is closed")
        return self._source

    def _changed(self) -> ChangedKeys:
        return self.changed

    def _iterator(self, _last: RdictIter | None) -> RdictIter:
        # One iterator for the whole page, because a page shows one state.
        return self._rows().iter(ReadOptions()) if _last is None else _last


class PinnedView(RocksView):
    """One pinned state of the engine, which never changes."""

    def __init__(self, pinned: Pinned, reads: DiskReads) -> None:
        super().__init__(reads)
        self._source: Pinned | None = pinned
        # The loop's time when a later state became the durable one.
        self.replaced_at: float | None = None

    def open(self, pinned: Pinned) -> None:
        """Show this state from now on."""
        self._source = pinned

    def close(self) -> None:
        """See RocksView."""
        self._source = None

    def forget_changes(self) -> None:
        """Stop recording changes, and read all values from the state itself.

        Call this for long-lived views, because the record of changed keys grows with every write.
        """
        if self._source is not None and self._source.changed is not ALL_KEYS:
            self._source = self._source._replace(changed=ALL_KEYS)

    def cached(self, key: bytes) -> bytes | NotCached | None:
        """See RocksView."""
        if self._reads.waits:
            source = self._pinned()
            if key not in source.changed:
                return _in_memory(source.rows, key)
            # The writer of the change has read the row before, so its blocks are in memory.
        return self.get_nowait(key)

    def page_nowait(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row] | NotCached:
        """See View."""
        reads = self._reads
        if not 0 < max_rows <= reads.slice_rows or max_bytes > _SLICE_BYTES:
            return NOT_CACHED
        iterator = self._pinned().iterator
        read_slice = _slice_downwards if reverse else _slice
        began = perf_counter()
        try:
            rows, _, _ = read_slice(iterator, start, end, max_rows, max_bytes)
        except Exception as error:
            raise translate(error) from error
        reads.note_slice(len(rows), perf_counter() - began)
        return rows

    def get_nowait(self, key: bytes) -> bytes | None:
        """See RocksView."""
        values = self._pinned().values
        began = perf_counter()
        try:
            value: bytes | None = values[key]
        except Exception as error:
            # Only the text of the error distinguishes a missing key.
            if str(error) != _MISSING_KEY:
                raise translate(error) from error
            value = None
        if perf_counter() - began > WAIT_SECONDS:
            self._reads.note_wait()
        return value

    def _cached(self, keys: Sequence[bytes]) -> list[bytes | NotCached | None]:
        return list(map(self.cached, keys))

    def _pinned(self) -> Pinned:
        if self._source is None:
            raise Closed("the store is closed")
        return self._source

    def _rows(self) -> Rdict:
        return self._pinned().rows

    def _changed(self) -> ChangedKeys:
        return self._pinned().changed

    def _iterator(self, _last: RdictIter | None) -> RdictIter:
        # The engine may have been reopened meanwhile, with the same state.
        return self._pinned().iterator


def _in_memory(rows: Rdict, key: bytes) -> bytes | NotCached | None:
    """The latest value under this key, if the engine has it in memory."""
    found: Any = rows.key_may_exist(key, fetch=True)
    may_exist, value = found
    if not may_exist:
        return None
    # The engine returns an empty value if it can't decide.
    return value or NOT_CACHED


def _slice(
    iterator: RdictIter, start: bytes, end: bytes, max_rows: int, max_bytes: int
) -> tuple[list[Row], int, bool]:
    """Rows of a range from its start, their bytes, and whether the range ended with them."""
    rows: list[Row] = []
    size_bytes = 0
    iterator.seek(start)
    while (key := iterator.key()) is not None:
        if key >= end:
            return rows, size_bytes, True
        value = iterator.value()
        rows.append(_new(Row, (key, value)))
        size_bytes += len(key) + len(value)
        if len(rows) >= max_rows or size_bytes >= max_bytes:
            return rows, size_bytes, False
        iterator.next()
    iterator.status()
    return rows, size_bytes, True


def _slice_downwards(
    iterator: RdictIter, start: bytes, end: bytes, max_rows: int, max_bytes: int
) -> tuple[list[Row], int, bool]:
    """The same as ``_slice``, but from the end of the range downwards."""
    rows: list[Row] = []
    size_bytes = 0
    iterator.seek_for_prev(end)
    if iterator.valid() and iterator.key() == end:
        iterator.prev()
    while (key := iterator.key()) is not None:
        if key < start:
            return rows, size_bytes, True
        value = iterator.value()
        rows.append(_new(Row, (key, value)))
        size_bytes += len(key) + len(value)
        if len(rows) >= max_rows or size_bytes >= max_bytes:
            return rows, size_bytes, False
        iterator.prev()
    iterator.status()
    return rows, size_bytes, True
