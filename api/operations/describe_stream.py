"""DescribeStream."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from msgspec import json

from dynactor.api.access import asks
from dynactor.api.answers.stream_description import stream_description
from dynactor.api.execution.operation import Effect, Location, Operation
from dynactor.api.requests.call import DYNAMODB_STREAMS, Call
from dynactor.api.requests.inputs import DescribeStreamInput
from dynactor.api.requests.stream_arn import find_stream
from dynactor.api.requests.validation_errors import detected
from dynactor.model.errors import ValidationException, invalid_value
from dynactor.model.limits import DESCRIBE_STREAM_SHARDS
from dynactor.streams.shard import Shard


async def handle(call: Call[DescribeStreamInput]) -> bytes:
    """Show a stream with a page of its shards.

    Shards are in the order of their ids, which is the order of their times: shards that open while
    a client pages come last.
    """
    request = call.request
    _check(request)
    stream = find_stream(call.database, request.StreamArn)
    wanted = sorted(_wanted(request, stream.shards), key=attrgetter("shard_id"))
    shards = wanted[: request.Limit or DESCRIBE_STREAM_SHARDS]
    last_shard_id = shards[-1].shard_id if len(shards) < len(wanted) else None
    description = stream_description(call.database, stream, shards, last_shard_id)
    return json.encode({"StreamDescription": description})


def _check(request: DescribeStreamInput) -> None:
    if request.Limit is not None and request.Limit > DESCRIBE_STREAM_SHARDS:
        raise invalid_value(f"Limit cannot be greater than the maximum: {DESCRIBE_STREAM_SHARDS}")
    if request.ShardFilter is None:
        return
    if request.ShardFilter.Type is None:
        raise ValidationException(
            detected(
                "Value 'null' at 'shardFilter.type' failed to satisfy constraint: "
                "Member must be CHILD_SHARDS"
            )
        )
    if request.ShardFilter.ShardId is None:
        raise ValidationException(
            detected(
                "Value 'null' at 'shardFilter.shardId' failed to satisfy constraint: "
                "Member must not be null"
            )
        )
    if request.ExclusiveStartShardId is not None:
        raise ValidationException(
            "ShardFilter and ExclusiveStartShardId both should not be specified in the request."
        )


def _wanted(request: DescribeStreamInput, shards: Iterable[Shard]) -> list[Shard]:
    if request.ShardFilter is not None:
        parent_id = request.ShardFilter.ShardId
        return [shard for shard in shards if shard.parent_id == parent_id]
    start = request.ExclusiveStartShardId or ""
    return [shard for shard in shards if shard.shard_id > start]


OPERATION = Operation(
    DescribeStreamInput,
    handle,
    asks=asks.member("StreamArn"),
    effect=Effect.DESCRIBES,
    location=Location.HOME,
    service=DYNAMODB_STREAMS,
)
