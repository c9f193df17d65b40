"""A replica that is built from a table's stream finally equals the table, while shards roll.

The old image of each record must equal the replica's item. So the stream must have every change of
an item once and in order.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from aiobotocore.config import AioConfig
from aiobotocore.session import get_session

from tests.support.clients.clients import SDK_ARGUMENTS, boto3_client
from tests.support.servers.server import running_server
from tests.support.tables.tables import definition

pytestmark = pytest.mark.ours_alone("DynamoDB's shards roll after four hours")

GENERATIONS = 4
WRITERS = 4
KEYS = 25

Item = dict[str, Any]


@pytest.fixture(scope="module")
def rolling_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server whose shards roll continuously. Its data is on disk, so that commits take time."""
    data_dir = tmp_path_factory.mktemp("data")
    options = ("--shard-roll-seconds", "0.1", "--keep-streams-seconds", "0.02")
    with running_server(*options, "--partitions-per-table", "2", data_dir=data_dir) as server:
        yield server.endpoint


def streamed(name: str) -> dict[str, Any]:
    specification = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    return definition("pk:S", "sk:N", name=name, StreamSpecification=specification)


def extract_key(at: int) -> Item:
    return {"pk": {"S": f"p{at % 7}"}, "sk": {"N": str(at)}}


def random_write(source: random.Random, table: str) -> tuple[str, dict[str, Any]]:
    """A boto3 operation and its members; some writes change nothing."""
    key = extract_key(source.randrange(KEYS))
    value = {"N": str(source.randrange(3))}
    match source.randrange(4):
        case 0:
            return "delete_item", {"TableName": table, "Key": key}
        case 1:
            return "update_item", {
                "TableName": table,
                "Key": key,
                "UpdateExpression": "ADD n :n SET s = :s",
                "ExpressionAttributeValues": {":n": value, ":s": {"SS": ["b", "a"]}},
            }
        case _:
            return "put_item", {"TableName": table, "Item": key | {"n": value}}


class Replica:
    """The items that result from the records."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, str], Item] = {}
        self.numbers: set[str] = set()
        self.events: set[str] = set()

    def apply(self, record: dict[str, Any]) -> None:
        body = record["dynamodb"]
        keys = body["Keys"]
        place = (keys["pk"]["S"], keys["sk"]["N"])
        assert body["SequenceNumber"] not in self.numbers, "a record was shown twice"
        self.numbers.add(body["SequenceNumber"])
        self.events.add(record["eventID"])
        old, new = body.get("OldImage"), body.get("NewImage")
        assert self.items.get(place) == old
        names = {(False, True): "INSERT", (True, True): "MODIFY", (True, False): "REMOVE"}
        assert record["eventName"] == names[old is not None, new is not None]
        if new is None:
            del self.items[place]
        else:
            self.items[place] = new


def replayed(record: dict[str, Any], table: str) -> tuple[str, dict[str, Any]]:
    """The write that applies the record to another table."""
    body = record["dynamodb"]
    if "NewImage" in body:
        return "put_item", {"TableName": table, "Item": body["NewImage"]}
    return "delete_item", {"TableName": table, "Key": body["Keys"]}


def generation(shard_id: str, parents: dict[str, str | None]) -> int:
    """The number of a shard's ancestors."""
    parent = parents.get(shard_id)
    return 0 if parent is None else 1 + generation(parent, parents)


def by_key(items: list[Item]) -> list[Item]:
    return sorted(items, key=lambda item: (item["pk"]["S"], item["sk"]["N"]))


def test_boto3_follows_a_stream_into_another_table(rolling_endpoint: str):
    with (
        closing(boto3_client(rolling_endpoint)) as client,
        closing(boto3_client(rolling_endpoint, "dynamodbstreams")) as streams,
        ThreadPoolExecutor(1) as pool,
    ):
        created = client.create_table(**streamed("boto3-source"))["TableDescription"]
        client.create_table(**definition("pk:S", "sk:N", name="boto3-replica"))
        arn = created["LatestStreamArn"]

        def write() -> None:
            source = random.Random(1)
            while True:
                for _ in range(50):
                    operation, members = random_write(source, "boto3-source")
                    getattr(client, operation)(**members)
                if generations(streams, arn) >= GENERATIONS:
                    break
            client.update_table(
                TableName="boto3-source", StreamSpecification={"StreamEnabled": False}
            )

        writing = pool.submit(write)
        replica = Replica()
        read = set()
        described = streams.describe_stream(StreamArn=arn)["StreamDescription"]
        waiting = [
            shard["ShardId"] for shard in described["Shards"] if "ParentShardId" not in shard
        ]
        # Read shard by shard, parents before children, as a simple consumer does.
        while waiting:
            shard_id = waiting.pop(0)
            read.add(shard_id)
            for record in records_of_shard(streams, arn, shard_id):
                replica.apply(record)
                operation, members = replayed(record, "boto3-replica")
                getattr(client, operation)(**members)
            waiting += children(streams, arn, shard_id)
        writing.result()
        assert read == set(parents_of(streams, arn))
        assert len(replica.events) == len(replica.numbers)
        source_items = client.scan(TableName="boto3-source")["Items"]
        assert by_key(source_items) == by_key(list(replica.items.values()))
        assert by_key(source_items) == by_key(client.scan(TableName="boto3-replica")["Items"])


