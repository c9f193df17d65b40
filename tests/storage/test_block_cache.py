"""The memory of the engine's block cache."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from dynactor.storage.data_directory import open_data_directory
from dynactor.storage.machine_memory import memory_bytes
from dynactor.storage.rocks.engine import DiskEngine
from dynactor.storage.rocks.options import MIB, RocksOptions
from dynactor.storage.rocks.store import open_rocks
from dynactor.storage.store import Group


def test_it_has_its_size_whenever_the_database_is_opened(tmp_path: Path) -> None:
    for size_bytes in (64 * MIB, 64 * MIB, 96 * MIB):
        options = RocksOptions(block_cache_bytes=size_bytes)
        with closing(DiskEngine(open_data_directory(tmp_path), options)) as engine:
            found = engine.rows.property_int_value("rocksdb.block-cache-capacity")
            assert found == size_bytes


async def test_a_server_without_a_cache_reads_correctly(tmp_path: Path) -> None:
    store = await open_rocks(tmp_path, RocksOptions(block_cache_bytes=0))
    await (await store.commit([Group(b"head", None, b"1", [(b"key", b"value")])]))
    await store.close()
    store = await open_rocks(tmp_path, RocksOptions(block_cache_bytes=0))
    assert await store.durable().load([b"key", b"none"]) == [b"value", None]
    await store.close()


def test_it_is_a_share_of_the_memory_unless_it_is_given() -> None:
    assert RocksOptions(block_cache_bytes=5 * MIB).cache_bytes == 5 * MIB
    assert RocksOptions().cache_bytes <= memory_bytes() // 4
