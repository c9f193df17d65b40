"""What the port promises, on disk and in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Any, Protocol

import pytest

from dynactor.storage.rocks.store import open_rocks
from dynactor.storage.store import CannotOpen, Closed, Conflict, Group, Row, Store
from tests.support.stores.store import disk_store, memory_store

MANY = 1 << 30


class OpenStore(Protocol):
    def __call__(self) -> AbstractAsyncContextManager[Store]: ...


@pytest.fixture(params=["disk", "memory"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    if request.param == "memory":
        return memory_store
    return lambda: disk_store(tmp_path)


@pytest.fixture
async def store(open_store: OpenStore) -> AsyncIterator[Store]:
    async with open_store() as store:
        yield store


async def put(store: Store, rows: dict[bytes, bytes]) -> None:
    await (await store.commit([group(rows)]))


def group(rows: dict[bytes, bytes], *, name: bytes = b"h", head: bytes | None = None) -> Group:
    """A group with a head of its own for each first row."""
    head_key = b"~" + name + next(iter(rows), b"")
    return Group(head_key, head, b"1", puts=list(rows.items()))


async def keys_between(store: Store, start: bytes, end: bytes) -> list[bytes]:
    page = await store.durable().page(start, end, max_rows=MANY, max_bytes=MANY)
    return [row.key for row in page]


async def test_a_commit_is_seen_by_its_owner_at_once_and_by_readers_once_durable(
    store: Store,
) -> None:
    before = store.durable()
    future = await store.commit([group({b"a": b"1"})])
    assert await store.latest.load([b"a"]) == [b"1"]
    assert await store.durable().load([b"a"]) == [None]
    await future
    assert await store.durable().load([b"a", b"b"]) == [b"1", None]
    assert await before.load([b"a"]) == [None]


async def test_what_is_at_hand_is_what_loading_shows(store: Store) -> None:
    before = store.durable()
    future = await store.commit([group({b"a": b"1"})])
    assert store.latest.at_hand(b"a") == b"1"
    assert store.durable().at_hand(b"a") is None
    await future
    assert store.durable().at_hand(b"a") == b"1"
    assert store.durable().at_hand(b"b") is None
    assert before.at_hand(b"a") is None


async def test_a_store_opened_again_holds_what_was_written(tmp_path: Path) -> None:
    for number in range(3):
        async with disk_store(tmp_path) as store:
            await put(store, {b"%d" % number: b"x"})
            assert await keys_between(store, b"0", b"9") == [b"0", b"1", b"2"][: number + 1]


async def test_a_wrong_head_is_a_conflict_and_nothing_is_written(store: Store) -> None:
    await put(store, {b"a": b"1"})
    stale = Group(b"~ha", None, b"2", puts=[(b"a", b"2")])
    with pytest.raises(Conflict):
        await store.commit([group({b"b": b"1"}), stale])
    assert await store.latest.load([b"a", b"b"]) == [b"1", None]


async def test_a_head_moves_with_its_group(store: Store) -> None:
    for expected, head in [(None, b"1"), (b"1", b"2"), (b"2", b"3")]:
        await (await store.commit([Group(b"head", expected, head)]))
    assert await store.latest.load([b"head"]) == [b"3"]


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"deletes": [b"head"]}, None),
        ({"puts": [(b"head", b"other")]}, b"other"),
        ({"range_deletes": [(b"h", b"i")]}, None),
    ],
)
async def test_a_head_may_be_a_row_of_another_group(
    store: Store, changed: dict[str, Any], found: bytes | None
) -> None:
    await (await store.commit([Group(b"head", None, b"1")]))
    await (await store.commit([Group(b"owner", None, b"1", **changed)]))
    assert await store.latest.load([b"head"]) == [found]
    with pytest.raises(Conflict):
        await store.commit([Group(b"head", b"1", b"2")])
    await (await store.commit([Group(b"head", found, b"2")]))


async def test_a_later_group_of_a_commit_may_delete_the_head_of_an_earlier_one(
    store: Store,
) -> None:
    await (await store.commit([Group(b"head", None, b"1"), Group(b"o", None, b"1", (), [b"head"])]))
    assert await store.latest.load([b"head"]) == [None]
    await (await store.commit([Group(b"head", None, b"2")]))


async def test_groups_delete_rows_and_ranges_and_write_into_the_emptied_range(
    store: Store,
) -> None:
    await put(store, {b"k%d" % number: b"old" for number in range(10)})
    emptied = Group(
        b"head",
        None,
        b"1",
        puts=[(b"k4", b"new")],
        deletes=[b"k0"],
        range_deletes=[(b"k2", b"k7")],
    )
    await (await store.commit([emptied]))
    assert await keys_between(store, b"k", b"l") == [b"k1", b"k4", b"k7", b"k8", b"k9"]
    assert await store.durable().load([b"k4"]) == [b"new"]


@pytest.mark.parametrize(
    ("start", "end", "bounds", "numbers"),
    [
        (b"k", b"l", {}, [0, 1, 2, 3, 4]),
        (b"k", b"l", {"reverse": True}, [4, 3, 2, 1, 0]),
        (b"k1", b"k3", {}, [1, 2]),
        (b"k1", b"k3", {"reverse": True}, [2, 1]),
        (b"k1", b"k3\x00", {"reverse": True}, [3, 2, 1]),
        (b"k", b"l", {"max_rows": 2}, [0, 1]),
        (b"k", b"l", {"reverse": True, "max_rows": 2}, [4, 3]),
        # A row has 2 + 10 bytes: the one that reaches the bound is the last.
        (b"k", b"l", {"max_bytes": 24}, [0, 1]),
        (b"k", b"l", {"max_bytes": 25}, [0, 1, 2]),
        (b"k", b"l", {"max_bytes": 1}, [0]),
        (b"k", b"l", {"max_rows": 0}, []),
        (b"l", b"k", {}, []),
        (b"k5", b"l", {"reverse": True}, []),
        (b"a", b"b", {"reverse": True}, []),
    ],
)
async def test_a_page_is_bounded_by_its_range_its_rows_and_its_bytes(
    store: Store,
    start: bytes,
    end: bytes,
    bounds: dict[str, int],
    numbers: list[int],
) -> None:
    await put(store, {b"k%d" % number: b"v" * 10 for number in range(5)})
    for view in (store.durable(), store.latest):
        page = await view.page(start, end, **({"max_rows": MANY, "max_bytes": MANY} | bounds))
        assert page == [Row(b"k%d" % number, b"v" * 10) for number in numbers]


@pytest.mark.parametrize("reverse", [False, True])
async def test_a_long_page_lets_others_work_and_is_consistent_in_itself(
    store: Store, reverse: bool
) -> None:
    await put(store, {b"k%05d" % number: b"old" for number in range(2000)})
    turns = 0

    async def write() -> None:
        nonlocal turns
        for number in range(0, 2000, 250):
            await asyncio.sleep(0)
            turns += 1
            await store.commit([group({b"k%05d" % number: b"new"}, name=b"writer")])

    read = store.latest.page(b"k", b"l", reverse=reverse, max_rows=MANY, max_bytes=MANY)
    page, _ = await asyncio.gather(read, write())
    assert turns == 8
    assert {row.value for row in page} == {b"old"}
    assert len(page) == 2000


async def test_commits_become_durable_in_the_order_in_which_they_were_accepted(
    store: Store,
) -> None:
    order: list[int] = []
    futures = []
    for number in range(20):
        future = await store.commit([group({b"%d" % number: b"x"})])
        future.add_done_callback(lambda _, number=number: order.append(number))
        futures.append(future)
        if number % 7 == 0:
            await asyncio.sleep(0)
    await asyncio.gather(*futures)
    await asyncio.sleep(0)
    assert order == list(range(20))


async def test_a_commit_of_nothing_is_durable_behind_what_was_accepted(store: Store) -> None:
    first = await store.commit([group({b"k": b"1"})])
    behind = await store.commit([])
    await behind
    assert first.done()
    assert await store.durable().load([b"k"]) == [b"1"]
    assert (await store.commit([])).done()


async def test_closing_completes_what_was_accepted_and_refuses_what_comes_later(
    open_store: OpenStore,
) -> None:
    async with open_store() as store:
        future = await store.commit([group({b"a": b"1"})])
        view = store.durable()
        await store.close()
        await store.close()
        assert future.done()
        for use in (
            store.commit([group({b"b": b"1"})]),
            store.latest.load([b"a"]),
            view.load([b"a"]),
            view.page(b"a", b"b", max_rows=1, max_bytes=1),
            store.reclaim(b"a", b"b"),
        ):
            with pytest.raises(Closed):
                await use
        for closed in (store.latest, view):
            with pytest.raises(Closed):
                closed.at_hand(b"a")


async def test_a_deleted_range_gives_its_disk_space_back(tmp_path: Path) -> None:
    async with disk_store(tmp_path) as store:
        value = bytes(range(256)) * 40
        for batch in range(20):
            rows = {b"t%06d" % (batch * 100 + row): b"%d" % row + value for row in range(100)}
            await put(store, rows)
        await store.reclaim(b"t", b"u")
        before_bytes = size_bytes(tmp_path, "*.sst")
        await (await store.commit([Group(b"head", None, b"1", range_deletes=[(b"t", b"u")])]))
        await store.reclaim(b"t", b"u")
        assert before_bytes > 100_000
        async with asyncio.timeout(60):
            # RocksDB deletes files in the background.
            while await asyncio.to_thread(size_bytes, tmp_path, "*.sst") > before_bytes / 20:
                pass
        assert await keys_between(store, b"t", b"u") == []


async def test_closing_does_not_wait_for_a_reclaim_to_finish(tmp_path: Path) -> None:
    async with disk_store(tmp_path) as store:
        value = bytes(range(256)) * 8
        for batch in range(50):
            await put(store, {b"t%06d" % (row * 50 + batch): value for row in range(200)})
        reclaims = [asyncio.ensure_future(store.reclaim(b"t", b"u")) for _ in range(3)]
        await asyncio.sleep(0)
    answers = await asyncio.gather(*reclaims, return_exceptions=True)
    assert {type(answer) for answer in answers} <= {type(None), Closed}
    assert isinstance(answers[-1], Closed)
    async with disk_store(tmp_path) as store:
        assert len(await keys_between(store, b"t", b"u")) == 10_000


async def test_a_checkpoint_is_a_data_directory_of_its_own(store: Store, tmp_path: Path) -> None:
    await put(store, {b"a": b"1"})
    await store.checkpoint(tmp_path / "some" / "copy")
    await put(store, {b"b": b"1"})
    async with disk_store(tmp_path / "some" / "copy") as copy:
        assert await keys_between(copy, b"a", b"z") == [b"a"]
        await put(copy, {b"c": b"1"})
    assert await keys_between(store, b"a", b"z") == [b"a", b"b"]


async def test_a_checkpoint_goes_into_an_empty_place_only(store: Store, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "thesis.txt").write_text("mine")
    with pytest.raises(CannotOpen):
        await store.checkpoint(tmp_path / "copy")


async def test_a_start_takes_well_under_a_second(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    took_seconds = []
    # A busy machine may stop any one of them.
    while not took_seconds or (min(took_seconds) >= 1 and len(took_seconds) < 20):
        began = loop.time()
        store = await open_rocks(tmp_path)
        took_seconds.append(loop.time() - began)
        await store.close()
    assert min(took_seconds) < 1


def size_bytes(directory: Path, pattern: str) -> int:
    total_bytes = 0
    for path in directory.rglob(pattern):
        # RocksDB may delete it in between.
        with suppress(FileNotFoundError):
            total_bytes += path.stat().st_size
    return total_bytes
