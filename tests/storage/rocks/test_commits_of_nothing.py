"""An empty commit completes when everything accepted before it is durable."""

from __future__ import annotations

import pytest
from msgspec import structs

from dynactor.storage.rocks.engine import MemoryEngine
from dynactor.storage.rocks.options import RocksOptions
from dynactor.storage.rocks.store import RocksStore
from dynactor.storage.store import Closed, Full, Group, Unknown


class FailingEngine(MemoryEngine):
    """An engine whose syncs can fail with a full disk."""

    def __init__(self) -> None:
        super().__init__(RocksOptions())
        self.is_full = False

    def sync(self, sequence: int) -> None:
        if self.is_full:
            raise OSError("IO error: No space left on device")
        super().sync(sequence)


async def test_an_empty_commit_completes_on_a_full_disk() -> None:
    engine = FailingEngine()
    store = RocksStore(engine, RocksOptions())
    group = Group(b"head", None, b"1", puts=[(b"key", b"value")])
    try:
        durable = await store.commit([group])
        # Another commit fails with this error while the sync of the first one is in progress.
        store._end_writing(Exception("IO error: No space left on device"))
        behind = await store.commit([])
        assert not durable.done()
        await behind
        assert durable.done()
        assert (await store.commit([])).done()
        with pytest.raises(Full):
            await store.commit([structs.replace(group, expected_head=b"1")])
    finally:
        await store.close()
    with pytest.raises(Closed):
        await store.commit([])


async def test_an_empty_commit_is_refused_once_a_sync_has_failed() -> None:
    engine = FailingEngine()
    store = RocksStore(engine, RocksOptions())
    try:
        engine.is_full = True
        durable = await store.commit([Group(b"head", None, b"1")])
        behind = await store.commit([])
        for each in (durable, behind):
            with pytest.raises(Unknown):
                await each
        with pytest.raises(Full):
            await store.commit([])
    finally:
        await store.close()
