"""A stream and its issued iterators survive the server's process."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.support.clients.clients import STREAMS_TARGET_PREFIX, WireClient
from tests.support.servers.server import running_server
from tests.support.streams.streams import drained, iterator_of, records_of, shards_of
from tests.support.tables.tables import definition

pytestmark = pytest.mark.ours_alone("it starts and stops the server")

SPECIFICATION = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


@pytest.mark.parametrize("killed", [False, True])
def test_a_reader_continues_after_a_restart(tmp_path: Path, killed: bool):
    with running_server(data_dir=tmp_path) as server:
        with (
            closing(WireClient(server.endpoint)) as wire,
            closing(WireClient(server.endpoint, STREAMS_TARGET_PREFIX)) as streams,
        ):
            created = wire(
                "CreateTable", definition("pk:S", name="kept", StreamSpecification=SPECIFICATION)
            )
            arn = created["TableDescription"]["LatestStreamArn"]
            for value in range(20):
                wire(
                    "PutItem",
                    {
                        "TableName": "kept",
                        "Item": {"pk": {"S": f"{value % 5}"}, "n": {"N": str(value)}},
                    },
                )
            shards = shards_of(streams, arn)
            before = records_of(streams, arn)
            following = [
                drained(streams, iterator_of(streams, arn, shard["ShardId"]))[1] for shard in shards
            ]
        if killed:
            server.kill()
        else:
            server.stop()
    with (
        running_server(data_dir=tmp_path) as server,
        closing(WireClient(server.endpoint)) as wire,
        closing(WireClient(server.endpoint, STREAMS_TARGET_PREFIX)) as streams,
    ):
        assert shards_of(streams, arn) == shards
        assert records_of(streams, arn) == before
        wire("DeleteItem", {"TableName": "kept", "Key": {"pk": {"S": "3"}}})
        read = [record for iterator in following for record in drained(streams, iterator)[0]]
        (removed,) = read
        assert removed["eventName"] == "REMOVE"
        assert removed["dynamodb"]["OldImage"] == {"pk": {"S": "3"}, "n": {"N": "18"}}
        assert removed["eventID"] not in {record["eventID"] for record in before}
