"""RocksDB's options, with the reason for each important one."""

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

from dynactor.storage.machine.memory import memory_bytes
from dynactor.storage.machine.open_files import open_files_limit

KIB: Final = 1024
MIB: Final = 1024 * KIB

_MEMTABLE_SHARE: Final = 32
_CACHE_SHARE: Final = 16
_SMALL_CACHE_SHARE: Final = 4
_SMALL_CACHE_BYTES: Final = 256 * MIB
# 0 lets the cache determine the size of its entries itself.
_ANY_CHARGE: Final = 0
_NEVER: Final = (1 << 31) - 1


class RocksOptions(Struct, frozen=True):
    """Options to tune. The memtables and the block cache use most of the memory."""

    memtable_bytes: int = 32 * MIB
    memtables: int = 4
    # None: a sixteenth of the memory that the process may use, at least 256 MiB, but no more than a
    # quarter. The remaining memory is still useful: the system caches the files' compressed blocks,
    # and a get from there takes a few microseconds more.
    block_cache_bytes: int | None = None
    # Commits are refused while the disk has less space than this, in addition to the space for
    # flushing memtables. So accepted commits can always be flushed. None: a twentieth of the disk,
    # at most 512 MiB.
    reserve_bytes: int | None = None
    # Maximum time to read from a view after a newer one has replaced it. An older view is closed
    # before the engine is reopened for writing, and changes of its rows are no longer recorded.
    longest_read_seconds: float = 10.0
    # False after a table file could not be read, because RocksDB refuses all writes once a
    # compaction has read such a file.
    compacts: bool = True

    def for_disk(self, disk_bytes: int) -> RocksOptions:
        """These options with smaller memtables on a small disk: at most a 32nd of its size."""
        share_bytes = max(MIB, disk_bytes // _MEMTABLE_SHARE)
        return replace(self, memtable_bytes=min(self.memtable_bytes, share_bytes))

    @property
    def cache_bytes(self) -> int:
        """The size of the block cache, configured or computed."""
        if self.block_cache_bytes is not None:
            # The engine would crash with size 0.
            return max(1, self.block_cache_bytes)
        available_bytes = memory_bytes()
        small_bytes = min(_SMALL_CACHE_BYTES, available_bytes // _SMALL_CACHE_SHARE)
        return max(small_bytes, available_bytes // _CACHE_SHARE)


def engine_options(options: RocksOptions) -> Options:
    """RocksDB's own options for this tuning."""
    table = BlockBasedOptions()
    # The hyper clock cache has a few large shards without locks. The LRU cache has 64 shards,
    # which are too small for a filter block.
    table.set_block_cache(Cache.new_hyper_clock_cache(options.cache_bytes, _ANY_CHARGE))
    table.set_bloom_filter(10, block_based=False)
    table.set_data_block_index_type(DataBlockIndexType.binary_and_hash())
    table.set_cache_index_and_filter_blocks(v=True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(v=True)
    # Partitioned indexes. The whole index of a large file takes megabytes. If the indexes of all
    # files exceed the cache, each get would read and decompress one, which takes a millisecond. The
    # cost: a hot item far from others keeps a whole partition in memory. Filters are not
    # partitioned: a filter is a tenth of the size, and a get queries the filter of every file that
    # may have its key. With a million rows in four files, a get takes 5 µs, and 6.5 µs with
    # partitioned filters.
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
    # Every sync of the log waits while a compaction syncs or deletes a file: 33 ms with files of 64
    # MiB, 10 ms with these.
    engine.set_target_file_size_base(16 * MIB)
    # The engine keeps files open up to half of the limit of open files, and reopens other files for
    # each use. The other half is for connections.
    engine.set_max_open_files(open_files_limit() // 2)
    engine.set_paranoid_checks(enabled=True)
    # Other modes refuse a log whose tail was zeroed by a power cut, or drop records after a
    # damaged one. This mode keeps all records before the damage; the durable mark shows whether
    # any durable record is missing.
    engine.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    # Syncing is faster if a log overwrites an older one, but switching to it renames a file on the
    # event loop: up to 15 ms.
    engine.set_recycle_log_file_num(0)
    # A closed iterator may be the last user of a file, which is then deleted in the background.
    engine.set_avoid_unnecessary_blocking_io(val=True)
    engine.set_keep_log_file_num(3)
    engine.set_max_log_file_size(4 * MIB)
    if not options.compacts:
        engine.set_disable_auto_compactions(disable=True)
        # Without compactions the number of files never falls, so don't let writes wait until it
        # does.
        engine.set_level_zero_slowdown_writes_trigger(_NEVER)
        engine.set_level_zero_stop_writes_trigger(_NEVER)
        engine.set_soft_pending_compaction_bytes_limit(0)
        engine.set_hard_pending_compaction_bytes_limit(0)
    return engine
