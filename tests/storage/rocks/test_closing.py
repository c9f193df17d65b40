"""Closing the store aborts a reclaim in its thread, even if the caller was canceled."""

from __future__ import annotations

import asyncio
from threading import Event

import anyio

from dynactor.storage.rocks.engine import MemoryEngine
from dynactor.storage.rocks.options import RocksOptions
from dynactor.storage.rocks.reads import DiskReads
from dynactor.storage.rocks.store import RocksStore
from tests.support.environment.hanging import HANG_SECONDS


class SlowEngine(MemoryEngine):
    """An engine whose compactions end only when they are aborted."""

    def __init__(self) -> None:
        super().__init__(RocksOptions())
        self.begun = Event()
        self.interrupted = Event()

    def reclaim(self, start: bytes, end: bytes) -> None:
        self.begun.set()
        assert self.interrupted.wait(timeout=20), f"from {start!r} to {end!r} without an end"

    def interrupt(self) -> None:
        self.interrupted.set()
        super().interrupt()


async def test_closing_aborts_a_reclaim_whose_caller_was_canceled() -> None:
    engine = SlowEngine()
    store = RocksStore(engine, RocksOptions(), DiskReads())
    reclaims = [asyncio.ensure_future(store.reclaim(b"t", b"u")) for _ in range(3)]
    await asyncio.to_thread(engine.begun.wait, 20)
    for reclaim in reclaims:
        reclaim.cancel()
    answers = await asyncio.gather(*reclaims, return_exceptions=True)
    assert {type(answer) for answer in answers} == {asyncio.CancelledError}
    with anyio.fail_after(HANG_SECONDS):
        await store.close()
    assert engine.interrupted.is_set()
