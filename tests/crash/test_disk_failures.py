"""A sync that fails, a disk that is full: one clear error, reads go on, nothing half is seen."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.crashes import CrashingDatabase, connected
from tests.support.history import Item
from tests.support.power_loss import PowerLoss
from tests.support.server import running_server
from tests.support.whole_database import scan
from tests.support.wire import Answer, Connection
from tests.support.writers import INDEXES, make_tables

TABLE = "crash-a"
INDEX_NAMES = [index.name for index in INDEXES if index.table == TABLE]


def item(sk: str, token: str, size_bytes: int = 0) -> Item:
    return {
        "pk": {"S": "p"},
        "sk": {"S": sk},
        "token": {"S": token},
        "rank": {"N": "7"},
        "title": {"S": token},
        "payload": {"S": "x" * size_bytes},
    }


async def put(connection: Connection, sk: str, token: str, size_bytes: int = 0) -> Answer:
    body = {"TableName": TABLE, "Item": item(sk, token, size_bytes)}
    return await connection.call("PutItem", body)


async def shown(connection: Connection) -> list[list[str]]:
    """The tokens that the table and its indexes show, by query and by scan."""
    views = []
    for index in (None, *INDEX_NAMES):
        views.append(await scan(connection, TABLE, index))
        body: dict[str, Any] = {
            "TableName": TABLE,
            "KeyConditionExpression": "pk = :p",
            "ExpressionAttributeValues": {":p": {"S": "p"}},
            "ConsistentRead": True,
        }
        if index is not None:
            body["IndexName"] = index
        answer = await connection.call("Query", body)
        assert answer.status == 200, answer
        views.append(answer.body["Items"])
    return [sorted(each["token"]["S"] for each in view) for view in views]


async def get(connection: Connection, sk: str) -> Item | None:
    key = {"pk": {"S": "p"}, "sk": {"S": sk}}
    answer = await connection.call("GetItem", {"TableName": TABLE, "Key": key})
    assert answer.status == 200, answer
    found: Item | None = answer.body.get("Item")
    return found


async def test_a_failed_sync_ends_writing_and_shows_nothing_even_after_the_restart(
    tmp_path: Path,
) -> None:
    database = CrashingDatabase(tmp_path, Random(1), power=True)
    await database.make()
    power = database.power
    assert power is not None
    with database.running() as server:
        async with connected(server) as connection:
            assert (await put(connection, "a", "old")).status == 200

            power.fail_syncs()
            failed = await put(connection, "a", "new")
            assert failed.status == 500
            assert failed.error == "InternalServerError"
            assert "unknown" in failed.body["message"]
            later = await put(connection, "b", "new")
            assert later.status == 500
            assert "restart the server" in later.body["message"]
            assert await shown(connection) == [["old"]] * 6

            # The disk may work again; what memory holds still can't be taken back.
            power.repair_syncs()
            assert (await put(connection, "b", "new")).status == 500
            assert await get(connection, "a") == item("a", "old")
        server.stop()
        assert "sync_failed" in server.log

    with database.running() as server:
        async with connected(server) as connection:
            assert await shown(connection) == [["old"]] * 6
            assert (await put(connection, "b", "new")).status == 200
            assert await shown(connection) == [["new", "old"]] * 6


async def test_a_crowd_on_a_failing_disk_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    database = CrashingDatabase(tmp_path, Random(2), power=True)
    await database.make()
    power = database.power
    assert power is not None

    assert await database.crash(trouble=power.fail_syncs) == []
    power.repair_syncs()
    assert await database.crash() == []
    power.cut()

    assert await database.compare() == []


@pytest.mark.parametrize("fill", [PowerLoss.nearly_fill_disk, PowerLoss.fill_disk])
async def test_a_full_disk_refuses_writes_until_there_is_space(
    tmp_path: Path, fill: Callable[[PowerLoss], None]
) -> None:
    database = CrashingDatabase(tmp_path, Random(3), power=True)
    await database.make()
    power = database.power
    assert power is not None
    with database.running() as server:
        async with connected(server) as connection:
            assert (await put(connection, "a", "old")).status == 200

            fill(power)
            refusals = await refused_writes(connection)
            assert all("disk is full" in refused.body["message"] for refused in refusals)
            assert await shown(connection) == [["old"]] * 6

            power.free_disk()
            await wait_writing(connection)
            assert await shown(connection) == [["new"]] * 6
        assert server.stop() == 0

    with database.running() as server:
        async with connected(server) as connection:
            assert await shown(connection) == [["new"]] * 6


async def test_a_small_disk_fills_up_and_is_freed(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk, running_server(data_dir=disk / "data") as server:
        async with connected(server) as connection:
            await make_tables(connection)
            assert (await put(connection, "a", "old")).status == 200
            ballast = disk / "ballast"
            ballast.write_bytes(bytes(120 << 20))

            written = 1
            while True:
                answer = await put(connection, f"fill{written}", "fill", 350_000)
                if answer.status != 200:
                    break
                written += 1
            assert answer.status == 500
            assert "disk is full" in answer.body["message"]
            for index in (None, *INDEX_NAMES):
                rows = await scan(connection, TABLE, index)
                assert len(rows) == written

            ballast.unlink()
            await wait_writing(connection)
            assert await get(connection, "a") == item("a", "new")
        assert server.stop() == 0


async def refused_writes(connection: Connection) -> list[Answer]:
    """Write until it is refused; then every write is."""
    refusals = [await put(connection, "a", "refused") for _ in range(5)]
    assert [refused.status for refused in refusals] == [500] * 5, refusals
    return refusals


async def wait_writing(connection: Connection) -> None:
    """Writing comes back within some tries, without a restart."""
    for _ in range(2_000):
        if (await put(connection, "a", "new")).status == 200:
            return
    raise AssertionError("there is space, and writing did not come back")


@contextmanager
def small_disk(directory: Path) -> Iterator[Path]:
    """A disk of 256 MiB in memory; needs the right to mount."""
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", directory], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", directory], check=True)
