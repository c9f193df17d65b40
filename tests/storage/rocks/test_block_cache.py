"""The size of the engine's block cache."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from dynactor.storage.data_directory import open_data_directory
from dynactor.storage.machine.memory import memory_bytes
from dynactor.storage.rocks.engine import DiskEngine
from dynactor.storage.rocks.options import MIB, RocksOptions
from dynactor.storage.rocks.store import open_rocks
from dynactor.storage.store import Group


def test_the_block_cache_has_the_configured_size_after_every_opening(tmp_path: Path) -> None:
    for size_bytes in (64 * MIB, 64 * MIB, 96 * MIB):
        options = RocksOptions(block_cache_bytes=size_bytes)
        with closing(DiskEngine(open_data_directory(tmp_path), options)) as engine:
            found = engine.rows.property_int_value("rocksdb.block-cache-capacity")
            assert found == size_bytes


async def test_a_server_without_a_block_cache_reads_correctly(tmp_path: Path) -> None:
    store = await open_rocks(tmp_path, RocksOptions(block_cache_bytes=0))
    await (await store.commit([Group(b"head", None, b"1", [(b"key", b"value")])]))
    await store.close()
    store = await open_rocks(tmp_path, RocksOptions(block_cache_bytes=0))
    assert await store.durable().load([b"key", b"none"]) == [b"value", None]
    await store.close()


def test_the_block_cache_is_a_share_of_the_memory_by_default() -> None:
    assert RocksOptions(block_cache_bytes=5 * MIB).cache_bytes == 5 * MIB
    assert RocksOptions().cache_bytes <= memory_bytes() // 4
