"""Disks that are slow, fail or are full, mostly with a store in a separate process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from dynactor.storage.rocks.options import MIB, RocksOptions
from dynactor.storage.rocks.store import open_rocks
from dynactor.storage.store import Closed, Full, Group, Store
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.stores.power_loss import PowerLoss
from tests.support.stores.store_process import StoreProcess

# Large enough that other processes, which write to the same disk, don't use up the freed space.
BALLAST_BYTES = 128 * MIB


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def power(tmp_path: Path, data: Path) -> PowerLoss:
    return PowerLoss(tmp_path / "power", data)


def put(process: StoreProcess, key: str, value: str) -> str:
    answer = process.ask("write", key, value)
    return process.ask("wait", key) if answer == "accepted" else answer


def test_while_a_sync_is_held_the_durable_view_shows_the_old_value(
    power: PowerLoss, data: Path
) -> None:
    with StoreProcess(data, power) as process:
        put(process, "key", "old")
        power.hold_syncs()
        assert process.ask("write", "key", "new") == "accepted"
        power.wait_until_held()
        assert process.ask("latest", "key") == "new"
        assert process.ask("durable", "key") == "old"
        power.release_syncs()
        assert process.ask("wait", "key") == "durable"
        assert process.ask("durable", "key") == "new"


def test_after_a_failed_sync_nothing_is_written_and_reads_continue(
    power: PowerLoss, data: Path
) -> None:
    with StoreProcess(data, power) as process:
        put(process, "key", "old")
        power.fail_syncs()
        assert put(process, "key", "new").startswith("Unknown: syncing the log failed")
        power.repair_syncs()
        assert put(process, "other", "new").startswith("Closed: The disk failed, restart")
        assert process.ask("durable", "key") == "old"


@pytest.mark.parametrize("ending", ["close", "kill"])
def test_changes_of_a_failed_sync_are_gone_after_a_restart(
    power: PowerLoss, data: Path, ending: str
) -> None:
    with StoreProcess(data, power) as process:
        put(process, "key", "old")
        power.fail_syncs()
        put(process, "key", "new")
        power.repair_syncs()
        if ending == "close":
            assert process.ask("close") == "closed"
    with StoreProcess(data, power) as process:
        assert process.opening == "open"
        assert process.ask("latest", "key") == "old"
        assert put(process, "key", "newer") == "durable"
    power.cut()
    with StoreProcess(data, power) as process:
        assert process.ask("durable", "key") == "newer"


def test_a_full_disk_refuses_commits_until_space_is_freed(power: PowerLoss, data: Path) -> None:
    with StoreProcess(data, power) as process:
        put(process, "key", "old")
        process.ask("fill", "filler", 20)
        power.nearly_fill_disk()
        wait_until(process, "Full: The disk of")
        assert process.ask("durable", "key") == "old"
        # Commits that free space may use the reserve.
        assert process.ask("drop", "filler") == "durable"
        assert put(process, "key", "new").startswith("Full: The disk of")
        power.free_disk()
        wait_until(process, "durable")
        assert process.ask("durable", "key") == "old"


@pytest.mark.parametrize("ending", ["close", "kill"])
def test_a_commit_refused_by_a_full_disk_is_missing_after_a_restart(
    power: PowerLoss, data: Path, ending: str
) -> None:
    with StoreProcess(data, power) as process:
        put(process, "key", "old")
        power.fill_disk()
        assert put(process, "key", "new").startswith("Full: The disk is full")
        if ending == "close":
            assert process.ask("close") == "closed"
    power.free_disk()
    with StoreProcess(data, power) as process:
        assert process.opening == "open"
        assert process.ask("latest", "key") == "old"


@pytest.mark.parametrize("rows", [0, 20])
def test_writes_resume_after_the_engine_itself_found_the_disk_full(
    power: PowerLoss, data: Path, rows: int
) -> None:
    with StoreProcess(data, power) as process:
        process.ask("fill", "filler", rows)
        put(process, "key", "old")
        power.fill_disk()
        assert put(process, "key", "new").startswith("Full: The disk is full")
        assert process.ask("durable", "key") == "old"
        assert process.ask("latest", "key") == "old"
        power.free_disk()
        wait_until(process, "durable")
        assert put(process, "key", "newer") == "durable"
        assert process.ask("durable", "key") == "newer"
        assert process.ask("count", "filler") == str(rows)
    power.cut()
    with StoreProcess(data, power) as process:
        assert process.ask("durable", "key") == "newer"
        assert process.ask("count", "filler") == str(rows)


def test_a_view_held_for_long_does_not_prevent_writes_from_resuming(
    power: PowerLoss, data: Path
) -> None:
    with StoreProcess(data, power) as process:
        put(process, "key", "old")
        process.ask("hold")
        put(process, "key", "newer")
        power.fill_disk()
        assert put(process, "key", "newest").startswith("Full: The disk is full")
        assert process.ask("held", "key") == "old"
        power.free_disk()
        wait_until(process, "durable")
        assert process.ask("held", "key") == "Closed: the store is closed"
        assert process.ask("durable", "key") == "newer"


def test_a_commit_whose_sync_finds_a_full_disk_is_unknown_and_never_visible(
    power: PowerLoss, data: Path
) -> None:
    with StoreProcess(data, power) as process:
        put(process, "key", "old")
        power.hold_syncs()
        assert process.ask("write", "key", "unsynced") == "accepted"
        power.fill_disk()
        assert process.ask("write", "other", "refused").startswith("Full")
        power.release_syncs()
        assert process.ask("wait", "key").startswith("Unknown")
        assert process.ask("durable", "key") == "old"
        power.free_disk()
        wait_until(process, "durable")
        assert process.ask("durable", "key") == "old"
        assert process.ask("latest", "key") == "old"
        assert process.ask("durable", "other") == "-"


def test_a_stalled_engine_refuses_commits_for_retry_and_reads_continue(
    power: PowerLoss, data: Path
) -> None:
    with StoreProcess(data, power, memtable_bytes=1 << 16) as process:
        put(process, "key", "old")
        # While syncs are blocked, no memtable can be flushed to a synced table file, so all fill
        # up.
        power.hold_syncs()
        while (answer := process.ask("pour", "row", 10)) == "accepted":
            pass
        assert answer.startswith("Retry")
        assert process.ask("durable", "key") == "old"
        power.release_syncs()
        while put(process, "key", "new").startswith("Retry"):
            pass
        assert process.ask("durable", "key") == "new"


def wait_until(process: StoreProcess, answer: str) -> None:
    """Repeat a write until this is the answer; free space is not checked for every write."""
    while not put(process, "probe", "x").startswith(answer):
        pass


async def test_an_error_that_the_engine_repeats_after_a_full_disk_is_still_reported_as_a_full_disk(
    data: Path,
) -> None:
    # After a full disk RocksDB repeats an error, and timing decides which of the two a sync gets.
    store = await open_rocks(data)
    try:
        store._end_writing(Exception("IO error: No space left on device"))
        store._end_writing(Exception("IO error: Writer has previous error."))
        assert isinstance(store._refusal, Full)
        store._end_writing(Exception("IO error: the disk is gone"))
        assert isinstance(store._refusal, Closed)
        store._end_writing(Exception("IO error: Writer has previous error."))
        assert isinstance(store._refusal, Closed)
    finally:
        await store.close()


@asynccontextmanager
async def store_in_reserve(directory: Path) -> AsyncIterator[Store]:
    """A store whose disk has only the reserve free, until the file ``ballast`` is deleted."""
    with (directory / "ballast").open("wb") as ballast:
        os.posix_fallocate(ballast.fileno(), 0, BALLAST_BYTES)
    disk = os.statvfs(directory)
    reserve_bytes = disk.f_bavail * disk.f_frsize + BALLAST_BYTES // 2
    store = await open_rocks(directory / "data", RocksOptions(reserve_bytes=reserve_bytes))
    try:
        yield store
    finally:
        await store.close()


async def test_reaching_and_leaving_the_reserve_are_each_logged_once(
    tmp_path: Path,
):
    async with store_in_reserve(tmp_path) as store:
        with capture_logs() as logs:
            for refusals in (1, 2, 3):
                with pytest.raises(Full, match="kept in reserve"):
                    await store.commit([Group(b"head", None, b"1", puts=[(b"key", b"1")])])
                assert store.figures().full_disk_refusals == refusals
            (tmp_path / "ballast").unlink()
            async with asyncio.timeout(HANG_SECONDS):
                while store.latest.get_nowait(b"head") is None:
                    try:
                        await (
                            await store.commit([Group(b"head", None, b"1", puts=[(b"key", b"1")])])
                        )
                    except Full:
                        await asyncio.sleep(0)
        told = [(line["log_level"], line["event"]) for line in logs]
    assert told == [("error", "disk_full"), ("info", "disk_space_freed")]
    assert str(tmp_path / "data") in logs[0]["error"]


COUNTER = (7).to_bytes(8, "big")


@pytest.mark.parametrize(
    "groups",
    [
        pytest.param(
            [Group(b"one", None, COUNTER), Group(b"two", None, COUNTER)], id="checkpoints"
        ),
        pytest.param([Group(b"one", None, b"1", deletes=[b"key"])], id="deletes"),
        pytest.param(
            [Group(b"one", None, b"1", [(b"key", b"1")], range_deletes=[(b"a", b"b")])],
            id="a range delete",
        ),
    ],
)
async def test_a_commit_that_may_free_space_uses_the_reserve(
    tmp_path: Path, groups: Sequence[Group]
):
    async with store_in_reserve(tmp_path) as store:
        await (await store.commit(groups))
        assert await store.latest.load([b"one"]) == [groups[0].head]


@pytest.mark.parametrize(
    "groups",
    [
        pytest.param(
            [Group(b"one", None, b"1"), Group(b"two", None, b"x" * 100)], id="a table's record"
        ),
        pytest.param([Group(b"one", None, b"1", [(b"key", b"1")])], id="a put"),
    ],
)
async def test_a_commit_that_takes_space_does_not_use_the_reserve(
    tmp_path: Path, groups: Sequence[Group]
):
    async with store_in_reserve(tmp_path) as store:
        with pytest.raises(Full, match="kept in reserve"):
            await store.commit(groups)
