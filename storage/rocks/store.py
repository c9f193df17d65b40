"""The embedded engine's store: RocksDB through ``rocksdict``.

``Rdict.write`` holds the GIL, so a commit is written unsynced on the event loop (in a few
microseconds), and a thread syncs the log with ``flush_wal``, which releases the GIL. Rows are
visible before they are durable, so there are two views. The durable view is a snapshot taken when a
sync starts and published when the sync has returned.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar
from weakref import WeakSet

import structlog
from msgspec import structs
from rocksdict import WriteOptions

from dynactor.model.latency_histogram import LatencyHistogram
from dynactor.storage.atomic_directory import whole_directory
from dynactor.storage.attempt_interval import AttemptInterval
from dynactor.storage.backup_mark import mark_as_backup
from dynactor.storage.changed_keys import ChangedKeys
from dynactor.storage.data_directory import open_data_directory
from dynactor.storage.group_commit import Commits, Synchronizer
from dynactor.storage.head_locks import HeadLocks
from dynactor.storage.rocks.batches import frees_space, write_batch
from dynactor.storage.rocks.engine import DiskEngine, Engine
from dynactor.storage.rocks.errors import is_unreadable_file, repeats_an_error, translate
from dynactor.storage.rocks.options import RocksOptions
from dynactor.storage.rocks.reads import DiskReads
from dynactor.storage.rocks.view import LatestView, PinnedView, pin
from dynactor.storage.store import (
    VERSION_BYTES,
    Closed,
    Conflict,
    Fenced,
    Full,
    Group,
    Locked,
    Retry,
    Store,
    StoreError,
    View,
)
from dynactor.storage.store_figures import StoreFigures

P = ParamSpec("P")
T = TypeVar("T")


_log = structlog.get_logger(__name__)


async def open_rocks(
    directory: Path, options: RocksOptions | None = None, reads: DiskReads | None = None
) -> Store:
    """Open the store in this data directory, which is created if it does not exist.

    ``reads`` decides how rows outside memory are read.

    Raises ``CannotOpen``, ``Damaged`` or ``Full``, with messages that say how to fix it.
    """
    options = options or RocksOptions()
    data_directory = open_data_directory(directory)
    try:
        engine = await asyncio.to_thread(DiskEngine, data_directory, options)
    except BaseException:
        data_directory.close()
        raise
    return RocksStore(engine, options, reads)


class _Mark(NamedTuple):
    """The state that a sync covers: a view of it, and the number of its last change."""

    view: PinnedView
    sequence: int


class RocksStore:
    """The store.

    ``_durable`` never shows changes that no sync has covered. While ``_refusal`` is set, no commit
    is written. After a full disk, or after a compaction that could not read a table file, reopening
    the engine clears ``_refusal``. The views stay readable in every case.
    """

    def __init__(
        self,
        engine: Engine,
        options: RocksOptions,
        reads: DiskReads | None = None,
        changed: ChangedKeys | None = None,
    ) -> None:
        """``changed`` records the changes since the last pinned state."""
        self._engine = engine
        self._longest_read_seconds = options.longest_read_seconds
        self._refusal: StoreError | None = None
        self._is_closed = False
        self._full_disk_refusals = 0
        # The last commit was refused because it would have used the disk's reserve.
        self._is_reserve_reached = False
        # Each kind of work has its own thread, so a backup does not wait for a long compaction.
        self._reclaims = ThreadPoolExecutor(max_workers=1, thread_name_prefix="storage-reclaim")
        self._checkpoints = ThreadPoolExecutor(max_workers=1, thread_name_prefix="storage-copy")
        self._long_count = 0
        self._reads = reads or DiskReads()
        self._changed = changed or ChangedKeys()
        self._latest = LatestView(engine.rows, self._changed, self._reads)
        self._durable = PinnedView(pin(engine.rows, self._changed), self._reads)
        self._snapshots: WeakSet[PinnedView] = WeakSet([self._durable])
        # The last written heads of groups. Reading each head back would cost a search in cold
        # memory for every group.
        self._heads: dict[bytes, bytes] = {}
        self._locks = HeadLocks()
        self._write_options = WriteOptions()
        # A write stall would block the whole event loop; the caller retries instead.
        self._write_options.no_slowdown = True
        self._syncs = LatencyHistogram()
        self._synchronizer = self._new_synchronizer()
        self._reopening = AttemptInterval()

    @property
    def latest(self) -> View:
        """See Store."""
        return self._latest

    def durable(self) -> View:
        """See Store."""
        return self._durable

    def eventual(self) -> View:
        """See Store."""
        return self.durable()

    async def in_snapshot(
        self,
        read: Callable[[View], Awaitable[T]],
        *,
        calls_once: bool,  # noqa: ARG002 - of the port
        eventual: bool = False,  # noqa: ARG002 - of the port
    ) -> T:
        """See Store."""
        return await read(self.durable())

    def locked(self, heads: Sequence[bytes]) -> AbstractAsyncContextManager[Locked]:
        """See Store."""
        return self._locks.locked(heads, self._latest, self._commit)

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        """See Store."""
        if self._locks.held:
            await self._locks.wait_free(group.head_key for group in groups)
        return await self._commit(groups)

    def commit_nowait(self, groups: Sequence[Group]) -> Future[None] | None:
        """See Store."""
        return None if self._locks.held else self._commit_unlocked(groups)

    async def _commit(self, groups: Sequence[Group]) -> Future[None]:
        return self._commit_unlocked(groups)

    def _commit_unlocked(self, groups: Sequence[Group]) -> Future[None]:
        if not groups:
            return self._behind_accepted()
        try:
            self._write(groups)
        except Full:
            self._full_disk_refusals += 1
            raise
        return self._synchronizer.accepted()

    def _write(self, groups: Sequence[Group]) -> None:
        if self._refusal is not None:
            self._raise_unless_reopened()
        self._assert_guards(groups)
        self._assert_heads(groups)
        is_freeing = frees_space(groups)
        groups = self._with_versions(groups)
        batch = write_batch(groups)
        if not is_freeing:
            self._take_space(batch.size_in_bytes())
        # Note the keys before the write, because a thread may read a row immediately after the
        # write.
        self._changed.note(groups)
        try:
            self._engine.rows.write(batch, self._write_options)
        except Exception as error:
            translated = translate(error)
            if isinstance(translated, Retry):
                raise translated from error
            # The log may hold a part of the commit, which must not come back after a restart.
            raise self._end_writing(error) from error
        self._remember_heads(groups)

    def _take_space(self, size_bytes: int) -> None:
        """Account for a commit; log when the reserve is reached, and when it is free again."""
        try:
            self._engine.take_space(size_bytes)
        except Full as error:
            if not self._is_reserve_reached:
                self._is_reserve_reached = True
                _log.error("disk_full", error=str(error))
            raise
        if self._is_reserve_reached:
            self._is_reserve_reached = False
            _log.info("disk_space_freed")

    def _behind_accepted(self) -> Future[None]:
        # Even if commits are refused, a sync may still be running.
        if self._is_closed or self._synchronizer.has_failed:
            assert self._refusal is not None
            raise self._refusal
        return self._synchronizer.behind_accepted()

    async def reclaim(self, start: bytes, end: bytes) -> None:
        """See Store."""
        # Reclaiming now would write rows that no sync covered into table files.
        if self._refusal is not None:
            self._raise_unless_reopened()
        await self._run_long(self._reclaims, self._engine.reclaim, start, end)
        # An aborted compaction returns no error.
        if self._refusal is not None:
            raise self._refusal
        # The durable view keeps old files in use until a sync replaces that view.
        await self._synchronizer.accepted()

    async def checkpoint(self, directory: Path) -> None:
        """See Store."""
        # A checkpoint now would write rows that no sync covered into table files. After a failed
        # sync, the durable content is unknown.
        if self._refusal is not None:
            self._raise_unless_reopened()
        await self._run_long(self._checkpoints, self._make_checkpoint, directory)

    def _make_checkpoint(self, directory: Path) -> None:
        # The whole block runs in the thread, so a cancellation doesn't interrupt it and closing
        # waits for it.
        with whole_directory(directory) as unfinished:
            self._engine.checkpoint(unfinished)
            mark_as_backup(unfinished)

    def figures(self) -> StoreFigures:
        """See Store."""
        refusal = self._refusal
        return StoreFigures(
            self._engine.figures(),
            self._syncs,
            "" if refusal is None else type(refusal).__name__,
            self._full_disk_refusals,
            self._synchronizer.waiting_count,
            self._reads.waiting_count,
        )

    async def close(self) -> None:
        """See Store."""
        if self._is_closed:
            return
        self._is_closed = True
        self._refusal = Closed("the store is closed")
        await self._synchronizer.wait_idle()
        self._synchronizer.stop()
        await asyncio.to_thread(self._end_long)
        await self._reads.close()
        # A snapshot keeps the engine's files and its lock in use, so the views are closed first.
        for view in [self._latest, *self._snapshots]:
            view.close()
        await asyncio.to_thread(self._engine.close)

    async def _run_long(
        self,
        thread: ThreadPoolExecutor,
        work: Callable[P, None],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        """Run long work in a thread; ``close`` aborts it."""
        self._raise_if_closed()
        self._long_count += 1
        in_thread = asyncio.get_running_loop().run_in_executor(
            thread, partial(self._do_long, work, *args, **kwargs)
        )
        in_thread.add_done_callback(self._count_long_out)
        # A thread can't be canceled. It continues after its caller is canceled, and is still
        # counted.
        await asyncio.shield(in_thread)

    def _count_long_out(self, _ended: Future[None]) -> None:
        self._long_count -= 1

    def _do_long(self, work: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        self._raise_if_closed()
        try:
            work(*args, **kwargs)
        except StoreError:
            # Work aborted by closing raises an error of the engine.
            self._raise_if_closed()
            raise

    def _end_long(self) -> None:
        if self._long_count > 0:
            self._engine.interrupt()
        self._reclaims.shutdown()
        self._checkpoints.shutdown()

    def _raise_unless_reopened(self) -> None:
        self._reopen_after_full()
        if self._refusal is not None:
            raise self._refusal

    def _raise_if_closed(self) -> None:
        if self._is_closed:
            raise Closed("the store is closed")

    def _assert_guards(self, groups: Sequence[Group]) -> None:
        for group in groups:
            for key, value in group.guards:
                if self._latest.get_nowait(key) != value:
                    raise Fenced(f"the guard {key!r} does not have its value")

    def _assert_heads(self, groups: Sequence[Group]) -> None:
        for group in groups:
            head = self._heads.get(group.head_key)
            if head is None:
                head = self._latest.get_nowait(group.head_key)
            if head != group.expected_head:
                raise Conflict(f"the head {group.head_key!r} is not the expected one")

    def _with_versions(self, groups: Sequence[Group]) -> Sequence[Group]:
        """The groups of a commit, with puts for the versions that they raise."""
        keys = dict.fromkeys(key for group in groups for key in group.raises)
        if not keys:
            return groups
        puts = []
        for key in keys:
            version = int.from_bytes(self._latest.get_nowait(key) or b"", "big")
            puts.append((key, (version + 1).to_bytes(VERSION_BYTES, "big")))
        last = groups[-1]
        return [*groups[:-1], structs.replace(last, puts=[*last.puts, *puts])]

    def _remember_heads(self, groups: Sequence[Group]) -> None:
        heads = self._heads
        for group in groups:
            if group.ranges:
                heads.clear()
            # A commit that creates or ends partitions may write another partition's head as a plain
            # row.
            for key in group.deletes:
                heads.pop(key, None)
            for key, _ in group.puts:
                if key in heads:
                    del heads[key]
            if group.head is None:
                heads.pop(group.head_key, None)
            else:
                heads[group.head_key] = group.head

    def _new_synchronizer(self) -> Commits:
        return Synchronizer(
            mark=self._take_mark,
            sync=self._sync,
            publish=self._publish,
            failed=self._end_writing,
            latency=self._syncs,
        )

    def _take_mark(self) -> _Mark:
        self._changed = self._latest.changed = self._changed.begin_next()
        return _Mark(self._pinned_now(), self._engine.rows.latest_sequence_number())

    def _pinned_now(self) -> PinnedView:
        view = PinnedView(pin(self._engine.rows, self._changed), self._reads)
        self._snapshots.add(view)
        return view

    def _sync(self, mark: _Mark) -> None:
        self._engine.sync(mark.sequence)

    def _publish(self, mark: _Mark) -> None:
        self._durable.replaced_at = self._loop_seconds()
        self._durable = mark.view
        for view in self._snapshots:
            if view.replaced_at is not None and self._is_outdated(view):
                view.forget_changes()

    def _end_writing(self, failure: Exception) -> StoreError:
        """Refuse every later commit; returns the error for them."""
        self._engine.keep_only_synced()
        translated = translate(failure)
        # After the disk was full, the sync of earlier writes may fail with an error that only
        # repeats the first one.
        is_still_full = isinstance(self._refusal, Full) and repeats_an_error(failure)
        if is_unreadable_file(failure) and not self._synchronizer.has_failed:
            # A compaction could not read a table file. Without compactions, the other rows can be
            # read and written.
            self._engine.stop_compactions()
            self._refusal = Retry(str(translated))
            _log.error("table_file_unreadable", error=str(translated))
        elif isinstance(translated, Full) or is_still_full:
            self._refusal = self._refusal or translated
            _log.error("disk_full", error=str(failure))
        else:
            self._refusal = Closed(f"The disk failed, restart the server: {failure}")
            _log.critical("disk_failed", error=str(failure))
        return self._refusal

    def _reopen_after_full(self) -> None:
        """Reopen the engine after a full disk or an unreadable file, if that is possible now."""
        is_idle = self._synchronizer.is_idle and self._long_count == 0
        if isinstance(self._refusal, Full | Retry) and is_idle and self._reopening.is_due:
            with self._reopening.attempt():
                self._try_to_reopen()

    def _try_to_reopen(self) -> None:
        engine = self._engine
        engine.keep_only_synced()
        if not engine.can_reopen():
            return
        try:
            if engine.is_for_writing:
                self._open_for_reading()
            for view in [each for each in self._snapshots if each is not self._durable]:
                if self._is_outdated(view):
                    view.close()
            engine.open_for_writing()
        except (Full, Retry) as error:
            # Try again later: space may be freed, and readers of the earlier engine will finish.
            _log.info("reopening_postponed", error=str(error))
        except StoreError as error:
            self._refusal = Closed(f"The disk failed, restart the server: {error}")
            _log.critical("disk_failed", error=str(error))
        else:
            self._show_engine()
            self._synchronizer.stop()
            self._synchronizer = self._new_synchronizer()
            is_full = isinstance(self._refusal, Full)
            self._refusal = None
            _log.info("disk_space_freed" if is_full else "written_without_compactions")

    def _open_for_reading(self) -> None:
        broken = self._engine.rows
        self._engine.open_for_reading()
        self._show_engine()
        # Close the old engine now unless a thread reads from it. In any case, its last user closes
        # it.
        if self._reads.is_idle:
            with suppress(Exception):
                broken.close()

    def _show_engine(self) -> None:
        """Make both views show the opened engine, whose content is all durable."""
        rows = self._engine.rows
        self._heads.clear()
        self._latest.open(rows)
        self._changed = self._latest.changed = ChangedKeys()
        self._durable.open(pin(rows, self._changed))

    def _is_outdated(self, view: PinnedView) -> bool:
        """Whether a view was replaced longer ago than any read lasts, so it may be closed.

        A view whose sync failed was never published, but may still be referenced.
        """
        if view.replaced_at is None:
            return True
        return self._loop_seconds() - view.replaced_at >= self._longest_read_seconds

    @staticmethod
    def _loop_seconds() -> float:
        return asyncio.get_running_loop().time()
