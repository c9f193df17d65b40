"""Acknowledged writes survive a stop and a kill of the server."""

from __future__ import annotations

import signal
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.clients.clients import WireClient
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.servers.server import Server, running_server
from tests.support.tables.tables import definition, local_index

pytestmark = pytest.mark.ours_alone("the server is started and ended here")

NAME = "kept"


def fill(server: Server) -> None:
    with closing(WireClient(server.endpoint)) as wire:
        index = local_index("by-n", "pk", "n", "KEYS_ONLY")
        request = definition("pk:S", "sk:S", "n:N", indexes=(index,), name=NAME)
        wire("CreateTable", request | {"Tags": [{"Key": "a", "Value": "b"}]})
        wire("CreateTable", definition("pk:S", name="gone"))
        for number in range(50):
            item = {
                "pk": {"S": f"p{number % 3}"},
                "sk": {"S": f"{number:02}"},
                "n": {"N": str(-number)},
                "v": {"M": {"set": {"NS": ["1", str(number + 2)]}, "b": {"B": "AAEC"}}},
            }
            wire("PutItem", {"TableName": NAME, "Item": item})
        wire("DeleteItem", {"TableName": NAME, "Key": {"pk": {"S": "p0"}, "sk": {"S": "00"}}})
        update = {
            "TableName": NAME,
            "Key": {"pk": {"S": "p1"}, "sk": {"S": "01"}},
            "UpdateExpression": "SET n = :n REMOVE v",
            "ExpressionAttributeValues": {":n": {"N": "100"}},
        }
        wire("UpdateItem", update)
        wire("DeleteTable", {"TableName": "gone"})


def is_whole(server: Server) -> None:
    with closing(WireClient(server.endpoint)) as wire:
        assert wire("ListTables", {})["TableNames"] == [NAME]
        described = wire("DescribeTable", {"TableName": NAME})["Table"]
        assert described["ItemCount"] == 49
        assert described["LocalSecondaryIndexes"][0]["ItemCount"] == 49
        arn = described["TableArn"]
        tags = wire("ListTagsOfResource", {"ResourceArn": arn})["Tags"]
        assert tags == [{"Key": "a", "Value": "b"}]
        scanned = {item["sk"]["S"]: item for item in wire("Scan", {"TableName": NAME})["Items"]}
        assert sorted(scanned) == [f"{number:02}" for number in range(1, 50)]
        assert scanned["01"] == {"pk": {"S": "p1"}, "sk": {"S": "01"}, "n": {"N": "100"}}
        assert sorted(scanned["07"]["v"]["M"]["set"]["NS"]) == ["1", "9"]
        query = {
            "TableName": NAME,
            "IndexName": "by-n",
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": "p1"}},
        }
        found = [int(item["n"]["N"]) for item in wire("Query", query)["Items"]]
        assert found == sorted([100, *[-number for number in range(4, 50, 3)]])


def test_all_data_exists_after_a_stop(tmp_path: Path):
    with running_server(data_dir=tmp_path) as server:
        fill(server)
        is_whole(server)
        assert server.stop() == 0
    for _ in range(2):
        with running_server(data_dir=tmp_path) as server:
            is_whole(server)
            assert server.stop() == 0


def test_all_data_exists_after_a_kill(tmp_path: Path):
    with running_server(data_dir=tmp_path) as server:
        fill(server)
        server.kill()
    with running_server(data_dir=tmp_path) as server:
        is_whole(server)


def test_a_server_in_memory_keeps_no_data_over_a_restart(tmp_path: Path):
    for _ in range(2):
        with running_server() as server, closing(WireClient(server.endpoint)) as wire:
            assert wire("ListTables", {}) == {"TableNames": []}
            wire("CreateTable", definition("pk:S", name=NAME))
    assert not list(tmp_path.iterdir())


def test_sigint_stops_the_server_normally(tmp_path: Path):
    with running_server(data_dir=tmp_path) as server:
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(HANG_SECONDS) == 0
        assert "Traceback" not in server.log


@pytest.mark.embedded_store("it tells the path of a data directory")
def test_a_data_directory_serves_one_server_at_a_time(tmp_path: Path):
    with running_server(data_dir=tmp_path) as server:
        with (
            pytest.raises(AssertionError) as failure,
            running_server(data_dir=tmp_path),
        ):
            pass
        assert str(tmp_path) in str(failure.value)
        assert "Traceback" not in str(failure.value)
        with closing(WireClient(server.endpoint)) as wire:
            assert wire("ListTables", {}) == {"TableNames": []}
