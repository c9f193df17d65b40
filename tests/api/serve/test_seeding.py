"""A server fills missing tables from a directory before it answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dynactor.actors.database.database import Database
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from dynactor.api.options.read_settings import read_settings
from dynactor.api.serve.running_server import running_server
from dynactor.api.serve.seeding import SEED_TAG, DatabaseEndpoint, seed
from tests.support.databases.databases import running_database

CREATION: dict[str, Any] = {
    "TableName": "users",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    # The units, also the unused ones of 300 seconds, are too few for the items.
    "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
    "Tags": [{"Key": "team", "Value": "a"}],
}
ITEMS = 400


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name in ("users", "orders"):
        folder = tmp_path / name
        folder.mkdir()
        creation = {**CREATION, "TableName": name}
        (folder / "table.json").write_bytes(msgspec.json.encode(creation))
        lines = [f'{{"pk": "{number}"}}\n' for number in range(ITEMS)]
        (folder / "items.jsonl").write_text("".join(lines))
    return tmp_path


async def names_of(endpoint: DatabaseEndpoint) -> list[str]:
    names: list[str] = (await endpoint.call("ListTables", {}))["TableNames"]
    return names


async def count_of(endpoint: DatabaseEndpoint, name: str) -> int:
    answer = await endpoint.call("Scan", {"TableName": name, "Select": "COUNT"})
    count: int = answer["Count"]
    return count


async def tags_of(database: Database, name: str) -> Any:
    endpoint = DatabaseEndpoint(database)
    described = await endpoint.call("DescribeTable", {"TableName": name})
    arn = {"ResourceArn": described["Table"]["TableArn"]}
    return (await endpoint.call("ListTagsOfResource", arn))["Tags"]


async def test_missing_tables_are_filled_and_existing_ones_are_left_alone(directory: Path):
    async with running_database() as database:
        endpoint = DatabaseEndpoint(database)
        await endpoint.call("CreateTable", {**CREATION, "TableName": "orders"})
        await seed(database, directory)
        assert await count_of(endpoint, "users") == ITEMS
        assert await tags_of(database, "users") == CREATION["Tags"]
        assert await count_of(endpoint, "orders") == 0
        await endpoint.call("PutItem", {"TableName": "users", "Item": {"pk": {"S": "later"}}})
        await seed(database, directory)
        assert await count_of(endpoint, "users") == ITEMS + 1


async def test_the_time_to_live_of_a_seeded_table_is_enabled(directory: Path):
    specification = {"AttributeName": "expires", "Enabled": True}
    creation = {**CREATION, "TimeToLiveSpecification": specification}
    (directory / "users" / "table.json").write_bytes(msgspec.json.encode(creation))
    async with running_database() as database:
        endpoint = DatabaseEndpoint(database)
        await seed(database, directory)
        answer = await endpoint.call("DescribeTimeToLive", {"TableName": "users"})
        assert answer["TimeToLiveDescription"]["AttributeName"] == "expires"
        answer = await endpoint.call("DescribeTimeToLive", {"TableName": "orders"})
        assert answer["TimeToLiveDescription"] == {"TimeToLiveStatus": "DISABLED"}


async def test_a_table_of_an_interrupted_start_is_filled_again(directory: Path):
    async with running_database() as database:
        endpoint = DatabaseEndpoint(database)
        tag = {"Key": SEED_TAG, "Value": "unfinished"}
        left = {**CREATION, "Tags": [tag], "DeletionProtectionEnabled": True}
        await endpoint.call("CreateTable", left)
        await endpoint.call("PutItem", {"TableName": "users", "Item": {"pk": {"S": "old"}}})
        await seed(database, directory)
        assert await count_of(endpoint, "users") == ITEMS
        assert await tags_of(database, "users") == CREATION["Tags"]


async def test_a_faulty_item_leaves_no_table(directory: Path):
    with (directory / "users" / "items.jsonl").open("a") as file:
        file.write('{"name": "without a key"}\n')
    async with running_database() as database:
        with pytest.raises(TransferFailed, match=f"items.jsonl:{ITEMS + 1}: ValidationException"):
            await seed(database, directory)
        assert await names_of(DatabaseEndpoint(database)) == []


async def test_a_directory_without_definitions_is_refused(tmp_path: Path):
    (tmp_path / "items.jsonl").write_text('{"pk": "a"}\n')
    async with running_database() as database:
        with pytest.raises(TransferFailed, match="no table"):
            await seed(database, tmp_path)


async def test_a_broken_file_ends_the_server_before_it_answers(directory: Path):
    (directory / "users" / "table.json").write_text('{"TableName": "users"}')
    settings = read_settings(in_memory=True, port=0, no_admin=True, seed=directory)
    with pytest.raises(TransferFailed, match="does not define a table"):
        async with running_server(settings):
            pass
