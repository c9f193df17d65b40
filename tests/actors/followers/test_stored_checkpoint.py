"""The stored checkpoint of a follower after commits with an unknown outcome."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Sequence

import pytest

from dynactor.actors.followers.stored_checkpoint import CommitOutcome, StoredCheckpoint
from dynactor.storage.store import Conflict, Group, Store, View
from tests.support.stores.doubtful_store import DoubtfulStore, Fate
from tests.support.stores.store import memory_store

KEY = b"checkpoint"


class RecordingStore(DoubtfulStore):
    """Keeps the commits that it got."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.commits: list[Sequence[Group]] = []

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        self.commits.append(groups)
        return await super().commit(groups)


either_way = pytest.mark.parametrize("fate", [Fate.WRITTEN, Fate.DROPPED])


async def stored(view: View) -> bytes | None:
    (value,) = await view.load([KEY])
    return value


@either_way
async def test_a_checkpoint_is_read_again_after_a_commit_with_an_unknown_outcome(
    fate: Fate,
) -> None:
    async with memory_store() as inner:
        store = DoubtfulStore(inner)
        checkpoint = StoredCheckpoint(store, KEY, "reader")
        assert await checkpoint.try_store(b"1")
        store.lose_next(KEY, fate)
        assert not await checkpoint.try_store(b"2")
        assert checkpoint.value == await stored(store.latest)
        assert await checkpoint.try_store(b"3")
        assert await stored(store.latest) == b"3"


@either_way
async def test_a_commit_with_an_unknown_outcome_is_repeated(fate: Fate) -> None:
    async with memory_store() as inner:
        store = DoubtfulStore(inner)
        checkpoint = StoredCheckpoint(store, KEY, "reader")
        store.lose_next(KEY, fate)
        stopped = asyncio.get_running_loop().create_future()
        row = (b"row", b"")
        assert await checkpoint.commit(b"1", stopped, [row]) is CommitOutcome.STORED
        assert await stored(store.latest) == b"1"
        assert await store.latest.load([b"row"]) == [b""]


@pytest.mark.parametrize("last", [b"2", b"0", None])
async def test_a_late_repetition_of_the_first_commit_deletes_no_rows(last: bytes | None) -> None:
    async with memory_store() as inner:
        store = RecordingStore(inner)
        checkpoint = StoredCheckpoint(store, KEY, "reader")
        await checkpoint.begin(b"0", [(b"row", b"rox")])
        (first,) = [each for each in store.commits if each[0].range_deletes]
        await checkpoint.commit_once(last or b"2", [(b"row", b"")])
        if last is None:
            await (await inner.commit([Group(KEY, checkpoint.value, None)]))
        with pytest.raises(Conflict):
            await inner.commit(first)
        assert await inner.latest.load([b"row"]) == [b""]
