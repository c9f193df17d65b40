"""The engine on disk or in memory: opening, syncing, reopening and closing it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from msgspec.structs import replace
from rocksdict import AccessType, Checkpoint, CompactOptions, Env, Options, Rdict

from dynactor.storage.data_directory import (
    DataDirectory,
    open_data_directory,
    sync_directory,
    sync_unlinked_files,
)
from dynactor.storage.disk_space import DiskSpace, disk_bytes
from dynactor.storage.durable_watermark import DurableMark
from dynactor.storage.log_files import cut_after, logged_bytes
from dynactor.storage.rocks.errors import translate
from dynactor.storage.rocks.options import RocksOptions, engine_options
from dynactor.storage.store import CannotOpen, Closed, Damaged, StoreError
from dynactor.storage.store_figures import EngineFigures


class Engine(Protocol):
    """An open RocksDB, on disk or in memory."""

    rows: Rdict
    # Whether ``rows`` is open for writing; it may still refuse a write.
    is_for_writing: bool

    def take_space(self, size_bytes: int) -> None:
        """Raise ``Full`` if there is no space for a commit of this size."""

    def sync(self, sequence: int) -> None:
        """Make all changes up to this sequence number durable. Runs in a thread."""

    def keep_only_synced(self) -> None:
        """Record that changes that no sync covered must not reappear at the next opening."""

    def stop_compactions(self) -> None:
        """Open the engine without automatic compactions from now on."""

    def can_reopen(self) -> bool:
        """Whether the engine can be reopened after the disk was full.

        Reopening requires enough disk space and a successful ``keep_only_synced``.
        """

    def open_for_reading(self) -> None:
        """Replace the engine with a read-only one that has only the durable content.

        Works on a full disk. If it raises ``StoreError``, ``rows`` stays readable.
        """

    def open_for_writing(self) -> None:
        """Replace the read-only engine with one that is open for writing.

        If it raises ``StoreError``, ``rows`` stays readable. ``Full``: there is too little space.
        ``Retry``: a snapshot or iterator of the earlier engine is still in use.
        """

    def reclaim(self, start: bytes, end: bytes) -> None:
        """Compact this range. Runs in a thread."""

    def interrupt(self) -> None:
        """Abort a compaction; the engine may only be closed afterwards. Runs in a thread."""

    def checkpoint(self, directory: Path) -> None:
        """Create a data directory with a copy of everything. Runs in a thread."""

    def figures(self) -> EngineFigures:
        """The sizes of the engine's data."""

    def close(self) -> None:
        """Close, after every accepted commit had its sync. Runs in a thread."""


