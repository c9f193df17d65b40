"""EnableKinesisStreamingDestination."""

from __future__ import annotations

from msgspec import json

from dynactor.actors.phases.destination_messages import EnableDestination
from dynactor.api.access import asks
from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.destination_arn import find_topic
from dynactor.api.requests.inputs import KinesisStreamingDestinationInput
from dynactor.api.requests.table_arn import table_name


async def handle(call: Call[KinesisStreamingDestinationInput]) -> bytes:
    """Publish a table's changes to the topic that the StreamArn names."""
    request = call.request
    name, configuration = table_name(request.TableName), request.EnableKinesisStreamingConfiguration
    given = configuration.ApproximateCreationDateTimePrecision if configuration else None
    message = EnableDestination(
        name, find_topic(call.database, request.StreamArn), given or "MILLISECOND"
    )
    destination = await call.database.ask(message)
    return json.encode(
        {
            "TableName": name,
            "StreamArn": request.StreamArn,
            "DestinationStatus": destination.status,
            "EnableKinesisStreamingConfiguration": {
                "ApproximateCreationDateTimePrecision": destination.precision
            },
        }
    )


OPERATION = Operation(
    KinesisStreamingDestinationInput,
    handle,
    asks=asks.table,
    name="EnableKinesisStreamingDestination",
)
