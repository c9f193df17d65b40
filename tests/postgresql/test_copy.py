"""Copying a data directory to PostgreSQL and back, with indexes, streams and backups."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.clients import STREAMS_TARGET_PREFIX, WireClient
from tests.support.servers import server as servers
from tests.support.servers.postgresql import Postgresql
from tests.support.servers.server import Server, run_command, running_server
from tests.support.tables.tables import definition, global_index

TABLE = "copied"


def test_a_data_directory_is_copied_to_postgresql_and_back(
    postgresql: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgresql.url()
    places = {"first": ["--data-dir", str(tmp_path / "first")], "url": ["--store", url]}
    places["back"] = ["--data-dir", str(tmp_path / "back")]
    shown = {}
    for name, place in places.items():
        monkeypatch.setattr(servers, "place_options", lambda _, place=place: place)
        if name != "first":
            source, target = ("first", "url") if name == "url" else ("url", "back")
            copied = run_command("copy", "--from", places[source][1], "--to", places[target][1])
            assert copied.returncode == 0, copied.stderr
            assert "copied and compared" in copied.stdout
            assert TABLE in copied.stdout
            # The target has data now; another copy would mix the rows of two stores.
            again = run_command("copy", "--from", places[source][1], "--to", places[target][1])
            assert again.returncode == 1
            assert "has data already" in again.stderr
        with running_server("--gsi-lag", "awaited") as server:
            if name == "first":
                fill(server)
            shown[name] = everything(server)
            assert server.stop() == 0, server.log
    assert shown["first"] == shown["url"] == shown["back"]


def test_a_copy_of_a_missing_source_creates_no_target(
    postgresql: Postgresql, tmp_path: Path
) -> None:
    url = postgresql.url()
    ended = run_command("copy", "--from", str(tmp_path / "none"), "--to", url)
    assert ended.returncode == 1
    assert ended.stderr.endswith(f"{tmp_path / 'none'} is not a data directory of dynactor\n")
    assert not (tmp_path / "none").exists()


def fill(server: Server) -> None:
    request = definition("pk:S", "n:N", name=TABLE, indexes=())
    request["GlobalSecondaryIndexes"] = [global_index("of_n", "n")]
    request["KeySchema"] = [{"AttributeName": "pk", "KeyType": "HASH"}]
    request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    with closing(WireClient(server.endpoint)) as wire:
        wire("CreateTable", request)
        for number in range(40):
            item = {"pk": {"S": f"{number}"}, "n": {"N": f"{number % 7}"}}
            wire("PutItem", {"TableName": TABLE, "Item": item})
        wire("CreateBackup", {"TableName": TABLE, "BackupName": "kept"})


def everything(server: Server) -> dict[str, Any]:
    """All data that clients see: items, index entries, stream records and backups."""
    with (
        closing(WireClient(server.endpoint)) as wire,
        closing(WireClient(server.endpoint, STREAMS_TARGET_PREFIX)) as streams,
    ):
        index = {"TableName": TABLE, "IndexName": "of_n"}
        (stream,) = streams("ListStreams", {})["Streams"]
        arn = stream["StreamArn"]
        shards = streams("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]
        records = []
        for shard in shards:
            at = {"StreamArn": arn, "ShardId": shard["ShardId"]}
            at["ShardIteratorType"] = "TRIM_HORIZON"
            iterator = streams("GetShardIterator", at)["ShardIterator"]
            found = streams("GetRecords", {"ShardIterator": iterator})["Records"]
            records += [record["dynamodb"] for record in found]
        return {
            "items": wire("Scan", {"TableName": TABLE})["Items"],
            "entries": wire("Scan", index)["Items"],
            "count": wire("DescribeTable", {"TableName": TABLE})["Table"]["ItemCount"],
            "records": records,
            "backups": [each["BackupArn"] for each in wire("ListBackups", {})["BackupSummaries"]],
        }
