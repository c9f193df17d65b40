"""The fake stores of ``faulty_store`` behave as their docstrings say."""

from __future__ import annotations

import pytest

from dynactor.storage.store import Closed, Full, Group, Unknown
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store


def write(value: bytes, expected_head: bytes | None = None) -> Group:
    return Group(b"head", expected_head, value, puts=[(b"key", value)])


async def test_held_commits_are_accepted_but_neither_completed_nor_visible() -> None:
    async with memory_store() as inner:
        store = FaultyStore(inner)
        await (await store.commit([write(b"1")]))
        store.hold_syncs()
        future = await store.commit([write(b"2", b"1")])
        assert await store.latest.load([b"key"]) == [b"2"]
        assert await store.durable().load([b"key"]) == [b"1"]
        assert store.held_count == 1
        assert not future.done()
        await store.release_syncs()
        await future
        assert await store.durable().load([b"key"]) == [b"2"]


async def test_failing_syncs_end_writing_and_reads_continue() -> None:
    async with memory_store() as inner:
        store = FaultyStore(inner)
        await (await store.commit([write(b"1")]))
        store.hold_syncs()
        future = await store.commit([write(b"2", b"1")])
        store.fail_syncs()
        with pytest.raises(Unknown):
            await future
        with pytest.raises(Closed):
            await store.commit([write(b"3", b"2")])
        assert await store.durable().load([b"key"]) == [b"1"]


async def test_refused_commits_write_nothing_until_they_are_allowed() -> None:
    async with memory_store() as inner:
        store = FaultyStore(inner)
        store.refuse_commits(Full("the disk is full"))
        with pytest.raises(Full):
            await store.commit([write(b"1")])
        assert await store.latest.load([b"key"]) == [None]
        store.allow_commits()
        await (await store.commit([write(b"1")]))
