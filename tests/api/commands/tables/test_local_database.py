"""Database files of DynamoDB Local as a source of imports.

``dynamodb_local_3_3_0.sql`` is the text of a file that DynamoDB Local 3.3.0 wrote; with and without
``-sharedDb`` only the file's name differs.
"""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dynactor.api.commands.tables import local_database
from dynactor.api.commands.tables.import_command import DONE, ImportCommand, ImportOptions
from dynactor.api.commands.tables.terminal_progress import TerminalProgress
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from tests.support.clients.database_endpoint import DatabaseEndpoint, no_pause
from tests.support.databases.databases import running_database

DUMP = Path(__file__).with_name("dynamodb_local_3_3_0.sql")
# The attributes of each item besides its sort key, with values of all types.
VALUES: dict[str, Any] = {
    "g": {"B": "AP8="},
    "l": {"S": "l"},
    "x": {"S": ""},
    "n": {"N": "-1234567890123.45678905"},
    "bo": {"BOOL": True},
    "nu": {"NULL": True},
    "b": {"B": "AAE="},
    "ss": {"SS": ["a", "b"]},
    "ns": {"NS": ["1.5", "2"]},
    "bs": {"BS": ["AQ==", "Ag=="]},
    "m": {
        "M": {"a": {"L": [{"N": "1"}, {"S": "x"}, {"M": {}}, {"BOOL": False}, {"BS": ["AQ=="]}]}}
    },
    "e": {"L": []},
}
SORT_KEYS = ["1", "-2.5", "100000000000000000000", "0"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "shared-local-instance.db"
    with closing(sqlite3.connect(file)) as database:
        database.executescript(DUMP.read_text())
    return file


def content(path: Path) -> bytes:
    return path.read_bytes()


def command(endpoint: DatabaseEndpoint, **options: Any) -> ImportCommand:
    return ImportCommand(endpoint, ImportOptions(**options), TerminalProgress(), no_pause)


async def test_tables_are_imported_with_their_definitions(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    before = content(path)
    async with running_database() as database:
        endpoint = DatabaseEndpoint(database)
        imported = command(endpoint, create=True)
        assert await imported.run([path]) == DONE
        keys = [(f"k{at % 2}\u00e9", number) for at, number in enumerate(SORT_KEYS)]
        expected = [{"pk": {"S": pk}, "sk": {"N": sk}, **VALUES} for pk, sk in keys]
        found = await endpoint.items("music")
        assert len(found) == len(expected)
        assert all(item in found for item in expected)
        assert await endpoint.items("bin-tab.le_2") == [{"b": {"B": "AP4="}}]
        described = (await endpoint.call("DescribeTable", {"TableName": "music"}))["Table"]
        assert [index["IndexName"] for index in described["GlobalSecondaryIndexes"]] == ["byg"]
        assert [index["IndexName"] for index in described["LocalSecondaryIndexes"]] == ["byl"]
        assert described["StreamSpecification"]["StreamViewType"] == "NEW_IMAGE"
        assert described["ProvisionedThroughput"]["WriteCapacityUnits"] == 6
        other = (await endpoint.call("DescribeTable", {"TableName": "bin-tab.le_2"}))["Table"]
        assert other["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert content(path) == before


async def test_one_table_of_the_file_is_selected(path: Path, tmp_path: Path):
    async with running_database() as database:
        endpoint = DatabaseEndpoint(database)
        state = tmp_path / "state.json"
        selected = command(endpoint, create=True, state=state, table="bin-tab.le_2")
        assert await selected.run([path]) == DONE
        assert await endpoint.call("ListTables", {}) == {"TableNames": ["bin-tab.le_2"]}
        with pytest.raises(TransferFailed, match="no table other"):
            await command(endpoint, table="other").run([path])


def test_another_database_is_refused(tmp_path: Path):
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE t (a)")
    assert local_database.is_local_database(file)
    with pytest.raises(TransferFailed, match="not a database of DynamoDB Local"):
        local_database.creations_in(file)


def test_a_file_with_an_unfinished_write_is_refused(path: Path):
    path.with_name(f"{path.name}-journal").touch()
    with pytest.raises(TransferFailed, match="journal"):
        local_database.creations_in(path)


if Path("/proc").is_dir():

    def test_a_file_that_another_process_has_open_is_refused(path: Path):
        with path.open("rb") as file, subprocess.Popen(["sleep", "60"], stdin=file) as process:
            try:
                with pytest.raises(TransferFailed, match=f"open in process {process.pid}"):
                    local_database.creations_in(path)
            finally:
                process.kill()
