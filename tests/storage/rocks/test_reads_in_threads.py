"""Reads in threads, which the store uses because a disk read would block the event loop.

The rows are in files whose blocks are not cached, and the reads complete when the test says so. An
older view must show no part of a commit that is accepted meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest
from rocksdict import Rdict

from dynactor.storage.rocks.options import RocksOptions
from dynactor.storage.rocks.reads import DiskReads
from dynactor.storage.rocks.store import open_rocks
from dynactor.storage.store import NOT_CACHED, Closed, Damaged, Group, Store, View

STORED = 50
# Large enough that each row is in a separate block.
OLD = b"old" * 2_000


class HeldReads(DiskReads):
    """Reads as from a slow disk. While held, reads neither start nor complete."""

    def __init__(self) -> None:
        super().__init__(lambda: 0)
        self.make_threads()
        self.waits = True
        self.begin = asyncio.Event()
        self.end = asyncio.Event()
        self.asked: list[bytes] = []
        self.release()

    def hold(self) -> None:
        """Let no read start or complete from now on."""
        self.begin.clear()
        self.end.clear()

    def release(self) -> None:
        """Let all reads start and complete."""
        self.begin.set()
        self.end.set()

    async def load(self, rows: Rdict, keys: Sequence[bytes]) -> list[bytes | None]:
        self.asked += keys
        await self.begin.wait()
        values = await super().load(rows, keys)
        await self.end.wait()
        self.waits = True
        return values


def key(number: int) -> bytes:
    return b"k%03d" % number


class Writer:
    """Writes under one head."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._head: bytes | None = None

    async def write(
        self,
        puts: dict[bytes, bytes],
        deletes: Sequence[bytes] = (),
        range_deletes: Sequence[tuple[bytes, bytes]] = (),
    ) -> asyncio.Future[None]:
        head = b"%d" % (int(self._head or b"0") + 1)
        group = Group(b"head", self._head, head, list(puts.items()), deletes, range_deletes)
        self._head = head
        return await self._store.commit([group])

    def continue_in(self, store: Store) -> None:
        self._store = store


@asynccontextmanager
async def stored_rows(directory: Path, reads: DiskReads) -> AsyncIterator[tuple[Store, Writer]]:
    """A store whose rows are on disk and not cached by the engine."""
    store = await open_rocks(directory)
    writer = Writer(store)
    await (await writer.write({key(number): OLD for number in range(STORED)}))
    await store.close()
    store = await open_rocks(directory, RocksOptions(block_cache_bytes=1), reads)
    writer.continue_in(store)
    try:
        yield store, writer
    finally:
        await store.close()


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def begun(
    reads: HeldReads, view: View, keys: list[bytes]
) -> asyncio.Task[list[bytes | None]]:
    """Start a load, and wait until it is held."""
    task = asyncio.create_task(view.load(keys))
    await turns()
    assert reads.asked
    return task


async def test_a_value_on_disk_is_not_cached_and_can_be_loaded(tmp_path: Path) -> None:
    async with stored_rows(tmp_path, HeldReads()) as (store, writer):
        for view, number in ((store.latest, 10), (store.durable(), 20)):
            one, other = key(number), key(number + 1)
            assert view.cached(one) is NOT_CACHED
            assert await view.load([one, b"nothing", other]) == [OLD, None, OLD]
        await (await writer.write({key(1): b"new", key(3): b""}))
        assert store.latest.cached(key(1)) == store.durable().cached(key(1)) == b"new"
        assert await store.latest.load([key(3)]) == await store.durable().load([key(3)]) == [b""]


@pytest.mark.parametrize("is_durable", [False, True])
@pytest.mark.parametrize("begins", ["before", "after"])
async def test_a_read_in_a_thread_shows_nothing_that_was_accepted_after_its_view(
    tmp_path: Path, is_durable: bool, begins: str
) -> None:
    reads = HeldReads()
    async with stored_rows(tmp_path, reads) as (store, writer):
        reads.hold()
        read = await begun(reads, store.durable(), list(map(key, range(8))))
        if begins == "before":
            reads.begin.set()
            await turns(1)
            while not reads.is_idle:
                await asyncio.sleep(0)
        synced = await writer.write(
            {key(0): b"new", key(1): b""}, [key(2)], [(key(3), key(5)), (key(7), key(8))]
        )
        if is_durable:
            await synced
        reads.release()
        assert await read == [OLD] * 8
        await synced
        assert await store.durable().load(list(map(key, range(8)))) == [
            *(b"new", b"", None, None, None, OLD, OLD, None)
        ]


async def test_the_owner_sees_either_all_or_nothing_of_a_commit(tmp_path: Path) -> None:
    reads = HeldReads()
    async with stored_rows(tmp_path, reads) as (store, writer):
        await writer.write({key(0): b"first"})
        assert store.latest.cached(key(0)) == b"first"
        reads.hold()
        # The first row is in memory, the second in a file.
        read = await begun(reads, store.latest, [key(0), key(1)])
        await writer.write({key(0): b"second", key(1): b"second"})
        reads.release()
        assert await read == [b"second", b"second"]


async def test_an_old_view_shows_no_later_commit(tmp_path: Path) -> None:
    reads = HeldReads()
    async with stored_rows(tmp_path, reads) as (store, writer):
        views = []
        for number in range(5):
            views.append(store.durable())
            await (await writer.write({key(number): b"%d" % number}))
        for count, view in enumerate(views):
            shown = [b"%d" % number for number in range(count)] + [OLD] * (6 - count)
            assert await view.load(list(map(key, range(6)))) == shown


