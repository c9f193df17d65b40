"""A flipped byte on disk causes an error at the start or at a read, and never a wrong answer."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from tests.support.clients.wire import Answer, Connection
from tests.support.histories.history import Item
from tests.support.servers.server import Server, ServerDidNotStart, running_server
from tests.support.writers.crashes import CrashingDatabase, address, connected
from tests.support.writers.writers import INDEXES, TABLES, Place, Writers, all_places

FEW_FLIPS = 3
# The offsets and the length of the mark's two slots.
MARK_SLOTS = (0, 4096)
MARK_SLOT_BYTES = 24


async def everything(connection: Connection) -> AsyncIterator[tuple[str, Answer]]:
    """Scan all tables and indexes; yield each page, up to the first error of a scan."""
    for table in TABLES:
        for index in (None, *(each.name for each in INDEXES if each.table == table)):
            body: dict[str, object] = {"TableName": table, "ConsistentRead": True, "Limit": 20}
            if index is not None:
                body["IndexName"] = index
            while True:
                answer = await connection.call("Scan", body)
                yield f"{table}/{index}", answer
                if "LastEvaluatedKey" not in answer.body:
                    break
                body["ExclusiveStartKey"] = answer.body["LastEvaluatedKey"]


class Shown(NamedTuple):
    """The data that a server returned: rows of scans before an error, and readable items.

    ``errors`` counts the scans and gets that ended with an error about damaged data.
    """

    rows: dict[str, list[Item]]
    items: dict[Place, Item | None]
    errors: int


async def look(server: Server) -> Shown:
    """Read all items and index entries by scans, and all items by gets."""
    shown = Shown({}, {}, 0)
    errors = 0
    async with connected(server) as connection:
        async for name, answer in everything(connection):
            found = shown.rows.setdefault(name, [])
            if is_good(answer):
                found += answer.body["Items"]
            else:
                errors += 1
        for place in all_places():
            body = {"TableName": place.table, "Key": place.key}
            answer = await connection.call("GetItem", body)
            if is_good(answer):
                shown.items[place] = answer.body.get("Item")
            else:
                errors += 1
    return shown._replace(errors=errors)


def is_good(answer: Answer) -> bool:
    """Whether the request succeeded; fail the test if an error is not about damaged data."""
    if answer.status == 200:
        return True
    assert answer.status == 500, answer
    assert "Corruption" in answer.body["message"], answer
    return False


async def started(directory: Path) -> Shown | str:
    """Start a server on this directory; return its data, or the message if it did not start."""
    try:
        with running_server(data_dir=directory) as server:
            shown = await look(server)
            server.stop()
            return shown
    except ServerDidNotStart as refusal:
        return str(refusal)


def is_clear(refusal: object, directory: Path) -> bool:
    """Whether the message says that data is damaged, and names the directory."""
    return (
        isinstance(refusal, str)
        and ("damaged" in refusal or "Corruption" in refusal)
        and str(directory) in refusal
        and "Traceback" not in refusal
    )


class Written(NamedTuple):
    """Two filled data directories to copy, and the data of both.

    ``in_log`` has its data in the log, ``in_tables`` in table files.
    """

    in_log: Path
    in_tables: Path
    truth: Shown


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return asyncio.run(_write(tmp_path_factory.mktemp("written")))


async def _write(directory: Path) -> Written:
    draw = Random(1)
    database = CrashingDatabase(directory, draw)
    await database.make()
    with database.running() as server:
        writers = Writers(database.history, draw)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(writers.run(*address(server)))
            await writers.wait_answers(1_500)
            writers.stopping = True
        # No request is in flight, so all of the log is durable, and a damaged byte must be
        # reported.
        server.kill()
    in_log = directory / "in_log"
    shutil.copytree(database.data_directory, in_log)
    shown = await started(database.data_directory)
    assert not isinstance(shown, str), shown
    assert shown.errors == 0
    return Written(in_log, database.data_directory, shown)


def flip(path: Path, draw: Random) -> str:
    """Flip one bit of a file; return the offset as text."""
    content = bytearray(path.read_bytes())
    at = draw.randrange(len(content))
    content[at] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    return f"byte {at} of {path.name}, {len(content)} bytes long"


def largest(directory: Path, pattern: str) -> Path:
    return max(directory.rglob(pattern), key=lambda path: path.stat().st_size)


async def test_a_flipped_byte_in_the_log_is_reported_at_the_start(
    written: Written, tmp_path: Path, rounds: int | None
) -> None:
    draw = Random(2)
    for _ in range(rounds or FEW_FLIPS):
        damaged = fresh_copy(written.in_log, tmp_path / "damaged")
        place = flip(largest(damaged, "*.log"), draw)

        refusal = await started(damaged)

        assert is_clear(refusal, damaged), (place, refusal)


async def test_a_flipped_byte_in_a_table_file_is_reported_at_the_start_or_when_it_is_read(
    written: Written, tmp_path: Path, rounds: int | None
) -> None:
    draw = Random(3)
    reported = 0
    for _ in range(rounds or FEW_FLIPS):
        damaged = fresh_copy(written.in_tables, tmp_path / "damaged")
        place = flip(largest(damaged, "*.sst"), draw)

        shown = await started(damaged)

        if isinstance(shown, str):
            assert is_clear(shown, damaged), (place, shown)
            reported += 1
            continue
        reported += shown.errors > 0
        for name, rows in shown.rows.items():
            assert rows == written.truth.rows[name][: len(rows)], (place, name)
        for where, item in shown.items.items():
            assert item == written.truth.items[where], (place, where)
        # Some bytes are needed by no read, such as those of a filter or of the file's statistics.
        assert shown.errors or shown == written.truth, place
    assert reported, "no byte that matters was ever hit"


@pytest.mark.parametrize("name", ["MANIFEST-*", "CURRENT", "format"])
async def test_any_other_damaged_file_is_reported_at_the_start(
    written: Written, tmp_path: Path, name: str
) -> None:
    damaged = fresh_copy(written.in_log, tmp_path / "damaged")
    place = flip(largest(damaged, name), Random(4))

    refusal = await started(damaged)

    assert is_clear(refusal, damaged), (place, refusal)


async def test_a_mark_that_is_torn_anywhere_in_its_last_write_is_no_error(
    written: Written, tmp_path: Path
) -> None:
    draw = Random(5)
    whole = (written.in_log / "mark").read_bytes()
    for slot in MARK_SLOTS:
        torn = fresh_copy(written.in_log, tmp_path / "torn")
        written_bytes = draw.randrange(1, MARK_SLOT_BYTES)
        content = bytearray(whole)
        content[slot + written_bytes : slot + MARK_SLOT_BYTES] = draw.randbytes(
            MARK_SLOT_BYTES - written_bytes
        )
        (torn / "mark").write_bytes(content)

        assert await started(torn) == written.truth, (slot, written_bytes)


async def test_a_mark_with_two_damaged_slots_is_reported_at_the_start(
    written: Written, tmp_path: Path
) -> None:
    damaged = fresh_copy(written.in_log, tmp_path / "damaged")
    (damaged / "mark").write_bytes(bytes((damaged / "mark").stat().st_size))

    refusal = await started(damaged)

    assert is_clear(refusal, damaged), refusal


@pytest.mark.parametrize("tail", [bytes(5), bytes(100_000), b"half a record"])
async def test_a_torn_end_of_the_log_is_no_error(
    written: Written, tmp_path: Path, tail: bytes
) -> None:
    """After a power cut the log may end with part of the unsynced data, or with zeros."""
    torn = fresh_copy(written.in_log, tmp_path / "torn")
    with largest(torn, "*.log").open("ab") as log:
        log.write(tail)

    assert await started(torn) == written.truth


def fresh_copy(source: Path, target: Path) -> Path:
    """Replace the copy of the last test by a new one."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return target
