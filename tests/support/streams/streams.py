"""Tables with a stream, and a reader of all its records, for wire tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.clients.clients import WireClient
from tests.support.tables.tables import Call, table


@contextmanager
def streamed_table(
    call: Call, *keys: str, view_type: str = "NEW_AND_OLD_IMAGES", **members: Any
) -> Iterator[tuple[str, str]]:
    """Create a table with a stream; yield the table's name and the stream's ARN."""
    specification = {"StreamEnabled": True, "StreamViewType": view_type}
    with table(call, *keys, StreamSpecification=specification, **members) as name:
        described = call("DescribeTable", {"TableName": name})["Table"]
        yield name, described["LatestStreamArn"]


def shards_of(streams: WireClient, arn: str) -> list[dict[str, Any]]:
    """All shards of a stream."""
    shards: list[dict[str, Any]] = []
    request = {"StreamArn": arn}
    while True:
        description = streams("DescribeStream", request)["StreamDescription"]
        shards += description["Shards"]
        if "LastEvaluatedShardId" not in description:
            return shards
        request["ExclusiveStartShardId"] = description["LastEvaluatedShardId"]


def iterator_of(
    streams: WireClient, arn: str, shard_id: str, kind: str = "TRIM_HORIZON", **members: Any
) -> str:
    """A shard iterator."""
    request = {"StreamArn": arn, "ShardId": shard_id, "ShardIteratorType": kind, **members}
    iterator: str = streams("GetShardIterator", request)["ShardIterator"]
    return iterator


def drained(
    streams: WireClient, iterator: str | None, **members: Any
) -> tuple[list[dict[str, Any]], str | None]:
    """The records from an iterator up to the first empty page or the end, and the next iterator."""
    records: list[dict[str, Any]] = []
    while iterator is not None:
        answer = streams("GetRecords", {"ShardIterator": iterator, **members})
        iterator = answer.get("NextShardIterator")
        if not answer["Records"]:
            break
        records += answer["Records"]
    return records, iterator


def records_of(streams: WireClient, arn: str) -> list[dict[str, Any]]:
    """All readable records of a stream, shard by shard."""
    return [
        record
        for shard in shards_of(streams, arn)
        for record in drained(streams, iterator_of(streams, arn, shard["ShardId"]))[0]
    ]


def images(records: list[dict[str, Any]]) -> list[tuple[str, Any, Any]]:
    """Name, old image and new image of each record."""
    return [
        (
            record["eventName"],
            record["dynamodb"].get("OldImage"),
            record["dynamodb"].get("NewImage"),
        )
        for record in records
    ]
