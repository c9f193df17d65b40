"""RocksDB's options, each that matters with its reason."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    DataBlockIndexType,
    DBCompressionType,
    DBRecoveryMode,
    Options,
)

from dynactor.storage.machine_memory import memory_bytes
from dynactor.storage.open_files import open_files_limit

KIB: Final = 1024
MIB: Final = 1024 * KIB

_MEMTABLE_SHARE: Final = 32
_CACHE_SHARE: Final = 16
_SMALL_CACHE_SHARE: Final = 4
_SMALL_CACHE_BYTES: Final = 256 * MIB
# The cache sees for itself how large blocks are.
_ANY_CHARGE: Final = 0
_NEVER: Final = (1 << 31) - 1


class RocksOptions(Struct, frozen=True):
    """What may be tuned. Memory: the memtables, the block cache, and little else."""

    memtable_bytes: int = 32 * MIB
    memtables: int = 4
    # None: a sixteenth of the memory that the process may use, or 256 MiB, but at most a quarter.
    # The rest is not lost: the files' blocks are in the system's cache, compressed, and a get from
    # there costs some microseconds more.
    block_cache_bytes: int | None = None
    # Commits are refused while the disk has less space than this, what memtables will need not
    # counted, so that what was accepted can be flushed. None: a twentieth of the disk, at most
    # 512 MiB.
    reserve_bytes: int | None = None
    # Who reads one view for longer than this does not keep a disk that has space again from
    # being written to; nor is it counted for him any longer what has changed since.
    longest_read_seconds: float = 10.0
    # Not where a table file can't be read: a compaction that meets it would end all writing.
    compacts: bool = True

    def for_disk(self, disk_bytes: int) -> RocksOptions:
        """These options with memtables that a small disk can hold twice, as flushing needs."""
        share_bytes = max(MIB, disk_bytes // _MEMTABLE_SHARE)
        return replace(self, memtable_bytes=min(self.memtable_bytes, share_bytes))

    @property
    def cache_bytes(self) -> int:
        """The size of the block cache, given or not."""
        if self.block_cache_bytes is not None:
            # The engine would crash without any.
            return max(1, self.block_cache_bytes)
        available_bytes = memory_bytes()
        small_bytes = min(_SMALL_CACHE_BYTES, available_bytes // _SMALL_CACHE_SHARE)
        return max(small_bytes, available_bytes // _CACHE_SHARE)


def engine_options(options: RocksOptions) -> Options:
    """RocksDB's own options, with the tuning filled in."""
    table = BlockBasedOptions()
    # In few large shards, without locks. One of the other kind is in 64, too small for a filter.
    table.set_block_cache(Cache.new_hyper_clock_cache(options.cache_bytes, _ANY_CHARGE))
    table.set_bloom_filter(10, block_based=False)
    table.set_data_block_index_type(DataBlockIndexType.binary_and_hash())
    table.set_cache_index_and_filter_blocks(v=True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(v=True)
    # In pieces. The whole index of a large file has megabytes: where the indexes of all files are
    # larger than the cache, each get would read and unpack one, which takes a millisecond. Small
    # pieces, for a hot item far from others keeps a whole one in memory. A filter is whole: it is a
    # tenth as large, and a get asks it of every file that may have its key. Of a million rows in
    # four files a get takes 5 µs, with filters in pieces 6.5.
    table.set_index_type(BlockBasedIndexType.two_level_index_search())
    table.set_metadata_block_size(8 * KIB)
    table.set_pin_top_level_index_and_filter(v=True)
    engine = Options(raw_mode=True)
    engine.create_if_missing(create_if_missing=True)
    engine.set_block_based_table_factory(table)
    engine.set_compression_type(DBCompressionType.lz4())
    engine.set_write_buffer_size(options.memtable_bytes)
    engine.set_max_write_buffer_number(options.memtables)
    engine.set_max_background_jobs(3)
    engine.set_level_compaction_dynamic_level_bytes(v=True)
    engine.set_bytes_per_sync(MIB)
    # When a compaction syncs a file that it wrote, or deletes one, every sync of the log waits for
    # it: with files of 64 MiB 33 ms, with these 10.
    engine.set_target_file_size_base(16 * MIB)
    # Smaller files are more files. Beyond half of what may be open some are opened again for each
    # use; the other half is for connections.
    engine.set_max_open_files(open_files_limit() // 2)
    engine.set_paranoid_checks(enabled=True)
    # The other modes refuse a log whose tail a power cut left zeroed, or drop records behind a
    # damaged one. This one keeps a whole beginning; the durable mark says whether it is enough.
    engine.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    # A log that is written over an older one is synced sooner, but the change to it renames a file,
    # on the event loop: up to 15 ms.
    engine.set_recycle_log_file_num(0)
    # A closed iterator may be the last user of a file, which is then deleted in the background.
    engine.set_avoid_unnecessary_blocking_io(val=True)
    engine.set_keep_log_file_num(3)
    engine.set_max_log_file_size(4 * MIB)
    if not options.compacts:
        engine.set_disable_auto_compactions(disable=True)
        # Nothing would ever make fewer files of many: no write may wait for that.
        engine.set_level_zero_slowdown_writes_trigger(_NEVER)
        engine.set_level_zero_stop_writes_trigger(_NEVER)
        engine.set_soft_pending_compaction_bytes_limit(0)
        engine.set_hard_pending_compaction_bytes_limit(0)
    return engine
