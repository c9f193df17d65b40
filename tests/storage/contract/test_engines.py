"""The contract of the storage port, on every engine: on disk, in memory, and PostgreSQL.

The tests run on PostgreSQL with ``--store postgresql``, as in ``make test-store``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import pytest

from dynactor.storage import key_layout
from dynactor.storage.store import NOT_CACHED, Closed, Conflict, Fenced, Group, Row, Store, View
from tests.storage.contract.conftest import OpenStore
from tests.support.stores.rows import MANY, group, keys_between, put


@pytest.fixture
async def store(open_store: OpenStore) -> AsyncIterator[Store]:
    async with open_store() as store:
        yield store


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


async def test_a_group_ends_its_head_if_it_is_the_expected_one(store: Store) -> None:
    await (await store.commit([Group(b"head", None, b"1")]))
    for expected in (None, b"0"):
        with pytest.raises(Conflict):
            await store.commit([Group(b"head", expected, None), group({b"a": b"1"})])
    await (await store.commit([Group(b"head", b"1", None, puts=[(b"b", b"1")])]))
    assert await store.latest.load([b"head", b"a", b"b"]) == [None, None, b"1"]
    assert await store.durable().load([b"head"]) == [None]
    with pytest.raises(Conflict):
        await store.commit([Group(b"head", b"1", b"2")])
    await (await store.commit([Group(b"head", None, b"2")]))
    assert await store.latest.load([b"head"]) == [b"2"]


async def test_a_commit_raises_a_version(store: Store) -> None:
    version = key_layout.CATALOG_VERSION
    for number in (1, 2, 300):
        if number == 300:
            await (await store.commit([Group(version, (2).to_bytes(8, "big"), b"\0" * 6 + b"\1+")]))
        raising = Group(b"head %d" % number, None, b"1", raises=[version])
        also_raising = Group(b"other %d" % number, None, b"1", raises=[version])
        await (await store.commit([raising, also_raising]))
        assert await store.latest.load([version]) == [number.to_bytes(8, "big")]
        assert await store.durable().load([version]) == [number.to_bytes(8, "big")]
    with pytest.raises(Conflict):
        await store.commit([Group(b"head 1", None, b"1", raises=[version])])
    assert await store.latest.load([version]) == [(300).to_bytes(8, "big")]


async def test_commits_that_raise_one_version_do_not_conflict(store: Store) -> None:
    version = key_layout.CATALOG_VERSION
    await asyncio.gather(
        *(store.commit([Group(b"%d" % at, None, b"1", raises=[version])]) for at in range(20))
    )
    assert await store.latest.load([version]) == [(20).to_bytes(8, "big")]


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


async def test_the_rows_of_discarded_ranges_are_deleted_in_the_end(store: Store) -> None:
    await put(store, {b"k%04d" % number: b"old" for number in range(2_500)})
    discarded = Group(
        b"head",
        None,
        b"1",
        puts=[(b"l", b"new")],
        discards=[(b"k0001", b"k2000"), (b"k2001", b"k2499"), (b"none", b"nowhere")],
    )
    await (await store.commit([discarded]))
    await (await store.commit([group({b"m": b"1"})]))
    await store.reclaim(b"a", b"z")
    assert await keys_between(store, b"k", b"n") == [
        *(b"k0000", b"k2000", b"k2499"),
        *(b"l", b"m"),
    ]
    with pytest.raises(Conflict):
        await store.commit([Group(b"head", None, b"2", discards=[(b"k", b"n")])])
    await store.reclaim(b"a", b"z")
    assert len(await keys_between(store, b"k", b"n")) == 5


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
        # A row has 2 + 10 bytes; the page ends with the row that reaches ``max_bytes``.
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
        few = {"max_rows": 100, "max_bytes": 1_000} | bounds
        assert view.page_nowait(start, end, **few) in (page, NOT_CACHED)


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


async def test_an_empty_commit_is_durable_after_all_accepted_ones(store: Store) -> None:
    first = await store.commit([group({b"k": b"1"})])
    behind = await store.commit([])
    await behind
    assert first.done()
    assert await store.durable().load([b"k"]) == [b"1"]
    assert (await store.commit([])).done()


async def test_closing_completes_accepted_commits_and_refuses_later_ones(
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
                closed.cached(b"a")
        with pytest.raises(Closed):
            view.page_nowait(b"a", b"b", max_rows=1, max_bytes=1)


async def test_a_reopened_store_holds_the_written_rows(
    engine_name: str, open_store: OpenStore
) -> None:
    if engine_name == "memory":
        return
    for number in range(3):
        async with open_store() as store:
            await put(store, {b"%d" % number: b"x"})
            assert await keys_between(store, b"0", b"9") == [b"0", b"1", b"2"][: number + 1]


@pytest.mark.parametrize("calls_once", [False, True])
async def test_a_function_reads_one_state_with_several_calls(
    store: Store, calls_once: bool
) -> None:
    await put(store, {b"k%d" % number: b"old" for number in range(5)})
    calls = 0

    async def read(view: View) -> list[Row]:
        nonlocal calls
        rows = await view.page(b"k", b"k2", max_rows=MANY, max_bytes=MANY)
        if calls < 2:
            calls += 1
            new = b"new%d" % calls
            puts = [(b"k0", new), (b"k4", new)]
            await (await store.commit([Group(b"head%d" % calls, None, b"1", puts=puts)]))
        (value,) = await view.load([b"k4"])
        assert value is not None
        page = await view.page(b"k2", b"k4", max_rows=MANY, max_bytes=MANY)
        return [*rows, *page, Row(b"k4", value)]

    found = await store.in_snapshot(read, calls_once=calls_once)
    assert [row.key for row in found] == [b"k%d" % number for number in range(5)]
    assert found[0].value == found[4].value
    assert await store.latest.load([b"k0"]) == [b"new%d" % calls]


async def test_the_errors_of_a_function_that_reads_a_snapshot_are_its_callers(
    store: Store,
) -> None:
    async def fail(view: View) -> None:
        await view.load([b"k"])
        raise ZeroDivisionError

    for calls_once in (False, True):
        for _ in range(20):
            with pytest.raises(ZeroDivisionError):
                await store.in_snapshot(fail, calls_once=calls_once)


async def test_values_and_a_page_are_read_together(store: Store) -> None:
    head, change = b"\x02head", b"\x04%d"
    puts = [(change % number, b"v%d" % number) for number in range(5)]
    await (await store.commit([Group(head, None, b"1", puts=[*puts, (b"k" * 3_000, b"long")])]))
    view = store.durable()

    async def found(start: bytes, end: bytes, max_rows: int) -> tuple[list[bytes | None], int]:
        values, rows = await view.load_with_page(
            [b"k" * 3_000, head, b"none", change % 4, head],
            start,
            end,
            max_rows=max_rows,
            max_bytes=MANY,
        )
        assert rows == await view.page(start, end, max_rows=max_rows, max_bytes=MANY)
        return values, len(rows)

    values = [b"long", b"1", None, b"v4", b"1"]
    assert await found(change % 0, change % 9, 3) == (values, 3)
    assert await found(change % 0, change % 9, MANY) == (values, 5)
    # Over several kinds of keys, and over long keys.
    assert await found(head, b"z", MANY) == (values, 7)
    assert await found(change % 9, b"\x05", MANY) == (values, 0)


async def test_the_first_rows_of_many_ranges_are_read_together(store: Store) -> None:
    keys = [b"\x04%d" % number for number in range(9)] + [b"k1", b"k" * 3_000, b"k" * 2_999 + b"l"]
    await put(store, {key: key[-2:] for key in keys})
    view = store.durable()
    ranges = [(b"\x041", b"\x044"), (b"\x047", b"\x04a"), (b"\x04a", b"\x05"), (b"\x049", b"\x041")]
    across = [(b"\x047", b"l"), (b"k", b"l"), (b"k" * 3_000, b"l"), (b"k", b"k" * 3_000)]
    for of in (ranges, ranges + across, across, ranges[2:], []):
        for reverse in (False, True):
            for most in (1, 2, MANY):
                found = await view.first_rows(of, max_rows=most, reverse=reverse)
                assert found == [
                    await view.page(start, end, reverse=reverse, max_rows=most, max_bytes=MANY)
                    for start, end in of
                ]


async def values_of(keys: list[bytes], view: View) -> list[bytes | None]:
    return await view.load(keys)


async def test_many_snapshots_can_be_taken_one_after_another(store: Store) -> None:
    for number in range(40):
        await put(store, {b"k%d" % number: b"x"})
        read = partial(values_of, [b"k%d" % number])
        assert await store.in_snapshot(read, calls_once=False) == [b"x"]


async def test_values_may_be_large(store: Store) -> None:
    values = {b"k%d" % size: b"%d" % (size % 10) * size for size in (0, 1, 400_000, 3_000_000)}
    await put(store, values)
    assert await store.latest.load(list(values)) == list(values.values())
    page = await store.durable().page(b"k", b"l", max_rows=MANY, max_bytes=100_000)
    assert [len(row.value) for row in page] == [0, 1, 3_000_000]


async def test_a_page_may_have_very_many_rows(store: Store) -> None:
    await put(store, {b"k%06d" % number: b"" for number in range(25_000)})
    for reverse in (False, True):
        for most in (9_999, 10_000, 10_001, 20_000, MANY):
            page = await store.durable().page(
                b"k", b"l", reverse=reverse, max_rows=most, max_bytes=MANY
            )
            numbers = range(25_000)[:: -1 if reverse else 1][:most]
            assert [row.key for row in page] == [b"k%06d" % number for number in numbers]


async def test_a_page_spans_all_kinds_of_keys(store: Store) -> None:
    keys = [bytes([first]) + rest for first in range(255) for rest in (b"", b"x")]
    await (await store.commit([Group(b"\xff", None, b"1", puts=[(key, key) for key in keys])]))
    assert await keys_between(store, b"\x00", b"\xff") == keys
    page = await store.durable().page(b"\x01", b"\x05", reverse=True, max_rows=7, max_bytes=MANY)
    assert [row.key for row in page] == keys[9:2:-1]
    emptied = Group(b"\xff", b"1", b"2", range_deletes=[(b"\x01x", b"\x06")])
    await (await store.commit([emptied]))
    assert await keys_between(store, b"\x00", b"\xff") == keys[:3] + keys[12:]


@pytest.mark.parametrize("seed", range(4))
async def test_long_keys_are_sorted_like_short_keys(store: Store, seed: int) -> None:
    draw = Random(seed)
    keys = sorted({long_key(draw) for _ in range(120)})
    rows = {key: draw.randbytes(draw.choice((0, 5, 200))) for key in keys}
    await put(store, rows)
    assert await store.latest.load(keys) == list(rows.values())
    for _ in range(60):
        start, end = sorted((long_key(draw), long_key(draw)))
        if draw.random() < 0.3:
            start, end = b"k", b"l"
        reverse = draw.random() < 0.5
        max_rows = draw.choice((1, 3, 10, MANY))
        max_bytes = draw.choice((1, 8_000, 60_000, MANY))
        page = await store.durable().page(
            start, end, reverse=reverse, max_rows=max_rows, max_bytes=max_bytes
        )
        wanted = [(key, rows[key]) for key in keys if start <= key < end]
        assert page == bounded(wanted[:: -1 if reverse else 1], max_rows, max_bytes)
    start, end = sorted(draw.sample(keys, 2))
    deleted = Group(b"head", None, b"1", range_deletes=[(start, end)], deletes=[keys[0]])
    await (await store.commit([deleted]))
    left = [key for key in keys[1:] if not start <= key < end]
    assert await keys_between(store, b"k", b"l") == left
    start, end = sorted(draw.sample(keys, 2))
    await (await store.commit([Group(b"head", b"1", b"2", discards=[(start, end)])]))
    await store.reclaim(b"k", b"l")
    left = [key for key in left if not start <= key < end]
    assert await keys_between(store, b"k", b"l") == left


def long_key(draw: Random) -> bytes:
    """A key of up to 6.2 KB; many keys start with the same 2,600 bytes."""
    prefix = b"k" + draw.choice((b"a", b"b")) * draw.choice((3, 2_598, 2_599, 2_600, 3_000))
    tail = bytes(draw.choice(b"\x00ab\xff") for _ in range(draw.choice((0, 0, 1, 2, 5))))
    return prefix + tail + b"z" * draw.choice((0, 0, 40, 3_000))


def bounded(rows: list[tuple[bytes, bytes]], max_rows: int, max_bytes: int) -> list[Row]:
    page: list[Row] = []
    size_bytes = 0
    for key, value in rows:
        if len(page) >= max_rows or size_bytes >= max_bytes:
            break
        page.append(Row(key, value))
        size_bytes += len(key) + len(value)
    return page


async def test_one_of_two_commits_under_one_head_is_written(store: Store) -> None:
    answers = await asyncio.gather(
        *(
            store.commit([Group(b"head", None, b"%d" % at, puts=[(b"%d" % at, b"x")])])
            for at in range(10)
        ),
        return_exceptions=True,
    )
    (durable,) = [answer for answer in answers if not isinstance(answer, Exception)]
    assert sum(isinstance(answer, Conflict) for answer in answers) == 9
    await durable
    written = await keys_between(store, b"0", b"9\x00")
    assert await store.latest.load([b"head"]) == written


async def test_concurrent_commits_succeed_or_fail_independently(store: Store) -> None:
    await put(store, {b"claim": b"ours"})
    groups = [
        Group(
            b"head%d" % at,
            b"wrong" if at % 3 == 0 else None,
            b"1",
            puts=[(b"k%02d" % at, b"x")],
            guards=[(b"claim", b"theirs" if at % 5 == 0 else b"ours")],
        )
        for at in range(30)
    ]
    answers = await asyncio.gather(
        *(store.commit([group]) for group in groups), return_exceptions=True
    )
    assert [type(answer) for answer in answers if isinstance(answer, Exception)] == [
        Fenced if at % 5 == 0 else Conflict for at in range(30) if at % 3 == 0 or at % 5 == 0
    ]
    written = [b"k%02d" % at for at in range(30) if at % 3 and at % 5]
    await asyncio.gather(*(answer for answer in answers if not isinstance(answer, Exception)))
    assert await keys_between(store, b"k", b"l") == written


async def test_a_commit_completes_even_if_its_caller_is_canceled(store: Store) -> None:
    async def commit() -> None:
        await store.commit([group({b"a": b"1"})])
        reached.append("behind the commit")
        await asyncio.sleep(0)
        reached.append("behind the next wait")

    reached: list[str] = []
    caller = asyncio.create_task(commit())
    await asyncio.sleep(0)
    caller.cancel()
    with suppress(asyncio.CancelledError):
        await caller
    assert reached == ["behind the commit"]
    assert await store.latest.load([b"a"]) == [b"1"]
