"""Requests that need unreadable sectors of a table file fail; all others succeed."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.clients.clients import Answer, WireClient
from tests.support.servers.server import Server, running_server
from tests.support.stores.bad_sectors import BadSectors
from tests.support.tables.tables import definition

BAD, OTHER = "bad-table", "other-table"
ITEMS = 60
UNREADABLE = f"The data of the table {BAD} can't be read: IO error: "
NOTHING_WRITTEN = "Nothing was written: IO error: "


def key(number: int) -> dict[str, Any]:
    return {"pk": {"S": f"{number}"}}


def item(number: int) -> dict[str, Any]:
    payload = base64.b64encode(Random(number).randbytes(20_000)).decode()
    return key(number) | {"payload": {"B": payload}}


@pytest.fixture
def sectors(tmp_path: Path) -> BadSectors:
    return BadSectors(tmp_path / "sectors")


@pytest.fixture
def served(tmp_path: Path, sectors: BadSectors) -> Iterator[tuple[Server, WireClient, Path]]:
    """A server with empty caches, and the engine's table file, which has both tables."""
    data = tmp_path / "data"
    with running_server(data_dir=data) as server, closing(WireClient(server.endpoint)) as wire:
        for name in (BAD, OTHER):
            wire("CreateTable", definition("pk:S", name=name))
            for number in range(ITEMS):
                wire("PutItem", {"TableName": name, "Item": item(number)})
        server.stop()
    file = max((data / "rocksdb").glob("*.sst"), key=lambda path: path.stat().st_size)
    with (
        running_server(data_dir=data, environment=sectors.environment()) as server,
        closing(WireClient(server.endpoint)) as wire,
    ):
        yield server, wire, file


def spoil(sectors: BadSectors, file: Path) -> None:
    """Make some rows of the first table unreadable; they are in the first half of the file."""
    size_bytes = file.stat().st_size
    sectors.spoil(file, size_bytes // 5, size_bytes // 10)


def get(wire: WireClient, name: str, number: int) -> Answer:
    return wire.send("GetItem", {"TableName": name, "Key": key(number)})


def unreadable(wire: WireClient) -> list[int]:
    """The numbers of the items that can't be read."""
    return [number for number in range(ITEMS) if get(wire, BAD, number).status != 200]


def requests(number: int) -> list[tuple[str, dict[str, Any], str]]:
    """Requests that need an item, each with the start of the expected error message."""
    of_bad = {"TableName": BAD}
    value = {":p": {"S": f"{number}"}}
    put = of_bad | {"Item": item(number)}
    update = of_bad | {
        "Key": key(number),
        "UpdateExpression": "SET x = :p",
        "ExpressionAttributeValues": value,
    }
    query = of_bad | {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": value}
    batch_get = {"RequestItems": {BAD: {"Keys": [key(number)]}}}
    batch_put = {"RequestItems": {BAD: [{"PutRequest": {"Item": item(number)}}]}}
    statement = {"Statement": f"SELECT * FROM \"{BAD}\" WHERE pk = '{number}'"}
    transact_get = {"TransactItems": [{"Get": of_bad | {"Key": key(number)}}]}
    others_put = {"TableName": OTHER, "Item": item(ITEMS + 1)}
    transact_put = {"TransactItems": [{"Put": put}, {"Put": others_put}]}
    return [
        ("GetItem", of_bad | {"Key": key(number)}, UNREADABLE),
        ("Query", query, UNREADABLE),
        ("Scan", of_bad, UNREADABLE),
        ("BatchGetItem", batch_get, UNREADABLE),
        ("ExecuteStatement", statement, UNREADABLE),
        ("TransactGetItems", transact_get, "The items can't be read: IO error: "),
        ("PutItem", put, NOTHING_WRITTEN),
        ("UpdateItem", update, NOTHING_WRITTEN),
        ("DeleteItem", of_bad | {"Key": key(number)}, NOTHING_WRITTEN),
        ("BatchWriteItem", batch_put, NOTHING_WRITTEN),
        ("TransactWriteItems", transact_put, NOTHING_WRITTEN),
    ]


def test_a_request_that_reads_an_unreadable_sector_fails_and_names_the_file(served, sectors):
    server, wire, file = served
    spoil(sectors, file)
    lost = unreadable(wire)
    assert 0 < len(lost) < ITEMS / 2

    for operation, request, message in requests(lost[0]):
        answer = wire.send(operation, request)
        assert answer.status == 500, operation
        assert answer.json["__type"].endswith("#InternalServerError"), operation
        assert answer.json["message"].startswith(message), (operation, answer.json)
        assert file.name in answer.json["message"]
        assert "Input/output error" in answer.json["message"]

    assert "table_read_failed" in server.log
    assert f"table={BAD}" in server.log
    assert f"table={OTHER}" not in server.log
    # The failed transaction wrote nothing in the other table either.
    assert "Item" not in get(wire, OTHER, ITEMS + 1).json


def test_other_items_and_other_tables_are_read_and_written(served, sectors):
    _, wire, file = served
    spoil(sectors, file)
    lost = unreadable(wire)
    for number in range(ITEMS):
        assert get(wire, OTHER, number).json == {"Item": item(number)}
        wire("PutItem", {"TableName": OTHER, "Item": item(number)})
        if number not in lost:
            assert get(wire, BAD, number).json == {"Item": item(number)}
            wire("PutItem", {"TableName": BAD, "Item": item(number)})
    assert wire("Scan", {"TableName": OTHER})["Count"] > 0

    sectors.repair()

    assert unreadable(wire) == []
    for number in lost:
        assert get(wire, BAD, number).json == {"Item": item(number)}
        wire("PutItem", {"TableName": BAD, "Item": item(number)})


def test_writes_continue_after_a_compaction_failed_on_an_unreadable_sector(served, sectors):
    server, wire, file = served
    spoil(sectors, file)
    written = 0
    # Overwritten rows make the engine compact the file that held them.
    while "written_without_compactions" not in server.log and written < 20_000:
        wire("PutItem", {"TableName": OTHER, "Item": item(written % ITEMS)})
        written += 1

    assert "table_file_unreadable" in server.log
    assert "disk_failed" not in server.log
    for number in range(ITEMS):
        assert get(wire, OTHER, number).json == {"Item": item(number)}
