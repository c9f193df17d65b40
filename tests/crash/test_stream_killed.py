"""A reader of a stream misses no record and sees none twice, even if the server is killed.

A stream shows only durable records, so no record disappears after a kill.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPException
from itertools import count
from pathlib import Path
from typing import Any

from tests.support.clients.clients import STREAMS_TARGET_PREFIX, WireClient
from tests.support.servers.server import running_server
from tests.support.streams.streams import iterator_of
from tests.support.tables.tables import definition

TABLE = "followed"
FEW_ROUNDS = 3
RECORDS_A_ROUND = 150
OPTIONS = ("--shard-roll-seconds", "0.2", "--keep-streams-seconds", "0.05")
SPECIFICATION = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}

Item = dict[str, Any]


class Follower:
    """A replica of the table, and its position in each shard.

    Invariant: the old image of each next record equals the replica's item.
    """

    def __init__(self, arn: str, shards: list[dict[str, Any]]) -> None:
        self.items: dict[str, Item] = {}
        self.records = 0
        self._arn = arn
        self._iterators: dict[str, str | None] = {shard["ShardId"]: None for shard in shards}

    @property
    def ended(self) -> bool:
        return not self._iterators

    def step(self, streams: WireClient) -> None:
        """Read each open shard once."""
        for shard_id, held in list(self._iterators.items()):
            iterator = held or iterator_of(streams, self._arn, shard_id)
            answer = streams("GetRecords", {"ShardIterator": iterator})
            following = answer.get("NextShardIterator")
            children: list[dict[str, Any]] = []
            if following is None:
                wanted = {"Type": "CHILD_SHARDS", "ShardId": shard_id}
                request = {"StreamArn": self._arn, "ShardFilter": wanted}
                children = streams("DescribeStream", request)["StreamDescription"]["Shards"]
            # No request from here on: a kill must not leave a page half applied.
            for record in answer["Records"]:
                self._apply(record["dynamodb"])
            if following is None:
                del self._iterators[shard_id]
                self._iterators.update((child["ShardId"], None) for child in children)
            else:
                self._iterators[shard_id] = following

    def _apply(self, body: dict[str, Any]) -> None:
        pk = body["Keys"]["pk"]["S"]
        assert self.items.get(pk) == body.get("OldImage")
        self.records += 1
        if "NewImage" in body:
            self.items[pk] = body["NewImage"]
        else:
            del self.items[pk]


@contextmanager
def both(endpoint: str) -> Iterator[tuple[WireClient, WireClient]]:
    """Clients of DynamoDB and DynamoDB Streams."""
    with (
        closing(WireClient(endpoint)) as wire,
        closing(WireClient(endpoint, STREAMS_TARGET_PREFIX)) as streams,
    ):
        yield wire, streams


def write_until_killed(endpoint: str, seed: int) -> None:
    source = random.Random(seed)
    with closing(WireClient(endpoint)) as wire:
        for number in count():
            key = {"pk": {"S": f"p{source.randrange(20)}"}}
            try:
                if source.randrange(4):
                    wire("PutItem", {"TableName": TABLE, "Item": key | {"n": {"N": str(number)}}})
                else:
                    wire("DeleteItem", {"TableName": TABLE, "Key": key})
            except (OSError, HTTPException):
                return


def test_a_reader_survives_kills_of_the_server(tmp_path: Path, rounds: int | None):
    with running_server(*OPTIONS, data_dir=tmp_path) as server:
        with both(server.endpoint) as (wire, streams):
            request = definition("pk:S", name=TABLE, StreamSpecification=SPECIFICATION)
            created = wire("CreateTable", request)
            arn = created["TableDescription"]["LatestStreamArn"]
            described = streams("DescribeStream", {"StreamArn": arn})["StreamDescription"]
            follower = Follower(arn, described["Shards"])
        server.stop()
    for seed in range(rounds or FEW_ROUNDS):
        with (
            running_server(*OPTIONS, data_dir=tmp_path) as server,
            both(server.endpoint) as (_, streams),
            ThreadPoolExecutor(2) as pool,
        ):
            writing = [
                pool.submit(write_until_killed, server.endpoint, 2 * seed + writer)
                for writer in range(2)
            ]
            goal = follower.records + RECORDS_A_ROUND
            while follower.records < goal:
                follower.step(streams)
            server.kill()
            for writer in writing:
                writer.result()
    with (
        running_server(*OPTIONS, data_dir=tmp_path) as server,
        both(server.endpoint) as (wire, streams),
    ):
        wire("UpdateTable", {"TableName": TABLE, "StreamSpecification": {"StreamEnabled": False}})
        while not follower.ended:
            follower.step(streams)
        found = {item["pk"]["S"]: item for item in wire("Scan", {"TableName": TABLE})["Items"]}
        assert found == follower.items
