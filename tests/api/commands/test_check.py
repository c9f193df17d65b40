"""The command ``dynactor check`` reports the content of a data directory, and damage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.api.test_command_line import assert_gives_up
from tests.support.clients.clients import WireClient
from tests.support.servers.server import run_command, running_server
from tests.support.tables.tables import definition, local_index

ITEMS = 60


@pytest.fixture(params=["stopped", "killed"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A data directory; its items are in table files after a stop, and in the log after a kill."""
    directory = tmp_path / "data"
    by_day = local_index("by_day", "pk", "day")
    table = definition("pk:S", "sk:N", "day:S", indexes=(by_day,), name="Orders")
    with (
        running_server(data_dir=directory) as server,
        closing(WireClient(server.endpoint)) as call,
    ):
        call("CreateTable", table)
        for number in range(ITEMS):
            key = {"pk": {"S": "a"}, "sk": {"N": str(number)}}
            day = {"day": {"S": "mon"}} if number % 2 else {}
            call("PutItem", {"TableName": "Orders", "Item": key | day})
        if request.param == "stopped":
            server.stop()
        else:
            server.kill()
    return directory


def contents(directory: Path) -> dict[Path, bytes]:
    """All files except those that every reader changes: the lock and the engine's event log."""
    return {
        path: path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.name != "lock" and not path.name.startswith("LOG")
    }


def test_check_describes_a_directory_and_changes_no_file(data: Path):
    before = contents(data)
    done = run_command("check", str(data))
    assert (done.returncode, done.stderr) == (0, "")
    assert f"  Orders: {ITEMS} items, {ITEMS // 2} index entries\n" in done.stdout
    assert done.stdout.endswith("No damage was found\n")
    assert contents(data) == before


def flips(data: Path) -> Iterator[tuple[Path, int]]:
    """Files with rows, and positions in them."""
    for path in sorted((data / "rocksdb").iterdir()):
        if path.suffix in (".sst", ".log") and path.stat().st_size:
            for share in (0.1, 0.4):
                yield path, int(share * path.stat().st_size)


def test_check_finds_a_flipped_byte(data: Path):
    places = list(flips(data))
    assert places
    for path, offset in places:
        whole = path.read_bytes()
        path.write_bytes(whole[:offset] + bytes([whole[offset] ^ 0x20]) + whole[offset + 1 :])
        assert_gives_up(run_command("check", str(data)), "dynactor: ")
        path.write_bytes(whole)


def test_a_missing_mark_is_reported(data: Path):
    (data / "mark").unlink()
    done = run_command("check", str(data))
    assert (done.returncode, "The file mark is missing" in done.stdout) == (0, True)
    assert not (data / "mark").exists()


def test_check_refuses_a_directory_in_use(tmp_path: Path):
    with running_server(data_dir=tmp_path / "data"):
        assert_gives_up(run_command("check", str(tmp_path / "data")), "in use by process")


def test_another_directory_is_not_a_data_directory(tmp_path: Path):
    assert_gives_up(run_command("check", str(tmp_path)), f"{tmp_path} is not a data directory")
    missing = tmp_path / "missing"
    assert_gives_up(run_command("check", str(missing)), f"{missing} is not a data directory")
    assert list(tmp_path.iterdir()) == []
