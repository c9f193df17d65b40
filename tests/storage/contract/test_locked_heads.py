"""Locked heads, on every engine: other commits wait for them, and they end with their holder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from dynactor.storage.store import Conflict, Fenced, Group, Store
from tests.storage.contract.conftest import OpenStore

# In different tables of PostgreSQL; the last one is longer than an entry of its indexes.
HEADS = [b"\x02head", b"head", b"head" * 1_000]


@pytest.fixture
async def store(open_store: OpenStore) -> AsyncIterator[Store]:
    async with open_store() as store:
        yield store


def move(head: bytes, before: bytes | None, after: bytes, **more: object) -> Group:
    return Group(head, before, after, puts=[(b"row", after)], **more)


async def commit(store: Store, group: Group) -> None:
    await (await store.commit([group]))


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("moves", [False, True])
async def test_a_commit_waits_for_the_lock_on_its_head(
    store: Store, head: bytes, moves: bool
) -> None:
    await commit(store, move(head, None, b"0"))
    async with store.locked([head]) as locked:
        other = asyncio.create_task(commit(store, move(head, b"0", b"other")))
        assert await locked.load([head, b"row", b"none"]) == [b"0", b"0", None]
        await commit(store, Group(b"another head", None, b"1"))
        assert not other.done()
        if moves:
            await (await locked.commit([move(head, b"0", b"1")]))
    if moves:
        with pytest.raises(Conflict):
            await other
        assert await store.latest.load([head, b"row"]) == [b"1", b"1"]
    else:
        await other
        assert await store.latest.load([head, b"row"]) == [b"other", b"other"]


async def test_holders_of_the_same_heads_take_turns(store: Store) -> None:
    for head in HEADS:
        await commit(store, Group(head, None, b"0"))
    within = 0

    async def count(order: int) -> None:
        nonlocal within
        async with store.locked(HEADS[::order]) as locked:
            assert within == 0
            within += 1
            values = await locked.load(HEADS)
            groups = []
            for head, value in zip(HEADS, values, strict=True):
                assert value is not None
                groups.append(Group(head, value, b"%d" % (int(value) + 1)))
            within -= 1
            await (await locked.commit(groups))

    await asyncio.gather(*(count(1 if at % 2 else -1) for at in range(12)))
    assert await store.latest.load(HEADS) == [b"12"] * 3


async def test_a_refused_commit_writes_nothing_and_ends_the_locks(store: Store) -> None:
    await commit(store, move(HEADS[0], None, b"0"))
    for refused, error in (
        (move(HEADS[0], b"wrong", b"1"), Conflict),
        (move(HEADS[0], b"0", b"1", guards=[(b"claim", b"ours")]), Fenced),
    ):
        async with store.locked([HEADS[0]]) as locked:
            with pytest.raises(error):
                await locked.commit([Group(b"other", None, b"1"), refused])
            for use in (locked.load([b"row"]), locked.commit([move(HEADS[0], b"0", b"1")])):
                with pytest.raises(Conflict):
                    await use
    assert await store.latest.load([HEADS[0], b"row", b"other"]) == [b"0", b"0", None]
    await commit(store, move(HEADS[0], b"0", b"1"))


async def test_locks_end_with_an_error_of_their_holder(store: Store) -> None:
    await commit(store, move(HEADS[0], None, b"0"))

    async def fail() -> None:
        async with store.locked([HEADS[0]]) as locked:
            await locked.load([b"row"])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    await commit(store, move(HEADS[0], b"0", b"1"))


async def test_a_holder_that_does_nothing_loses_its_locks(store: Store) -> None:
    await commit(store, move(HEADS[0], None, b"0"))
    async with store.locked([HEADS[0]]) as locked:
        assert await locked.load([HEADS[0]]) == [b"0"]
        # It waits for the time limit.
        await commit(store, move(HEADS[0], b"0", b"other"))
        for use in (locked.load([b"row"]), locked.commit([move(HEADS[0], b"other", b"1")])):
            with pytest.raises(Conflict):
                await use
    assert await store.latest.load([HEADS[0], b"row"]) == [b"other", b"other"]


async def test_an_absent_head_is_made_under_the_lock(store: Store) -> None:
    async with store.locked(HEADS) as locked:
        assert await locked.load(HEADS) == [None] * 3
        await (await locked.commit([move(head, None, b"1") for head in HEADS]))
    assert await store.latest.load([*HEADS, b"row"]) == [b"1"] * 4