def parents_of(streams: Any, arn: str) -> dict[str, str | None]:
    """The parent of each shard."""
    shards = []
    request = {"StreamArn": arn}
    while True:
        page = streams.describe_stream(**request)["StreamDescription"]
        shards += page["Shards"]
        if "LastEvaluatedShardId" not in page:
            return {shard["ShardId"]: shard.get("ParentShardId") for shard in shards}
        request["ExclusiveStartShardId"] = page["LastEvaluatedShardId"]


def generations(streams: Any, arn: str) -> int:
    parents = parents_of(streams, arn)
    return min(
        generation(shard_id, parents) for shard_id in parents if shard_id not in parents.values()
    )


def records_of_shard(streams: Any, arn: str, shard_id: str) -> Iterator[dict[str, Any]]:
    iterator = streams.get_shard_iterator(
        StreamArn=arn, ShardId=shard_id, ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    while iterator is not None:
        answer = streams.get_records(ShardIterator=iterator, Limit=10)
        yield from answer["Records"]
        iterator = answer.get("NextShardIterator")


def children(streams: Any, arn: str, shard_id: str) -> list[str]:
    described = streams.describe_stream(
        StreamArn=arn, ShardFilter={"Type": "CHILD_SHARDS", "ShardId": shard_id}
    )["StreamDescription"]
    return [shard["ShardId"] for shard in described["Shards"]]


async def test_aiobotocore_reads_all_shards_at_once(rolling_endpoint: str):
    session = get_session()
    config = AioConfig(max_pool_connections=32, retries={"total_max_attempts": 1})
    arguments: dict[str, Any] = {
        "endpoint_url": rolling_endpoint,
        "config": config,
        **SDK_ARGUMENTS,
    }
    async with (
        session.create_client("dynamodb", **arguments) as client,
        session.create_client("dynamodbstreams", **arguments) as streams,
    ):
        created = await client.create_table(**streamed("aio-source"))
        arn = created["TableDescription"]["LatestStreamArn"]
        replica = Replica()
        parents: dict[str, str | None] = {}

        async def write(seed: int) -> None:
            source = random.Random(seed)
            while len({generation(shard_id, parents) for shard_id in parents}) <= GENERATIONS:
                for _ in range(20):
                    operation, members = random_write(source, "aio-source")
                    await getattr(client, operation)(**members)

        async def follow(shard: dict[str, Any]) -> None:
            shard_id = shard["ShardId"]
            assert shard_id not in parents, "a shard has one parent"
            parents[shard_id] = shard.get("ParentShardId")
            answer = await streams.get_shard_iterator(
                StreamArn=arn, ShardId=shard_id, ShardIteratorType="TRIM_HORIZON"
            )
            iterator = answer["ShardIterator"]
            while iterator is not None:
                answer = await streams.get_records(ShardIterator=iterator)
                for record in answer["Records"]:
                    replica.apply(record)
                iterator = answer.get("NextShardIterator")
            answer = await streams.describe_stream(
                StreamArn=arn, ShardFilter={"Type": "CHILD_SHARDS", "ShardId": shard_id}
            )
            await asyncio.gather(*map(follow, answer["StreamDescription"]["Shards"]))

        async def write_all() -> None:
            await asyncio.gather(*map(write, range(WRITERS)))
            await client.update_table(
                TableName="aio-source", StreamSpecification={"StreamEnabled": False}
            )

        described = await streams.describe_stream(StreamArn=arn)
        roots = described["StreamDescription"]["Shards"]
        await asyncio.gather(write_all(), *map(follow, roots))
        scanned = (await client.scan(TableName="aio-source"))["Items"]
        assert by_key(scanned) == by_key(list(replica.items.values()))
        assert len(replica.events) == len(replica.numbers)