@pytest.mark.parametrize("seed", range(8))
async def test_every_load_shows_the_state_of_its_view(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    reads = HeldReads()
    async with stored_rows(tmp_path, reads) as (store, writer):
        state: dict[bytes, bytes] = {key(number): OLD for number in range(STORED)}
        accepted = dict(state)
        states = {id(store.durable()): state}
        views = [store.durable()]
        loads = []
        for step in range(150):
            match random.randrange(6):
                case 0 | 1:
                    puts = {key(random.randrange(STORED)): b"%d" % step for _ in range(3)}
                    gone = [key(random.randrange(STORED))]
                    first = random.randrange(STORED)
                    emptied = [(key(first), key(first + 2))] if random.random() < 0.2 else []
                    synced = await writer.write(
                        puts, [each for each in gone if each not in puts], emptied
                    )
                    for start, end in emptied:
                        accepted = {k: v for k, v in accepted.items() if not start <= k < end}
                    accepted = {k: v for k, v in accepted.items() if k not in gone} | puts
                    if random.random() < 0.5:
                        await synced
                        views.append(store.durable())
                        states[id(store.durable())] = accepted
                case 2:
                    reads.hold()
                case 3:
                    reads.begin.set()
                    await turns(3)
                case 4:
                    reads.release()
                    await turns(3)
                case 5:
                    view = random.choice(views[-4:])
                    keys = [key(random.randrange(STORED)) for _ in range(5)]
                    expected = [states[id(view)].get(each) for each in keys]
                    loads.append((asyncio.create_task(view.load(keys)), expected))
                    await turns(random.randrange(4))
        reads.release()
        assert len(loads) > 10
        assert len(reads.asked) > 10
        for load, expected in loads:
            assert await load == expected


async def test_closing_does_not_wait_for_reads_and_fails_them(tmp_path: Path) -> None:
    reads = HeldReads()
    async with stored_rows(tmp_path, reads) as (store, _):
        reads.hold()
        loads = [await begun(reads, view, [key(0)]) for view in (store.latest, store.durable())]
        await store.close()
        reads.release()
        for load in loads:
            with pytest.raises(Closed):
                await load


async def test_many_reads_share_few_threads(tmp_path: Path) -> None:
    reads = HeldReads()
    async with stored_rows(tmp_path, reads) as (store, _):
        view = store.durable()
        wanted = [[key(number % STORED), key(number * 7 % STORED)] for number in range(700)]
        assert await asyncio.gather(*map(view.load, wanted)) == [[OLD, OLD]] * len(wanted)


async def test_a_failed_read_does_not_affect_other_readers(tmp_path: Path) -> None:
    async with stored_rows(tmp_path, HeldReads()) as (store, _):
        (file,) = (tmp_path / "rocksdb").glob("*.sst")
        with file.open("r+b") as opened:
            opened.seek(file.stat().st_size // 3)
            opened.write(b"damage")
        view = store.durable()
        loads = [view.load([key(number)]) for number in range(STORED)]
        read = await asyncio.gather(*loads, return_exceptions=True)
        damaged = [each for each in read if isinstance(each, Damaged)]
        assert len(damaged) == 1
        assert read.count([OLD]) == STORED - 1


async def test_a_cancelled_reader_does_not_affect_others(tmp_path: Path) -> None:
    reads = HeldReads()
    async with stored_rows(tmp_path, reads) as (store, _):
        reads.hold()
        first = await begun(reads, store.durable(), [key(0)])
        second = await begun(reads, store.durable(), [key(0)])
        first.cancel()
        reads.release()
        assert await second == [OLD]


async def test_the_event_loop_reads_without_threads_until_a_read_waited_for_the_disk(
    tmp_path: Path,
) -> None:
    blocks = 0
    reads = DiskReads(lambda: blocks)
    async with stored_rows(tmp_path, reads) as (store, _):
        assert store.durable().cached(key(0)) == OLD
        reads.note_wait()
        assert not reads.waits, "it waited for its turn alone"
        async with asyncio.timeout(60):
            while not reads.waits:
                # The threads are created only after the first such read.
                blocks += 8
                reads.note_wait()
                await asyncio.sleep(0)
        assert store.durable().cached(key(1)) is NOT_CACHED
        count = 0
        while reads.waits:
            assert await store.durable().load([key(count % STORED)]) == [OLD]
            count += 1
        assert count > 10
        assert store.durable().cached(key(2)) == OLD


async def test_closing_does_not_wait_for_threads_that_are_starting(tmp_path: Path) -> None:
    blocks = 0
    reads = DiskReads(lambda: blocks)
    async with stored_rows(tmp_path, reads):
        blocks += 8
        reads.note_wait()
    assert not reads.waits


async def test_slices_of_a_page_are_shorter_while_reads_are_slow() -> None:
    reads = DiskReads()
    most = reads.slice_rows
    for _ in range(20):
        reads.note_slice(reads.slice_rows, 0.1)
    assert reads.slice_rows == 1
    for _ in range(20):
        reads.note_slice(reads.slice_rows, 0.0001)
    assert reads.slice_rows == most
    await reads.close()
