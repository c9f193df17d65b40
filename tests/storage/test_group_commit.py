"""Which commits a sync covers, with a fake disk that the test controls."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from queue import SimpleQueue
from weakref import ref

import pytest

from dynactor.storage import group_commit
from dynactor.storage.group_commit import Synchronizer
from dynactor.storage.store import Unknown


class Mark:
    """The number of commits that were accepted when a sync started."""

    def __init__(self, accepted: int) -> None:
        self.accepted = accepted


class Disk:
    """A fake disk whose syncs end when the test says so, with success or a failure."""

    def __init__(self) -> None:
        self.accepted = 0
        self.published = [0]
        self.failures: list[str] = []
        self.started: list[int] = []
        self.started_at: list[float] = []
        self.marks: list[ref[Mark]] = []
        self._outcomes: SimpleQueue[Exception | None] = SimpleQueue()
        self.synchronizer = Synchronizer(
            mark=self.mark,
            sync=self.sync,
            publish=lambda mark: self.published.append(mark.accepted),
            failed=lambda failure: self.failures.append(str(failure)),
        )

    def mark(self) -> Mark:
        mark = Mark(self.accepted)
        self.started.append(self.accepted)
        self.started_at.append(asyncio.get_running_loop().time())
        self.marks.append(ref(mark))
        return mark

    def sync(self, mark: Mark) -> None:
        outcome = self._outcomes.get()
        if outcome is not None:
            assert mark.accepted > 0
            raise outcome

    def commit(self) -> asyncio.Future[None]:
        self.accepted += 1
        return self.synchronizer.accepted()

    def end_sync(self, failure: Exception | None = None) -> None:
        self._outcomes.put(failure)


@asynccontextmanager
async def disk() -> AsyncIterator[Disk]:
    disk = Disk()
    yield disk
    await disk.synchronizer.wait_idle()
    disk.synchronizer.stop()


async def test_commits_of_one_turn_of_the_loop_share_a_sync() -> None:
    async with disk() as it:
        futures = [it.commit() for _ in range(3)]
        it.end_sync()
        await asyncio.gather(*futures)
        assert it.started == [3]


async def test_a_commit_during_a_sync_is_covered_by_the_next() -> None:
    async with disk() as it:
        first = it.commit()
        await asyncio.sleep(0)
        second = it.commit()
        third = it.commit()
        it.end_sync()
        await first
        assert not second.done()
        assert it.started == [1]
        it.end_sync()
        await asyncio.gather(second, third)
        assert it.started == [1, 3]
        assert it.published == [0, 1, 3]


async def test_covered_changes_are_published_before_their_commits_complete() -> None:
    async with disk() as it:
        future = it.commit()
        seen: list[int] = []
        future.add_done_callback(lambda _: seen.append(it.published[-1]))
        it.end_sync()
        await future
        await asyncio.sleep(0)
        assert seen == [1]


async def test_a_canceled_waiter_cancels_no_other_waiter() -> None:
    async with disk() as it:
        first, second = it.commit(), it.commit()
        first.cancel()
        it.end_sync()
        await second
        assert first.cancelled()


async def test_a_failed_sync_leaves_every_waiting_commit_unknown() -> None:
    async with disk() as it:
        first = it.commit()
        await asyncio.sleep(0)
        second = it.commit()
        it.end_sync(OSError("the disk is gone"))
        for future in (first, second):
            with pytest.raises(Unknown, match="the disk is gone"):
                await future
        assert it.published == [0]
        assert it.failures == ["the disk is gone"]


@pytest.mark.parametrize("failure", [None, OSError("the disk is gone")])
async def test_a_mark_is_freed_without_garbage_collection(
    failure: OSError | None,
) -> None:
    gc.disable()
    try:
        async with disk() as it:
            future = it.commit()
            it.end_sync(failure)
            await asyncio.wait([future])
            assert (future.exception() is None) == (failure is None)
        assert [mark() for mark in it.marks] == [None]
    finally:
        gc.enable()


async def test_waiting_for_accepted_commits_waits_for_their_sync_and_starts_no_sync() -> None:
    async with disk() as disk_:
        group_commit = disk_.synchronizer
        assert group_commit.behind_accepted().done()
        order: list[str] = []

        def noted(future: asyncio.Future[None], name: str) -> asyncio.Future[None]:
            future.add_done_callback(lambda _: order.append(name))
            return future

        first = noted(disk_.commit(), "first")
        behind_waiting = noted(group_commit.behind_accepted(), "behind the waiting")
        await asyncio.sleep(0)
        assert disk_.started == [1]
        behind_running = noted(group_commit.behind_accepted(), "behind the running")
        assert not any(each.done() for each in (first, behind_waiting, behind_running))
        second = noted(disk_.commit(), "second")
        behind_second = noted(group_commit.behind_accepted(), "behind the second")
        disk_.end_sync()
        await behind_running
        assert not second.done()
        disk_.end_sync()
        await behind_second
        assert disk_.started == [1, 2]
        assert order == [
            *("first", "behind the waiting", "behind the running"),
            *("second", "behind the second"),
        ]


async def test_waiting_for_accepted_commits_reports_a_failed_sync() -> None:
    async with disk() as disk_:
        committed = disk_.commit()
        behind = disk_.synchronizer.behind_accepted()
        disk_.end_sync(OSError("the disk is gone"))
        for future in (committed, behind):
            with pytest.raises(Unknown):
                await future


async def test_the_next_sync_waits_while_each_turn_of_the_loop_brings_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_commit, "_LONGEST_SECONDS", 3_600.0)
    async with disk() as it:
        first = it.commit()
        await asyncio.sleep(0)
        later = [it.commit()]
        it.end_sync()
        await first
        for _ in range(5):
            later.append(it.commit())
            await asyncio.sleep(0)
        assert it.started == [1]
        it.end_sync()
        await asyncio.gather(*later)
        assert it.started == [1, 7]


async def test_continuous_commits_do_not_delay_a_sync_for_long() -> None:
    async with disk() as it:
        began_at = asyncio.get_running_loop().time()
        it.commit()
        await asyncio.sleep(0)
        it.end_sync()
        while len(it.started) < 2:
            it.commit()
            await asyncio.sleep(0)
        assert it.started_at[1] - began_at >= 0.008
        it.end_sync()


async def test_a_sync_starts_when_a_turn_of_the_loop_brings_no_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_commit, "_LONGEST_SECONDS", 3_600.0)
    async with disk() as it:
        first = it.commit()
        await asyncio.sleep(0)
        second = it.commit()
        it.end_sync()
        await first
        it.end_sync()
        async with asyncio.timeout(60):
            await second
        assert it.started == [1, 2]


async def test_a_single_writer_does_not_wait() -> None:
    async with disk() as it:
        for accepted in range(1, 4):
            alone = it.commit()
            await asyncio.sleep(0)
            assert it.started[-1] == accepted
            it.end_sync()
            await alone


async def test_after_commits_shared_a_sync_the_next_sync_waits_for_more_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_commit, "_LONGEST_SECONDS", 3_600.0)
    async with disk() as it:
        shared = [it.commit(), it.commit()]
        it.end_sync()
        await asyncio.gather(*shared)
        later = []
        for _ in range(5):
            later.append(it.commit())
            await asyncio.sleep(0)
        assert it.started == [2]
        it.end_sync()
        await asyncio.gather(*later)
        assert it.started == [2, 7]


async def test_the_next_sync_does_not_wait_long_for_more_commits() -> None:
    async with disk() as it:
        shared = [it.commit(), it.commit()]
        it.end_sync()
        await asyncio.gather(*shared)
        began_at = asyncio.get_running_loop().time()
        while len(it.started) < 2:
            it.commit()
            await asyncio.sleep(0)
        assert it.started_at[1] - began_at >= 0.008
        it.end_sync()


async def test_a_writer_whose_companions_stopped_waits_for_them_once() -> None:
    async with disk() as it:
        shared = [it.commit(), it.commit()]
        it.end_sync()
        await asyncio.gather(*shared)
        alone = it.commit()
        it.end_sync()
        await alone
        alone = it.commit()
        await asyncio.sleep(0)
        assert it.started == [2, 3, 4]
        it.end_sync()
        await alone
