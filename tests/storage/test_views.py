"""Point reads and pages of a durable view show one durable state."""

import asyncio

import pytest

from dynactor.storage.store import Group, Row, View
from tests.support.databases.databases import HeldStore
from tests.support.stores.store import memory_store


def group(counter: int, puts: list[tuple[bytes, bytes]], deletes: tuple[bytes, ...] = ()) -> Group:
    return Group(
        head_key=b"head",
        expected_head=str(counter - 1).encode() if counter else None,
        head=str(counter).encode(),
        puts=puts,
        deletes=deletes,
    )


async def rows(view: View, *, reverse: bool = False) -> list[Row]:
    return await view.page(b"k", b"l", reverse=reverse, max_rows=10_000, max_bytes=1 << 30)


@pytest.mark.parametrize("reverse", [False, True])
async def test_a_view_does_not_change_while_rows_are_put_changed_and_deleted(reverse):
    async with memory_store() as store:
        # The store reads a page in slices, between which other tasks run; these rows need several
        # slices.
        before = [(b"k%04d" % at, b"old") for at in range(0, 1000, 2)]
        await (await store.commit([group(0, before)]))
        view = store.durable()
        accepted = await store.commit(
            [
                group(
                    1,
                    [(b"k%04d" % at, b"new") for at in range(0, 1000, 3)],
                    deletes=tuple(b"k%04d" % at for at in range(500, 600, 2) if at % 3),
                )
            ]
        )
        expected = [Row(*row) for row in before]
        assert await rows(view, reverse=reverse) == (expected[::-1] if reverse else expected)
        await accepted
        assert await rows(view, reverse=reverse) == (expected[::-1] if reverse else expected)
        assert await rows(store.durable(), reverse=reverse) != expected


async def test_pages_on_one_view_at_the_same_time_do_not_disturb_each_other():
    async with memory_store() as store:
        await (await store.commit([group(0, [(b"k%04d" % at, b"v") for at in range(1000)])]))
        view = store.durable()
        first, second, third = await asyncio.gather(
            rows(view), rows(view, reverse=True), rows(view)
        )
        assert first == second[::-1] == third
        assert len(first) == 1000


async def test_unsynced_changes_are_on_no_page():
    async with memory_store() as real:
        store = HeldStore(real)
        await (await store.commit([group(0, [(b"k1", b"old")])]))
        store.hold()
        await store.commit([group(1, [(b"k1", b"new"), (b"k2", b"new")])])
        assert await rows(store.durable()) == [Row(b"k1", b"old")]
        assert await rows(store.latest) == [Row(b"k1", b"new"), Row(b"k2", b"new")]
        await store.release()
        assert len(await rows(store.durable())) == 2