class DiskEngine:
    """RocksDB in a data directory."""

    def __init__(self, directory: DataDirectory, options: RocksOptions) -> None:
        self._directory = directory
        self._options = options.for_disk(disk_bytes(directory.path))
        self._space = DiskSpace(directory.path, options.reserve_bytes, self._unflushed_bytes)
        self._mark = DurableMark(directory.mark)
        self.is_for_writing = True
        try:
            _discard_configuration(directory.engine)
            self.rows = self._open()
            self._raise_format()
        except StoreError:
            self._mark.close()
            raise

    def take_space(self, size_bytes: int) -> None:
        """Raise ``Full`` if a commit of this size would use the disk's reserve."""
        self._space.take(size_bytes)

    def sync(self, sequence: int) -> None:
        """Sync the log, then advance the mark, which is never ahead of the last sync."""
        try:
            self.rows.flush_wal(sync=True)
            self._mark.advance(sequence)
        except Exception:
            # Called here rather than on the event loop, because RocksDB does not wait for the loop.
            self._stop_flushing()
            raise

    def keep_only_synced(self) -> None:
        """Have the next opening truncate the log; callers retry, because this write may fail."""
        self._stop_flushing()
        with suppress(OSError):
            self._mark.keep_only_synced()

    def _stop_flushing(self) -> None:
        """Prevent RocksDB from flushing memtables until it is reopened.

        RocksDB flushes automatically when a full disk has space again. Rows that no sync covered
        would then be in a table file, and cutting the log would not remove them.
        """
        if self.is_for_writing:
            self.rows.cancel_all_background(wait=False)

    def stop_compactions(self) -> None:
        """Disable compactions from the next reopening until the server's next start."""
        self._options = replace(self._options, compacts=False)

    def can_reopen(self) -> bool:
        """Whether the mark is written, and the disk has space for flushing the log's rows."""
        return self._mark.is_kept and self._space.has(logged_bytes(self._directory.engine))

    def open_for_reading(self) -> None:
        """Truncate changes that no sync covered, and read the remaining log into memory."""
        # Reads of the old engine continue. Its last reader closes it, which releases its lock.
        self.rows.cancel_all_background(wait=True)
        self._cut_log()
        rows = self._open_whole_for_reading()
        if rows.latest_sequence_number() > self._mark.sequence:
            raise Damaged("changes without a sync were flushed and can't be undone")
        self.rows = rows
        self.is_for_writing = False

    def open_for_writing(self) -> None:
        """Open the engine again for writing; RocksDB replays its log."""
        # Closing the earlier engine may have written to the log.
        self._cut_log()
        self.rows = self._open_for_writing()
        self.is_for_writing = True

    def reclaim(self, start: bytes, end: bytes) -> None:
        """Compact the range's tables while RocksDB's own compactions continue."""
        _compact(self.rows, start, end)

    def interrupt(self) -> None:
        """Abort background work."""
        self.rows.cancel_all_background(wait=True)

    def checkpoint(self, directory: Path) -> None:
        """Flush, so that all rows are in table files, and link these files, which never change."""
        sequence = self._mark.sequence
        with closing(open_data_directory(directory)) as copy:
            _check_can_link(self._directory, copy)
            # RocksDB creates the directory itself.
            copy.engine.rmdir()
            try:
                # A checkpoint holds the GIL and so blocks the event loop. It takes 70 ms if it has
                # to flush 64 MB itself, and 4 ms after this flush, which runs without the GIL. A
                # compaction of a range continues meanwhile. Frequent copies can meet the end of a
                # compaction, and wait for it to delete its files: 0.8 s once, in 60 copies of 2 GB.
                self.rows.flush(wait=True)
                Checkpoint(self.rows).create_checkpoint(str(copy.engine))
            except Exception as error:
                raise translate(error) from error
            # RocksDB does not sync the copy of the log, and rocksdict does not sync its own file.
            sync_unlinked_files(copy.engine)
            with closing(DurableMark(copy.mark)) as mark:
                mark.settle(sequence)
            sync_directory(copy.path)

    def figures(self) -> EngineFigures:
        """The figures of RocksDB and the disk."""
        logs_bytes = logged_bytes(self._directory.engine)
        return _figures(self.rows, logs_bytes, self._space.free_bytes())

    def close(self) -> None:
        """Release the files and the directory."""
        self._close_rows()
        # The mark may be slightly behind the log, so ignore an error.
        with suppress(OSError):
            self._mark.sync()
        self._mark.close()
        self._directory.close()

    def _raise_format(self) -> None:
        """Raise the format, after the engine was opened.

        If opening fails, an older version can still inspect the damaged data.
        """
        try:
            self._directory.raise_format()
            self._mark.add_slot()
        except CannotOpen:
            self._close_rows()
            raise

    def _unflushed_bytes(self) -> int:
        return self.rows.property_int_value("rocksdb.cur-size-all-mem-tables") or 0

    def _close_rows(self) -> None:
        # Closing flushes, so that the next opening need not replay the log. Prevent the flush if it
        # would store changes that no sync covered. It may fail, because the log has everything that
        # was acknowledged.
        if self._mark.only_synced and self.is_for_writing:
            self.rows.cancel_all_background(wait=True)
        with suppress(Exception):
            self.rows.close()

    def _open(self) -> Rdict:
        """Open RocksDB, and make everything in it durable.

        Raises ``Damaged`` if durable data is missing. The check changes nothing, so the damaged
        files can be inspected and copied.
        """
        self._cut_log()
        if logged_bytes(self._directory.engine) > 0:
            # Check the log first, because opening it for writing replays the log and then deletes
            # it.
            self._open_whole_for_reading()
        return self._open_for_writing()

    def _cut_log(self) -> None:
        if self._mark.only_synced:
            with _translated():
                cut_after(self._directory.engine, self._mark.sequence)

    def _open_whole_for_reading(self) -> Rdict:
        rows = self._open_rows(AccessType.read_only(error_if_log_file_exist=False))
        check_log_end(self._directory, self._mark, rows)
        return rows

    def _open_for_writing(self) -> Rdict:
        rows = self._open_rows(AccessType.read_write())
        check_log_end(self._directory, self._mark, rows)
        with _translated():
            # RocksDB has synced its own files with the replayed rows, but not rocksdict's file.
            sync_directory(self._directory.engine)
            self._mark.settle(rows.latest_sequence_number())
        return rows

    def _open_rows(self, access: AccessType) -> Rdict:
        return open_rows(self._directory.engine, engine_options(self._options), access)


