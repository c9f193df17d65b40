"""On a system whose fsync leaves data in the disk's cache, a sync also flushes that cache."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from dynactor.storage import disk_sync
from dynactor.storage.store import Closed, Group, Unknown
from tests.support.stores.store import disk_store


class Disk:
    """A fake disk that counts the flushes of its cache, and can fail."""

    FULL_SYNC = 51

    def __init__(self) -> None:
        self.syncs = 0
        self.fails = False
        self._call = fcntl.fcntl

    def fcntl(self, descriptor: int, command: int, *argument: int) -> object:
        if command != self.FULL_SYNC:
            return self._call(descriptor, command, *argument)
        if self.fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self.syncs += 1
        return 0


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Make this system look like macOS, where F_FULLFSYNC flushes the disk's cache."""
    disk = Disk()
    monkeypatch.setattr(disk_sync, "_FULL_SYNC", Disk.FULL_SYNC)
    monkeypatch.setattr(fcntl, "fcntl", disk.fcntl)
    monkeypatch.delattr(os, "fdatasync")
    return disk


async def test_each_durable_write_flushes_the_cache_of_the_disk(disk: Disk, tmp_path: Path) -> None:
    async with disk_store(tmp_path) as store:
        for count in range(3):
            syncs = disk.syncs
            head = b"%d" % count if count else None
            durable = await store.commit([Group(b"head", head, b"%d" % (count + 1))])
            await durable
            assert disk.syncs > syncs
    async with disk_store(tmp_path) as store:
        assert await store.latest.load([b"head"]) == [b"3"]


async def test_a_write_is_not_acknowledged_if_the_flush_of_the_cache_fails(
    disk: Disk, tmp_path: Path
) -> None:
    async with disk_store(tmp_path) as store:
        disk.fails = True
        with pytest.raises(Unknown, match="syncing the log failed"):
            await (await store.commit([Group(b"head", None, b"1")]))
        disk.fails = False
        with pytest.raises(Closed, match="The disk failed, restart the server"):
            await store.commit([Group(b"other", None, b"1")])


@pytest.mark.usefixtures("disk")
def test_a_system_without_either_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert disk_sync.can_sync()
    monkeypatch.setattr(disk_sync, "_FULL_SYNC", None)
    assert not disk_sync.can_sync()
