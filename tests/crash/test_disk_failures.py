"""After a failed sync or on a full disk, writes fail, and reads show no part of these writes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from tests.support.clients.wire import Answer, Connection
from tests.support.histories.history import Item
from tests.support.servers.server import running_server
from tests.support.writers.crashes import CrashingDatabase, connected
from tests.support.writers.whole_database import scan
from tests.support.writers.writers import INDEXES, create_table, make_tables

TABLE = "crash-a"
INDEX_NAMES = [index.name for index in INDEXES if index.table == TABLE]


def item(sk: str, token: str, size_bytes: int = 0) -> Item:
    return {
        "pk": {"S": "p"},
        "sk": {"S": sk},
        "token": {"S": token},
        "rank": {"N": "7"},
        "title": {"S": token},
        # Random data, because the engine compresses data, and compressible data would not fill the
        # disk.
        "payload": {"S": Random(sk).randbytes(size_bytes // 2).hex()},
    }


async def put(connection: Connection, sk: str, token: str, size_bytes: int = 0) -> Answer:
    body = {"TableName": TABLE, "Item": item(sk, token, size_bytes)}
    return await connection.call("PutItem", body)


async def shown(connection: Connection) -> list[list[str]]:
    """The tokens in the table and its indexes, read by queries and by scans."""
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
            # The first sync to fail is either that of the log or that of a table file in the
            # background.
            assert any(each in failed.body["message"] for each in ("unknown", "Nothing was"))
            later = await put(connection, "b", "new")
            assert later.status == 500
            assert "restart the server" in later.body["message"]
            assert await shown(connection) == [["old"]] * 6

            # Writes fail even if the disk works again, because accepted writes in memory can't be
            # undone.
            power.repair_syncs()
            assert (await put(connection, "b", "new")).status == 500
            assert await get(connection, "a") == item("a", "old")
        server.stop()
        assert "disk_failed" in server.log

    with database.running() as server:
        async with connected(server) as connection:
            assert await shown(connection) == [["old"]] * 6
            assert (await put(connection, "b", "new")).status == 200
            assert await shown(connection) == [["new", "old"]] * 6


async def test_concurrent_writers_on_a_failing_disk_lose_no_acknowledged_write(
    tmp_path: Path,
) -> None:
    database = CrashingDatabase(tmp_path, Random(2), power=True)
    await database.make()
    power = database.power
    assert power is not None

    assert await database.crash(fault=power.fail_syncs) == []
    power.repair_syncs()
    assert await database.crash() == []
    power.cut()

    assert await database.compare() == []


KEY = {"pk": {"S": "p"}, "sk": {"S": "a"}}
# Writes that increase the stored data, and writes that free space.
GROWING: list[tuple[str, dict[str, Any]]] = [
    ("PutItem", {"TableName": TABLE, "Item": item("a", "refused")}),
    (
        "UpdateItem",
        {
            "TableName": TABLE,
            "Key": KEY,
            "UpdateExpression": "SET #token = :refused",
            "ExpressionAttributeNames": {"#token": "token"},
            "ExpressionAttributeValues": {":refused": {"S": "refused"}},
        },
    ),
    ("UpdateTable", {"TableName": TABLE, "DeletionProtectionEnabled": True}),
    ("CreateTable", {**create_table(TABLE), "TableName": "crash-c"}),
]
FREEING: list[tuple[str, dict[str, Any]]] = [
    ("DeleteItem", {"TableName": TABLE, "Key": KEY}),
    ("DeleteTable", {"TableName": TABLE}),
]


async def test_a_full_disk_refuses_every_write_until_there_is_space(tmp_path: Path) -> None:
    database = CrashingDatabase(tmp_path, Random(3), power=True)
    await database.make()
    power = database.power
    assert power is not None
    with database.running() as server:
        async with connected(server) as connection:
            assert (await put(connection, "a", "old")).status == 200

            power.fill_disk()
            await wait_refused(connection)
            for operation, body in GROWING + FREEING:
                await assert_refused(connection, operation, body)
                assert await shown(connection) == [["old"]] * 6
            assert await table_names(connection) == ["crash-a", "crash-b"]

            power.free_disk()
            # A write with a false condition stores nothing, but is refused on a full disk, too.
            await wait_for(connection, "ConditionalCheckFailedException", condition=True)
            await wait_for(connection, "")
            assert await shown(connection) == [["new"]] * 6
            for operation, body in (GROWING[-1], *FREEING):
                assert (await connection.call(operation, body)).status == 200
            assert await table_names(connection) == ["crash-b", "crash-c"]
        assert server.stop() == 0

    with database.running() as server:
        async with connected(server) as connection:
            assert await table_names(connection) == ["crash-b", "crash-c"]


async def test_a_nearly_full_disk_still_accepts_writes_that_free_space(tmp_path: Path) -> None:
    database = CrashingDatabase(tmp_path, Random(3), power=True)
    await database.make()
    power = database.power
    assert power is not None
    with database.running() as server:
        async with connected(server) as connection:
            assert (await put(connection, "a", "old")).status == 200

            power.nearly_fill_disk()
            await wait_refused(connection)
            for operation, body in GROWING:
                await assert_refused(connection, operation, body)
                assert await shown(connection) == [["old"]] * 6
            for operation, body in FREEING:
                assert (await connection.call(operation, body)).status == 200
            assert await table_names(connection) == ["crash-b"]

            power.free_disk()
            await wait_for(connection, "", table="crash-b")
            await make_tables(connection, [TABLE])
        assert server.stop() == 0


async def table_names(connection: Connection) -> list[str]:
    names: list[str] = (await connection.call("ListTables", {})).body["TableNames"]
    return names


async def assert_refused(connection: Connection, operation: str, body: dict[str, Any]) -> None:
    refused = await connection.call(operation, body)
    assert refused.status == 500, (operation, refused)
    assert " full" in refused.body["message"], (operation, refused)


async def test_writes_resume_after_a_small_disk_was_filled_and_freed(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk, running_server(data_dir=disk / "data") as server:
        async with connected(server) as connection:
            await make_tables(connection)
            assert (await put(connection, "a", "old")).status == 200
            ballast = disk / "ballast"
            ballast.write_bytes(bytes(120 << 20))

            written = 1
            while True:
                answer = await put(connection, f"fill{written}", "fill", 150_000)
                if answer.status != 200:
                    break
                written += 1
            assert answer.status == 500
            assert "disk is full" in answer.body["message"]
            for index in (None, *INDEX_NAMES):
                rows = await scan(connection, TABLE, index)
                assert len(rows) == written

            ballast.unlink()
            await wait_for(connection, "")
            assert await get(connection, "a") == item("a", "new")
        assert server.stop() == 0


async def wait_refused(connection: Connection) -> None:
    """Put until a put is refused; puts that fit into the reserve still succeed."""
    for _ in range(2_000):
        answer = await put(connection, "a", "old")
        if answer.status != 200:
            assert answer.status == 500, answer
            assert "No space left" in answer.body["message"] or "full" in answer.body["message"]
            return
    raise AssertionError("the disk is full, and writes go on")


async def wait_for(
    connection: Connection, error: str, *, condition: bool = False, table: str = TABLE
) -> None:
    """Repeat a put until this is the answer; ``condition`` requires that the item is new.

    The first answers may differ, because the disk's free space is not checked for every write.
    """
    body: dict[str, Any] = {"TableName": table, "Item": item("a", "new")}
    if condition:
        body["ConditionExpression"] = "attribute_not_exists(pk)"
    for _ in range(2_000):
        answer = await connection.call("PutItem", body)
        if answer.error == error:
            return
        assert answer.status == 500, answer
    raise AssertionError(f"there is space, and writing did not come back: {answer}")


@contextmanager
def small_disk(directory: Path) -> Iterator[Path]:
    """A disk of 256 MiB in memory; needs permission to mount."""
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", directory], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", directory], check=True)