class MemoryEngine:
    """An engine in memory: empty at first, and lost when it is closed."""

    def __init__(self, options: RocksOptions) -> None:
        self._options = options
        self._is_interrupted = False
        self.is_for_writing = True
        # An empty engine for the next ``clear``, and the engines that earlier calls have replaced.
        self._spare: Rdict | None = None
        self._replaced: list[Rdict] = []
        self.rows = self._open_empty()

    def _open_empty(self) -> Rdict:
        in_memory = engine_options(self._options)
        in_memory.set_env(Env.mem_env())
        # At the opening, rocksdict writes a configuration file, even in memory. It is deleted at
        # once, because a killed process would leave it behind.
        with TemporaryDirectory(prefix="dynactor-") as directory:
            return open_rows(Path(directory), in_memory, AccessType.read_write())

    def prepare_clear(self) -> None:
        """Open the engine that ``clear`` will use, and close the replaced ones.

        May run in a thread. Takes a few milliseconds.
        """
        self._replaced.clear()
        if self._spare is None:
            self._spare = self._open_empty()

    def clear(self) -> None:
        """Replace this engine by an empty one, which deletes every row.

        Deleting the rows would leave tombstones, which make reads slower with every reset.
        """
        if self._spare is None:
            self._spare = self._open_empty()
        self._replaced.append(self.rows)
        self.rows, self._spare = self._spare, None

    def take_space(self, size_bytes: int) -> None:
        """Do nothing, because memory is not limited."""

    def sync(self, sequence: int) -> None:
        """Do nothing: the log in memory cannot be synced, and it ends with the process."""

    def keep_only_synced(self) -> None:
        """Do nothing: the content ends with the process."""

    def stop_compactions(self) -> None:
        """Do nothing: an engine in memory has no unreadable files."""

    def can_reopen(self) -> bool:
        """Return False: an engine in memory is never reopened."""
        return False

    def open_for_reading(self) -> None:
        """Do nothing: an engine in memory is never reopened."""

    def open_for_writing(self) -> None:
        """Do nothing: an engine in memory is never reopened."""

    def reclaim(self, start: bytes, end: bytes) -> None:
        """Compact, which frees memory, too."""
        _compact(self.rows, start, end)

    def interrupt(self) -> None:
        """Abort background work, including a copy."""
        self._is_interrupted = True
        self.rows.cancel_all_background(wait=True)

    def checkpoint(self, directory: Path) -> None:
        """Write every row into a new engine on disk."""
        with closing(open_data_directory(directory)) as copy:
            rows = open_rows(copy.engine, engine_options(RocksOptions()), AccessType.read_write())
            try:
                for key, value in self.rows.items():
                    self._raise_if_interrupted()
                    rows[key] = value
                rows.close()
            except Exception as error:
                raise translate(error) from error
            sync_unlinked_files(copy.engine)

    def _raise_if_interrupted(self) -> None:
        if self._is_interrupted:
            raise Closed("the store is closed")

    def figures(self) -> EngineFigures:
        """The figures of RocksDB; its log is in memory and has no known size."""
        return _figures(self.rows, 0, None)

    def close(self) -> None:
        """Drop the content."""
        # Rdict.close would try to sync the log in memory. RocksDB closes when its last reference is
        # dropped.
        del self.rows
        self._spare = None
        self._replaced.clear()


