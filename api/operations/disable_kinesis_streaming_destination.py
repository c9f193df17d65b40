"""DisableKinesisStreamingDestination."""

from __future__ import annotations

from msgspec import json

from dynactor.actors.phases.destination_messages import DisableDestination
from dynactor.api.access import asks
from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.destination_arn import find_topic
from dynactor.api.requests.inputs import KinesisStreamingDestinationInput
from dynactor.api.requests.table_arn import table_name


async def handle(call: Call[KinesisStreamingDestinationInput]) -> bytes:
    """Publish the changes that a table has recorded so far, and then stop publishing."""
    request = call.request
    name = table_name(request.TableName)
    message = DisableDestination(name, find_topic(call.database, request.StreamArn))
    destination = await call.database.ask(message)
    return json.encode(
        {
            "TableName": name,
            "StreamArn": request.StreamArn,
            "DestinationStatus": destination.status,
        }
    )


OPERATION = Operation(
    KinesisStreamingDestinationInput,
    handle,
    asks=asks.table,
    name="DisableKinesisStreamingDestination",
)
