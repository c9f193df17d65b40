"""The embedded engine: RocksDB through ``rocksdict``.

What is particular to it, all measured:

- ``Rdict.write`` holds the GIL, so commits are written unsynced on the loop (some microseconds)
  and synced by ``flush_wal`` in a thread, which releases it.
- Iterators hold the GIL too, whichever thread they run in. A long page is therefore read in
  slices on the loop, with the loop's other work between them, and not in a thread.
- Rows are visible before they are durable. Hence two views; the durable one is a snapshot taken
  when a sync started and published when it returned.
- ``ReadOptions.set_iterate_lower_bound`` sets the upper bound (rocksdict 0.3.29): unused here.
- A snapshot's missing key is a plain ``Exception``, told apart by its text.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct
from rocksdict import (
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DataBlockIndexType,
    DBCompressionType,
    DBRecoveryMode,
    Env,
    Options,
    Rdict,
    ReadOptions,
    Snapshot,
    WriteBatch,
    WriteOptions,
)

from storage.store import (
    Closed,
    Conflict,
    Damaged,
    Full,
    Group,
    Retry,
    Row,
    Store,
    StoreError,
    View,
)
from storage.synchroniser import Synchroniser

KIB: Final = 1024
MIB: Final = 1024 * 1024

_SLICE_ROWS: Final = 128
_SLICE_BYTES: Final = 128 * KIB
_MISSING_KEY: Final = "key not found"


class RocksOptions(Struct, frozen=True):
    """What may be tuned. Memory: ``memtables`` memtables, the block cache, and bloom filters."""

    memtable_bytes: int = 32 * MIB
    memtables: int = 4
    block_cache_bytes: int = 256 * MIB


async def open_rocks(directory: Path, options: RocksOptions | None = None) -> Store:
    """Open the store in this directory, which is made if it does not exist."""
    return _RocksStore(_open_engine(directory, options or RocksOptions(), env=None))


async def open_rocks_in_memory(options: RocksOptions | None = None) -> Store:
    """Open an empty store that keeps nothing when it is closed."""
    # rocksdict writes a small configuration file beside the database even in memory.
    directory = TemporaryDirectory(prefix="dynactor-")
    engine = _open_engine(Path(directory.name), options or RocksOptions(), env=Env.mem_env())
    return _RocksStore(engine, directory)


def _open_engine(directory: Path, options: RocksOptions, env: Env | None) -> Rdict:
    engine_options = _engine_options(options)
    if env is not None:
        engine_options.set_env(env)
    try:
        return Rdict(str(directory), engine_options)
    except Exception as error:  # rocksdict raises nothing narrower
        raise _translated(error) from error


def _engine_options(options: RocksOptions) -> Options:
    table = BlockBasedOptions()
    table.set_block_cache(Cache(options.block_cache_bytes))
    table.set_bloom_filter(10, block_based=False)
    table.set_data_block_index_type(DataBlockIndexType.binary_and_hash())
    table.set_cache_index_and_filter_blocks(v=True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(v=True)
    engine = Options(raw_mode=True)
    engine.create_if_missing(create_if_missing=True)
    engine.set_block_based_table_factory(table)
    engine.set_compression_type(DBCompressionType.lz4())
    engine.set_write_buffer_size(options.memtable_bytes)
    engine.set_max_write_buffer_number(options.memtables)
    engine.set_level_compaction_dynamic_level_bytes(v=True)
    engine.set_bytes_per_sync(MIB)
    engine.set_paranoid_checks(enabled=True)
    engine.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    # A recycled log holds old records behind its end, which a damaged one would bring back.
    engine.set_recycle_log_file_num(0)
    # A closed iterator may be the last user of a file: it is deleted in the background then.
    engine.set_avoid_unnecessary_blocking_io(val=True)
    engine.set_keep_log_file_num(3)
    engine.set_max_log_file_size(4 * MIB)
    return engine


class _RocksView:
    """Reads of the engine, or of one snapshot of it."""

    def __init__(self, source: Rdict | Snapshot) -> None:
        self._source: Rdict | Snapshot | None = source

    def close(self) -> None:
        """Let go of the engine; later reads raise ``Closed``."""
        self._source = None

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        source = self._opened()
        return [_get(source, key) for key in keys]

    async def page(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row]:
        rows: list[Row] = []
        if start >= end or max_rows <= 0:
            return rows
        size_bytes = slice_rows = slice_bytes = 0
        for row in _rows(self._opened(), start, end, reverse=reverse):
            rows.append(row)
            row_bytes = len(row.key) + len(row.value)
            size_bytes += row_bytes
            if len(rows) >= max_rows or size_bytes >= max_bytes:
                break
            slice_rows += 1
            slice_bytes += row_bytes
            if slice_rows >= _SLICE_ROWS or slice_bytes >= _SLICE_BYTES:
                slice_rows = slice_bytes = 0
                await asyncio.sleep(0)
        return rows

    def _opened(self) -> Rdict | Snapshot:
        if self._source is None:
            raise Closed("the store is closed")
        return self._source


def _get(source: Rdict | Snapshot, key: bytes) -> bytes | None:
    try:
        value: bytes | None = source[key]
    except KeyError:
        return None
    except Exception as error:
        if str(error) == _MISSING_KEY:
            return None
        raise _translated(error) from error
    return value


def _rows(source: Rdict | Snapshot, start: bytes, end: bytes, *, reverse: bool) -> Iterator[Row]:
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
        raise _translated(error) from error


class _RocksStore:
    """The store. ``_durable`` never shows what a sync has not covered."""

    def __init__(self, engine: Rdict, temporary: TemporaryDirectory[str] | None = None) -> None:
        self._engine = engine
        self._temporary = temporary
        self._refusal: StoreError | None = None
        self._latest = _RocksView(engine)
        self._durable = _RocksView(engine.snapshot())
        self._write_options = WriteOptions()
        # A write stall would stop the whole event loop; the caller tries again instead.
        self._write_options.no_slowdown = True
        self._synchroniser: Synchroniser[_RocksView] = Synchroniser(
            mark=self._mark, sync=self._sync, publish=self._publish, failed=self._end_writing
        )

    @property
    def latest(self) -> View:
        return self._latest

    def durable(self) -> View:
        return self._durable

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        if self._refusal is not None:
            raise self._refusal
        batch = WriteBatch(raw_mode=True)
        for group in groups:
            if self._engine.get(group.head_key) != group.expected_head:
                raise Conflict(f"the head {group.head_key!r} is not the expected one")
            for start, end in group.range_deletes:
                batch.delete_range(start, end)
            for key in group.deletes:
                batch.delete(key)
            for key, value in group.puts:
                batch.put(key, value)
            batch.put(group.head_key, group.head)
        try:
            self._engine.write(batch, self._write_options)
        except Exception as error:
            raise _translated(error) from error
        return self._synchroniser.accepted()

    async def reclaim(self, start: bytes, end: bytes) -> None:
        await asyncio.to_thread(self._engine.compact_range, start, end)

    async def checkpoint(self, directory: Path) -> None:
        checkpoint = Checkpoint(self._engine)
        await asyncio.to_thread(checkpoint.create_checkpoint, str(directory))

    async def close(self) -> None:
        if isinstance(self._refusal, Closed):
            return
        self._refusal = Closed("the store is closed")
        await self._synchroniser.wait_idle()
        self._synchroniser.stop()
        # A snapshot keeps the engine's files and its lock, so the views go first.
        self._latest.close()
        self._durable.close()
        if self._temporary is None:
            await asyncio.to_thread(self._engine.close)
        else:
            # Closing would sync the log; the engine in memory ends with its last user.
            del self._engine
            self._temporary.cleanup()

    def _mark(self) -> _RocksView:
        return _RocksView(self._engine.snapshot())

    def _sync(self, _covered: _RocksView) -> None:
        # A log in memory can't be synced, and is gone with the process anyway.
        if self._temporary is None:
            self._engine.flush_wal(sync=True)

    def _publish(self, covered: _RocksView) -> None:
        self._durable = covered

    def _end_writing(self, failure: BaseException) -> None:
        self._refusal = Closed(f"a sync of the log failed, restart the server: {failure}")


def _translated(error: Exception) -> StoreError:
    """The store's error for one of the engine, which are told apart by their text alone."""
    text = str(error)
    if "No space left on device" in text:
        return Full(text)
    if text.startswith("Operation aborted") or "Incomplete" in text or "stall" in text:
        return Retry(text)
    return Damaged(text)
