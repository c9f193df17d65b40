"""Backups and restores of tables that kill -9 interrupted are completed."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from tests.support.clients.clients import WireClient
from tests.support.databases.table_backups import items_of, wait_until_available
from tests.support.servers.server import Server, running_server
from tests.support.tables.tables import (
    definition,
    global_index,
    local_index,
    wait_until_active,
    wait_until_indexes_active,
)

FEW_ROUNDS = 1
_ITEMS = 1_500
_AT_A_TIME = 25
_INDEXES = ("by-n", "of-n")


def test_backups_and_restores_survive_kill_9(tmp_path: Path, rounds: int | None):
    source = Random(1)
    with running_server(data_dir=tmp_path) as server, closing(WireClient(server.endpoint)) as call:
        request = definition(
            "pk:S",
            "sk:S",
            "n:N",
            name="kept",
            indexes=(local_index("by-n", "pk", "n"),),
            GlobalSecondaryIndexes=[global_index("of-n", "n", projection="KEYS_ONLY")],
        )
        call("CreateTable", request)
        wait_until_indexes_active(call, "kept")
        fill(call, source)
        # The server is killed before the first page of the backup is stored, or after many.
        made = call("CreateBackup", {"TableName": "kept", "BackupName": "nightly"})
        server.kill()
    arn = made["BackupDetails"]["BackupArn"]

    for number in range(rounds or FEW_ROUNDS):
        name = f"restored-{number}"
        with running_server(data_dir=tmp_path) as server:
            let_it_work(server, source)
            server.kill()
        with (
            running_server(data_dir=tmp_path) as server,
            closing(WireClient(server.endpoint)) as call,
        ):
            wait_until_available(call, arn)
            call("RestoreTableFromBackup", {"TargetTableName": name, "BackupArn": arn})
            let_it_work(server, source)
            server.kill()
        with (
            running_server(data_dir=tmp_path) as server,
            closing(WireClient(server.endpoint)) as call,
        ):
            compare(call, name)
            assert server.stop() == 0, server.log


def fill(call: WireClient, source: Random) -> None:
    for begin in range(0, _ITEMS, _AT_A_TIME):
        puts = []
        for number in range(begin, begin + _AT_A_TIME):
            item: dict[str, Any] = {"pk": {"S": f"p{number % 7}"}, "sk": {"S": f"{number:05}"}}
            if source.randrange(3):
                item["n"] = {"N": f"{source.randrange(100)}"}
            puts.append({"PutRequest": {"Item": item | {"text": {"S": "x" * 300}}}})
        call("BatchWriteItem", {"RequestItems": {"kept": puts}})


def let_it_work(server: Server, source: Random) -> None:
    """Wait for the time of a random number of requests, so that the server continues its work."""
    with closing(WireClient(server.endpoint)) as call:
        for _ in range(source.randrange(40)):
            call("ListBackups", {})


def compare(call: WireClient, name: str) -> None:
    restored = wait_until_active(call, name)
    assert restored["ItemCount"] == _ITEMS
    assert items_of(call, name) == items_of(call, "kept")
    for index in _INDEXES:
        expected = items_of(call, "kept", IndexName=index)
        assert expected
        assert items_of(call, name, IndexName=index) == expected