def _figures(rows: Rdict, log_bytes: int, free_bytes: int | None) -> EngineFigures:
    def of(name: str) -> int:
        return rows.property_int_value(f"rocksdb.{name}") or 0

    return EngineFigures(
        table_bytes=of("total-sst-files-size"),
        log_bytes=log_bytes,
        memtable_bytes=of("cur-size-all-mem-tables"),
        cache_bytes=of("block-cache-usage"),
        free_bytes=free_bytes,
    )


def _check_can_link(data: DataDirectory, copy: DataDirectory) -> None:
    """Refuse a file system without hard links, because copying files would hold the GIL."""
    tried = copy.path / "link"
    try:
        # Links are impossible between two mounts of the same file system.
        tried.hardlink_to(data.path / "format")
    except OSError as error:
        raise CannotOpen(
            f"Nothing in {data.path} can be linked into {copy.path.parent} ({error.strerror}): it "
            "has to be on the same file system, and of the same mount. Choose a directory beside "
            "the data, and copy from there."
        ) from error
    tried.unlink()


def _discard_configuration(engine_directory: Path) -> None:
    """Link rocksdict's own file to /dev/null, or a full disk would prevent opening.

    At each opening, rocksdict writes its settings for keys to that file. This server never needs
    the file, because it passes the settings itself.
    """
    path = engine_directory / "rocksdict-config.json"
    if not path.is_symlink():
        # On a file system without symbolic links, the file stays as rocksdict wrote it.
        with suppress(OSError):
            made = path.with_suffix(".new")
            made.symlink_to(os.devnull)
            made.replace(path)


@contextmanager
def _translated() -> Iterator[None]:
    """Convert errors of the system into the store's."""
    try:
        yield
    except OSError as error:
        raise translate(error) from error


def check_log_end(directory: DataDirectory, mark: DurableMark, rows: Rdict) -> None:
    """Compare the last change that was read with the last one that was synced.

    Raises:
        Damaged: the end of the log is missing.
    """
    found = rows.latest_sequence_number()
    if found < mark.sequence:
        raise Damaged(
            f"The log in {directory.engine} is damaged: it can be read up to change {found}, but "
            f"change {mark.sequence} was written and synced. Restore the data directory from a "
            f"backup. To continue without the changes in between, delete {mark.path}."
        )


def open_rows(directory: Path, options: Options, access: AccessType) -> Rdict:
    """Open RocksDB.

    Raises:
        CannotOpen, Damaged, Full, Retry: the engine's error.
    """
    try:
        # Options without the column family's name apply only to new column families. For existing
        # ones, the options would come from a file beside the data, which sets the smallest cache, 8
        # MiB.
        families = {"default": options}
        return Rdict(str(directory), options, column_families=families, access_type=access)
    except Exception as error:
        translated = translate(error)
        if isinstance(translated, Damaged):
            raise Damaged(
                f"The files in {directory} can't be opened: {translated}. "
                "Restore the data directory from a backup."
            ) from error
        raise translated from error


def _compact(rows: Rdict, start: bytes, end: bytes) -> None:
    options = CompactOptions()
    options.set_exclusive_manual_compaction(v=False)
    try:
        rows.compact_range(start, end, options)
    except Exception as error:
        raise translate(error) from error
