"""ListStreams."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from msgspec import json

from dynactor.actors.phases.streams import StreamRegistry
from dynactor.api.access import asks
from dynactor.api.answers.table_description import stream_arn
from dynactor.api.execution.operation import Effect, Location, Operation
from dynactor.api.requests.call import DYNAMODB_STREAMS, Call
from dynactor.api.requests.inputs import ListStreamsInput
from dynactor.api.requests.stream_arn import named
from dynactor.model.errors import invalid_value
from dynactor.model.limits import LIST_STREAMS_PAGE


async def handle(call: Call[ListStreamsInput]) -> bytes:
    """A page of the streams, by table and label; the start stream need not exist."""
    request = call.request
    limit = request.Limit or LIST_STREAMS_PAGE
    if limit > LIST_STREAMS_PAGE:
        raise invalid_value(
            f"Limit cannot be greater than the maximum allowed size: {LIST_STREAMS_PAGE}"
        )
    start = ("", "")
    if request.ExclusiveStartStreamArn is not None:
        start = named(request.ExclusiveStartStreamArn)
    names = [
        name
        for name in await call.database.part(StreamRegistry).names()
        if request.TableName in (None, name[0])
    ]
    first = bisect_right(names, start)
    shown = [
        {
            "StreamArn": stream_arn(call.database, table_name, label),
            "TableName": table_name,
            "StreamLabel": label,
        }
        for table_name, label in names[first : first + limit]
    ]
    page: dict[str, Any] = {"Streams": shown}
    if first + limit < len(names):
        page["LastEvaluatedStreamArn"] = shown[-1]["StreamArn"]
    return json.encode(page)


OPERATION = Operation(
    ListStreamsInput,
    handle,
    asks=asks.no_resource,
    effect=Effect.DESCRIBES,
    location=Location.LEADER,
    service=DYNAMODB_STREAMS,
)
